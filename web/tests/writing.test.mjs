// Notes in other scripts: the direction, the language and the lines of every text that a view shows.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { launch, open, run, serve, settle, vaultOf, YESTERDAY } from './support.mjs';

/** Notes in several scripts: a title, a folder, a tag and a sentence. */
const NOTES = {
  arabic: {
    title: 'خطة النهر الطويلة لهذا العام',
    folder: 'مشاريع',
    tag: 'ماء',
    text: 'نقيس منسوب النهر كل صباح ونكتب القيمة في الجدول، ثم نرسل التقرير إلى الفريق river قبل الظهر.',
  },
  hebrew: {
    title: 'תוכנית הנהר הארוכה לשנה זו',
    folder: 'פרויקטים',
    tag: 'מים',
    text: 'אנחנו מודדים את מפלס הנהר בכל בוקר ורושמים את הערך בטבלה river ואז שולחים דוח לצוות.',
  },
  japanese: {
    title: '今年の河川水位観測計画と機器の更新についての覚え書き',
    folder: 'プロジェクト',
    tag: '水位',
    text: '毎朝、川の水位を測り、その値を表に書き込みます。そのあとで river チームに報告書を送り、異常があればすぐに電話で知らせます。',
  },
  chinese: {
    title: '今年河流水位观测计划以及仪器更新的备忘录和注意事项',
    folder: '项目',
    tag: '水位观测',
    text: '每天早上测量河流的水位，并把数值写进表格。然后 river 把报告发给团队；如果有异常情况，马上打电话通知负责人。',
  },
  korean: {
    title: '올해의 하천 수위 관측 계획과 장비 교체에 관한 메모',
    folder: '프로젝트',
    tag: '수위',
    text: '매일 아침 강의 수위를 측정하고 그 값을 표에 기록합니다. 그런 다음 river 팀에 보고서를 보내고, 이상이 있으면 바로 전화로 알립니다.',
  },
  thai: {
    title: 'แผนการสังเกตระดับน้ำในแม่น้ำประจำปีนี้และการเปลี่ยนอุปกรณ์',
    folder: 'โครงการ',
    tag: 'น้ำ',
    text: 'เราวัดระดับน้ำในแม่น้ำทุกเช้าและบันทึกค่าไว้ในตาราง จากนั้นส่งรายงาน river ให้ทีมงานก่อนเที่ยงวัน',
  },
  german: {
    title: 'Hochwassermeldedienstverordnung und Wasserstandsbeobachtungsplanung für Binnenschifffahrtsgesellschaften',
    folder: 'Wasserwirtschaftsverwaltung',
    tag: 'wasserstandsbeobachtung',
    text: 'Die Wasserstandsbeobachtungsstelle meldet river Grenzwertüberschreitungen der Bundesgewässerschutzkommission unverzüglich.',
  },
};
const LANGUAGES = { arabic: '', hebrew: '', japanese: 'ja', chinese: 'zh', korean: 'ko', thai: '', german: '' };
const pathOf = ({ folder, title }) => `${folder}/${title}.md`;
const addressOf = (note) => `/note/${pathOf(note).split('/').map(encodeURIComponent).join('/')}`;

const FILES = Object.fromEntries(
  Object.values(NOTES).flatMap((note) => {
    const { title, folder, tag, text } = note;
    const missing = `${title} ${tag}`;
    return [
      [pathOf(note), `---\ntags: [${tag}]\n${tag}: "${text.slice(0, 30)}"\ntype: fact\n---\n# ${title}\n\n${text}\n\n- ${text}\n- [ ] ${text} #${tag}\n\n> ${text}\n\n| ${tag} |\n| --- |\n| ${text} |\n\nAn end.\n\n[[${missing}]]\n`],
      [`${folder}/${folder} ${tag}.md`, `${text}\n${text}\n\n[[${title}]]\n`],
      [`${folder}/copy ${tag}.md`, `---\ntitle: ${title} (2)\n---\n${text}\n${text}\n\n[[${title}]]\n`],
    ];
  }),
);
FILES['Mixed.md'] = `- An item\n- ${NOTES.arabic.text}\n\n${NOTES.korean.text}\n\nA line in English.\n`;
FILES['Board.canvas'] = JSON.stringify({ nodes: [{ id: 'a', type: 'file', x: 0, y: 0, width: 250, height: 80, file: pathOf(NOTES.arabic) }], edges: [] });

const VIEWS = ['/search?q=river&mode=bm25', '/notes', '/tasks', `/graph?around=${encodeURIComponent(pathOf(NOTES.arabic))}&depth=2`, '/memory', '/memory?tab=away', '/memory?tab=duplicates', '/activity', '/health', '/status', '/note/Board.canvas', '/note/Mixed.md'].concat(
  Object.values(NOTES).flatMap((note) => ['', '?tab=about', '?tab=links', '?edit=1'].map((tab) => addressOf(note) + tab)),
);

