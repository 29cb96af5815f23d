// A hostile vault: strings that would run a script or load something, in titles, tags, properties, bodies, file names and
// canvases. Nothing runs, and nothing is loaded.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, serve, settle, vaultOf } from './support.mjs';

const FOREIGN = 'http://192.0.2.1';

/** Strings after the public lists of cross-site scripting: vectors of tags, attributes, addresses, styles and encodings. */
function vectors() {
  const call = 'hit(1)';
  const list = [];
  const events = ['onerror', 'onload', 'onclick', 'onmouseover', 'onfocus', 'onanimationstart', 'ontoggle', 'onpointerenter', 'onbegin', 'onpageshow', 'oncut', 'onscroll', 'onstart', 'onwheel', 'onbeforetoggle'];
  const tags = ['img src=x', 'svg', 'body', 'video src=x', 'audio src=x', 'details open', 'input autofocus', 'iframe', 'object data=x', 'marquee'];
  for (const tag of tags) for (const event of events) list.push(`<${tag} ${event}=${call}>`);
  list.push(
    `<script>${call}</script>`,
    `<ScRiPt>${call}</sCrIpT>`,
    `<script src=${FOREIGN}/x.js></script>`,
    `"><script>${call}</script>`,
    `'><img src=x onerror=${call}>`,
    `<svg><script>${call}</script></svg>`,
    `<svg><animate onbegin=${call} attributeName=x dur=1s>`,
    `<svg><a xlink:href="javascript:${call}"><text>x</text></a></svg>`,
    `<math><mtext><table><mglyph><style><img src=x onerror=${call}>`,
    `<math href="javascript:${call}">x</math>`,
    `<iframe src="javascript:${call}"></iframe>`,
    `<iframe srcdoc="<script>parent.${call}</script>"></iframe>`,
    `<object data="javascript:${call}"></object>`,
    `<embed src="javascript:${call}">`,
    `<form action="javascript:${call}"><button>x</button></form>`,
    `<button formaction="javascript:${call}">x</button>`,
    `<a href="javascript:${call}">x</a>`,
    `<a href="JaVaScRiPt:${call}">x</a>`,
    `<a href="java&#x09;script:${call}">x</a>`,
    `<a href="&#106;avascript:${call}">x</a>`,
    `<a href="data:text/html,<script>${call}</script>">x</a>`,
    `<a href="vbscript:${call}">x</a>`,
    `<base href="${FOREIGN}/">`,
    `<meta http-equiv="refresh" content="0;url=${FOREIGN}">`,
    `<link rel=stylesheet href="${FOREIGN}/x.css">`,
    `<link rel=prefetch href="${FOREIGN}/x">`,
    `<style>@import '${FOREIGN}/x.css';</style>`,
    `<style>body{background:url(${FOREIGN}/x.png)}</style>`,
    `<div style="background:url(${FOREIGN}/x.png)">x</div>`,
    `<div style="position:fixed;inset:0">x</div>`,
    `<img src="${FOREIGN}/x.png">`,
    `<img srcset="${FOREIGN}/x.png 1x">`,
    `<picture><source srcset="${FOREIGN}/x.png"><img></picture>`,
    `<video poster="${FOREIGN}/x.png"></video>`,
    `<audio src="${FOREIGN}/x.mp3" autoplay></audio>`,
    `<input type=image src="${FOREIGN}/x.png">`,
    `<noscript><p title="</noscript><img src=x onerror=${call}>">`,
    `<textarea></textarea><script>${call}</script>`,
    `<title></title><script>${call}</script>`,
    `<template><script>${call}</script></template>`,
    `<!--><script>${call}</script>-->`,
    `<![CDATA[<script>${call}</script>]]>`,
    `<?xml version="1.0"?><script>${call}</script>`,
    `<x onclick=${call} tabindex=1>x</x>`,
    `{{constructor.constructor('${call}')()}}`,
    `\${${call}}`,
    `[x](javascript:${call})`,
    `[x](<javascript:${call}>)`,
    `[x](  javascript:${call})`,
    `![x](javascript:${call})`,
    `![x](${FOREIGN}/x.png)`,
    `![x|100](${FOREIGN}/x.svg)`,
    `[[javascript:${call}]]`,
    `![[${FOREIGN}/x.png]]`,
    `<javascript:${call}>`,
    `[x]: javascript:${call}\n[x]`,
    `$\\href{javascript:${call}}{x}$`,
    `$\\includegraphics{${FOREIGN}/x.png}$`,
    `$\\htmlData{x=y}{\\url{javascript:${call}}}$`,
    `> [!<img src=x onerror=${call}>] title <img src=x onerror=${call}>`,
    `==<img src=x onerror=${call}>==`,
    `%%<img src=x onerror=${call}>%% <img src=x onerror=${call}>`,
    `[^x]: <img src=x onerror=${call}>\n[^x]`,
    `| <img src=x onerror=${call}> |\n| --- |\n| <svg onload=${call}> |`,
    `# <img src=x onerror=${call}>`,
    `- [ ] <img src=x onerror=${call}>`,
    `\`\`\`html\n<img src=x onerror=${call}>\n\`\`\``,
    `\`\`\`"onmouseover=${call} x="\ncode\n\`\`\``,
    `\`\`\`mermaid\ngraph LR\n  A["<img src=x onerror=${call}>"] --> B\n  click A "javascript:${call}"\n\`\`\``,
    `\`\`\`mermaid\n%%{init: {"securityLevel": "loose", "themeCSS": "@import '${FOREIGN}/x.css'"}}%%\ngraph LR\n  A --> B[<img src="${FOREIGN}/y.png">]\n\`\`\``,
    `\u202e<img src=x onerror=${call}>`,
    `<img src=x onerror=${call}//`,
    `<<img src=x onerror=${call}>`,
    `<img/src=x/onerror=${call}>`,
    `<img src=x onerror\n=${call}>`,
    `<img src=\`x\`onerror=${call}>`,
    `<a href=" &#14; javascript:${call}">x</a>`,
  );
  return list;
}

