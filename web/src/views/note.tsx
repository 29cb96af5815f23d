// One note: its text, what it is linked with, its weight and its history, and what can be done with it.

import { render, type ComponentType } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, canWrite, vote } from '../actions';
import { ApiError, get, rawAddress } from '../api';
import { WeightChart } from '../charts/weight';
import { drafts, dropDraft, isDirty } from '../drafts';
import { enhance } from '../enhance';
import { formatBytes, formatNumber, formatSimilarity } from '../format';
import { useKeys } from '../keys';
import { session } from '../live';
import { useResource } from '../resource';
import { go, location, noteAddress, noteOfAddress, setQuery, withQuery } from '../router';
import { strings } from '../strings';
import { directionOf, fileName, languageOf, shortened, shownName, written } from '../text';
import type { ActivityReply, CanvasNode, GitHistory, JournalEvent, LinksReply, MentionsReply, Note, RelatedReply, RelationsReply, Weight } from '../types';
import { askBrokenLink } from '../ui/broken-link';
import { askMove } from '../ui/place-note';
import { Operation, subjectText, verbOf, Who } from '../ui/events';
import { Icon } from '../ui/icons';
import { Button, Coded, Empty, Failure, Loading, MarkedName, NoteLink, Notices, TabPanel, Tabs, TierBadge, Time } from '../ui/parts';

const words = strings.note;
const TABS = ['note', 'about', 'links', 'weight', 'history'] as const;
type Tab = (typeof TABS)[number];

