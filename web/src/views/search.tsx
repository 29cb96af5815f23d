// The search page: results while one types, facets, and why each note was found where it is.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, canWrite } from '../actions';
import { get, type ApiError, type Parameters } from '../api';
import { gapBelow, partsOf, ScoreBar, ScoreParts } from '../charts/score';
import { formatCount, formatFixed, formatNumber } from '../format';
import { openSearch, searchWanted, takeEarlyText, useKeys } from '../keys';
import { session } from '../live';
import { useResource } from '../resource';
import { cameBack, location, noteAddress, setQuery, withQuery } from '../router';
import { strings } from '../strings';
import { fileName, folderOf, shownName, splitName, written } from '../text';
import type { ActivityReply, FacetName, Facets, InactiveCounts, MemoryChanges, Mode, SearchReply, SearchResult, Status, Suggestions, TrashMatches, WhyReply } from '../types';
import { EventLine } from '../ui/events';
import { Button, Card, Coded, Empty, Failure, Loading, Marked, NoteLink, Notices, Path, Segments, TierBadge, Time } from '../ui/parts';
import { Icon } from '../ui/icons';

const words = strings.search;
const FACETS: FacetName[] = ['folder', 'tag', 'type', 'tier', 'year'];
const PAGE = 20;
/** The fewest milliseconds between two queries while one types. The first key is asked at once. */
const INTERVAL = 50;
/** Milliseconds without a new query after which facets are counted. */
const FACET_PAUSE = 120;

/** The path of the result that was opened last. */
let opened: string | null = null;
/** The last wish for the cursor that was fulfilled. */
let fulfilled = 0;

type Chosen = Record<FacetName, string[]>;

function chosenOf(query: URLSearchParams): Chosen {
  return { folder: query.getAll('folder'), tag: query.getAll('tag'), type: query.getAll('type'), tier: query.getAll('tier'), year: query.getAll('year') };
}

function filtersOf(chosen: Chosen): Parameters {
  return { folder: chosen.folder[0], tag: chosen.tag, type: chosen.type[0], tier: chosen.tier[0], year: chosen.year[0] };
}

/** The field, with the mistake of the query underlined by a copy of the text behind it. */
function Field(props: { value: string; problem: { start: number; end: number } | null; onInput: (text: string) => void; onEnter: () => void; onDown: () => void; field: preact.RefObject<HTMLInputElement | null>; describedBy: string | undefined }) {
  const back = useRef<HTMLDivElement>(null);
  const { value, problem } = props;
  const follow = (event: Event) => {
    if (back.current) back.current.scrollLeft = (event.target as HTMLElement).scrollLeft;
  };
  const start = problem ? Math.min(problem.start, Math.max(0, value.length - 1)) : 0;
  const end = problem ? Math.max(start + 1, Math.min(problem.end, value.length)) : 0;
  return (
    <div class="search-field">
      <Icon name="search" size={20} />
      <div class="search-input">
        <div class="search-back" ref={back} aria-hidden="true" dir="auto">
          {problem ? (
            <>
              {value.slice(0, start)}
              <span class="mistake">{value.slice(start, end) || ' '}</span>
              {value.slice(end)}
            </>
          ) : null}
        </div>
        <input
          type="search"
          data-search-field
          dir="auto"
          value={value}
          placeholder={words.placeholder}
          aria-label={words.label}
          aria-invalid={problem ? 'true' : undefined}
          aria-describedby={props.describedBy}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          ref={props.field}
          onInput={(event) => {
            props.onInput(event.currentTarget.value);
            follow(event);
          }}
          onScroll={follow}
          onKeyUp={follow}
          onKeyDown={(event) => {
            if (event.key === 'Enter') props.onEnter();
            else if (event.key === 'ArrowDown') {
              event.preventDefault();
              props.onDown();
            }
          }}
        />
      </div>
      <kbd class="search-key" aria-hidden="true">
        /
      </kbd>
    </div>
  );
}

/** Scrolls a part that was opened into view. */
function inView(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: 'nearest' });
}