const all = vectors();
const yaml = (text) => JSON.stringify(text);

function hostileVault() {
  const files = {};
  all.forEach((text, index) => {
    files[`bodies/note ${index}.md`] = `---\ntitle: ${yaml(text)}\ntags: [${yaml(text)}, "x"]\naliases: [${yaml(text)}]\nevil: ${yaml(text)}\nlist: [${yaml(text)}, "[[${text.replace(/[[\]]/g, '')}]]"]\ntype: ${yaml(text.slice(0, 40))}\n---\nquokka\n\n${text}\n\nA link: [[bodies/note ${(index + 1) % all.length}|${text.replace(/[[\]|\n]/g, '')}]] #x\n`;
    const name = text.replace(/[/\\:*?|\0\n\r]/g, '_').slice(0, 80).trim().replace(/[. ]+$/, '') || 'x';
    files[`names ${index % 5}/${index} ${name}.md`] = `quokka ${index}\n`;
  });
  files['all.md'] = `---\ntitle: All\n---\nquokka\n\n${all.join('\n\n')}\n`;
  files['board.canvas'] = JSON.stringify({
    nodes: all.map((text, index) => ({ id: `${index}"><img src=x onerror=hit(1)>`, type: ['text', 'group', 'link'][index % 3], text, label: text, url: index % 2 ? `javascript:hit(${index})` : `${FOREIGN}/${index}`, x: (index % 15) * 300, y: Math.floor(index / 15) * 200, width: 260, height: 160, color: text })),
    edges: all.slice(1).map((text, index) => ({ id: `e${index}`, fromNode: `${index}"><img src=x onerror=hit(1)>`, toNode: `${index + 1}"><img src=x onerror=hit(1)>`, label: text, color: text })),
  });
  return vaultOf(files);
}

let browser;
let server;
before(async () => {
  browser = await launch();
  server = await serve(hostileVault());
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const assertHarmless = (seen, where) => {
  assert.deepEqual(seen.hits, [], `${where}: a script ran`);
  assert.deepEqual(seen.dialogs, [], `${where}: a dialog`);
  assert.deepEqual(seen.foreign, [], `${where}: requests to other origins`);
};

test('there are at least 200 strings', () => assert.ok(all.length >= 200, String(all.length)));

test('no view runs or loads anything', { timeout: 300_000 }, async () => {
  const { page, context, seen } = await open(browser, server);
  for (const path of ['/', '/search?q=quokka&mode=bm25', '/search?q=onerror&mode=bm25', '/graph', '/memory', '/memory?tab=changes', '/memory?tab=duplicates', '/activity', '/health', '/status', '/note/all.md', '/note/all.md?tab=links', '/note/board.canvas']) {
    await page.goto(server.base + path);
    await settle(page);
    await page.waitForTimeout(150);
    assertHarmless(seen, path);
  }
  await context.close();
});

test('no note runs or loads anything, in any of its tabs', { timeout: 500_000 }, async () => {
  const { page, context, seen } = await open(browser, server, '/note/all.md');
  for (let index = 0; index < all.length; index++) {
    await page.evaluate((path) => {
      window.history.pushState(null, '', path);
      window.dispatchEvent(new PopStateEvent('popstate'));
    }, `/note/bodies/note%20${index}.md${['', '?tab=links', '?tab=weight', '?tab=history'][index % 4]}`);
    await page.waitForFunction((name) => document.querySelector('.crumbs')?.textContent?.includes(name), `note ${index}.md`);
    assert.equal(await page.locator('.prose script, .prose style, .prose svg:not(.katex svg), .prose object, .prose embed, .prose form, .prose base, .prose meta, .prose link, .prose iframe:not(.pdf)').count(), 0, all[index]);
    const bad = await page.evaluate(() => [...document.querySelectorAll('.prose *, .note-side *')].flatMap((element) => [...element.attributes].filter((attribute) => /^on/i.test(attribute.name) || (/^(href|src|action|formaction|xlink:href|srcset|poster|data)$/i.test(attribute.name) && /^\s*(javascript|vbscript|data:text)/i.test(attribute.value))).map((attribute) => `${element.tagName} ${attribute.name}=${attribute.value}`)));
    assert.deepEqual(bad, [], all[index]);
    assertHarmless(seen, all[index]);
  }
  await context.close();
});

test('a hostile file name can be opened from a search', async () => {
  const { page, context, seen } = await open(browser, server, '/search?q=quokka%20path%3Anames&mode=bm25');
  await page.waitForSelector('.result-title a');
  for (let rank = 1; rank <= 5; rank++) {
    await page.click(`[data-rank="${rank}"]`);
    await page.waitForSelector('.note-view .crumbs');
    assertHarmless(seen, page.url());
    await page.goBack();
    await page.waitForSelector('.result-title a');
  }
  await context.close();
});

test('hostile diagrams are drawn without an origin, and do nothing', { timeout: 120_000 }, async () => {
  const diagrams = all.flatMap((text, index) => (text.startsWith('```mermaid') ? [index] : []));
  assert.ok(diagrams.length >= 2);
  const { page, context, seen } = await open(browser, server);
  for (const index of diagrams) {
    await page.goto(`${server.base}/note/bodies/note%20${index}.md`);
    await page.click('.diagram-button');
    await page.waitForSelector('.diagram img, .diagram-error', { timeout: 60_000 });
    await page.waitForTimeout(500);
  }
  assertHarmless(seen, 'diagrams');
  await context.close();
});