/** The text of a note. A preview shows a text that is not written, of which nothing can be changed by a click. */
export function Rendered({ note, preview = false }: { note: Note; preview?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const shown = useRef('');
  useEffect(() => {
    const root = box.current;
    if (!root) return;
    root.innerHTML = note.html;
    // The page has the title above the text already.
    const heading = root.firstElementChild;
    if (heading?.tagName === 'H1' && heading.textContent?.trim() === note.title.trim()) heading.classList.add('same-title');
    direct(root);
    linkFootnotes(root);
    enableTasks(root, note, preview);
    const cancel = drawCanvases(root);
    if (!preview) enableBrokenLinks(root, note);
    // A change of the note leaves the reader where they are.
    const first = shown.current !== note.path;
    shown.current = note.path;
    if (first) scrollToTarget(root);
    void enhance(root).then(() => {
      if (first) scrollToTarget(root);
    });
    return cancel;
  }, [note.html, note.path]);
  const { query, hash } = location.value;
  const line = query.get('line');
  useEffect(() => {
    if (box.current) scrollToTarget(box.current);
  }, [line, hash]);
  return <div class="prose" ref={box} />;
}

/** Gives an element the direction and the language of its text. */
function write(element: HTMLElement, around: ReturnType<typeof languageOf> = null): void {
  Object.assign(element, written(element.textContent ?? '', around));
}

/** Gives each block the direction and language of its text. What has blocks in it, such as a list, has the direction of the first. */
function direct(root: HTMLElement): void {
  const around = languageOf(root.textContent ?? '');
  for (const block of root.querySelectorAll<HTMLElement>('p, h1, h2, h3, h4, h5, h6, td, th, summary, .callout-title, .embed-title, .card > a, a.tag')) write(block, around);
  for (const block of root.querySelectorAll<HTMLElement>('ul, ol, li, blockquote, table, .callout, .footnotes')) {
    const direction = directionOf(block.textContent ?? '');
    // The items of a list may have several languages.
    if (block.localName === 'li') write(block, around);
    if (direction) block.dir = direction;
  }
}

/** Draws the canvases that a note embeds, with their cards below as they are shown on their own page. Gives what ends it. */
function drawCanvases(root: HTMLElement): () => void {
  const ended = new AbortController();
  const drawn: Element[] = [];
  const draw = async (embed: HTMLElement, path: string) => {
    const board = await get<Note>('note', { name: path }, ended.signal);
    if (!board.canvas || board.canvas.nodes.length === 0) return;
    const box = document.createElement('div');
    box.className = 'canvas-embed';
    render(<Drawing canvas={board.canvas} />, box);
    drawn.push(box);
    const cards = document.createElement('div');
    // The cards are sanitised HTML of the server, as the note itself.
    cards.innerHTML = board.html;
    direct(cards);
    embed.replaceChildren(...embed.querySelectorAll(':scope > .embed-title'), box, cards);
  };
  for (const embed of root.querySelectorAll<HTMLElement>('.embed[data-path]')) {
    const path = embed.dataset.path ?? '';
    // Without an answer, the texts of the cards are there.
    if (/\.canvas$/i.test(path)) void draw(embed, path).catch(() => undefined);
  }
  return () => {
    ended.abort();
    for (const box of drawn) render(null, box);
  };
}

/** Links the numbers of footnotes in embeds and cards with their texts. Several of these can have the same numbers. */
function linkFootnotes(root: HTMLElement): void {
  const parts = [...root.querySelectorAll<HTMLElement>('.embed, .card')];
  const own = (part: HTMLElement, selector: string) => [...part.querySelectorAll<HTMLElement>(selector)].filter((found) => found.parentElement?.closest('.embed, .card') === part);
  parts.forEach((part, index) => {
    const texts = own(part, '.footnotes').flatMap((list) => [...list.querySelectorAll<HTMLElement>(':scope > ol > li')]);
    const referred = new Set<number>();
    for (const reference of own(part, '.footnote-ref')) {
      const number = Number(reference.textContent);
      const text = texts[number - 1];
      if (!text || reference.querySelector('a')) continue;
      text.id = `fn-${index + 1}-${number}`;
      const link = document.createElement('a');
      link.href = `#${text.id}`;
      link.textContent = String(number);
      reference.replaceChildren(link);
      if (referred.has(number)) continue;
      referred.add(number);
      link.id = `fnref-${index + 1}-${number}`;
      const back = document.createElement('a');
      back.className = 'footnote-back';
      back.href = `#${link.id}`;
      back.textContent = '\u21A9';
      const last = text.lastElementChild?.tagName === 'P' ? text.lastElementChild : text;
      last.append(' ', back);
    }
  });
}

/** Lets a click on a checkbox of the note plan the change of its task. */
function enableTasks(root: HTMLElement, note: Note, preview: boolean): void {
  for (const item of root.querySelectorAll<HTMLElement>('li.task')) {
    const input = item.querySelector<HTMLInputElement>('input[type="checkbox"]');
    if (!input) continue;
    const status = item.dataset.task ?? ' ';
    input.setAttribute('aria-label', shortened((item.textContent ?? '').trim(), 120) || words.task);
    // Statuses between open and done, such as `[/]`, are neither checked nor not.
    if (!/^[ xX]?$/.test(status)) {
      input.checked = false;
      input.indeterminate = true;
      input.dataset.status = status;
      input.title = words.taskStatus(status);
    }
    const line = Number(item.dataset.line);
    if (preview || !canWrite() || item.closest('.embed') || !line) continue;
    input.disabled = false;
    input.addEventListener('click', (event) => {
      event.preventDefault();
      const done = item.dataset.task !== ' ' && item.dataset.task !== '';
      ask('task', { name: note.path, hash: note.hash, line, status: done ? ' ' : 'x' }, { title: done ? words.reopenTask : words.completeTask, button: done ? words.reopen : words.complete, done: done ? words.reopened : words.completed });
    });
  }
}

/** Lets a click on a link that leads nowhere ask for the note that it means. */
function enableBrokenLinks(root: HTMLElement, note: Note): void {
  if (!canWrite() || note.kind !== 'note') return;
  for (const link of root.querySelectorAll<HTMLElement>('a.unresolved[data-link]')) {
    if (link.closest('.embed')) continue;
    const target = link.dataset.link ?? '';
    link.tabIndex = 0;
    link.setAttribute('role', 'button');
    link.title = words.brokenTitle(target);
    const open = (event: Event) => {
      event.preventDefault();
      askBrokenLink({ note: note.path, link: target });
    };
    link.addEventListener('click', open);
    link.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') open(event);
    });
  }
}

