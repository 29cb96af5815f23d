// Deleted notes are read and restored, broken links get a note, and the same number is the same everywhere.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { agent, launch, open, run, serve, settle, vaultOf, violations, write } from './support.mjs';

const at = (time) => ({ now: time });

/** A vault in which notes fall within a week, were deleted by a person and by an agent, and have broken links. */
async function neglected() {
  const same = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ');
  const vault = vaultOf({
    'Projects/Plan.md': '# Plan\n\nSee [[Trial]] and [[Old pump]]. The pump runs from 02:15.\n\nAlso [photos](../Attachments/photos.zip).\n',
    'Projects/Trial.md': '# Trial\n\nThe trial of the sensor ended in May.\n',
    'People/Contact.md': 'Call before noon.\n',
    'Hub.md': 'the hub\n',
    'Old.md': '---\ncreated: 2020-01-01\n---\nAn old note.\n',
    'Spoke.md': 'leads to the [[Hub]]\n',
    'Tagged.md': '#sensor in a note\n',
    'Untagged.md': 'a sensor in a note\n',
    'Twin A.md': `${same}\n`,
    'Twin B.md': `${same} again\n`,
  });
  run(vault, ['index'], at('2026-11-10T09:00:00Z'));
  for (const title of ['New one', 'New two', 'New three']) run(vault, ['memory', 'save', `${title} is a fact`, '--title', title], at('2026-11-20T09:00:00Z'));
  run(vault, ['delete', 'Trial'], at('2026-11-12T16:35:00Z'));
  await agent(vault, 'nightly-agent', [['delete_note', { note: 'Contact' }]], at('2026-11-19T21:00:00Z'));
  return vault;
}