/** The address at which a result is shown: at its place in an attachment, or at its lines. */
function resultAddress(result: SearchResult): string {
  const { path, place, lines } = result;
  if (place) return `${noteAddress(path)}#${place.kind}=${place.number}`;
  return noteAddress(path, lines[0] > 1 ? { line: lines[0] } : {});
}

function Result({ result, above, rank, most, open, toggle }: { result: SearchResult; above: SearchResult | null; rank: number; most: number; open: boolean; toggle: () => void }) {
  const folder = folderOf(result.path);
  const explained = result.explain && partsOf(result.explain).length > 0 ? result.explain : null;
  const id = `why-${rank}`;
  const gap = open && explained && above?.explain ? gapBelow(above.explain, above.score, explained, result.score) : null;
  return (
    <li class="result" data-item-row>
      <span class="rank" aria-hidden="true">
        {rank}
      </span>
      <div class="result-main">
        <h2 class="result-title">
          <a href={resultAddress(result)} {...written(shownName(result.path, result.title))} data-item data-rank={rank} data-path={result.path} onClick={() => (opened = result.path)}>
            {shownName(result.path, result.title)}
          </a>
          {result.tier ? <TierBadge tier={result.tier} /> : null}
          {rank === 1 ? (
            <span class="result-enter">
              <kbd>Enter</kbd> {words.opensIt}
            </span>
          ) : null}
        </h2>
        <p class="result-place">
          <Path text={folder ? `${folder}/` : ''} />
          {result.heading ? (
            <span>
              <bdi {...written(result.heading)}>
                <Coded text={result.heading} />
              </bdi>
            </span>
          ) : null}
          {result.place ? null : <span>{words.lines(result.lines[0], result.lines[1])}</span>}
          {result.updated ? <Time at={result.updated} /> : null}
        </p>
        {result.snippet ? (
          <p class="snippet" {...written(result.plain?.text ?? result.snippet)}>
            <Marked text={result.plain?.text ?? result.snippet} marks={result.plain?.marks ?? result.marks} />
          </p>
        ) : null}
        {result.superseded_by ? (
          <p class="result-note">
            {words.supersededBy} <NoteLink path={result.superseded_by} bare />
          </p>
        ) : null}
        {result.not_valid_since ? (
          <p class="result-note">
            {words.notValidSince} <Time at={result.not_valid_since} />
          </p>
        ) : null}
        {result.not_valid_before ? (
          <p class="result-note">
            {words.notValidBefore} <Time at={result.not_valid_before} />
          </p>
        ) : null}
        {open && explained ? (
          <div class="why" id={id} ref={inView}>
            <ScoreBar explain={explained} most={result.score} label={words.scoreLabel(formatFixed(result.score, 3))} />
            <ScoreParts explain={explained} score={result.score} />
            {gap ? <p class="why-gap">{words.gap(formatFixed(gap.gap, 3), rank - 1, strings.score.parts[gap.part])}</p> : null}
          </div>
        ) : null}
      </div>
      {explained ? (
        <button type="button" class="why-button" aria-expanded={open} aria-controls={open ? id : undefined} onClick={toggle} title={words.whyTitle(rank)}>
          <ScoreBar explain={explained} most={most} label={words.scoreLabel(formatFixed(result.score, 3))} />
          <span>{words.why(rank)}</span>
        </button>
      ) : null}
    </li>
  );
}

/** A value of a facet. Where there is no room for it, what stands before its last part is cut. */
function FacetText({ value }: { value: string }) {
  const [before, last] = splitName(value);
  return (
    <span class="facet-value">
      {before ? <span class="facet-before">{before}</span> : null}
      <bdi class="facet-last">{last}</bdi>
    </span>
  );
}

