// Names and texts that views must have room for: long ones, those from right to left, and the same name everywhere.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { launch, open, serve, settle, vaultOf } from './support.mjs';

const LONG = 'Averylongtitlewithoutanyspace'.repeat(6);
const DEEP = 'Projects/A folder of some depth/Another folder with a long name';
const ARABIC = '\u0645\u0644\u0627\u062D\u0638\u0629 (river)';
const HEBREW = '\u05E4\u05EA\u05E7 \u05E2\u05DC \u05D4\u05E0\u05D4\u05E8';
const NARROW = { viewport: { width: 360, height: 740 } };

const FILES = {
  'Long.md': `---\ntags: [${'longtag'.repeat(12)}]\n---\n# ${LONG}\n\nA river, [[Arabic]], [[${'Missing'.repeat(20)}]].\n\n## ${'Heading'.repeat(20)}\n`,
  [`${DEEP}/Distinct one/n1.md`]: '# River one\n\nA river.\n',
  [`${DEEP}/Distinct two/n2.md`]: '# River two\n\nA river.\n',
  'Arabic.md': `# ${ARABIC}\n\n\u0646\u0647\u0631 river!\n\n- \u0639\u0646\u0635\u0631\n- [/] \u0645\u0647\u0645\u0629\n\n> \u0627\u0642\u062A\u0628\u0627\u0633.\n\nAn English river.\n\n- An item\n`,
  [`${HEBREW}.md`]: '\u05D4\u05E0\u05D4\u05E8 river.\n',
  'Tasks.md': '- [ ] open\n- [x] done\n- [/] half\n- [>] later\n',
  'Board.canvas': JSON.stringify({
    nodes: [
      { id: 'a', type: 'text', x: 0, y: 0, width: 250, height: 80, text: '# Card one' },
      { id: 'b', type: 'file', x: 400, y: 0, width: 250, height: 80, file: 'Tasks.md' },
    ],
    edges: [{ id: 'e', fromNode: 'a', toNode: 'b', label: 'leads' }],
  }),
  'Embeds.md': 'A board:\n\n![[Board.canvas]]\n',
  'f1.md': '---\ntitle: The shown name\n---\nA river, see [[f2]] and [[Nowhere]].\n',
  'f2.md': '# Heading name\n\nA river, see [[f1]].\n',
};

describe('names', () => {
  let browser;
  let server;
  before(async () => {
    browser = await launch();
    server = await serve(vaultOf(FILES));
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('no view is wider than a narrow screen', async () => {
    const { page, context } = await open(browser, server, '/', NARROW);
    for (const address of ['/search?q=river', '/note/Long.md', '/note/Long.md?tab=about', '/note/Long.md?tab=links', '/note/Arabic.md', '/note/Arabic.md?tab=links', '/memory', '/activity', '/health', '/status']) {
      await page.goto(server.base + address);
      await settle(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, address);
    }
    await context.close();
  });

  test('blocks and names have the direction of their text', async () => {
    const { page, context } = await open(browser, server, '/note/Arabic.md');
    const directions = (selector) => page.$$eval(selector, (found) => found.map((element) => getComputedStyle(element).direction));
    assert.deepEqual(await directions('.note-head h1'), ['rtl']);
    assert.deepEqual(await directions('.prose > p'), ['rtl', 'ltr']);
    assert.deepEqual(await directions('.prose > ul'), ['rtl', 'ltr']);
    assert.deepEqual(await directions('.prose > blockquote'), ['rtl']);
    await page.goto(`${server.base}/search?q=river&mode=bm25`);
    await settle(page);
    const titles = await page.$$eval('.result-title a', (links) => links.map((link) => [link.textContent, getComputedStyle(link).direction]));
    assert.equal(titles.length, 7);
    for (const [title, direction] of titles) assert.equal(direction, [ARABIC, HEBREW].includes(title) ? 'rtl' : 'ltr', title);
    await context.close();
  });

  test('a facet shows the last part of a folder, and all of it to who asks', async () => {
    const { page, context } = await open(browser, server, '/search?q=river&mode=bm25');
    for (const name of ['Distinct one', 'Distinct two']) {
      const button = page.locator('.facet button', { hasText: name });
      await button.waitFor();
      assert.equal(await button.getAttribute('title'), `${DEEP}/${name}`);
      const [last, value] = await button.evaluate((element) => ['.facet-last', '.facet-value'].map((part) => element.querySelector(part)).map((part) => ({ right: part.getBoundingClientRect().right, cut: part.scrollWidth > part.clientWidth })));
      assert.ok(!last.cut && last.right <= value.right + 1, name);
    }
    await context.close();
  });

  test('a status between open and done is shown as it is written', async () => {
    const { page, context } = await open(browser, server, '/note/Tasks.md');
    const shown = await page.$$eval('li.task input', (inputs) => inputs.map((input) => [input.checked, input.indeterminate, getComputedStyle(input, '::before').content]));
    assert.deepEqual(shown, [
      [false, false, 'none'],
      [true, false, 'none'],
      [false, true, '"/"'],
      [false, true, '">"'],
    ]);
    await context.close();
  });

  test('a canvas in a note is drawn, with its cards', async () => {
    const { page, context, seen } = await open(browser, server, '/note/Embeds.md');
    await page.waitForSelector('.embed .canvas-drawing .edge-label >> text=leads');
    assert.deepEqual(await page.locator('.embed .card').allTextContents().then((texts) => texts.map((text) => text.trim())), ['Card one', 'Tasks.md']);
    assert.deepEqual(seen.errors, []);
    await context.close();
  });

  test('a note has one name in all views', async () => {
    const { page, context } = await open(browser, server, '/search?q=river&mode=bm25');
    await page.waitForSelector('.result-title >> text=The shown name');
    for (const address of ['/note/f2.md?tab=links', '/graph?around=f1.md', '/note/f1.md']) {
      await page.goto(server.base + address);
      await page.waitForSelector('main >> text=The shown name');
    }
    await page.goto(`${server.base}/note/f1.md?tab=links`);
    await page.waitForSelector('.note-side .note-link >> text=Heading name');
    assert.equal(await page.locator('.note-side .note-link', { hasText: /^f2$/ }).count(), 0);
    await context.close();
  });

  test('the first key in the note chooser replaces the name of the link', async () => {
    const { page, context } = await open(browser, server, '/note/f1.md');
    await page.click('.prose a.unresolved');
    await page.waitForSelector('dialog input[type="search"]:focus');
    await page.keyboard.type('Head');
    assert.equal(await page.inputValue('dialog input[type="search"]'), 'Head');
    await page.waitForSelector('.targets >> text=Heading name');
    await context.close();
  });
});
