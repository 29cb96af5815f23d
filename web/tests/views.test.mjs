// Each view on the example vault and on a vault of 10,000 notes: it shows what it should, in light, dark and narrow, without
// errors, without a request to another origin, and without violations of accessibility.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { exampleVault, largeVault, launch, livedIn, open, run, serve, settle, vaultOf, violations, VIEWS, write } from './support.mjs';

const SCREENS = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
};

/** A text that each view of the example vault shows. */
const SHOWN = {
  search: 'What happened lately',
  results: 'River gauges',
  note: 'Markdown sampler',
  links: 'Backlinks',
  weight: 'Weight over time',
  history: 'Changes through sidenote',
  edit: 'Edit “Markdown sampler”',
  notes: 'Sensor drift',
  day: 'Daily note',
  tasks: 'Hang gauge 5 from the footbridge',
  canvas: 'Gauge network',
  graph: 'Graph',
  around: 'Around River gauges',
  memory: 'Weight and last use',
  changes: 'COLD',
  away: 'Packing list',
  duplicates: 'Near duplicates',
  activity: 'Yesterday',
  review: 'how the new sensor behaves',
  week: 'nightly-agent',
  health: 'broken-link',
  status: 'Generation',
};

const assertClean = (seen) => {
  assert.deepEqual(seen.errors, [], 'errors of the page');
  assert.deepEqual(seen.foreign, [], 'requests to other origins');
  assert.deepEqual(seen.blocked, [], 'what the policy blocked');
};

