// Measures the page on a vault that has an index: node scripts/measure.mjs VAULT [QUERIES]. SIDENOTE_BIN names the program.
// Prints how long each view takes until it is complete, from a key to the results and to the facets, how fluently the graph
// moves, and the memory of the server and of the tab.

import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { launch, open, serve, settle } from '../tests/support.mjs';

const vault = resolve(process.argv[2] ?? '.');
const count = Number(process.argv[3] ?? 60);

/** Queries of one to three words of file names, the same each time. */
function queries() {
  const names = readdirSync(vault, { recursive: true }).filter((name) => name.endsWith('.md'));
  let seed = 7;
  const random = (limit) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % limit;
  const words = () => names[random(names.length)].split(/[^a-z]+/i).filter((word) => word.length > 2 && word !== 'md');
  return Array.from({ length: count }, (_, at) => words().slice(-1 - (at % 3)).join(' ')).filter((query) => query.length > 2);
}

const memory = (pid, key = 'VmRSS') => Math.round(Number(new RegExp(`${key}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024);
/** What the server has in memory; pages of the index that are mapped count only in the first number. */
const memoryOfServer = () => `server ${memory(server.pid)} MB, of which ${memory(server.pid, 'RssAnon')} its own`;
const quantile = (times, share) => [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(0);
const since = (start) => performance.now() - start;

const started = performance.now();
const server = await serve(vault, { now: '' });
console.log(`server answers after ${since(started).toFixed(0)} ms; ${memoryOfServer()}`);
const browser = await launch();
const opened = performance.now();
const { page, context, seen } = await open(browser, server);
await page.waitForSelector('[data-search-field]');
console.log(`first page in a new tab: ${since(opened).toFixed(0)} ms`);
/** The memory of the server some seconds later: the allocator gives back with some delay, and only while calls come. */
async function settled() {
  for (let second = 0; second < 9; second++) {
    await page.waitForTimeout(1000);
    await page.evaluate(async () => void (await (await fetch('/api/v1/session')).json()));
  }
  return memoryOfServer();
}

console.log(`before the first search: ${await settled()}`);
const again = performance.now();
await page.goto(`${server.base}/`);
await page.waitForSelector('[data-search-field]');
console.log(`page usable: ${since(again).toFixed(0)} ms`);

/** Waits until the results of a query are shown, and returns the milliseconds since the last key. */
const shown = (query) =>
  page.evaluate(
    (wanted) =>
      new Promise((resolve) => {
        const look = () => {
          const isShown = new URLSearchParams(location.search).get('q') === wanted && document.querySelector('.results-side')?.getAttribute('aria-busy') === 'false';
          if (isShown) resolve(performance.now() - window.lastKey);
          else requestAnimationFrame(look);
        };
        look();
      }),
    query,
  );
await page.evaluate(() => {
  document.addEventListener(
    'input',
    () => {
      window.lastKey = performance.now();
    },
    true,
  );
});

const [oneKey, whileTyping, toFacets, ofSearch, ofFacets] = [[], [], [], [], []];
for (const query of queries()) {
  const is = (name) => (response) => {
    const url = new URL(response.url());
    return url.pathname === `/api/v1/${name}` && url.searchParams.get('q') === query;
  };
  await page.fill('[data-search-field]', query.slice(0, -1));
  await settle(page);
  const [results, facets] = [page.waitForResponse(is('search')), page.waitForResponse(is('facets'))];
  const start = performance.now();
  const [one] = await Promise.all([shown(query), page.keyboard.type(query.slice(-1))]);
  oneKey.push(one);
  const spent = async (response, server) => {
    const answer = await response;
    await answer.finished();
    const { responseEnd, requestStart } = answer.request().timing();
    server.push(responseEnd - requestStart);
  };
  await spent(results, ofSearch);
  await spent(facets, ofFacets);
  toFacets.push(since(start));
  await settle(page);
  await page.fill('[data-search-field]', '');
  await page.waitForSelector('.start');
  const [typed] = await Promise.all([shown(query), page.keyboard.type(query, { delay: 90 })]);
  whileTyping.push(typed);
  await settle(page);
}
for (const [name, times] of Object.entries({ 'key to results shown': oneKey, 'last key of a query typed to results shown': whileTyping, 'key to facets': toFacets, 'search alone': ofSearch, 'facets alone': ofFacets })) {
  console.log(`${name}: p50 ${quantile(times, 0.5)} ms, p95 ${quantile(times, 0.95)} ms, most ${quantile(times, 1)} ms (${times.length})`);
}
console.log(`after searches: ${memoryOfServer()}, later ${await settled()}`);

/** The memory of the process that draws the page. */
async function tab() {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const sizes = processInfo.filter((process) => process.type === 'renderer').map((process) => memory(process.id));
  return Math.max(...sizes);
}

/** Drags the picture of the graph to and fro, and returns the milliseconds between frames. */
async function frames() {
  const box = await page.locator('.graph-box').boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.evaluate(() => {
    window.frameTimes = [];
    let last = performance.now();
    const look = () => {
      const now = performance.now();
      window.frameTimes?.push(now - last);
      last = now;
      if (window.frameTimes) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let step = 0; step < 40; step++) await page.mouse.move(x + 120 * Math.sin(step / 4), y + 60 * Math.cos(step / 4));
  await page.mouse.up();
  for (let step = 0; step < 10; step++) await page.mouse.wheel(0, step < 5 ? -100 : 100);
  return page.evaluate(() => {
    const times = window.frameTimes;
    window.frameTimes = null;
    return times;
  });
}

for (const path of ['/graph', '/graph?q=window', '/memory', '/memory?tab=changes', '/memory?tab=away', '/activity', '/status', '/health', '/memory?tab=duplicates', '/search?q=window']) {
  const start = performance.now();
  await page.goto(server.base + path);
  await page.waitForSelector('main h1, main .failure', { state: 'attached' });
  await page.waitForFunction(() => !document.querySelector('.skeleton, [aria-busy="true"]'), null, { timeout: 300_000 });
  if (path.startsWith('/graph')) await page.waitForFunction(() => /\d/.test(document.querySelector('.graph-state')?.textContent ?? ''), null, { timeout: 120_000 });
  console.log(`${path}: ${since(start).toFixed(0)} ms; ${memoryOfServer()} (most ${memory(server.pid, 'VmHWM')}), tab ${await tab()} MB`);
  if (path === '/graph') {
    const times = await frames();
    console.log(`moving and zooming: a frame each ${quantile(times, 0.5)} ms, p95 ${quantile(times, 0.95)} ms (${times.length})`);
  }
}
console.log(`at the end: ${await settled()}`);
if (seen.errors.length) console.log(`errors of the page: ${seen.errors.join('; ')}`);
await context.close();
await browser.close();
await server.stop();
