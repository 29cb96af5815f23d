// Proposals are looked at, decided by keys, taken back and worded; the week is reviewed; other processes are followed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { agent, launch, open, run, serve, settle, vaultOf, violations, write } from './support.mjs';

const NARROW = { viewport: { width: 400, height: 800 } };

/** A vault in which two notes say the same, and an agent asks for a change. */
async function proposing() {
  const vault = vaultOf({
    'Memories/Oslo.md': '---\ntype: fact\ncreated: 2026-11-18\n---\nThe staging server of Falcon is in Oslo.\n',
    'Memories/Staging.md': '---\ntype: fact\ncreated: 2026-11-19\n---\nThe staging server of Falcon is in Oslo.\n',
    'Boat.md': '# Boat\n\nThe boat is red.\n',
    'River.md': '# River\n\nIt is wide.\n',
  });
  run(vault, ['index'], { now: '2026-11-20T09:00:00Z' });
  await agent(vault, 'nightly-agent', [
    ['edit_note', { note: 'Boat', action: 'replace', old: 'The boat is red.', text: 'The boat is blue.', propose: 'It was painted.' }],
    ['edit_note', { note: 'River', action: 'append', text: 'It is deep.', propose: 'The depth is missing.' }],
    ['write_note', { title: 'Weir', content: 'The weir was closed.' }],
  ]);
  return vault;
}