describe('the example vault', () => {
  let browser;
  let server;
  before(async () => {
    browser = await launch();
    server = await serve(await livedIn(exampleVault()));
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  for (const [screen, options] of Object.entries(SCREENS)) {
    test(`every view is shown: ${screen}`, async () => {
      const { page, context, seen } = await open(browser, server, '/', options);
      for (const [view, path] of Object.entries(VIEWS)) {
        await page.goto(server.base + path);
        await settle(page);
        assert.ok((await page.textContent('body')).includes(SHOWN[view]), `${view} does not show “${SHOWN[view]}”: ${(await page.textContent('main')).slice(0, 400)}`);
        assert.equal(await page.locator('main .failure').count(), 0, `${view}: ${await page.locator('main .failure').allTextContents()}`);
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(beyond <= 0, `${view} is ${beyond} pixels too wide`);
        assert.deepEqual(await violations(page), [], `accessibility of ${view}`);
      }
      assertClean(seen);
      await context.close();
    });
  }

  test('on a narrow screen, a fall to another tier says why within the screen', async () => {
    const { page, context } = await open(browser, server, '/memory?tab=changes', SCREENS.narrow);
    const rows = await page.locator('.table.stacks tbody tr').all();
    assert.ok(rows.length > 0);
    for (const row of rows.slice(0, 5)) {
      for (const cell of await row.locator('td').all()) {
        const box = await cell.boundingBox();
        assert.ok(box && box.x >= 0 && box.x + box.width <= 360, `${await cell.textContent()}: ${JSON.stringify(box)}`);
      }
      assert.match(await row.locator('.stacks-last').textContent(), /\w+/);
    }
    assert.equal(await page.getByRole('columnheader', { name: 'Why' }).count(), 1, 'it is still a table');
    await context.close();
  });

  test('Status fits a narrow screen, settings included', async () => {
    const { page, context } = await open(browser, server, '/status', SCREENS.narrow);
    await page.waitForSelector('.table.settings tbody tr');
    const outside = await page.$$eval('.table.settings th[scope="row"], .table.settings td, .facts dd', (cells) =>
      cells.filter((cell) => {
        const box = cell.getBoundingClientRect();
        return box.left < 0 || box.right > 360;
      }).map((cell) => cell.textContent),
    );
    assert.deepEqual(outside, []);
    assert.equal(await page.getByRole('columnheader', { name: 'Value' }).count(), 1, 'it is still a table');
    await context.close();
  });

  test('a view names itself in the title, and the address leads back to it', async () => {
    const { page, context } = await open(browser, server, '/memory?tab=away');
    assert.match(await page.title(), /Memory/);
    assert.equal(await page.getAttribute('#memory-away', 'aria-selected'), 'true');
    await page.click('text=Overview');
    await page.goBack();
    assert.equal(await page.getAttribute('#memory-away', 'aria-selected'), 'true');
    await context.close();
  });

  test('something is shown within 100 ms while the server takes its time', async () => {
    const { page, context } = await open(browser, server, '/status');
    await page.route('**/api/v1/check*', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      await route.continue();
    });
    await page.click('nav >> text=Health');
    await page.waitForSelector('.skeleton', { timeout: 1000 });
    const delay = await page.evaluate(() => Number.parseFloat(getComputedStyle(document.querySelector('.skeleton')).animationDelay) * 1000);
    assert.ok(delay <= 100);
    await settle(page);
    await context.close();
  });

  test('an address without a view, and a note that does not exist, say what to do', async () => {
    const { page, context } = await open(browser, server, '/nothing');
    assert.match(await page.textContent('main'), /There is no such page/);
    await page.goto(`${server.base}/note/No%20such%20note.md`);
    await page.waitForSelector('main .failure');
    assert.match(await page.textContent('main'), /look among the deleted notes/);
    await context.close();
  });
});

describe('a vault whose notes say the same', () => {
  const text = 'The gauge at the weir was moved to radar on Thursday, and its zero lies above the old one by two metres.\n';

  test('notes with one title are told apart by their files, and each text stands below its own', async () => {
    const vault = vaultOf({ 'Reference/One.md': `# Gauge\n\n${text}`, 'Reference/Two.md': `# Gauge\n\n${text}` });
    const browser = await launch();
    const server = await serve(vault);
    const { page } = await open(browser, server, '/memory?tab=duplicates', SCREENS.narrow);
    await page.waitForSelector('.pair');
    const sides = await page.locator('.pair .two-texts > div').all();
    assert.equal(sides.length, 2);
    const names = await Promise.all(sides.map((side) => side.locator('.note-link a').textContent()));
    assert.deepEqual(names.map((name) => name.trim()).sort(), ['One', 'Two']);
    for (const side of sides) assert.match(await side.locator('pre').textContent(), /The gauge at the weir/);
    await browser.close();
    await server.stop();
  });

  test('the first page says accessibly what was undone', async () => {
    const vault = vaultOf({ 'One.md': 'one\n' });
    run(vault, ['rename', 'One', 'Other']);
    run(vault, ['undo']);
    const browser = await launch();
    const server = await serve(vault);
    const { page } = await open(browser, server);
    await page.waitForSelector('.event-line');
    await settle(page);
    assert.match(await page.textContent('.event-lines'), /Undid/);
    assert.deepEqual(await violations(page), []);
    await browser.close();
    await server.stop();
  });
});

describe('an empty vault', () => {
  test('the first page says what to do, until there is a note', async () => {
    const vault = vaultOf({});
    const browser = await launch();
    const server = await serve(vault);
    const { page } = await open(browser, server);
    await page.waitForSelector('.start .empty');
    assert.match(await page.textContent('.start .empty'), /Add Markdown files to the folder .*vault; they appear here/);
    assert.deepEqual(await violations(page), []);
    write(vault, 'First.md', 'the first note\n');
    await page.waitForSelector('.start .empty', { state: 'detached' });
    await browser.close();
    await server.stop();
  });
});

describe('a vault of 10,000 notes', () => {
  let browser;
  let server;
  let vault;
  before(async () => {
    browser = await launch();
    vault = largeVault(10_000);
    run(vault, ['index', '--no-embed']);
    server = await serve(vault);
  }, { timeout: 300_000 });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('every view is shown', { timeout: 300_000 }, async () => {
    const { page, context, seen } = await open(browser, server);
    const note = 'Projects/river/river note 0.md';
    const views = { ...VIEWS, results: '/search?q=river%20sensor&mode=bm25' };
    for (const name of ['note', 'links', 'weight', 'history']) views[name] = `/note/${encodeURI(note)}?tab=${name}`;
    views.edit = `/note/${encodeURI(note)}?edit=1`;
    views.notes = '/notes?folder=Projects%2Friver';
    views.around = `/graph?around=${encodeURIComponent(note)}&depth=2`;
    delete views.canvas;
    for (const [view, path] of Object.entries(views)) {
      await page.goto(server.base + path);
      await settle(page);
      assert.equal(await page.locator('main .failure').count(), 0, `${view}: ${await page.locator('main .failure').allTextContents()}`);
    }
    assertClean(seen);
    await context.close();
  });

  test('the graph is drawn, and is the same the next time', { timeout: 300_000 }, async () => {
    const { page, context } = await open(browser, server, '/graph');
    await page.waitForFunction(() => performance.getEntriesByName('graph-complete').length > 0, null, { timeout: 60_000 });
    await page.waitForFunction(() => performance.getEntriesByName('graph-laid-out').length > 0, null, { timeout: 240_000 });
    await page.waitForFunction(() => !document.querySelector('.graph-state')?.textContent?.includes('laying out'));
    const positions = await page.evaluate(async () => (await (await fetch('/api/v1/graph/positions')).json()).ids.length);
    assert.equal(positions, 10_000);
    await page.reload();
    await page.waitForFunction(() => performance.getEntriesByName('graph-complete').length > 0, null, { timeout: 60_000 });
    assert.equal(await page.evaluate(() => performance.getEntriesByName('graph-laid-out').length), 0, 'it was laid out again');
    await page.fill('[role="combobox"]', 'river note 4');
    await page.waitForSelector('[role="option"]');
    await page.keyboard.press('Enter');
    assert.match(await page.textContent('.node-card'), /river note 4/);
    await context.close();
  });
});