function FacetList({ name, facets, chosen, toggle }: { name: FacetName; facets: Facets | null; chosen: string[]; toggle: (value: string) => void }) {
  const [all, setAll] = useState(false);
  const values = facets?.[name] ?? [];
  const missing = chosen.filter((value) => !values.some((item) => item.value === value)).map((value) => ({ value, notes: 0 }));
  const list = [...missing, ...values].filter((item) => item.value !== '' || name === 'folder');
  if (list.length === 0) return null;
  const shown = all ? list : list.slice(0, 7);
  return (
    <section class="facet">
      <h2>{words.facets[name]}</h2>
      <ul>
        {shown.map((item) => (
          <li key={item.value}>
            <button type="button" aria-pressed={chosen.includes(item.value)} title={item.value || undefined} onClick={() => toggle(item.value)}>
              <FacetText value={item.value || words.rootFolder} />
              <span class="facet-count">{formatCount(item.notes)}</span>
            </button>
          </li>
        ))}
      </ul>
      {list.length > shown.length ? (
        <Button small kind="quiet" onClick={() => setAll(true)}>
          {strings.more(list.length - shown.length)}
        </Button>
      ) : null}
    </section>
  );
}

/** Asks why a note is not among the results. */
function AskWhy({ q, shown }: { q: string; shown: string[] }) {
  const askRestore = (path: string) => ask('restore', { name: path }, { title: strings.actions.restoreTitle(fileName(path)), button: strings.actions.restore, done: strings.actions.restored(fileName(path)) });
  const [name, setName] = useState('');
  const [asked, setAsked] = useState<string | null>(null);
  useEffect(() => setAsked(null), [q]);
  const suggestions = useResource(name.length >= 2 ? `suggest ${name}` : null, (signal) => get<Suggestions>('suggest', { q: name, limit: 8 }, signal), { keep: true, live: false });
  const why = useResource(asked ? `why ${q} ${asked}` : null, (signal) => get<WhyReply>('why', { q, name: asked }, signal), { live: 300 });
  return (
    <section class="ask-why">
      <h2>{words.missingTitle}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) setAsked(name.trim());
        }}
      >
        <input type="text" list="ask-why-names" dir="auto" value={name} onFocus={(event) => event.currentTarget.select()} onInput={(event) => setName(event.currentTarget.value)} placeholder={words.missingPlaceholder} aria-label={words.missingPlaceholder} autocomplete="off" />
        <datalist id="ask-why-names">
          {(suggestions.data?.paths ?? []).map((path) => (
            <option key={path} value={path} />
          ))}
        </datalist>
        <button type="submit" class="button plain">
          <span>{words.missingAsk}</span>
        </button>
      </form>
      {why.error ? <Failure error={why.error} /> : null}
      {asked && why.loading && !why.data ? <Loading lines={2} /> : null}
      {why.data ? (
        <div class="why-answer" role="status">
          <p>
            <NoteLink path={why.data.path} /> {why.data.rank ? (shown.includes(why.data.path) ? words.isShown(why.data.rank) : words.hasRank(why.data.rank)) : words.isNotFound}
          </p>
          <ul class="reasons">
            {why.data.reasons.map((reason) => (
              <li key={reason}>
                <Coded text={reason} />
              </li>
            ))}
            {why.data.conditions?.map((condition) => (
              <li key={condition.term} class={condition.holds ? 'holds' : 'fails'}>
                <code>{condition.term}</code> {condition.holds ? words.holds : words.fails}
              </li>
            ))}
          </ul>
          {why.data.restorable && canWrite() ? (
            <Button small icon="restore" onClick={() => askRestore(why.data?.path ?? '')}>
              {strings.actions.restore}
            </Button>
          ) : null}
          {why.data.explain ? <ScoreParts explain={why.data.explain} score={partsOf(why.data.explain).reduce((sum, part) => sum + part.value, 0)} /> : null}
        </div>
      ) : null}
    </section>
  );
}

