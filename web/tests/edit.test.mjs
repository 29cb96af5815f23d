// What people write on the page: the editor, new notes, moves, folders, tasks, days, and the undo of a session.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { agent, launch, NOW, open, run, serve, settle, vaultOf, violations, write } from './support.mjs';

describe('edit', () => {
  let browser;
  let server;
  let vault;
  const text = (path) => readFileSync(join(vault, path), 'utf8');
  before(async () => {
    browser = await launch();
    vault = vaultOf({
      '.obsidian/templates.json': '{"folder": "Templates"}',
      'Templates/Meeting.md': '# {{title}}\n\nWho came?\n',
      'Weir.md': '---\nstatus: open\n---\n# Weir\n\nThe gauge is *old*.\n\n- [ ] look at it\n',
      'Windows.md': 'one\r\ntwo\r\n',
      'Trip.md': 'See [[Weir]] and [[Weir|the weir]].\n',
      'Projects/Deep/Er/Plan.md': '# The plan\n',
      'Projects/List.md': '- [ ] pay [[Trip|the trip]] 📅 2026-11-20\n- [ ] call 📅 2026-11-21\n- [ ] some day\n- [x] went\n- [/] halfway\n',
      'Made.md': '---\ncreated: 2026-11-20T10:00:00Z\nupdated: 2026-11-20T10:00:00Z\n---\nmade\n',
      ...Object.fromEntries(Array.from({ length: 230 }, (_, index) => [`Many/note ${String(index).padStart(3, '0')}.md`, `# Number ${index}\n`])),
    });
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  const editor = 'textarea.editor-text';
  const state = (page, words) => page.waitForFunction((words) => document.querySelector('.editor-state')?.textContent === words, words);

  test('a note is edited with a preview, saved by keys, and the save can be undone', async () => {
    const { page, context, seen } = await open(browser, server, '/note/Weir.md');
    await page.click('.note-actions >> text=Edit');
    await page.waitForSelector(editor);
    assert.match(page.url(), /edit=1/);
    assert.equal(await page.inputValue(editor), text('Weir.md'));
    await page.waitForSelector('.editor-side .prose >> text=The gauge is old.');
    await page.fill(editor, '---\nstatus: done\n---\n# Weir\n\nThe gauge is **new**, see [[Trip]] and [[Nowhere]].\n');
    await page.waitForSelector('.prose strong >> text=new');
    assert.equal(await page.getAttribute('.prose a.internal', 'href'), '/note/Trip.md');
    await state(page, 'Not saved');
    assert.match(text('Weir.md'), /old/);
    await page.click('role=tab[name="Changes"]');
    await page.waitForSelector('.diff .added >> text=status: done');
    await page.focus(editor);
    await page.keyboard.press('Control+s');
    await page.waitForSelector('.toast >> text=Saved');
    await state(page, 'Saved');
    assert.equal(text('Weir.md'), '---\nstatus: done\n---\n# Weir\n\nThe gauge is **new**, see [[Trip]] and [[Nowhere]].\n');
    // What is typed next is based on what was saved.
    await page.focus(editor);
    await page.keyboard.press('Control+End');
    await page.keyboard.type('More.\n');
    await page.keyboard.press('Control+s');
    await page.waitForFunction(() => document.querySelector('.editor-state')?.textContent === 'Saved');
    assert.match(text('Weir.md'), /More\.\n$/);
    assert.equal(await page.$('.editor-conflict'), null);
    await page.click('.toast >> nth=-1 >> text=Undo');
    await page.waitForFunction((editor) => !document.querySelector(editor).value.includes('More.'), editor);
    await page.keyboard.press('Escape');
    await page.waitForSelector('.note-head .crumbs');
    assert.deepEqual(seen.errors, []);
    await context.close();
  });

  test('line ends stay as they are in the file', async () => {
    const { page, context } = await open(browser, server, '/note/Windows.md?edit=1');
    await page.waitForSelector(editor);
    await page.fill(editor, 'one\n2\nthree\n');
    await page.click('text=Save');
    await page.waitForSelector('.toast >> text=Saved');
    assert.equal(text('Windows.md'), 'one\r\n2\r\nthree\r\n');
    await context.close();
  });

  test('a change elsewhere shows both texts, and none is lost', async () => {
    write(vault, 'Both.md', 'first\n');
    const { page, context } = await open(browser, server, '/note/Both.md?edit=1');
    await page.waitForSelector(editor);
    // Without a draft, the field follows the note.
    write(vault, 'Both.md', 'second\n');
    await page.waitForFunction((editor) => document.querySelector(editor).value === 'second\n', editor);
    await page.fill(editor, 'mine\n');
    write(vault, 'Both.md', 'theirs\n');
    await page.waitForSelector('.editor-conflict');
    const texts = await page.$$eval('.editor-conflict pre', (all) => all.map((one) => one.textContent));
    assert.deepEqual(texts, ['theirs\n', 'mine\n']);
    assert.equal(await page.inputValue(editor), 'mine\n');
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press('Control+s');
    assert.equal(text('Both.md'), 'theirs\n');
    await page.click('text=Go on with my text');
    await page.waitForSelector('.editor-conflict', { state: 'detached' });
    await page.keyboard.press('Control+s');
    await page.waitForSelector('.toast >> text=Saved');
    assert.equal(text('Both.md'), 'mine\n');
    // The other text can be taken as well.
    await page.fill(editor, 'mine again\n');
    write(vault, 'Both.md', 'theirs again\n');
    await page.click('text=Take the text of the note');
    await page.waitForFunction((editor) => document.querySelector(editor).value === 'theirs again\n', editor);
    await context.close();
  });

  test('a draft outlives other views, a question before it is left, a note that is gone, and a server that is away', async () => {
    write(vault, 'Draft.md', 'before\n');
    const { page, context, seen } = await open(browser, server, '/note/Draft.md?edit=1');
    await page.waitForSelector(editor);
    await page.fill(editor, 'a draft\n');
    await page.focus(editor);
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog >> text=Discard your changes?');
    await page.click('dialog >> text=Keep editing');
    assert.equal(await page.inputValue(editor), 'a draft\n');
    await page.click('nav >> text=Health');
    await page.waitForSelector('.unsaved >> text=Draft');
    await page.goBack();
    await page.waitForSelector(editor);
    assert.equal(await page.inputValue(editor), 'a draft\n');
    await page.goto(`${server.base}/status`).catch(() => undefined);
    assert.equal(seen.dialogs.length, 1, 'the browser asks before it leaves the page');
    assert.equal(await page.inputValue(editor), 'a draft\n');
    // The note is deleted meanwhile.
    rmSync(join(vault, 'Draft.md'));
    await page.waitForSelector('text=is not there any more');
    assert.equal(await page.inputValue(editor), 'a draft\n');
    // It is made where it was, wherever new notes go.
    write(vault, '.obsidian/app.json', '{"newFileLocation": "folder", "newFileFolderPath": "Inbox"}');
    await page.click('text=Create it again with this text');
    await page.waitForSelector('.toast >> text=Saved');
    rmSync(join(vault, '.obsidian/app.json'));
    assert.equal(text('Draft.md'), 'a draft\n');
    assert.equal(existsSync(join(vault, 'Inbox')), false);
    // The server is away: the text stays, and the error says so.
    await page.waitForSelector(editor);
    await page.fill(editor, 'offline\n');
    await page.route('**/api/v1/actions/write', (route) => route.abort());
    await page.keyboard.press('Control+s');
    await page.waitForSelector('.failure >> text=The server does not answer');
    assert.equal(await page.inputValue(editor), 'offline\n');
    await page.unroute('**/api/v1/actions/write');
    await page.click('.failure >> text=Try again');
    await state(page, 'Saved');
    assert.equal(text('Draft.md'), 'offline\n');
    await context.close();
  });

  test('a note that cannot be written says so before anything is typed', async () => {
    write(vault, 'Latin.md', Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]));
    const { page, context } = await open(browser, server, '/note/Latin.md?edit=1');
    await page.waitForSelector('.failure >> text=not UTF-8');
    await context.close();
  });

  test('a note is made from a template, and a taken name is refused with its note', async () => {
    const { page, context } = await open(browser, server, '/notes?folder=Projects');
    await page.click('text=New note here');
    await page.fill('dialog >> label:has-text("Title") >> input', 'Monday');
    assert.equal(await page.inputValue('dialog >> label:has-text("Folder") >> input'), 'Projects');
    await page.selectOption('dialog select', { label: 'Meeting' });
    await page.keyboard.press('Tab');
    await page.click('dialog >> text=Next');
    await page.waitForSelector('dialog .diff .added >> text=Who came?');
    await page.click('dialog .button.primary');
    await page.waitForSelector('.toast >> text=Created “Monday”. Created 1.');
    await page.waitForSelector(editor);
    assert.match(page.url(), /\/note\/Projects\/Monday\.md\?edit=1/);
    assert.match(text('Projects/Monday.md'), /# Monday\n\nWho came\?/);
    await page.goto(`${server.base}/notes`);
    await settle(page);
    await page.click('.nav-foot >> text=New note');
    await page.fill('dialog >> label:has-text("Title") >> input', 'Monday');
    await page.fill('dialog >> label:has-text("Folder") >> input', 'Projects');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog .failure >> text=The name is that of');
    assert.equal(await page.getAttribute('dialog .failure a', 'href'), '/note/Projects/Monday.md');
    await context.close();
  });

  test('a note is moved with its links, which are shown before', async () => {
    const { page, context } = await open(browser, server, '/note/Weir.md');
    await page.click('.note-actions >> text=Rename or move');
    await page.fill('dialog >> label:has-text("Name") >> input', 'Old weir');
    await page.fill('dialog >> label:has-text("Folder") >> input', 'River');
    assert.deepEqual(await violations(page), []);
    await page.click('dialog >> text=Next');
    await page.waitForSelector('dialog >> text=Links change in 1 other note.');
    await page.waitForSelector('dialog .diff .added >> text=[[Old weir]]');
    assert.match(text('Trip.md'), /\[\[Weir\]\]/);
    await page.click('dialog .button.primary');
    await page.waitForSelector('.toast >> text=It is “Old weir” now. Changed 2.');
    await page.waitForURL('**/note/River/Old%20weir.md');
    assert.equal(text('Trip.md'), 'See [[Old weir]] and [[Old weir|the weir]].\n');
    assert.ok(!existsSync(join(vault, 'Weir.md')));
    await context.close();
  });

  test('folders open by mouse, keys and address, and many notes come in parts', async () => {
    const { page, context, seen } = await open(browser, server, '/notes');
    const names = () => page.$$eval('.tree-folder bdi', (all) => all.map((one) => one.textContent));
    assert.deepEqual((await names()).slice(0, 3), ['Many', 'Projects', 'River']);
    assert.match(await page.textContent('.tree-folder'), /Many\s*230/);
    await page.click('.tree-toggle >> text=Many');
    await page.waitForSelector('.tree-notes >> text=Number 199');
    assert.equal(await page.$$eval('.tree-inside .tree-notes li', (all) => all.length), 200);
    await page.click('text=Show 30 more of 30');
    await page.waitForSelector('.tree-notes >> text=Number 229');
    await page.focus('.tree-toggle >> text=Many');
    await page.focus('.tree-toggle');
    await page.keyboard.press('ArrowLeft');
    assert.equal(await page.getAttribute('.tree-toggle', 'aria-expanded'), 'false');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.waitForSelector('.tree-notes >> text=List');
    assert.match(page.url(), /folder=Projects$/);
    await page.goto(`${server.base}/notes?folder=Projects%2FDeep%2FEr`);
    await page.waitForSelector('.tree-notes >> text=The plan');
    assert.equal(await page.textContent('.tree-folder.chosen bdi'), 'Er');
    assert.deepEqual(await violations(page), []);
    // A new note appears by itself.
    write(vault, 'Projects/Deep/Er/Fresh.md', 'fresh\n');
    await page.waitForSelector('.tree-notes >> text=Fresh', { timeout: 5000 });
    await page.fill('[data-filter-field]', 'plan');
    await page.waitForSelector('.tree-notes >> text=The plan');
    await page.fill('[data-filter-field]', 'quokka');
    await page.waitForSelector('.empty >> text=quokka');
    assert.deepEqual(seen.errors, []);
    await context.close();
  });

  test('tasks are filtered, and a click on one completes it', async () => {
    const { page, context } = await open(browser, server, '/tasks');
    const rows = () => page.$$eval('.task-text', (all) => all.map((one) => one.textContent));
    assert.deepEqual((await rows()).slice(0, 2), ['pay the trip', 'call']);
    assert.match(await page.textContent('.task-row'), /overdue: /);
    assert.deepEqual(await violations(page), []);
    await page.selectOption('.choice:has-text("Due") select', 'overdue');
    await page.waitForFunction(() => document.querySelectorAll('.task-row').length === 1);
    await page.click('.task-box');
    await page.waitForSelector('dialog .diff .added >> text=- [x] pay');
    await page.click('dialog .button.primary');
    await page.waitForSelector('.toast >> text=Task completed.');
    assert.match(text('Projects/List.md'), /^- \[x\] pay/);
    await page.waitForSelector('.empty >> text=No task matches');
    await page.click('text=Clear the filters');
    await page.click('.segments >> text=Done');
    await page.waitForSelector('.task-row.done >> text=halfway');
    assert.equal(await page.getAttribute('.task-row:has-text("halfway") .task-box', 'aria-checked'), 'mixed');
    assert.match(page.url(), /show=done/);
    await context.close();
  });

  test('a day shows its note, what is due and what was made, and the next one', async () => {
    const { page, context } = await open(browser, server, '/day');
    await page.waitForSelector('h1 >> text=21 November 2026');
    await page.waitForSelector('.task-text >> text=call');
    assert.deepEqual(await violations(page), []);
    await page.click('role=button[name="Previous day"]');
    await page.waitForSelector('.day-notes >> text=Made');
    assert.match(page.url(), /day=2026-11-20/);
    await page.keyboard.press('Escape');
    await page.click('text=Create the daily note');
    await page.waitForSelector('dialog .diff-file >> text=2026-11-20.md');
    await page.click('dialog .button.primary');
    await page.waitForSelector(editor);
    assert.ok(existsSync(join(vault, '2026-11-20.md')));
    await page.goBack();
    await page.waitForSelector('.daily .note-link >> text=2026-11-20');
    await context.close();
  });

  test('a session is undone after it was shown what stays', async () => {
    write(vault, 'S1.md', 'one\n');
    write(vault, 'S2.md', 'two\n');
    for (const name of ['S1', 'S2', 'S1']) run(vault, ['--session', 'night', 'append', name, 'by the session'], { now: '2026-11-21T08:30:00Z' });
    const written = text('S2.md');
    write(vault, 'S2.md', 'all of it is new\n');
    const { page, context } = await open(browser, server, '/activity?session=night');
    await page.click('text=Undo this session');
    await page.waitForSelector('dialog >> text=2 operations are taken back');
    await page.waitForSelector('dialog >> text=1 operation cannot be taken back and stays');
    assert.equal(await page.$('dialog .notices'), null);
    await page.click('dialog .event-toggle');
    await page.waitForSelector('dialog .diff .added >> text=by the session');
    assert.deepEqual(await violations(page), []);
    // What was shown as what stays stays, even if it could be taken back now.
    write(vault, 'S2.md', written);
    await page.click('dialog .button.primary');
    await page.waitForSelector('.toast >> text=Undone: 2 operations');
    assert.deepEqual([text('S1.md'), text('S2.md')], ['one\n', written]);
    await context.close();
  });

  test('no new view is wider than a narrow screen, and a server that writes nothing offers nothing', async () => {
    const reader = await serve(vault, { args: ['--read-only'] });
    const narrow = { viewport: { width: 360, height: 720 } };
    const long = 'a very long name without an end that goes on and on'.replaceAll(' ', '');
    write(vault, `Projects/${long}/${long}.md`, `- [ ] ${long}${long} 📅 2026-11-21\n`);
    for (const [server_, address] of [
      [server, '/notes?folder=Projects%2F' + long],
      [server, '/tasks?show=all'],
      [server, '/day'],
      [server, `/note/Projects/${long}/${long}.md?edit=1`],
      [server, '/note/Trip.md?edit=1&pane=changes'],
      [reader, '/notes?folder=Projects'],
      [reader, '/tasks'],
      [reader, '/day'],
      [reader, '/note/Trip.md?edit=1'],
      [reader, '/activity?session=night'],
    ]) {
      const { page, context } = await open(browser, server_, address, narrow);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(width, 360, address);
      assert.deepEqual(await violations(page), [], address);
      if (server_ === reader) {
        const buttons = await page.$$eval('button', (all) => all.map((one) => one.textContent + (one.getAttribute('aria-label') ?? '')));
        assert.deepEqual(buttons.filter((words) => /new note|create|edit|undo|save|move/i.test(words)), [], address);
        assert.equal(await page.$('textarea'), null, address);
        assert.equal(await page.$('.task-box:not(:disabled)'), null, address);
      }
      await context.close();
    }
    await reader.stop();
  });
});
