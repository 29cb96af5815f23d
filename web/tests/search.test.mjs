// The search page: results while one types, mistakes, facets, ranks that are explained, and all of it by the keyboard.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { exampleVault, launch, livedIn, open, run, serve, settle, vaultOf } from './support.mjs';

describe('search', () => {
  let browser;
  let server;
  before(async () => {
    browser = await launch();
    const vault = await livedIn(exampleVault());
    run(vault, ['index']);
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('results come while one types, from two letters, and only those of the last query', async () => {
    const { page, context } = await open(browser, server);
    const asked = [];
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.pathname === '/api/v1/search') asked.push(url.searchParams.get('q'));
    });
    // The first query is answered late: its answer must not replace that of the second.
    await page.route(/\/api\/v1\/search\?.*q=varnish&/, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 900));
      await route.continue().catch(() => {});
    });
    await page.keyboard.type('v');
    await page.waitForTimeout(200);
    assert.deepEqual(asked, []);
    await page.keyboard.type('arnish', { delay: 5 });
    await page.waitForTimeout(150);
    await page.fill('[data-search-field]', 'sourdough');
    await page.waitForSelector('.result-title >> text=Sourdough bread');
    await page.waitForTimeout(1200);
    assert.deepEqual(asked.slice(-2), ['varnish', 'sourdough']);
    assert.ok(asked[0].length < 'varnish'.length, `the first letters are asked at once: ${asked}`);
    // Keys that come at once: the first is asked, then the last.
    const before = asked.length;
    await page.evaluate(() => {
      const field = document.querySelector('[data-search-field]');
      for (const text of ['bo', 'boa', 'boat', 'boat p', 'boat plan']) {
        field.value = text;
        field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      }
    });
    await page.waitForFunction(() => location.search.includes('boat'));
    await settle(page);
    assert.deepEqual(asked.slice(before), ['bo', 'boat plan']);
    await page.fill('[data-search-field]', 'sourdough');
    await page.waitForFunction(() => location.search.includes('sourdough'));
    await settle(page);
    assert.match(await page.textContent('.result-title'), /Sourdough/);
    assert.match(page.url(), /q=sourdough/);
    await context.close();
  });

  test('a mistake is underlined where it is', async () => {
    const { page, context } = await open(browser, server, '/search?q=river%20(gauge');
    await page.waitForSelector('.mistake');
    assert.ok((await page.textContent('#search-problem')).length > 10);
    assert.equal(await page.getAttribute('[data-search-field]', 'aria-invalid'), 'true');
    await context.close();
  });

  test('the result that Enter opens is highlighted, and none while another query is not answered', async () => {
    const { page, context } = await open(browser, server, '/search?q=river%20gauge');
    await page.focus('[data-search-field]');
    const hints = page.locator('.result-enter:visible');
    assert.equal(await hints.count(), 1);
    const first = await page.locator('.result').first().locator('.result-title a').getAttribute('href');
    await page.route(/\/api\/v1\/search\?.*q=sourdough/, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 700));
      await route.continue().catch(() => {});
    });
    await page.fill('[data-search-field]', 'sourdough');
    await page.keyboard.press('Enter');
    assert.equal(await hints.count(), 0);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.result-title >> text=Sourdough bread');
    assert.match(page.url(), /\/search\?q=sourdough|\/\?q=sourdough/, 'a result of the former query was opened');
    await page.waitForSelector('.result-enter:visible');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.note-view');
    assert.match(decodeURIComponent(page.url()), /Sourdough bread/);
    assert.ok(!page.url().includes(first));
    await context.close();
  });

  test('facets narrow the results, have counts, and are part of the address', async () => {
    const { page, context } = await open(browser, server, '/search?q=river&mode=bm25');
    await page.waitForSelector('.facet button');
    const folder = page.locator('.facet', { has: page.locator('h2', { hasText: 'Folder' }) }).locator('button').first();
    const [name, count] = await Promise.all([folder.locator('.facet-value').textContent(), folder.locator('.facet-count').textContent()]);
    await folder.click();
    await settle(page);
    assert.ok(new URL(page.url()).searchParams.get('folder'));
    const places = await page.locator('.result-place').allTextContents();
    assert.ok(places.length > 0 && places.length <= Number(count), `${places.length} results, ${count} counted`);
    assert.ok(places.every((place) => place.startsWith(name)), places.join(' | '));
    await context.close();
  });

  test('the mode is chosen, and marks stand where the words are', async () => {
    const { page, context } = await open(browser, server, '/search?q=sourdough&mode=bm25');
    assert.equal(await page.getAttribute('.search-modes button:has-text("Words")', 'aria-pressed'), 'true');
    const marks = await page.locator('.snippet mark').allTextContents();
    assert.ok(marks.some((mark) => /sourdough/i.test(mark)), marks.join(', '));
    await context.close();
  });

  test('it says why a note ranks third, and why one is missing', async () => {
    const { page, context } = await open(browser, server, '/search?q=river%20gauge');
    await page.click('text=Why #3?');
    const why = await page.textContent('#why-3');
    assert.match(why, /Words|Meaning|Name/);
    assert.match(why, /Score/);
    await page.fill('.ask-why input', 'Sourdough bread');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.why-answer .reasons li');
    await context.close();
  });

  test('the keyboard does it all', async () => {
    const { page, context } = await open(browser, server, '/status');
    await page.keyboard.press('f');
    assert.equal(await page.evaluate(() => document.activeElement?.matches('[data-filter-field]')), true);
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    await page.waitForSelector('.search-view');
    await page.keyboard.press('/');
    await page.keyboard.type('river gauge');
    await page.waitForSelector('.result');
    await settle(page);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('j');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('data-rank')), '2');
    await page.keyboard.press('e');
    await page.waitForSelector('#why-2');
    await page.keyboard.press('k');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('data-rank')), '1');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.note-view');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.result');
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open]');
    assert.match(await page.textContent('dialog'), /Next, previous item/);
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog', { state: 'detached' });
    await context.close();
  });

  test('a slash leads to the search field from every view, and no letter is lost', async () => {
    const { page, context } = await open(browser, server, '/search?q=river');
    // A result that was opened before must not keep the cursor out of the field.
    await page.click('.result-title a');
    await page.waitForSelector('.note-view');
    for (const path of ['/activity', '/health', '/memory', '/memory?tab=away', '/graph', '/status']) {
      const view = path.split('?')[0];
      await page.evaluate((href) => document.querySelector(`nav a[href="${href}"]`).click(), view);
      await page.waitForFunction((href) => location.pathname === href, view);
      if (path !== view) await page.click('#memory-away');
      await settle(page);
      await page.keyboard.press('/');
      await page.keyboard.type('jkg');
      await page.waitForFunction(() => document.activeElement?.matches('[data-search-field]') && document.activeElement.value === 'jkg', null, { timeout: 5000 });
      await page.waitForFunction(() => location.search === '?q=jkg');
    }
    await page.click('nav a[href="/memory"]');
    await settle(page);
    await page.click('nav a[href="/"]');
    await page.waitForFunction(() => document.activeElement?.matches('[data-search-field]'));
    await context.close();
  });

  test('snippets have no markup, and a forgotten note is restored where it is missed', async () => {
    const { page, context } = await open(browser, server, '/search?q=river&mode=bm25');
    const snippets = (await page.locator('.snippet').allTextContents()).join('\n');
    assert.ok(!/\[\[|\*\*|^#+ |`/m.test(snippets), snippets);
    await page.fill('.ask-why input', 'A Field Guide to Small Rivers');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.why-answer .reasons li');
    const answer = await page.textContent('.why-answer');
    assert.match(answer, /it is forgotten/);
    assert.ok(!answer.includes('`'), answer);
    await page.click('.why-answer >> text=Restore');
    await page.waitForSelector('dialog .diff .removed');
    await page.click('dialog >> text=Cancel');
    await context.close();
  });

  test('a deleted note is pointed to', async () => {
    const { page, context } = await open(browser, server);
    // By its name, and by a word of its text; in each mode.
    for (const path of ['/search?q=packing', '/search?q=waders', '/search?q=packing&mode=bm25', '/search?q=packing&mode=vector']) {
      await page.goto(server.base + path);
      await page.waitForSelector('.deleted-hint');
      assert.match(await page.textContent('.deleted-hint'), /1 deleted note matches\. Show it/);
      await page.click('.deleted-hint a');
      await page.waitForSelector('.deleted-row >> text=Packing list');
    }
    await page.goto(`${server.base}/search?q=sourdough`);
    await page.waitForSelector('.facet button');
    assert.equal(await page.locator('.deleted-hint').count(), 0);
    await context.close();
  });

  test('a result in an attachment names its page and opens it there', async () => {
    const { page, context } = await open(browser, server, '/search?q=garboard+seam');
    const result = page.locator('.result', { hasText: 'hull-survey.pdf' });
    await result.waitFor();
    assert.match(await result.locator('.result-place').textContent(), /Page 2/);
    await result.locator('.result-title a').click();
    await page.waitForFunction(() => document.querySelector('iframe.pdf')?.src.endsWith('#page=2'));
    await context.close();
  });

  test('a place of a document is scrolled to', async () => {
    const paragraph = '<p>The keel was laid in spring.</p>';
    const html = `<h1>Keel</h1>${paragraph.repeat(80)}<h1>Rig</h1><p>The halyard is of hemp.</p>${paragraph.repeat(80)}`;
    const vault = vaultOf({ 'Note.md': 'x', 'log.html': html });
    run(vault, ['index']);
    const other = await serve(vault);
    const { page, context } = await open(browser, other, '/search?q=halyard');
    await page.locator('.result-title a', { hasText: 'log.html' }).click();
    await page.waitForSelector('.prose h2 >> text=Chapter 2: Rig');
    await page.waitForFunction(() => {
      const place = document.getElementById('chapter=2')?.getBoundingClientRect();
      return place && place.top >= 0 && place.bottom <= window.innerHeight;
    });
    await context.close();
    await other.stop();
  });
});