function scrollToTarget(root: HTMLElement): void {
  const { query, hash } = location.peek();
  let target: Element | null = null;
  const preview = root.querySelector<HTMLIFrameElement>(':scope > iframe.pdf');
  if (preview && /^page=\d+$/.test(hash)) {
    // The viewer of the browser opens the file at this page.
    const file = preview.src.replace(/#.*/, '');
    if (preview.src !== `${file}#${hash}`) preview.src = `${file}#${hash}`;
    return;
  }
  if (hash) {
    let name = hash;
    try {
      name = decodeURIComponent(hash);
    } catch {
      // A hash that is not percent-encoded is taken as it is.
    }
    const slug = name.toLowerCase().trim().replace(/\s+/g, '-');
    target = [name, `h-${name}`, `h-${slug}`].map((id) => document.getElementById(id)).find(Boolean) ?? null;
    target ??= [...root.querySelectorAll('h1,h2,h3,h4,h5,h6')].find((heading) => heading.textContent?.trim() === name) ?? null;
  } else if (query.get('line')) {
    const line = Number(query.get('line'));
    for (const block of root.querySelectorAll<HTMLElement>('[data-line]')) {
      if (block.closest('.embed')) continue;
      if (Number(block.dataset.line) <= line) target = block;
    }
  }
  if (!target) return;
  target.scrollIntoView({ block: 'center' });
  target.classList.add('flash');
  window.setTimeout(() => target?.classList.remove('flash'), 2500);
}

/** The text of a card, or the name of the image that it shows. Of a note in it there is the name. */
function cardText(html: string): string {
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  for (const part of body.querySelectorAll('.footnote-ref, .footnotes, .embed > :not(.embed-title)')) part.remove();
  return body.textContent?.replace(/\s+/g, ' ').trim() || (body.querySelector('img')?.alt ?? '');
}

/** Where an edge ends at a card: at the middle of a side, or of the card. */
function endOf(node: CanvasNode, side: string | undefined): { x: number; y: number } {
  const right = side === 'left' ? 0 : side === 'right' ? 1 : 0.5;
  const down = side === 'top' ? 0 : side === 'bottom' ? 1 : 0.5;
  return { x: node.x + node.width * right, y: node.y + node.height * down };
}

function Canvas({ note }: { note: Note }) {
  return (
    <>
      {note.canvas && note.canvas.nodes.length > 0 ? <Drawing canvas={note.canvas} /> : null}
      <Rendered note={note} />
    </>
  );
}

/** The cards of a canvas and the edges between them. */
function Drawing({ canvas }: { canvas: NonNullable<Note['canvas']> }) {
  const left = Math.min(...canvas.nodes.map((node) => node.x));
  const top = Math.min(...canvas.nodes.map((node) => node.y));
  const width = Math.max(...canvas.nodes.map((node) => node.x + node.width)) - left;
  const height = Math.max(...canvas.nodes.map((node) => node.y + node.height)) - top;
  const byId = new Map(canvas.nodes.map((node) => [node.id, node]));
  const edges = canvas.edges.flatMap((edge) => {
    const from = byId.get(edge.from ?? edge.fromNode ?? '');
    const to = byId.get(edge.to ?? edge.toNode ?? '');
    return from && to ? [{ from: endOf(from, edge.fromSide), to: endOf(to, edge.toSide), label: edge.label }] : [];
  });
  return (
    <svg class="canvas-drawing" viewBox={`${left - 20} ${top - 20} ${width + 40} ${height + 40}`} role="img" aria-label={words.canvasLabel(canvas.nodes.length)}>
      {edges.map((edge, index) => (
        <line key={index} x1={edge.from.x} y1={edge.from.y} x2={edge.to.x} y2={edge.to.y} />
      ))}
      {canvas.nodes.map((node) => (
        <g key={node.id}>
          <rect class={node.type} x={node.x} y={node.y} width={node.width} height={node.height} rx="10" />
          {/* What a narrow card has no room for is cut at its edge. */}
          <svg x={node.x} y={node.y} width={Math.max(0, node.width - 10)} height={node.height} overflow="hidden">
            <text x={14} y={28}>
              {shortened(node.label ?? cardText(node.html), Math.max(4, Math.floor(node.width / 8)))}
            </text>
          </svg>
        </g>
      ))}
      {edges.map((edge, index) =>
        edge.label ? (
          <text key={index} class="edge-label" x={(edge.from.x + edge.to.x) / 2} y={(edge.from.y + edge.to.y) / 2 + 7}>
            {edge.label}
          </text>
        ) : null,
      )}
    </svg>
  );
}

function PropertyValue({ html }: { html: string }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    // The value is sanitised HTML of the server, as the note itself.
    if (!box.current) return;
    box.current.innerHTML = html;
    write(box.current);
    for (const tag of box.current.querySelectorAll<HTMLElement>('a.tag')) write(tag);
  }, [html]);
  return <dd ref={box} />;
}

/** The headings as the text shows them: without the signs of Markdown, and without the numbers of footnotes. */
function shownHeadings(html: string): Map<string, string> {
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  for (const part of body.querySelectorAll('.footnote-ref')) part.remove();
  const headings = [...body.querySelectorAll<HTMLElement>('h1[id],h2[id],h3[id],h4[id],h5[id],h6[id]')];
  return new Map(headings.map((heading) => [heading.id, heading.textContent?.replace(/\s+/g, ' ').trim() ?? '']));
}

