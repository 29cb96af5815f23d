// Takes the pictures of README and manual (docs/src/images) and the small references of every view (tests/reference), from a
// copy of the example vault at a fixed time.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { exampleVault, launch, livedIn, open, serve, settle, VIEWS, web } from '../tests/support.mjs';

const images = join(web, '..', 'docs', 'src', 'images');
const references = join(web, 'tests', 'reference');
mkdirSync(images, { recursive: true });
mkdirSync(references, { recursive: true });

const browser = await launch();
const server = await serve(await livedIn(exampleVault()));
const size = { viewport: { width: 1280, height: 820 }, deviceScaleFactor: 1 };

/** Waits until the picture is still: fonts, vectors and the layout of the graph. */
async function still(page) {
  await settle(page);
  await page.waitForFunction(() => !document.querySelector('.graph-state')?.textContent?.includes('laying out'), null, { timeout: 60_000 });
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(400);
}

const { page, context } = await open(browser, server, '/search?q=river%20gauge%20drift', size);
await page.waitForFunction(() => !document.querySelector('.nav-vectors'), null, { timeout: 120_000 }).catch(() => {});
await page.reload();
await still(page);
await page.click('text=Why #3?');
await page.evaluate(() => document.activeElement?.blur());
await page.mouse.move(0, 0);
await still(page);
await page.screenshot({ path: join(images, 'web-search.png') });
await page.goto(`${server.base}/activity`);
await still(page);
await page.locator('.event', { hasText: 'Inbox' }).first().locator('.event-toggle').click();
await still(page);
await page.evaluate(() => document.activeElement?.blur());
await page.screenshot({ path: join(images, 'web-activity.png') });
await page.goto(`${server.base}/graph`);
await still(page);
await page.screenshot({ path: join(images, 'web-graph.png') });
await context.close();

const screens = {
  light: { ...size, deviceScaleFactor: 0.5, colorScheme: 'light' },
  dark: { ...size, deviceScaleFactor: 0.5, colorScheme: 'dark' },
  narrow: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 0.75, colorScheme: 'light' },
};
for (const [screen, options] of Object.entries(screens)) {
  const { page, context } = await open(browser, server, '/', options);
  for (const [view, path] of Object.entries(VIEWS)) {
    await page.goto(server.base + path);
    await still(page);
    await page.screenshot({ path: join(references, `${view}-${screen}.png`) });
  }
  await context.close();
}
await browser.close();
await server.stop();
console.log(`pictures are in ${images} and ${references}`);
process.exit(0);
