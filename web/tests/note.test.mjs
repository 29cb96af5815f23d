// A note, and what can be done with it: each change is shown as a diff, applied after a yes, and taken back.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { exampleVault, launch, livedIn, open, serve, settle, write } from './support.mjs';

describe('a note', () => {
  let browser;
  let server;
  let vault;
  before(async () => {
    browser = await launch();
    vault = await livedIn(exampleVault());
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  const text = (path) => readFileSync(join(vault, path), 'utf8');

  test('code, formulas and diagrams are drawn', async () => {
    const { page, context, seen } = await open(browser, server, '/note/Tour/Markdown%20sampler.md');
    await page.waitForSelector('.prose .hljs-keyword');
    await page.waitForSelector('.prose .katex');
    await page.click('.diagram-button');
    await page.waitForSelector('.diagram img, .diagram-error', { timeout: 30_000 });
    assert.equal(await page.locator('.diagram-error').count(), 0, await page.locator('.diagram-error').allTextContents().then(String));
    assert.ok(await page.evaluate(() => document.querySelector('.diagram img').naturalWidth > 50));
    assert.deepEqual(seen.errors, []);
    assert.deepEqual(seen.foreign, []);
    assert.deepEqual(seen.blocked, []);
    await context.close();
  });

  test('a canvas is drawn with the labels of its edges, and its cards say where links lead', async () => {
    write(vault, 'Drawn.canvas', JSON.stringify({
      nodes: [
        { id: 'a', type: 'text', text: 'See [[Sensor drift|drift]], [[Lost page]]^[a note]\n\n![[Inbox]]', x: 0, y: 0, width: 400, height: 200 },
        { id: 'b', type: 'file', file: 'Inbox.md', x: 600, y: 0, width: 200, height: 80 },
      ],
      edges: [{ id: 'e', fromNode: 'a', toNode: 'b', fromSide: 'right', toSide: 'left', label: 'leads on' }],
    }));
    const { page, context, seen } = await open(browser, server, '/note/Drawn.canvas');
    assert.deepEqual(await page.locator('.canvas-drawing text').allTextContents(), ['See drift, Lost page Inbox', 'Inbox.md', 'leads on']);
    const line = page.locator('.canvas-drawing line');
    assert.deepEqual([await line.getAttribute('x1'), await line.getAttribute('x2')], ['400', '600'], 'from side to side');
    assert.equal(await page.getAttribute('.prose a.internal >> text=drift', 'data-path'), 'Projects/River gauges/Sensor drift.md');
    assert.equal(await page.locator('.prose a.unresolved[href]').count(), 0);
    assert.equal(await page.textContent('.prose a.unresolved'), 'Lost page');
    assert.deepEqual(seen.errors, []);
    await context.close();
  });

  test('a footnote within a line leads to its text and back', async () => {
    write(vault, 'Feet.md', 'The weir^[Built in *1907*.] was moved[^why].\n\n[^why]: Mud.\n\n' + 'More.\n\n'.repeat(60));
    const { page, context } = await open(browser, server, '/note/Feet.md');
    assert.deepEqual(await page.locator('.footnotes li').allTextContents().then((texts) => texts.map((text) => text.trim())), ['Built in 1907. ↩', 'Mud. ↩']);
    const top = () => page.evaluate(() => document.querySelector('#fn-1').getBoundingClientRect().top);
    assert.ok((await top()) > 1000);
    await page.click('sup.footnote-ref a >> nth=0');
    await page.waitForFunction(() => document.querySelector('#fn-1').getBoundingClientRect().bottom < window.innerHeight);
    await page.click('#fn-1 .footnote-back');
    await page.waitForFunction(() => document.querySelector('#fnref-1').getBoundingClientRect().top >= 0);
    await context.close();
  });

  test('links lead on without loading the page again, and the outline to its heading', async () => {
    const { page, context } = await open(browser, server, '/note/Start%20here.md');
    await page.evaluate(() => {
      window.same = true;
    });
    await page.click('.prose a.internal[href]');
    await page.waitForFunction(() => !location.pathname.includes('Start%20here'));
    await settle(page);
    assert.equal(await page.evaluate(() => window.same), true);
    await page.goto(`${server.base}/note/Tour/Markdown%20sampler.md`);
    await settle(page);
    await page.click('.outline a:has-text("Diagrams and queries")');
    await page.waitForFunction(() => [...document.querySelectorAll('.prose h2')].some((heading) => heading.textContent.includes('Diagrams') && heading.getBoundingClientRect().top < 500 && heading.getBoundingClientRect().top > -10));
    await context.close();
  });

  test('pinning shows the diff, writes after a yes, and is undone', async () => {
    const path = 'Books/The Salt Ledger.md';
    const was = text(path);
    const { page, context } = await open(browser, server, `/note/${encodeURI(path)}`);
    await page.click('.note-actions >> text=Pin');
    await page.waitForSelector('dialog .diff .added');
    assert.equal(text(path), was, 'nothing is written before the yes');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.toast >> text=Pinned');
    assert.match(text(path), /pinned: true/);
    await page.waitForSelector('.note-actions >> text=Pinned');
    await page.click('.toast >> text=Undo');
    await page.waitForSelector('.toast >> text=Taken back');
    assert.equal(text(path), was);
    await context.close();
  });

  test('a task is completed by its checkbox', async () => {
    const { page, context } = await open(browser, server, '/note/Tour/Markdown%20sampler.md');
    await page.locator('.prose li.task[data-task=" "] input').first().click();
    await page.waitForSelector('dialog .diff .added');
    await page.click('dialog >> text=Complete >> nth=-1');
    await page.waitForSelector('.toast >> text=Task completed');
    assert.match(text('Tour/Markdown sampler.md'), /- \[x\] open/);
    await context.close();
  });

  test('a deleted note is found and restored', async () => {
    const { page, context } = await open(browser, server);
    await page.click('.glance >> text=deleted');
    const row = page.locator('.rows li', { hasText: 'Packing list' });
    await row.locator('button', { hasText: 'Restore' }).click();
    await page.waitForSelector('dialog .diff-file');
    // The button has the focus as soon as it can be pressed.
    await page.waitForSelector('dialog .button.primary:focus');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.toast >> text=Restored');
    assert.ok(text('Reference/Packing list.md').length > 0);
    // The row is gone; the focus is in the next one.
    await page.waitForSelector('.rows [data-item]:focus');
    await context.close();
  });

  test('what an agent wrote yesterday is seen, with its diff, and taken back', async () => {
    const { page, context } = await open(browser, server, '/activity');
    await page.click('text=Yesterday >> nth=0');
    await settle(page);
    const row = page.locator('.event', { hasText: 'Inbox' }).first();
    assert.match(await row.textContent(), /nightly-agent/);
    assert.deepEqual(await row.locator('.chip[title^="Tool"]').evaluateAll((chips) => chips.map((chip) => chip.title)), ['Toolset: notes', 'Tool: edit_note']);
    await row.locator('.event-toggle').click();
    await page.waitForSelector('.operation .diff .added >> text=Ask Ruth about the zero');
    await page.click('.operation >> text=Undo this');
    await page.waitForSelector('dialog .diff .removed');
    await page.click('dialog .button.primary');
    await page.waitForSelector('.toast >> text=Undone');
    assert.ok(!text('Inbox.md').includes('Ask Ruth about the zero'));
    // The button of the undo is gone; the focus is in its row, not at the top of the page.
    await page.waitForSelector('.event.undone .event-toggle:focus');
    await context.close();
  });

  test('what stands in the way of an undo is named', async () => {
    write(vault, 'Someday.md', `---\nstatus: other\n---\nChanged by hand.\n`);
    const { page, context } = await open(browser, server, '/activity');
    const row = page.locator('.event', { hasText: 'Someday' }).first();
    await row.locator('.event-toggle').click();
    await page.waitForSelector('.obstacle');
    assert.match(await page.textContent('.obstacle'), /Someday/);
    await context.close();
  });

  test('a conflict shows both texts', async () => {
    const path = 'People/Ruth Adeyemi.md';
    const { page, context } = await open(browser, server, `/note/${encodeURI(path)}`);
    await page.click('.note-actions >> text=Pin');
    await page.waitForSelector('dialog .diff .added');
    write(vault, path, `${text(path)}\nWritten by another editor meanwhile.\n`);
    await page.click('dialog .button.primary');
    await page.waitForSelector('.two-texts');
    const both = await page.textContent('.two-texts');
    assert.match(both, /Written by another editor meanwhile/);
    assert.match(both, /pinned: true/);
    assert.ok(!text(path).includes('pinned'));
    await page.click('text=Plan it again');
    await page.waitForSelector('dialog .diff .added');
    await page.click('dialog .button.primary');
    await page.waitForSelector('.toast >> text=Pinned');
    assert.match(text(path), /pinned: true[^]*Written by another editor meanwhile/);
    await context.close();
  });

  test('a vote is recorded and drawn', async () => {
    const { page, context } = await open(browser, server, '/note/Recipes/Red%20lentil%20soup.md?tab=weight');
    await page.click('.votes >> text=Yes');
    await page.waitForSelector('.weight .vote');
    await context.close();
  });
});

describe('read-only', () => {
  let browser;
  let server;
  before(async () => {
    browser = await launch();
    server = await serve(await livedIn(exampleVault()), { args: ['--read-only'] });
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('no button writes', async () => {
    const { page, context } = await open(browser, server, '/note/Inbox.md');
    assert.match(await page.textContent('.brand'), /read-only/);
    const forbidden = /^(Pin|Pinned|Archive|Forget|Delete|Restore|Undo|Redo|Fix|Repair|Yes|No)\b/;
    for (const path of ['/note/Inbox.md', '/note/Inbox.md?tab=weight', '/note/Inbox.md?tab=history', '/memory?tab=away', '/activity', '/health']) {
      await page.goto(server.base + path);
      await settle(page);
      for (const toggle of await page.locator('.event-toggle').all()) await toggle.click();
      await settle(page);
      // What an operation is called in the timeline only opens it.
      const buttons = await page.locator('main button:not(.event-toggle)').allTextContents();
      assert.deepEqual(
        buttons.map((label) => label.trim()).filter((label) => forbidden.test(label)),
        [],
        path,
      );
      assert.equal(await page.locator('.prose input[type="checkbox"]:not([disabled])').count(), 0);
    }
    const status = await page.evaluate(async () => (await fetch('/api/v1/actions/pin', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"name":"Inbox"}' })).status);
    assert.equal(status, 403);
    await context.close();
  });
});

describe('health', () => {
  let browser;
  let server;
  let vault;
  before(async () => {
    browser = await launch();
    vault = await livedIn(exampleVault());
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('problems are listed by code, with path and line, and a fix is applied after its diff', async () => {
    const { page, context } = await open(browser, server, '/health');
    await page.click('.codes >> text=broken-link');
    await page.waitForSelector('.problem .path');
    assert.match(await page.textContent('.problem .path'), /:\d+$/);
    await page.goto(`${server.base}/health`);
    await settle(page);
    const fix = page.locator('.problem button', { hasText: 'Fix' }).first();
    if ((await fix.count()) > 0) {
      const before = await page.locator('.problem').count();
      await fix.click();
      await page.waitForSelector('dialog .diff-file');
      await page.click('dialog .button.primary');
      await page.waitForSelector('.toast >> text=Fixed');
      await page.waitForFunction((count) => document.querySelectorAll('.problem').length < count, before);
    }
    await context.close();
  });
});