/** What is wrong with the texts of a page, and how many words of a text were looked at. */
function examine() {
  const RIGHT_TO_LEFT = /[\u0590-\u08ff]/;
  // These scripts have no spaces between words.
  const UNSPACED = /[\u0e00-\u0eff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]/;
  const HANGUL = /[\uac00-\ud7af]/;
  const problems = { broken: new Set(), direction: new Set(), fields: new Set() };
  let words = 0;
  const range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data;
    const element = node.parentElement;
    if (!text.trim() || element.closest('script, style, noscript, option, datalist, svg, textarea') || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || element.getBoundingClientRect().width < 2) continue;
    const where = `${element.closest('[class]')?.className}: ${text.trim().slice(0, 60)}`;
    const first = /\p{L}/u.exec(text)?.[0];
    // The direction of a part of a line, such as what is marked, is that of the line.
    const isWhole = element.localName !== 'mark' && element.closest('mark') === null;
    if (isWhole && first && RIGHT_TO_LEFT.test(first) && getComputedStyle(element).direction !== 'rtl') problems.direction.add(where);
    for (const found of text.matchAll(/\S+/g)) {
      if (UNSPACED.test(found[0]) || (HANGUL.test(found[0]) && !element.closest('[lang="ko"]'))) continue;
      words += 1;
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width > 0.5);
      if (new Set(boxes.map((box) => Math.round(box.top / 6))).size < 2 || /[-\u2010]/.test(found[0])) continue;
      let block = element;
      while (getComputedStyle(block).display === 'inline') block = block.parentElement;
      const { paddingLeft, paddingRight } = getComputedStyle(block);
      const room = block.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
      if (boxes.reduce((sum, box) => sum + box.width, 0) < room) problems.broken.add(`${where} (${found[0]})`);
    }
  }
  for (const field of document.querySelectorAll('textarea, input:is([type="text"], [type="search"])')) if (field.dir !== 'auto') problems.fields.add(field.outerHTML.slice(0, 80));
  return { words, broken: [...problems.broken], direction: [...problems.direction], fields: [...problems.fields] };
}

describe('writing', () => {
  let browser;
  let server;
  before(async () => {
    browser = await launch();
    const vault = vaultOf(FILES);
    run(vault, ['memory', 'pin', NOTES.korean.title], { now: YESTERDAY });
    run(vault, ['rename', `${NOTES.hebrew.folder} ${NOTES.hebrew.tag}`, `${NOTES.hebrew.tag} ${NOTES.hebrew.title}`], { now: YESTERDAY });
    for (const { folder, tag } of [NOTES.arabic, NOTES.korean]) run(vault, ['delete', `${folder}/copy ${tag}.md`], { now: YESTERDAY });
    server = await serve(vault);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  for (const [width, height] of [
    [360, 740],
    [1280, 860],
  ]) {
    test(`texts have their direction, and no word is broken that fits in a line of ${width} pixels`, async () => {
      const { page, context, seen } = await open(browser, server, '/', { viewport: { width, height } });
      let words = 0;
      for (const address of VIEWS) {
        await page.goto(server.base + address);
        await settle(page);
        const found = await page.evaluate(examine);
        words += found.words;
        const { broken, direction, fields } = found;
        assert.deepEqual({ broken, direction, fields }, { broken: [], direction: [], fields: [] }, decodeURIComponent(address));
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, decodeURIComponent(address));
      }
      assert.ok(words > 3000, `${words} words`);
      assert.deepEqual(seen.errors, []);
      await context.close();
    });
  }

  test('a title and a text tell their language where lines break by it', async () => {
    const { page, context } = await open(browser, server);
    for (const [name, language] of Object.entries(LANGUAGES)) {
      await page.goto(server.base + addressOf(NOTES[name]));
      await settle(page);
      const shown = await page.evaluate(() => ['.note-head h1', '.prose > p', '.prose li', '.prose td'].map((selector) => document.querySelector(selector).lang));
      assert.deepEqual(shown, Array(4).fill(language), name);
    }
    await page.goto(`${server.base}/note/Mixed.md`);
    await settle(page);
    assert.deepEqual(await page.$$eval('.prose > p', (found) => found.map((element) => [element.lang, getComputedStyle(element).wordBreak])), [
      ['ko', 'keep-all'],
      ['', 'normal'],
    ]);
    await context.close();
  });

  test('the sign of an item is on the side where its text begins', async () => {
    const { page, context } = await open(browser, server, '/note/Mixed.md');
    const sides = await page.$$eval('.prose li', (items) =>
      items.map((item) => {
        const [own, list] = [item, item.parentElement].map((element) => element.getBoundingClientRect());
        return [own.left - list.left > 10, list.right - own.right > 10];
      }),
    );
    assert.deepEqual(sides, [
      [true, false],
      [false, true],
    ]);
    await context.close();
  });
});