/** What the page shows before a query: what to ask, and what happened lately. */
function Start() {
  const activity = useResource('start activity', (signal) => get<ActivityReply>('activity', { limit: 6, brief: true }, signal));
  const changes = useResource('start changes', (signal) => get<MemoryChanges>('memory/changes', { days: 7, limit: 1 }, signal), { live: 5000 });
  const inactive = useResource('start inactive', (signal) => get<InactiveCounts>('memory/inactive/counts', {}, signal), { live: 1000 });
  const falling = changes.data?.total ?? 0;
  const isNew = session.value?.generation === 0;
  const status = useResource(isNew ? 'start status' : null, (signal) => get<Status>('status', {}, signal), { live: 300 });
  return (
    <div class="start">
      {status.data && status.data.notes === 0 && status.data.behind === 0 ? (
        <Empty title={strings.graph.empty} icon="note">
          {words.emptyVault(status.data.vault)}
        </Empty>
      ) : null}
      <div class="start-cards">
        <Card title={words.lately} tools={<a href="/activity">{words.allActivity}</a>}>
          {activity.error ? <Failure error={activity.error} retry={activity.reload} /> : null}
          {!activity.data && !activity.error ? <Loading /> : null}
          {activity.data?.events.length === 0 ? <p class="about">{words.nothingLately}</p> : null}
          <ul class="event-lines">
            {activity.data?.events.map((event) => (
              <EventLine key={event.id} event={event} />
            ))}
          </ul>
        </Card>
        <Card title={words.glance}>
          <ul class="glance">
            <li>
              <a href="/memory?tab=changes" data-item>
                <strong>{changes.data ? formatCount(falling) : '…'}</strong> <span>{words.falling(falling, changes.data?.counts.COLD ?? 0)}</span>
              </a>
            </li>
            <li>
              <a href="/memory?tab=away" data-item>
                <strong>{inactive.data ? formatCount(inactive.data.trash) : '…'}</strong> <span>{words.deleted(inactive.data?.trash ?? 0)}</span>
              </a>
            </li>
            <li>
              <a href="/memory?tab=away" data-item>
                <strong>{inactive.data ? formatCount(inactive.data.archived + inactive.data.forgotten) : '…'}</strong> <span>{words.putAway}</span>
              </a>
            </li>
            <li>
              <a href="/health" data-item>
                <Icon name="health" /> <span>{words.toHealth}</span>
              </a>
            </li>
          </ul>
        </Card>
      </div>
      <Card title={words.languageTitle} about={words.languageAbout}>
        <ul class="examples">
          {words.examples.map((example) => (
            <li key={example.query}>
              <a href={withQuery('/search', { q: example.query })} data-item>
                <code>{example.query}</code>
              </a>
              <span>{example.about}</span>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

/** Points to the deleted notes that match. A query with a mistake has its message elsewhere. */
function Deleted({ q }: { q: string }) {
  const found = useResource(`trash matches ${q}`, (signal) => get<TrashMatches>('trash/matches', { q, limit: 1 }, signal), { keep: true, live: 1000 });
  const total = found.error || found.loading ? 0 : (found.data?.total ?? 0);
  if (total === 0) return null;
  return (
    <p class="deleted-hint" role="status">
      <Icon name="trash" size={16} />
      <span>{words.deletedMatch(total)}</span> <a href={withQuery('/memory', { tab: 'away', q })}>{words.showDeleted(total)}</a>
    </p>
  );
}

function problemOf(error: ApiError | null): { start: number; end: number } | null {
  return error?.status === 400 ? error.utf16 : null;
}

export default function SearchView() {
  const { query } = location.value;
  const q = query.get('q') ?? '';
  const mode = query.get('mode') as Mode | null;
  const chosen = chosenOf(query);
  const [text, setText] = useState(q);
  const [limit, setLimit] = useState(PAGE);
  const [open, setOpen] = useState<Set<number>>(new Set());
  const timer = useRef<number | undefined>(undefined);
  const typed = useRef(q);
  const lastAsked = useRef(-INTERVAL);

  useEffect(() => {
    if (q !== typed.current) {
      typed.current = q;
      setText(q);
    }
    setLimit(PAGE);
    setOpen(new Set());
  }, [q, mode, query.toString()]);

  const field = useRef<HTMLInputElement | null>(null);
  const wanted = searchWanted.value;
  useEffect(() => {
    // Only a step back leads to the result that was opened.
    if (!cameBack) opened = null;
    // On a screen that is touched, a field with the focus would bring up the keyboard.
    if (!opened && !window.matchMedia('(pointer: coarse)').matches) field.current?.focus();
  }, []);
  useLayoutEffect(() => {
    if (wanted === fulfilled) return;
    fulfilled = wanted;
    opened = null;
    field.current?.focus();
    field.current?.select();
    const typed = takeEarlyText();
    if (typed) input(typed);
  }, [wanted]);

  const ready = q.trim().length >= 2;
  const filters = filtersOf(chosen);
  const key = JSON.stringify([q, mode, filters, limit]);
  const search = useResource(ready ? key : null, (signal) => get<SearchReply>('search', { q, mode, limit, explain: true, plain: true, ...filters }, signal), { keep: true });
  // Facets cost the server more than results: they are asked for when the reader pauses.
  const facetKey = JSON.stringify([q, filters]);
  const [paused, setPaused] = useState('');
  useEffect(() => {
    if (!ready || search.loading || search.error) return;
    const pause = window.setTimeout(() => setPaused(facetKey), paused === '' ? 0 : FACET_PAUSE);
    return () => window.clearTimeout(pause);
  }, [facetKey, ready, search.loading]);
  const facets = useResource(ready && paused === facetKey ? facetKey : null, (signal) => get<Facets>('facets', { q, ...filters }, signal), { keep: true, live: 1000 });

  const counted = paused === facetKey && !facets.loading ? facets.data : null;

  const askFor = (value: string) => {
    window.clearTimeout(timer.current);
    lastAsked.current = performance.now();
    typed.current = value;
    const was = new URLSearchParams(window.location.search).get('q') ?? '';
    setQuery({ q: value || null }, { replace: was.length > 0 });
  };
  const input = (value: string) => {
    setText(value);
    window.clearTimeout(timer.current);
    const rest = INTERVAL - (performance.now() - lastAsked.current);
    if (rest <= 0) askFor(value);
    else timer.current = window.setTimeout(() => askFor(value), rest);
  };
  const openFirst = () => document.querySelector<HTMLElement>('[data-rank="1"]');
  const toggleFacet = (name: FacetName, value: string) => {
    const now = chosen[name];
    if (name === 'tag') setQuery({ tag: now.includes(value) ? now.filter((item) => item !== value) : [...now, value] }, { replace: false });
    else setQuery({ [name]: now.includes(value) ? null : value }, { replace: false });
  };
  const toggleWhy = (rank: number) =>
    setOpen((old) => {
      const next = new Set(old);
      if (!next.delete(rank)) next.add(rank);
      return next;
    });

  useKeys((event) => {
    if (event.key === 'Escape' && (text || q)) {
      input('');
      openSearch();
      return true;
    }
    if (event.key === 'e') {
      const rank = Number((document.activeElement as HTMLElement | null)?.dataset.rank ?? document.activeElement?.closest('[data-item-row]')?.querySelector<HTMLElement>('[data-rank]')?.dataset.rank ?? 0);
      if (rank) {
        toggleWhy(rank);
        return true;
      }
    }
    return false;
  });

  const reply = ready ? search.data : null;
  useEffect(() => {
    // Back from a note: the focus returns to the result that led to it.
    if (!opened || !reply) return;
    document.querySelector<HTMLElement>(`[data-path="${CSS.escape(opened)}"]`)?.focus();
    opened = null;
  }, [reply]);
  const problem = text === q ? problemOf(search.error) : null;
  const most = useMemo(() => Math.max(0.0001, ...(reply?.results.map((result) => result.score) ?? [])), [reply]);
  const narrowed = FACETS.some((name) => chosen[name].length > 0);
  const pending = text !== q || search.loading;
  return (
    <div class="search-view">
      <h1 class="visually-hidden">{words.title}</h1>
      <div class="search-top">
        <Field
          value={text}
          problem={problem}
          field={field}
          describedBy={search.error && ready ? 'search-problem' : undefined}
          onInput={input}
          onEnter={() => {
            // What stands below the field belongs to another query while this one is not answered.
            if (text !== q) askFor(text);
            else if (!search.loading) openFirst()?.click();
          }}
          onDown={() => openFirst()?.focus()}
        />
        <div class="search-modes">
          <Segments
            label={words.modeLabel}
            value={mode ?? reply?.mode ?? 'hybrid'}
            options={(['hybrid', 'bm25', 'vector'] as const).map((value) => ({ value, label: words.modes[value], title: words.modeTitles[value] }))}
            onChange={(value) => setQuery({ mode: value }, { replace: false })}
          />
          <p class="search-count" role="status">
            {ready && reply && !search.error ? words.count(counted && counted.total >= reply.results.length ? counted.total : null, counted?.more === true, reply.results.length, formatNumber(reply.took_ms, 0)) : ''}
            {ready && pending ? <span class="working" aria-hidden="true" /> : null}
          </p>
        </div>
      </div>
      {!ready ? (
        text.trim().length === 1 ? <p class="about hint">{words.oneMore}</p> : <Start />
      ) : (
        <div class="search-body">
          <details class="facets" open={window.innerWidth >= 900} hidden={!narrowed && facets.data !== null && FACETS.every((name) => facets.data?.[name].every((item) => item.value === ''))}>
            <summary title={words.narrowAbout}>
              {words.narrow}
              {narrowed ? <span class="count">{FACETS.reduce((sum, name) => sum + chosen[name].length, 0)}</span> : null}
            </summary>
            {narrowed ? (
              <Button small kind="quiet" icon="close" onClick={() => setQuery({ folder: null, tag: null, type: null, tier: null, year: null }, { replace: false })}>
                {words.clearFilters}
              </Button>
            ) : null}
            {facets.error && !search.error ? <Failure error={facets.error} retry={facets.reload} /> : null}
            {FACETS.map((name) => (
              <FacetList key={name} name={name} facets={search.error ? null : facets.data} chosen={chosen[name]} toggle={(value) => toggleFacet(name, value)} />
            ))}
          </details>
          <div class="results-side" aria-busy={pending}>
            {search.error ? (
              <div id="search-problem">
                <Failure error={search.error} {...(search.error.status === 400 ? {} : { retry: search.reload })} />
              </div>
            ) : null}
            {!reply && search.loading ? <Loading lines={9} /> : null}
            {paused === facetKey && !search.error ? <Deleted q={q} /> : null}
            {reply && !search.error ? (
              <>
                {reply.did_you_mean ? (
                  <p class="about">
                    {words.didYouMean} <a href={withQuery('/search', { q: reply.did_you_mean })}>{reply.did_you_mean}</a>
                  </p>
                ) : null}
                {reply.pending > 0 ? <p class="about">{words.pending(reply.pending, formatCount(reply.pending))}</p> : null}
                <Notices notices={reply.notes} />
                {reply.results.length === 0 ? (
                  <div class="empty">
                    <p class="empty-title">{words.none(q)}</p>
                    <div class="empty-text">
                      <p>{narrowed ? words.noneNarrowed : words.noneAdvice}</p>
                    </div>
                  </div>
                ) : (
                  <ol class={pending ? 'results' : 'results current'}>
                    {reply.results.map((result, index) => (
                      <Result key={result.path + result.lines[0]} result={result} above={reply.results[index - 1] ?? null} rank={index + 1} most={most} open={open.has(index + 1)} toggle={() => toggleWhy(index + 1)} />
                    ))}
                  </ol>
                )}
                {reply.results.length >= limit && limit < 500 ? <Button onClick={() => setLimit(limit + PAGE * 2)}>{words.showMore}</Button> : null}
                <AskWhy q={q} shown={reply.results.map((result) => result.path)} />
              </>
            ) : null}
          </div>
        </div>
      )}
    </div>
  );
}