describe('upkeep', () => {
  let browser;
  let server;
  let vault;
  before(async () => {
    browser = await launch();
    vault = await neglected();
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  const text = (path) => readFileSync(join(vault, path), 'utf8');

  test('the start page counts what the list of changes has', async () => {
    const { page, context } = await open(browser, server);
    const link = page.locator('.glance a[href="/memory?tab=changes"]');
    const shown = Number(await link.locator('strong').textContent());
    assert.ok(shown >= 3, String(shown));
    await link.click();
    await page.waitForSelector('.table tbody tr');
    assert.equal(await page.locator('.table tbody tr').count(), shown);
    assert.equal(Number(await page.textContent('#memory-changes .count')), shown);
    assert.match(await page.textContent('.table tbody'), /no longer new|last used/);
    await context.close();
  });

  test('a deleted note says when and by whom, is read, restored, and opened', async () => {
    const { page, context } = await open(browser, server, '/memory?tab=away');
    const row = page.locator('.deleted-row', { hasText: 'Trial' });
    assert.match(await row.locator('.row-meta').textContent(), /deleted 12 Nov 2026.*17:35.*by hand/);
    assert.match(await page.locator('.deleted-row', { hasText: 'Contact' }).locator('.row-meta').textContent(), /deleted 19 Nov 2026.*by nightly-agent/);
    await row.locator('.event-toggle').click();
    await page.waitForSelector('.deleted-text');
    assert.match(await page.textContent('.deleted-text'), /ended in May/);
    assert.deepEqual(await violations(page), []);
    await page.fill('[data-filter-field]', 'Trial');
    await page.waitForFunction(() => document.querySelectorAll('.card').length === 1);
    await row.locator('text=Restore').click();
    await page.waitForSelector('dialog .diff-head');
    assert.equal(await page.locator('dialog a').count(), 0, 'nothing leads away from the dialog');
    await page.click('dialog .primary');
    await page.waitForSelector('.toast >> text=Open');
    await page.waitForFunction(() => document.querySelectorAll('.card').length === 0);
    assert.match(await page.textContent('.tab-panel'), /Nothing here matches/);
    await page.click('.toast >> text=Open');
    await page.waitForFunction(() => decodeURIComponent(location.pathname) === '/note/Projects/Trial.md');
    await page.goto(`${server.base}/activity`);
    await settle(page);
    const deleted = page.locator('.event', { hasText: 'Deleted' }).filter({ hasText: 'Trial' });
    assert.match(await deleted.textContent(), /restored/);
    await deleted.locator('.event-toggle').click();
    await page.waitForSelector('.operation');
    const said = await page.textContent('.operation');
    assert.match(said, /What it deleted was restored/);
    assert.ok(!/--keep|sidenote undo/.test(said), said);
    assert.equal(await page.locator('.operation >> text=Undo this').count(), 0);
    await context.close();
  });

  test('what stands in the way of an undo is said in words of the page, with a button', async () => {
    const { id } = JSON.parse(run(vault, ['rename', 'Hub', 'Centre', '--json']));
    write(vault, 'Spoke.md', 'All of it is new.\n');
    const { page, context } = await open(browser, server, `/activity?op_id=${id}`);
    await page.waitForSelector('.obstacle');
    const said = await page.textContent('.operation');
    assert.match(said, /This cannot be taken back now/);
    assert.match(said, /Spoke\.md was changed outside sidenote/);
    assert.ok(!/--keep|sidenote undo/.test(said), said);
    await page.click('text=Keep this file, undo the rest');
    await page.waitForSelector('dialog .diff-head');
    await page.click('dialog .primary');
    await page.waitForSelector('.toast');
    assert.equal(text('Spoke.md'), 'All of it is new.\n');
    assert.equal(text('Hub.md'), 'the hub\n');
    await context.close();
  });

  test('later operations in the way are named, undone first, and another tab follows', async () => {
    write(vault, 'Layers.md', 'One.\n');
    run(vault, ['append', 'Layers', 'Two.']);
    const first = JSON.parse(run(vault, ['history', '-n', '1', '--json']))[0].id;
    await agent(vault, 'night-agent', [['edit_note', { note: 'Layers', action: 'replace', old: 'Two.', text: 'Deux.' }]], at('2026-11-21T08:00:00Z'));
    const later = JSON.parse(run(vault, ['history', '-n', '1', '--json']))[0].id;
    const { page, context } = await open(browser, server, `/activity?op_id=${first}`);
    const note = await context.newPage();
    await note.goto(`${server.base}/note/Layers.md`);
    await note.waitForSelector('.prose >> text=Deux.');
    const box = page.locator('.obstacle');
    assert.match(await box.textContent(), /Layers\.md was changed by a later operation, where this operation wrote/);
    assert.match(await box.locator('.later').textContent(), /Replaced text in Layers.*night-agent.*edit_note/);
    assert.equal(await box.locator('.later a').getAttribute('href'), `/activity?op_id=${later}`);
    assert.deepEqual(await violations(page), []);
    await box.locator('text=Undo it…').click();
    await page.waitForSelector('dialog .diff .removed');
    await page.click('dialog .primary');
    await note.waitForSelector('.prose >> text=Two.');
    // Now nothing stands in the way.
    await page.click('.operation >> text=Undo this');
    await page.waitForSelector('dialog .diff .removed');
    await page.click('dialog .primary');
    await note.waitForFunction(() => !document.querySelector('.prose')?.textContent.includes('Two.'));
    assert.equal(text('Layers.md').trim(), 'One.');
    await context.close();
  });

  test('what was written is shown after a rename, and where it is not known, words say so', async () => {
    const { id } = JSON.parse(run(vault, ['new', 'Fresh', '--content', 'The first text.', '--json']));
    run(vault, ['rename', 'Fresh', 'Renamed']);
    const { page, context } = await open(browser, server, `/activity?op_id=${id}`);
    await page.waitForSelector('.operation .diff .added >> text=The first text.');
    assert.match(await page.textContent('.operation .diff-head'), /Fresh\.md.*new/);
    await page.click('.operation >> text=Undo this');
    await page.waitForSelector('dialog .diff .removed >> text=The first text.');
    assert.match(await page.textContent('dialog .notices'), /Fresh\.md was moved since: it is Renamed\.md now/);
    await page.keyboard.press('Escape');
    write(vault, 'Renamed.md', 'Other.\n');
    await page.waitForSelector('.operation >> text=What the operation wrote is not known any more of Fresh.md');
    await context.close();
  });

  test('forgetting and archiving are called so in the timeline', async () => {
    const cases = [['forget', 'Forgot'], ['restore', 'Restored'], ['pin', 'Pinned'], ['unpin', 'Unpinned'], ['tier', 'Archived', 'archive']];
    run(vault, ['new', 'Mood', '--content', 'A quiet day.']);
    for (const [command, , ...more] of cases) run(vault, ['memory', command, 'Mood', ...more]);
    const { page, context } = await open(browser, server, '/activity?note=Mood');
    const verbs = (await page.locator('.event .event-toggle').allTextContents()).map((verb) => verb.trim());
    assert.deepEqual(verbs.slice(0, cases.length).reverse(), cases.map(([, verb]) => verb));
    await context.close();
  });

  test('headings, footnotes of embeds and narrow cards read as the text does', async () => {
    write(vault, 'Notes/Inner.md', 'Text ^[the inline one] and [^1].\n\n[^1]: The second.\n');
    write(vault, 'Notes/Outer.md', '# Outer\n\n## A **bold** head ^[a remark] of [[Inner|it]]\n\n![[Inner]]\n\n![[Inner]]\n');
    const card = { id: 'a', type: 'text', text: 'WWWWWW WWWWWW WWWWWW ^[remark]', x: 0, y: 0, width: 120, height: 60 };
    write(vault, 'Notes/Board.canvas', JSON.stringify({ nodes: [card, { ...card, id: 'b', x: 300 }], edges: [] }));
    const { page, context } = await open(browser, server, '/note/Notes/Outer.md');
    await page.waitForFunction(() => document.querySelectorAll('.prose .embed .footnote-ref').length === 4);
    assert.equal((await page.locator('.outline li').last().textContent()).trim(), 'A bold head of it');
    for (const address of ['/note/Notes/Outer.md', '/note/Notes/Board.canvas']) {
      await page.goto(server.base + address);
      await page.waitForSelector('.prose .footnote-ref');
      const links = await page.locator('.prose .footnote-ref a').evaluateAll((found) => found.map((link) => [link.getAttribute('href'), document.querySelectorAll(`[id="${link.getAttribute('href').slice(1)}"]`).length]));
      assert.equal(await page.locator('.prose .footnote-ref').count(), links.length);
      assert.equal(new Set(links.map(([href]) => href)).size, links.length);
      assert.ok(links.length >= 2 && links.every(([, texts]) => texts === 1), JSON.stringify(links));
    }
    // A text that is wider than its card ends at the edge of the card.
    const cut = await page.locator('.canvas-drawing svg').first().evaluate((part) => getComputedStyle(part).overflow);
    assert.equal(cut, 'hidden');
    await context.close();
  });

  test('a broken link is given a note from Health, and becomes text from the note', async () => {
    const { page, context } = await open(browser, server, '/health');
    await page.click('text=Repair links…');
    await page.waitForSelector('dialog .remaining');
    assert.match(await page.textContent('dialog .remaining'), /2 broken links remain; it is not certain which note was meant/);
    assert.deepEqual(await violations(page), []);
    await page.locator('dialog .problem', { hasText: 'Old pump' }).locator('text=Choose a note').click();
    await page.waitForSelector('dialog .targets [role="option"]');
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('role')), 'combobox', 'the field has the focus');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('Plan');
    await page.waitForFunction(() => !document.querySelector('dialog .skeleton'));
    assert.equal(await page.locator('dialog .targets [role="option"]', { hasText: /^Plan/ }).count(), 0, 'the note itself is no target');
    // By the keyboard: down to the note and Enter.
    await Promise.all([page.waitForResponse((response) => /\/search\?.*q=tagged/.test(response.url())), page.fill('dialog input', 'tagged')]);
    // No note is highlighted while another text is looked for.
    await page.waitForSelector('dialog .targets [aria-selected="true"]');
    const titles = await page.locator('dialog .targets [role="option"] span:first-child').allTextContents();
    for (let at = 0; at < titles.indexOf('Untagged'); at++) await page.keyboard.press('ArrowDown');
    assert.match(await page.textContent('dialog .targets [aria-selected="true"]'), /^Untagged/);
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog .diff .added');
    assert.match(text('Projects/Plan.md'), /\[\[Old pump\]\]/, 'nothing is written before the yes');
    await page.click('dialog .primary');
    await page.waitForSelector('.toast');
    assert.match(text('Projects/Plan.md'), /\[\[Untagged\]\]/);
    await page.goto(`${server.base}/note/Projects/Plan.md`);
    await settle(page);
    await page.focus('.prose a.unresolved');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog >> text=Which note does');
    await page.click('dialog .dialog-foot >> text=Remove the link');
    await page.waitForSelector('dialog .diff .added');
    await page.click('dialog .primary');
    await page.waitForSelector('.toast');
    assert.match(text('Projects/Plan.md'), /Also photos\./);
    await page.waitForFunction(() => document.querySelectorAll('.prose a.unresolved').length === 0);
    await context.close();
  });

  test('a filter of the graph is a condition, not a search by meaning', async () => {
    const { page, context } = await open(browser, server, '/graph?q=%23sensor');
    await page.waitForFunction(() => /match/.test(document.querySelector('#filter-state')?.textContent ?? ''));
    assert.match(await page.textContent('#filter-state'), /^1 note matches/);
    await context.close();
  });

  test('a note in use says which value decides its tier', async () => {
    run(vault, ['memory', 'vote', 'Old', 'up'], at('2026-11-20T09:00:00Z'));
    const { page, context } = await open(browser, server, '/note/Old.md?tab=weight');
    await page.waitForSelector('.tier-reason');
    assert.match(await page.textContent('.tier-reason'), /^COLD, because it has 1 use\. WARM takes 3 uses on 2 days, the last within 60 days\.$/);
    await context.close();
  });

  test('a forgotten note says when and by whom, and a deleted one has its history', async () => {
    run(vault, ['memory', 'forget', 'Tagged'], at('2026-11-18T09:00:00Z'));
    const { page, context } = await open(browser, server, '/memory?tab=away');
    await page.waitForSelector('.rows >> text=Tagged');
    assert.match(await page.locator('.rows li', { hasText: 'Tagged' }).locator('.row-meta').textContent(), /forgotten 18 Nov 2026.*by hand/);
    await page.goto(`${server.base}/note/Contact`);
    await page.waitForSelector('.history');
    assert.match(await page.textContent('.history'), /Deleted.*nightly-agent/);
    await context.close();
  });

  test('pairs and percentages are those of Health, with the words marked that differ', async () => {
    const { page, context } = await open(browser, server, '/memory?tab=duplicates');
    await page.waitForSelector('.pair');
    assert.match(await page.textContent('.pairs h2'), /About the same text · 1/);
    const percent = /(\d+) %/.exec(await page.locator('.pair h3').first().textContent())[1];
    const marks = await page.locator('.pair').first().locator('mark').allTextContents();
    assert.deepEqual(
      marks.map((mark) => mark.trim()),
      ['again'],
    );
    await page.goto(`${server.base}/health?code=near-duplicate`);
    await settle(page);
    assert.ok((await page.textContent('.problems')).includes(`(${percent} % of its word sequences)`));
    await context.close();
  });

  test('redo is offered where there is something to redo, and says what', async () => {
    const { page, context } = await open(browser, server, '/activity');
    assert.equal(await page.locator('.view-tools >> text=Redo').count(), 0);
    run(vault, ['set', 'Untagged', 'status', 'open']);
    run(vault, ['undo']);
    await page.waitForSelector('.view-tools >> text=Redo');
    await page.click('.view-tools >> text=Redo');
    await page.waitForSelector('dialog .diff .added');
    assert.match(await page.textContent('dialog h2'), /Redo “Set a property of Untagged”/);
    await page.click('dialog .primary');
    await page.waitForFunction(() => !document.querySelector('.view-tools .button'));
    assert.match(text('Untagged.md'), /status: open/);
    await context.close();
  });

  test('a broken link to a deleted note offers to restore it', async () => {
    write(vault, 'Rig.md', 'The rig.\n');
    write(vault, 'Log.md', 'See [[Rig]].\n');
    run(vault, ['delete', 'Rig']);
    const { page, context } = await open(browser, server, '/note/Log.md');
    await page.click('.prose a.unresolved');
    assert.match(await page.textContent('dialog .deleted-hint'), /“Rig\.md” was deleted/);
    assert.deepEqual(await violations(page), []);
    await page.click('dialog >> text=Restore it…');
    await page.waitForSelector('dialog .diff-head');
    await page.click('dialog .primary');
    await page.waitForSelector('.prose a.internal[data-path="Rig.md"]');
    assert.equal(text('Rig.md'), 'The rig.\n');
    await context.close();
  });
});