describe('review', () => {
  let browser;
  let server;
  let vault;
  before(async () => {
    browser = await launch();
    vault = await proposing();
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  const text = (path) => readFileSync(join(vault, path), 'utf8');
  const rows = (page) => page.locator('.proposal-row');
  const selected = (page) => page.locator('.proposal-row[aria-current]');
  const waits = (page, number) => page.waitForFunction((number) => (document.querySelector('.nav-count')?.firstChild?.textContent ?? '0') === String(number), number);

  test('a proposal is seen side by side, accepted by a key, and undone', async () => {
    const { page, context, seen } = await open(browser, server, '/activity');
    await waits(page, 2);
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForSelector('.proposal .diff.split');
    assert.equal(await rows(page).count(), 2);
    assert.match(await selected(page).textContent(), /It was painted/);
    assert.match(await page.textContent('.proposal'), /Proposed by nightly-agent/);
    assert.match(await page.locator('.diff.split td.code.removed').textContent(), /The boat is red/);
    assert.match(await page.locator('.diff.split td.code.added').textContent(), /The boat is blue/);
    const [before, after] = await Promise.all(['.removed', '.added'].map((kind) => page.locator(`.diff.split td.code${kind}`).boundingBox()));
    assert.equal(before.y, after.y, 'they are in one row');
    assert.ok(before.x + before.width <= after.x);
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press('j');
    await page.waitForFunction(() => document.querySelector('.proposal h2')?.textContent.includes('The depth'));
    assert.match(await page.evaluate(() => document.activeElement.textContent), /The depth is missing/);
    await page.keyboard.press('k');
    await page.waitForFunction(() => document.querySelector('.proposal h2')?.textContent.includes('painted'));
    await page.keyboard.press('a');
    await page.waitForSelector('.toast >> text=Accepted');
    assert.equal(text('Boat.md'), '# Boat\n\nThe boat is blue.\n');
    await waits(page, 1);
    await page.waitForFunction(() => document.querySelector('.proposal h2')?.textContent.includes('The depth'));
    await page.click('.toast >> text=Undo');
    await page.waitForSelector('.toast >> text=Taken back');
    assert.equal(text('Boat.md'), '# Boat\n\nThe boat is red.\n');
    assert.deepEqual(seen.errors, []);
    await context.close();
  });

  test('a key that goes to another view decides nothing', async () => {
    const { page, context } = await open(browser, server, '/review');
    await page.waitForSelector('.proposal .diff.split');
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.waitForFunction(() => location.pathname === '/activity');
    await settle(page);
    assert.equal(text('River.md'), '# River\n\nIt is wide.\n');
    assert.equal(JSON.parse(run(vault, ['proposals', '--json'])).waiting, 1);
    await context.close();
  });

  test('a rejected proposal waits again if that is taken back', async () => {
    const { page, context } = await open(browser, server, '/review');
    await page.waitForSelector('.proposal .diff.split');
    await page.keyboard.press('r');
    await page.waitForSelector('.toast >> text=Rejected');
    await waits(page, 0);
    await page.waitForSelector('.empty >> text=No proposal waits');
    await page.click('.segments >> text=Decided, too');
    await page.waitForFunction(() => document.querySelectorAll('.proposal-row').length === 2);
    await page.locator('.proposal-row', { hasText: 'The depth' }).click();
    await page.waitForSelector('.proposal-decided >> text=Rejected');
    await page.click('.toast >> text=Undo');
    await page.waitForSelector('.proposal-tools');
    await waits(page, 1);
    await context.close();
  });

  test('the text of a proposal is worded, and what it leaves out is said', async () => {
    const { page, context } = await open(browser, server, '/review');
    await page.waitForSelector('.proposal .diff.split');
    await page.keyboard.press('e');
    await page.waitForSelector('.proposal-editor textarea');
    await page.waitForFunction(() => document.activeElement?.tagName === 'TEXTAREA');
    assert.equal(await page.inputValue('.proposal-editor textarea'), '# River\n\nIt is wide.\n\nIt is deep.\n');
    await page.fill('.proposal-editor textarea', '# River\n\nIt is wide, and 4 m deep.\n');
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press('Control+s');
    await page.waitForSelector('.toast >> text=new text');
    await page.waitForFunction(() => document.querySelector('.diff.split')?.textContent.includes('4 m deep'));
    assert.equal(text('River.md'), '# River\n\nIt is wide.\n', 'it waits still');
    await page.click('.proposal-tools >> text=Accept');
    await page.waitForSelector('.toast >> text=Accepted');
    assert.equal(text('River.md'), '# River\n\nIt is wide, and 4 m deep.\n');
    await context.close();
  });

  test('the page looks for more, and names what the notes say', async () => {
    const { page, context } = await open(browser, server, '/review', NARROW);
    await page.click('.empty >> text=Look for more');
    await page.waitForSelector('.proposal .diff');
    assert.match(await page.textContent('.toast'), /4 notes were compared|5 notes were compared/);
    const duplicate = page.locator('.proposal-row', { hasText: 'Duplicate' });
    await duplicate.click();
    await page.waitForSelector('.proposal-evidence');
    assert.equal(await page.locator('.proposal-evidence pre').count(), 2);
    assert.match(await page.locator('.proposal-evidence pre').first().textContent(), /Falcon is in Oslo/);
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(beyond <= 0, `${beyond} pixels too wide`);
    assert.deepEqual(await violations(page), []);
    await context.close();
  });

  test('a proposal whose note changed is outdated, and cannot be accepted', async () => {
    const { page, context } = await open(browser, server, '/review');
    await page.locator('.proposal-row', { hasText: 'Duplicate' }).click();
    await page.waitForSelector('.proposal-evidence');
    write(vault, 'Memories/Oslo.md', '---\ntype: fact\n---\nThe staging server of Falcon is in Bergen.\n');
    await page.waitForSelector('.proposal-row >> text=Outdated');
    await page.waitForSelector('.proposal .notices >> text=changed since: Memories/Oslo.md');
    assert.ok(await page.locator('.proposal-tools >> button:has-text("Accept")').isDisabled());
    await page.keyboard.press('a');
    await page.waitForSelector('.proposal .failure');
    assert.match(text('Memories/Oslo.md'), /Bergen/);
    await context.close();
  });

  test('a proposal that a command makes or decides appears', async () => {
    const { page, context } = await open(browser, server, '/review');
    const before = JSON.parse(run(vault, ['proposals', '--json'])).waiting;
    await waits(page, before);
    await agent(vault, 'late-agent', [['edit_note', { note: 'Boat', action: 'append', text: 'It has a mast.', propose: 'The mast is missing.' }]]);
    await page.waitForSelector('.proposal-row >> text=The mast is missing');
    await waits(page, before + 1);
    const id = await page.locator('.proposal-row', { hasText: 'The mast' }).getAttribute('data-proposal');
    run(vault, ['proposals', 'reject', id]);
    await waits(page, before);
    await page.waitForFunction(() => !document.querySelector('.proposal-list')?.textContent.includes('The mast'));
    await context.close();
  });

  test('the week says who wrote what', async () => {
    const { page, context } = await open(browser, server, '/review?tab=week');
    const written = await page.textContent('.week-cards');
    assert.match(written, /nightly-agent.*New · 1.*Weir/s);
    assert.match(written, /You.*Changed/s);
    assert.deepEqual(await violations(page), []);
    await page.click('text=The week before');
    await page.waitForFunction(() => location.search.includes('week=2026-11-'));
    await settle(page);
    await page.waitForSelector('text=9 Nov 2026');
    await page.click('text=The last seven days');
    await page.waitForFunction(() => !location.search.includes('week='));
    await context.close();
  });

  test('a page that only reads shows proposals without buttons', async () => {
    const only = await serve(vault, { args: ['--read-only'] });
    const { page, context } = await open(browser, only, '/review');
    await page.waitForSelector('.proposal .diff');
    assert.equal(await page.locator('.proposal-tools').count(), 0);
    const before = text('Boat.md');
    await page.keyboard.press('a');
    assert.equal(await page.locator('.proposal .failure').count(), 0);
    assert.equal(text('Boat.md'), before);
    await context.close();
    await only.stop();
  });
});