function About({ note }: { note: Note }) {
  const outline = note.outline ?? [];
  const headings = useMemo(() => shownHeadings(note.html), [note.html]);
  const least = Math.min(...outline.map((item) => item.level), 6);
  return (
    <>
      {outline.length > 0 ? (
        <section class="side-section">
          <h2>{words.outline}</h2>
          <ul class="outline">
            {outline.map((item) => (
              <li key={item.id + item.line} class={`level-${Math.min(4, item.level - least + 1)}`}>
                <a href={`#${encodeURIComponent(item.id)}`} {...written(item.text)}>{headings.get(item.id) || headings.get(`h-${item.id}`) || item.text}</a>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      <section class="side-section">
        <h2>{words.properties}</h2>
        {note.frontmatter_error ? <p class="failure-text">{note.frontmatter_error}</p> : null}
        {note.properties.length === 0 && !note.frontmatter_error ? <p class="about">{words.noProperties}</p> : null}
        <dl class="properties">
          {note.properties.map((property) => (
            <div key={property.key}>
              <dt {...written(property.key)}>{property.key}</dt>
              <PropertyValue html={property.html} />
            </div>
          ))}
        </dl>
      </section>
      <section class="side-section">
        <h2>{words.facts}</h2>
        <dl class="properties">
          <div>
            <dt>{words.created}</dt>
            <dd>
              <Time at={note.created} />
            </dd>
          </div>
          <div>
            <dt>{words.updated}</dt>
            <dd>
              <Time at={note.updated} />
            </dd>
          </div>
          <div>
            <dt>{words.size}</dt>
            <dd>{formatBytes(note.size)}</dd>
          </div>
          {note.memory ? (
            <>
              <div>
                <dt>{words.weightNow}</dt>
                <dd>{formatNumber(note.memory.importance, 1)}</dd>
              </div>
              <div>
                <dt>{words.tier}</dt>
                <dd>
                  <a href={noteAddress(note.path, { tab: 'weight' })}>{note.memory.tier}</a>
                </dd>
              </div>
              <div>
                <dt>{words.uses}</dt>
                <dd>{note.memory.uses}</dd>
              </div>
              {note.memory.usefulness ? (
                <div>
                  <dt>{words.votes}</dt>
                  <dd>{note.memory.usefulness > 0 ? `+${note.memory.usefulness}` : note.memory.usefulness}</dd>
                </div>
              ) : null}
            </>
          ) : null}
          {note.id && !note.properties.some((property) => property.key.toLowerCase() === 'id') ? (
            <div>
              <dt>id</dt>
              <dd class="mono wrap">{note.id}</dd>
            </div>
          ) : null}
        </dl>
      </section>
    </>
  );
}

function Links({ note }: { note: Note }) {
  const links = useResource(`links ${note.path}`, (signal) => get<LinksReply>('links', { name: note.path }, signal));
  const relations = useResource(`relations ${note.path}`, (signal) => get<RelationsReply>('relations', { name: note.path }, signal));
  const mentions = useResource(`mentions ${note.path}`, (signal) => get<MentionsReply>('mentions', { name: note.path, limit: 30 }, signal), { live: 1500 });
  const related = useResource(`related ${note.path}`, (signal) => get<RelatedReply>('related', { name: note.path, limit: 10 }, signal), { live: 1500 });
  // The order is that of the numbers that are shown; notes without one keep theirs.
  const near = [...(related.data?.related ?? [])].sort((one, other) => (other.cosine ?? -1) - (one.cosine ?? -1));
  const out = links.data ? [...new Map(links.data.outgoing.map((link) => [link.resolved ?? link.original, link])).values()] : [];
  return (
    <>
      {links.error ? <Failure error={links.error} retry={links.reload} /> : null}
      {!links.data && !links.error ? <Loading /> : null}
      {links.data ? (
        <>
          <section class="side-section">
            <h2>
              {words.backlinks} <span class="count">{links.data.backlinks.length}</span>
            </h2>
            {links.data.backlinks.length === 0 ? <p class="about">{words.noBacklinks}</p> : null}
            <ul class="quotes">
              {links.data.backlinks.slice(0, 200).map((link) => (
                <li key={`${link.path}:${link.line}`}>
                  <NoteLink path={link.path} line={link.line} />
                  <p {...written(link.text)}>{link.text}</p>
                </li>
              ))}
            </ul>
            {links.data.backlinks.length > 200 ? <p class="about">{strings.more(links.data.backlinks.length - 200)}</p> : null}
          </section>
          <section class="side-section">
            <h2>
              {words.linksOut} <span class="count">{out.length + links.data.unresolved.length}</span>
            </h2>
            {out.length + links.data.unresolved.length === 0 ? <p class="about">{words.noLinks}</p> : null}
            <ul class="plain-list">
              {out.map((link) => (
                <li key={link.original + link.line}>
                  {link.resolved ? <NoteLink path={link.resolved} /> : <code {...written(link.original)}>{link.original}</code>}{' '}
                  {link.broken_subpath ? <span class="chip soft">{words.brokenPart}</span> : null}
                </li>
              ))}
              {links.data.unresolved.map((link) => (
                <li key={`x${link.original}${link.line}`}>
                  <code {...written(link.original)}>{link.original}</code> <span class="chip soft">{words.leadsNowhere}</span>
                </li>
              ))}
            </ul>
          </section>
        </>
      ) : null}
      {relations.error ? <Failure error={relations.error} retry={relations.reload} /> : null}
      {relations.data && relations.data.relations.length > 0 ? (
        <section class="side-section">
          <h2>
            {words.relations} <span class="count">{relations.data.relations.length}</span>
          </h2>
          <ul class="quotes">
            {relations.data.relations.map((relation, index) => (
              <li key={index}>
                <span class="relation">
                  {relation.from === note.path ? <span>{words.thisNote}</span> : <NoteLink path={relation.from} bare />} <span class="chip">{relation.type}</span> {relation.to === note.path ? <span>{words.thisNote}</span> : <NoteLink path={relation.to} bare />}
                  {relation.inferred ? <span class="chip soft">{words.inferred}</span> : null}
                </span>
                <p {...written(relation.evidence)}>{relation.evidence}</p>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      <section class="side-section">
        <h2>
          {words.mentions} {mentions.data ? <span class="count">{mentions.data.mentions.length + (mentions.data.more ? '+' : '')}</span> : null}
        </h2>
        {mentions.error ? <Failure error={mentions.error} retry={mentions.reload} /> : null}
        {!mentions.data && !mentions.error ? <Loading lines={2} /> : null}
        {mentions.data?.mentions.length === 0 ? <p class="about">{words.noMentions}</p> : null}
        <ul class="quotes">
          {mentions.data?.mentions.map((mention, index) => (
            <li key={index}>
              <NoteLink path={mention.path} line={mention.line} />
              <p {...written(mention.text)}>
                <MarkedName text={mention.text} name={mention.name} />
              </p>
            </li>
          ))}
        </ul>
      </section>
      <section class="side-section">
        <h2>{words.related}</h2>
        {related.error ? <Failure error={related.error} retry={related.reload} /> : null}
        {!related.data && !related.error ? <Loading lines={2} /> : null}
        <Notices notices={related.data?.notes} />
        {related.data ? <p class="about">{near.length === 0 ? words.noRelated : words.relatedAbout}</p> : null}
        <ul class="plain-list related">
          {near.map((item) => (
            <li key={item.path}>
              <NoteLink path={item.path} title={item.title} />{' '}
              {item.cosine !== undefined ? (
                <span class="chip soft" title={words.similarity}>
                  {words.alike(formatSimilarity(item.cosine))}
                </span>
              ) : null}{' '}
              {item.common && item.common.length > 0 ? (
                <span class="chip soft" title={words.inCommonAre(item.common.map(fileName).join(', '))}>
                  {words.inCommon}
                </span>
              ) : null}{' '}
              {item.linked ? <span class="chip soft">{words.directLink}</span> : null}
            </li>
          ))}
        </ul>
      </section>
      <p>
        <a class="button plain" href={withQuery('/graph', { around: note.path })}>
          <Icon name="graph" /> <span>{words.showInGraph}</span>
        </a>
      </p>
    </>
  );
}

function WeightTab({ note }: { note: Note }) {
  const weight = useResource(note.memory ? `weight ${note.path}` : null, (signal) => get<Weight>('weight', { name: note.path }, signal));
  if (!note.memory) return <p class="about">{words.noWeight}</p>;
  if (weight.error) return <Failure error={weight.error} retry={weight.reload} />;
  if (!weight.data) return <Loading />;
  const importance = note.properties.find((property) => property.key.toLowerCase() === 'importance');
  return (
    <section class="side-section">
      <h2>{words.weight}</h2>
      <p class="weight-now">
        <strong>{formatNumber(weight.data.importance, 1)}</strong> {words.of10} <TierBadge tier={weight.data.tier} />
      </p>
      <p class="tier-reason">
        <Coded text={strings.weight.tierReasons[weight.data.tier_reason](weight.data)} />
      </p>
      <WeightChart weight={weight.data} />
      {importance ? (
        <p class="about">
          <Coded text={strings.weight.importanceIs(String(importance.value))} />
        </p>
      ) : null}
      <p class="about">{words.used(note.memory.uses, note.memory.days_used)}</p>
      {note.memory.superseded_by ? <p class="about">{words.superseded(note.memory.superseded_by)}</p> : null}
      {canWrite() ? (
        <div class="votes">
          <span>{words.wasUseful}</span>
          <Button small icon="up" onClick={() => void vote(note.path, true)}>
            {words.yes}
          </Button>
          <Button small icon="down" onClick={() => void vote(note.path, false)}>
            {words.no}
          </Button>
        </div>
      ) : null}
    </section>
  );
}

/** The operations on a note that is not there any more, if there are any. */
function FormerHistory({ name }: { name: string }) {
  const history = useResource(`former history ${name}`, (signal) => get<ActivityReply>('activity', { note: name, limit: 100 }, signal));
  const events = history.error ? [] : (history.data?.events ?? []);
  if (events.length === 0) return null;
  return (
    <section class="side-section">
      <h2>{words.formerHistory}</h2>
      <Operations events={events} />
    </section>
  );
}

function Operations({ events }: { events: JournalEvent[] }) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <ol class="history">
      {events.map((event) => (
        <li key={event.id} class={event.undone ? 'undone' : ''}>
          <button type="button" class="event-toggle" aria-expanded={open === event.id} onClick={() => setOpen(open === event.id ? null : event.id)}>
            <Icon name="chevron" size={14} />
            <span>{verbOf(event)}</span>
            <span class="visually-hidden">{subjectText(event)}</span>
          </button>
          <span class="history-meta">
            <Who event={event} /> {event.undone ? <span class="chip soft">{strings.activity.undone}</span> : null} <Time at={event.at} />
          </span>
          {open === event.id ? <Operation id={event.id} /> : null}
        </li>
      ))}
    </ol>
  );
}

function History({ note }: { note: Note }) {
  const history = useResource(`history ${note.path}`, (signal) => get<ActivityReply>('activity', { note: note.path, limit: 100 }, signal));
  const git = useResource(`git ${note.path}`, (signal) => get<GitHistory>('git-history', { name: note.path, limit: 50 }, signal), { live: 1500 });
  const events = history.data?.events ?? [];
  return (
    <>
      <section class="side-section">
        <h2>{words.operations}</h2>
        {history.error ? <Failure error={history.error} retry={history.reload} /> : null}
        {!history.data && !history.error ? <Loading /> : null}
        {history.data && events.length === 0 ? <p class="about">{words.noOperations}</p> : null}
        <Operations events={events} />
      </section>
      {git.data && git.data.repository !== false ? (
        <section class="side-section">
          <h2>{words.commits}</h2>
          {git.data.commits.length === 0 ? <p class="about">{words.noCommits}</p> : null}
          <ol class="history">
            {git.data.commits.map((commit) => (
              <li key={commit.commit}>
                <span class="commit-subject">{commit.subject}</span>
                <span class="history-meta">
                  {commit.author} · <Time at={commit.date} /> · <code>{commit.commit.slice(0, 8)}</code>
                  {commit.words ? (
                    <>
                      {' '}
                      · <span class="plus">+{commit.words.added}</span> <span class="minus">−{commit.words.removed}</span>
                    </>
                  ) : null}
                </span>
              </li>
            ))}
          </ol>
          {git.data.shallow ? <p class="about">{words.shallow}</p> : null}
        </section>
      ) : null}
      {git.error ? <Failure error={git.error} retry={git.reload} /> : null}
    </>
  );
}

function Actions({ note }: { note: Note }) {
  const obsidian = session.value?.obsidian ? `obsidian://open?vault=${encodeURIComponent(session.value.vault_name)}&file=${encodeURIComponent(note.path)}` : null;
  const memory = note.memory;
  const body = { name: note.path, hash: note.hash };
  const actions = strings.actions;
  return (
    <div class="note-actions" role="toolbar" aria-label={words.actions}>
      {note.kind === 'note' && canWrite() ? (
        <Button icon="edit" onClick={() => editNote(note.path)}>
          {words.edit}
        </Button>
      ) : null}
      {canWrite() ? (
        <Button icon="move" onClick={() => askMove({ path: note.path, title: shownName(note.path, note.title), hash: note.hash })}>
          {words.move}
        </Button>
      ) : null}
      {memory && canWrite() ? (
        <>
          {memory.pinned ? (
            <Button icon="pin" pressed onClick={() => ask('unpin', body, { title: actions.unpinTitle(note.title), button: actions.unpin, done: actions.unpinned(note.title) })}>
              {actions.pinnedButton}
            </Button>
          ) : (
            <Button icon="pin" onClick={() => ask('pin', body, { title: actions.pinTitle(note.title), about: actions.pinAbout, button: actions.pin, done: actions.pinned(note.title) })}>
              {actions.pin}
            </Button>
          )}
          {memory.tier === 'ARCHIVE' || memory.forgotten ? (
            <Button icon="restore" onClick={() => ask('restore', body, { title: actions.restoreTitle(note.title), button: actions.restore, done: actions.restored(note.title) })}>
              {actions.restore}
            </Button>
          ) : (
            <>
              <Button icon="archive" onClick={() => ask('archive', body, { title: actions.archiveTitle(note.title), about: actions.archiveAbout, button: actions.archive, done: actions.archived(note.title) })}>
                {actions.archive}
              </Button>
              <Button icon="forget" onClick={() => ask('forget', body, { title: actions.forgetTitle(note.title), about: actions.forgetAbout, button: actions.forget, done: actions.forgotten(note.title) })}>
                {actions.forget}
              </Button>
            </>
          )}
          <Button icon="trash" onClick={() => ask('forget', { ...body, hard: true }, { title: actions.deleteTitle(note.title), about: actions.deleteAbout, button: actions.delete, done: actions.deleted(note.title) })}>
            {actions.delete}
          </Button>
        </>
      ) : null}
      {obsidian ? (
        <a class="button quiet" href={obsidian}>
          <Icon name="external" /> <span>{words.openInObsidian}</span>
        </a>
      ) : null}
      {note.kind === 'attachment' ? (
        <a class="button quiet" href={rawAddress(note.path)} target="_blank" rel="noopener">
          <Icon name="external" /> <span>{words.openFile}</span>
        </a>
      ) : null}
    </div>
  );
}

/** Shows the editor of a note. */
function editNote(path: string): void {
  go(withQuery(noteAddress(path), { edit: '1' }));
}

/** The editor is loaded when it is used. */
function LazyEditor({ note, path }: { note: Note | null; path: string }) {
  const [Shown, setShown] = useState<ComponentType<{ note: Note | null; path: string }> | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => {
    setError(null);
    import('./editor').then(
      (module) => setShown(() => module.default),
      (cause: unknown) => setError(new ApiError(0, { message: strings.errors.noPart, hint: String(cause) })),
    );
  };
  useEffect(load, []);
  if (error) return <Failure error={error} retry={load} />;
  return Shown ? <Shown note={note} path={path} /> : <Loading lines={12} />;
}

function Crumbs({ path }: { path: string }) {
  const parts = path.split('/');
  return (
    <nav class="crumbs" aria-label={words.place}>
      {parts.slice(0, -1).map((part, index) => (
        <span key={index}>
          <a href={withQuery('/notes', { folder: parts.slice(0, index + 1).join('/') })}><bdi {...written(part)}>{part}</bdi></a>
          <span aria-hidden="true"> / </span>
        </span>
      ))}
      <bdi>{parts[parts.length - 1]}</bdi>
    </nav>
  );
}

export default function NoteView() {
  const { path, query } = location.value;
  const name = noteOfAddress(path);
  const wide = useWide();
  const asked = query.get('tab') as Tab | null;
  const tab: Tab = asked && TABS.includes(asked) ? asked : wide ? 'about' : 'note';
  const shown = wide && tab === 'note' ? 'about' : tab;
  const note = useResource(name ? `note ${name}` : null, (signal) => get<Note>('note', { name }, signal));

  useEffect(() => {
    if (note.data) document.title = strings.pageTitle(shownName(note.data.path, note.data.title));
  }, [note.data?.title]);

  const choose = (value: Tab) => setQuery({ tab: value === 'about' && wide ? null : value === 'note' && !wide ? null : value });
  useKeys((event) => {
    if (event.key === 'e' && note.data?.kind === 'note' && canWrite() && query.get('edit') !== '1') {
      editNote(note.data.path);
      return true;
    }
    const index = Number(event.key);
    const tabs = TABS.filter((item) => !wide || item !== 'note');
    const wanted = tabs[index - 1];
    if (!wanted) return false;
    choose(wanted);
    return true;
  });

  if (!name) return <Empty title={words.noName} icon="note" />;
  const draft = drafts.value.get(note.data?.path ?? name);
  if (query.get('edit') === '1' && canWrite() && (note.data?.kind === 'note' || (draft && note.error && !note.data))) {
    return <LazyEditor note={note.data} path={note.data?.path ?? name} />;
  }
  if (note.error && !note.data) {
    return (
      <div class="view">
        <h1 class="visually-hidden">{fileName(name)}</h1>
        <Failure error={note.error.status === 404 ? new ApiError(404, { message: words.noSuchNote(name) }) : note.error} retry={note.reload} />
        {note.error.status === 404 ? (
          <p class="about">
            {words.perhapsDeleted} <a href={withQuery('/memory', { tab: 'away', q: fileName(name) })}>{words.lookAmongDeleted}</a> · <a href={withQuery('/search', { q: fileName(name) })}>{words.searchForIt}</a>
          </p>
        ) : null}
        {note.error.status === 404 ? <FormerHistory name={name} /> : null}
      </div>
    );
  }
  if (!note.data) return <Loading lines={12} />;
  const data = note.data;
  const article = (
    <article class="note-text">
      {isDirty(draft) && canWrite() ? (
        <p class="draft-hint" role="status">
          <span>{words.hasDraft}</span>{' '}
          <Button small icon="edit" onClick={() => editNote(data.path)}>
            {words.editOn}
          </Button>
          <Button small onClick={() => dropDraft(data.path)}>
            {strings.editor.discard}
          </Button>
        </p>
      ) : null}
      <Notices notices={data.notices} />
      {data.kind === 'canvas' ? <Canvas note={data} /> : <Rendered note={data} />}
      {data.html.trim() === '' ? <Empty title={words.emptyNote}>{data.kind === 'note' && canWrite() ? <Button icon="edit" onClick={() => editNote(data.path)}>{words.edit}</Button> : words.emptyAdvice}</Empty> : null}
    </article>
  );
  return (
    <div class="view note-view">
      <header class="note-head">
        <Crumbs path={data.path} />
        <h1 tabIndex={-1} {...written(shownName(data.path, data.title))}>{shownName(data.path, data.title)}</h1>
        <p class="note-meta">
          {data.memory ? (
            <a class="tier-link" href={noteAddress(data.path, { tab: 'weight' })}>
              <TierBadge tier={data.memory.tier} />
            </a>
          ) : null}
          {data.memory?.pinned ? <span class="chip">{words.isPinned}</span> : null}
          {data.memory?.forgotten ? <span class="chip">{words.isForgotten}</span> : null}
          {data.memory ? <span>{data.memory.type}</span> : <span>{words.kinds[data.kind]}</span>}
          <span>
            {words.changed} <Time at={data.updated} />
          </span>
          {data.tags.slice(0, 8).map((tag) => (
            <a key={tag} class="tag" {...written(tag)} href={withQuery('/search', { q: `tag:#${tag}` })}>
              #{tag}
            </a>
          ))}
        </p>
        <Actions note={data} />
      </header>
      <div class="note-columns">
        {wide ? article : null}
        <aside class="note-side" aria-label={words.side}>
          <Tabs
            label={words.side}
            id="note"
            value={shown}
            tabs={TABS.filter((item) => !wide || item !== 'note').map((value) => ({ value, label: value === 'about' && (data.outline ?? []).length === 0 ? words.tabAbout : words.tabs[value] }))}
            onChange={choose}
          />
          <TabPanel id="note" value={shown}>
            {shown === 'note' ? article : null}
            {shown === 'about' ? <About note={data} /> : null}
            {shown === 'links' ? <Links note={data} /> : null}
            {shown === 'weight' ? <WeightTab note={data} /> : null}
            {shown === 'history' ? <History note={data} /> : null}
          </TabPanel>
        </aside>
      </div>
    </div>
  );
}

const wideQuery = window.matchMedia('(min-width: 1100px)');

/** Whether the note and its side stand beside each other. */
export function useWide(): boolean {
  const [wide, setWide] = useState(wideQuery.matches);
  useEffect(() => {
    const follow = () => setWide(wideQuery.matches);
    wideQuery.addEventListener('change', follow);
    return () => wideQuery.removeEventListener('change', follow);
  }, []);
  return wide;
}

