// The graph: what the camera shows, where nodes are, and what colours mean.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { exampleVault, launch, livedIn, open, serve, settle, vaultOf } from './support.mjs';

describe('the graph', () => {
  let browser;
  let server;
  before(async () => {
    browser = await launch();
    server = await serve(await livedIn(exampleVault()));
    // The positions are those of the first layout from now on.
    const { page, context } = await open(browser, server, '/graph');
    await page.waitForFunction(() => performance.getEntriesByName('graph-laid-out').length > 0, null, { timeout: 60_000 });
    await page.waitForFunction(async () => (await (await fetch('/api/v1/graph/positions')).json()).ids.length > 0);
    await context.close();
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  /** The camera: the point of the graph in the middle, and the pixels for each unit. */
  const camera = async (page) => {
    await page.waitForFunction(() => document.querySelector('.graph-box')?.dataset.camera);
    return (await page.getAttribute('.graph-box', 'data-camera')).split(' ').map(Number);
  };
  const drawn = async (page) => {
    await page.waitForFunction(() => performance.getEntriesByName('graph-complete').length > 0);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  };
  /** Where files are on the screen, by their indices in the reply, and the size of the picture. */
  const places = async (page, query) => {
    const [x, y, scale] = await camera(page);
    return page.evaluate(
      async ([q, x, y, scale]) => {
        const json = async (path) => (await fetch(`/api/v1/${path}`)).json();
        const [graph, kept] = await Promise.all([json(`graph?q=${encodeURIComponent(q)}`), json('graph/positions')]);
        const box = document.querySelector('.graph-box');
        const at = new Map(kept.ids.map((id, index) => [id, [kept.x[index], kept.y[index]]]));
        const screen = graph.matched.map((node) => at.get(graph.ids[node])).map(([px, py]) => [(px - x) * scale + box.clientWidth / 2, (py - y) * scale + box.clientHeight / 2]);
        return { screen, width: box.clientWidth, height: box.clientHeight };
      },
      [query, x, y, scale],
    );
  };

  test('a filter brings its matches into view, and Escape clears it and leaves the camera', async () => {
    const { page, context } = await open(browser, server, '/graph');
    await drawn(page);
    const everything = await camera(page);
    await page.fill('[role="combobox"]', 'Sensor drift');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.node-card');
    await page.click('.graph-buttons [aria-label="Show everything"]');
    await page.fill('.graph-filter input', '#river');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /match/.test(document.querySelector('#filter-state').textContent));
    await page.waitForFunction((before) => document.querySelector('.graph-box').dataset.camera !== before, everything.join(' '));
    await drawn(page);
    assert.equal(await page.locator('.node-card').count(), 0, 'no card hides a match');
    const near = await camera(page);
    assert.ok(near[2] > everything[2], 'the matches are larger than before');
    const { screen, width, height } = await places(page, '#river');
    assert.ok(screen.length >= 4);
    for (const [x, y] of screen) assert.ok(x >= 0 && x <= width && y >= 0 && y <= height, `a match is at ${x}, ${y} of ${width}, ${height}`);
    await page.focus('.graph-box');
    await page.keyboard.press('ArrowLeft');
    await drawn(page);
    const moved = await camera(page);
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.search.includes('q='));
    await drawn(page);
    assert.deepEqual(await camera(page), moved);
    assert.equal(await page.inputValue('.graph-filter input'), '');
    await context.close();
  });

  test('Escape clears the selection, and who comes back from a note sees what they saw', async () => {
    const { page, context } = await open(browser, server, '/graph');
    await drawn(page);
    await page.fill('[role="combobox"]', 'River gauges');
    await page.waitForSelector('[role="option"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.node-card');
    await page.focus('.graph-box');
    for (const key of ['+', '+', 'ArrowLeft']) await page.keyboard.press(key);
    await drawn(page);
    const seen = await camera(page);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.note-view');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.node-card');
    assert.match(await page.textContent('.node-card'), /River gauges/);
    await drawn(page);
    assert.deepEqual(await camera(page), seen);
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('.node-card'));
    await drawn(page);
    assert.deepEqual(await camera(page), seen);
    await context.close();
  });

  test('a filter marks and shows nodes around one note, too', async () => {
    const { page, context } = await open(browser, server, '/graph?around=Projects%2FRiver%20gauges%2FRiver%20gauges.md&depth=2');
    await drawn(page);
    const everything = await page.getAttribute('.graph-box', 'data-camera');
    await page.fill('.graph-filter input', 'Sensor drift');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /[1-9]\d* notes? match/.test(document.querySelector('#filter-state').textContent));
    await page.waitForFunction((before) => document.querySelector('.graph-box').dataset.camera !== before, everything);
    await context.close();
  });

  test('an unresolved link is drawn beside the note that has it', async () => {
    const { page, context } = await open(browser, server, '/graph');
    await drawn(page);
    const { graph, kept } = await page.evaluate(async () => {
      const json = async (path) => (await fetch(`/api/v1/${path}`)).json();
      return { graph: await json('graph'), kept: await json('graph/positions') };
    });
    const edge = graph.edges.to.findIndex((node) => node >= graph.paths.length);
    const [from, to] = [graph.edges.from[edge], graph.edges.to[edge]];
    const at = kept.ids.indexOf(graph.ids[from]);
    await page.fill('[role="combobox"]', graph.unresolved[to - graph.paths.length]);
    await page.locator('[role="option"]', { hasText: 'unresolved link' }).first().click();
    await page.waitForSelector('.node-card >> text=there is no such note');
    await drawn(page);
    // The camera stands on the node that was gone to.
    const [x, y, scale] = await camera(page);
    const distance = Math.hypot(kept.x[at] - x, kept.y[at] - y) * scale;
    assert.ok(distance > 12, `it is ${distance} pixels from its note`);
    await settle(page);
    await context.close();
  });

  test('where nearly all notes are in one folder, the folders in it have the colours', async () => {
    const notes = Array.from({ length: 30 }, (_, index) => [`docs/${['guide', 'reference/api', 'tutorial'][index % 3]}/note ${index}.md`, `note ${index}\n`]);
    const inOne = await serve(vaultOf({ 'README.md': 'read\n', ...Object.fromEntries(notes) }));
    const { page, context } = await open(browser, inOne, '/graph');
    await drawn(page);
    const legend = await page.locator('.graph-legend li').allTextContents();
    assert.deepEqual(legend, ['guide10', 'reference10', 'tutorial10', '(no folder)1']);
    await page.click('.graph-legend >> text=reference');
    await page.waitForFunction(() => /10 notes match/.test(document.querySelector('#filter-state').textContent));
    await context.close();
    await inOne.stop();
  });
});
