// What happens elsewhere while the page is open: an edit on disk, a second tab, a server that is killed and comes back.

import assert from 'node:assert/strict';
import { cpus, loadavg } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { exampleVault, launch, open, serve, settle, write } from './support.mjs';

describe('live', () => {
  let browser;
  let server;
  let vault;
  before(async () => {
    browser = await launch();
    vault = exampleVault();
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('an edit on disk shows within a second, in a note and in a search', async () => {
    write(vault, 'Live.md', '# Live\n\nThe first text.\n');
    const { page, context } = await open(browser, server, '/note/Live.md');
    await page.waitForSelector('.prose >> text=The first text');
    const search = await open(browser, server, '/search?q=quokka&mode=bm25');
    await search.page.waitForSelector('.empty');
    const times = [];
    for (let turn = 0; turn < 5; turn++) {
      const begin = Date.now();
      write(vault, 'Live.md', `# Live\n\nThe text of turn ${turn} with a quokka.\n`);
      await page.waitForSelector(`.prose >> text=turn ${turn}`, { timeout: 10_000 });
      times.push(Date.now() - begin);
    }
    times.sort((a, b) => a - b);
    console.log(`      an edit was shown after ${times[2]} ms (the median; ${times.join(', ')})`);
    // A machine that is busy with other work is no measure.
    const busy = loadavg()[0] > 1.5 * cpus().length;
    assert.ok(times[2] < (busy ? 5000 : 1000), `it took ${times[2]} ms`);
    await search.page.waitForSelector('.result-title >> text=Live', { timeout: 2000 });
    await search.context.close();
    await context.close();
  });

  test('two tabs show the same', async () => {
    const one = await open(browser, server, '/note/Someday.md');
    const two = await one.context.newPage();
    await two.goto(`${server.base}/activity`);
    await settle(two);
    await one.page.click('.note-actions >> text=Archive');
    await one.page.waitForSelector('dialog .diff .added');
    await one.page.click('dialog .button.primary');
    await one.page.waitForSelector('.toast >> text=Archived');
    await two.waitForSelector('.event >> text=Someday', { timeout: 5000 });
    await one.context.close();
  });

  test('six tabs stay open, and 48 typed addresses load in them without a stall', { timeout: 300_000 }, async () => {
    write(vault, 'Six tabs.md', '# Six tabs\n\nThe first text.\n');
    const first = await open(browser, server, '/note/Six%20tabs.md');
    const streams = new Set();
    const isStream = (request) => new URL(request.url()).pathname === '/api/v1/events';
    first.context.on('request', (request) => isStream(request) && streams.add(request));
    for (const ended of ['requestfinished', 'requestfailed']) first.context.on(ended, (request) => streams.delete(request));
    const tabs = [first.page];
    while (tabs.length < 6) tabs.push(await first.context.newPage());
    const addresses = ['/', '/search?q=river', '/note/Inbox.md', '/graph', '/memory', '/activity', '/health', '/status'];
    let loads = 0;
    for (const address of addresses) {
      for (const tab of tabs) {
        // A browser allows six connections to a server: a load that finds none waits for ever.
        await tab.goto(server.base + address, { timeout: 20_000 });
        await tab.waitForSelector('main h1, main .failure', { state: 'attached', timeout: 20_000 });
        await tab.waitForFunction(() => !document.querySelector('.skeleton, [aria-busy="true"]'), null, { timeout: 20_000 });
        assert.equal(await tab.locator('.failure').count(), 0, address);
        loads += 1;
      }
    }
    assert.equal(loads, 48);
    // The one tab that has the stream tells the others what changed.
    for (const tab of tabs) {
      await tab.goto(`${server.base}/note/Six%20tabs.md`, { timeout: 20_000 });
      await tab.waitForSelector('.prose >> text=The first text', { timeout: 20_000 });
    }
    write(vault, 'Six tabs.md', '# Six tabs\n\nThe second text.\n');
    for (const tab of tabs) await tab.waitForSelector('.prose >> text=The second text', { timeout: 20_000 });
    assert.equal(streams.size, 1, 'one tab has the stream of events');
    // The tab that has it is closed, whichever that is: another one takes it over.
    const holder = tabs.findIndex((tab) => [...streams][0].frame().page() === tab);
    await tabs[holder].close();
    tabs.splice(holder, 1);
    write(vault, 'Six tabs.md', '# Six tabs\n\nThe third text.\n');
    for (const tab of tabs) await tab.waitForSelector('.prose >> text=The third text', { timeout: 20_000 });
    assert.deepEqual(first.seen.errors, []);
    await first.context.close();
  });

  test('a tab recovers when the server was killed and is back', async () => {
    const { page, context, seen } = await open(browser, server, '/search?q=river');
    const results = await page.locator('.result').count();
    await server.stop('SIGKILL');
    await page.waitForSelector('.banner', { timeout: 10_000 });
    assert.equal(await page.locator('.result').count(), results, 'what was shown stays');
    write(vault, 'While away.md', '# While away\n\nA river that was found while the server was away.\n');
    server = await serve(vault, { port: server.port });
    await page.waitForSelector('.banner', { state: 'detached', timeout: 20_000 });
    await page.waitForSelector('.result-title >> text=While away', { timeout: 10_000 });
    assert.deepEqual(seen.errors, []);
    await context.close();
  });

  test('a view that could not be loaded while the server was away is shown when it is back', async () => {
    const { page, context } = await open(browser, server, '/search?q=river');
    await server.stop('SIGKILL');
    await page.waitForSelector('.banner', { timeout: 10_000 });
    await page.click('nav a[href="/memory"]');
    await page.waitForSelector('.failure');
    server = await serve(vault, { port: server.port });
    await page.waitForSelector('.tiles', { timeout: 20_000 });
    await context.close();
  });

  test('a browser without the cookie is not let in, and is told what to do', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const answer = await page.goto(`${server.base}/`);
    assert.equal(answer.status(), 401);
    assert.match(await page.textContent('body'), /sidenote web/);
    await context.close();
  });

  test('the token leaves the address', async () => {
    const { page, context } = await open(browser, server);
    assert.ok(!page.url().includes('token'));
    const cookies = await context.cookies();
    assert.ok(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict');
    await context.close();
  });
});
