// What the vault remembers, what fades, and what was put away.

import { useState } from 'preact/hooks';
import { ask, canWrite } from '../actions';
import { get } from '../api';
import { Scatter } from '../charts/scatter';
import { TierAreas } from '../charts/tiers';
import { formatBytes, formatCount, formatNumber } from '../format';
import { useResource } from '../resource';
import { location, setQuery } from '../router';
import { strings } from '../strings';
import { fileName, trashOf } from '../text';
import type { Duplicates, Inactive, Memory, MemoryChanges, MemoryMonths, MemoryPoints, MemoryStats, Tier } from '../types';
import { Button, Card, Empty, Failure, Loading, NoteLink, TabPanel, Tabs, TierBadge, Time, ViewHead } from '../ui/parts';

const words = strings.memory;
const TABS = ['overview', 'changes', 'away', 'duplicates'] as const;
type Tab = (typeof TABS)[number];
const TIERS: Tier[] = ['HOT', 'WARM', 'COLD', 'ARCHIVE'];

function Overview() {
  const stats = useResource('memory stats', (signal) => get<MemoryStats>('memory/stats', {}, signal));
  const points = useResource('memory points', (signal) => get<MemoryPoints>('memory/points', {}, signal), { live: 1000 });
  const months = useResource('memory months', (signal) => get<MemoryMonths>('memory/months', { months: 24 }, signal), { live: 2000 });
  return (
    <>
      {stats.error ? <Failure error={stats.error} retry={stats.reload} /> : null}
      {stats.data ? (
        <>
          <ul class="tiles">
            {TIERS.map((tier) => (
              <li key={tier} class={`tile ${tier.toLowerCase()}`}>
                <span class="tile-name">
                  <TierBadge tier={tier} />
                </span>
                <strong>{formatCount(stats.data?.tiers[tier] ?? 0)}</strong>
                <span class="about">{strings.tierMeaning[tier]}</span>
              </li>
            ))}
          </ul>
          <p class="about facts-line">
            {words.totals(stats.data.memories, stats.data.uses, stats.data.used, stats.data.pinned, stats.data.forgotten)} {words.storage(formatBytes(stats.data.bytes), formatBytes(stats.data.max_bytes))}
          </p>
          {stats.data.context ? (
            <Card title={words.context}>
              <p>{stats.data.context.text}</p>
              {stats.data.context.expires_at ? (
                <p class="about">
                  {words.expires} <Time at={stats.data.context.expires_at} />
                </p>
              ) : null}
            </Card>
          ) : null}
        </>
      ) : stats.error ? null : (
        <Loading lines={3} />
      )}
      <Card title={words.scatterTitle} about={words.scatterAbout}>
        {points.error ? <Failure error={points.error} retry={points.reload} /> : points.data ? points.data.importance.length > 0 ? <Scatter points={points.data} /> : <Empty title={words.noMemories} icon="memory" /> : <Loading />}
      </Card>
      <Card title={words.areasTitle} about={words.areasAbout}>
        {months.error ? <Failure error={months.error} retry={months.reload} /> : months.data ? <TierAreas months={months.data} /> : <Loading />}
      </Card>
    </>
  );
}

function Changes({ changes }: { changes: ReturnType<typeof useResource<MemoryChanges>> }) {
  const [limit, setLimit] = useState(100);
  if (changes.error) return <Failure error={changes.error} retry={changes.reload} />;
  if (!changes.data) return <Loading lines={8} />;
  const all = changes.data.changes;
  const to = location.value.query.get('to') ?? '';
  const shown = to ? all.filter((change) => change.to === to) : all;
  const count = (tier: Tier) => changes.data?.counts?.[tier] ?? all.filter((change) => change.to === tier).length;
  const total = changes.data.total ?? all.length;
  if (all.length === 0) return <Empty title={words.noChanges}>{words.noChangesAbout}</Empty>;
  return (
    <>
      <div class="filters">
        <Button small pressed={to === ''} onClick={() => setQuery({ to: null })}>
          {words.allChanges(total)}
        </Button>
        {(['WARM', 'COLD'] as const).map((tier) =>
          count(tier) > 0 ? (
            <Button key={tier} small pressed={to === tier} onClick={() => setQuery({ to: tier })}>
              {words.toTier(tier, count(tier))}
            </Button>
          ) : null,
        )}
      </div>
      <div class="table-scroll" tabIndex={0} role="group" aria-label={words.changesTitle}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{words.note}</th>
              <th scope="col">{words.change}</th>
              <th scope="col">{words.when}</th>
              <th scope="col" class="right">
                {words.importance}
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.slice(0, limit).map((change) => (
              <tr key={change.path + change.at} data-item-row>
                <td>
                  <NoteLink path={change.path} title={change.title} tab="weight" item />
                </td>
                <td class="nowrap">
                  <TierBadge tier={change.from} /> → <TierBadge tier={change.to} />
                </td>
                <td class="nowrap">
                  <Time at={change.at} />
                </td>
                <td class="right">{formatNumber(change.importance, 1)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length > limit ? <Button onClick={() => setLimit(limit * 3)}>{strings.more(shown.length - limit)}</Button> : null}
      {total > all.length ? <p class="about">{words.soonestOnly(all.length)}</p> : null}
      <p class="about">{words.changesAbout}</p>
    </>
  );
}

function MemoryList({ list, what }: { list: Memory[]; what: string }) {
  const [limit, setLimit] = useState(100);
  if (list.length === 0) return <p class="about">{what}</p>;
  return (
    <>
      <ul class="rows">
        {list.slice(0, limit).map((memory) => (
          <li key={memory.path} data-item-row>
            <NoteLink path={memory.path} title={memory.title} item />
            <span class="row-meta">
              <Time at={memory.updated} />
            </span>
            {canWrite() ? (
              <Button small icon="restore" onClick={() => ask('restore', { name: memory.path }, { title: strings.actions.restoreTitle(memory.title), button: strings.actions.restore, done: strings.actions.restored(memory.title) })}>
                {strings.actions.restore}
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      {list.length > limit ? <Button onClick={() => setLimit(limit * 3)}>{strings.more(list.length - limit)}</Button> : null}
    </>
  );
}

function Away({ inactive }: { inactive: ReturnType<typeof useResource<Inactive>> }) {
  const q = location.value.query.get('q') ?? '';
  const [limit, setLimit] = useState(100);
  if (inactive.error) return <Failure error={inactive.error} retry={inactive.reload} />;
  if (!inactive.data) return <Loading lines={8} />;
  const wanted = q.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (path: string, title = '') => wanted.every((word) => `${path} ${title}`.toLowerCase().includes(word));
  const trash = inactive.data.trash.map(trashOf).filter((item) => matches(item.path, item.title));
  const archived = inactive.data.archived.filter((item) => matches(item.path, item.title));
  const forgotten = inactive.data.forgotten.filter((item) => matches(item.path, item.title));
  return (
    <>
      <div class="filters">
        <input type="search" class="input" data-search-field value={q} placeholder={words.filterAway} aria-label={words.filterAway} onInput={(event) => setQuery({ q: event.currentTarget.value || null })} />
      </div>
      <Card title={words.deletedTitle(trash.length)} about={words.deletedAbout}>
        {trash.length === 0 ? <p class="about">{q ? words.noneMatch : words.noDeleted}</p> : null}
        <ul class="rows">
          {trash.slice(0, limit).map((item) => (
            <li key={item.path} data-item-row>
              <span class="note-link">
                <span tabIndex={-1} data-item>
                  {item.title || fileName(item.path)}
                </span>
                <span class="note-folder">{item.path}</span>
              </span>
              <span class="row-meta">
                {item.at ? <Time at={item.at} /> : null} {item.operation ? <a href={`/activity?op_id=${item.operation}`}>{words.howDeleted}</a> : null}
              </span>
              {canWrite() ? (
                <Button small icon="restore" onClick={() => ask('restore-file', { name: item.path }, { title: strings.actions.restoreTitle(fileName(item.path)), button: strings.actions.restore, done: strings.actions.restored(fileName(item.path)) })}>
                  {strings.actions.restore}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
        {trash.length > limit ? <Button onClick={() => setLimit(limit * 3)}>{strings.more(trash.length - limit)}</Button> : null}
      </Card>
      <Card title={words.forgottenTitle(forgotten.length)} about={words.forgottenAbout}>
        <MemoryList list={forgotten} what={q ? words.noneMatch : words.noForgotten} />
      </Card>
      <Card title={words.archivedTitle(archived.length)} about={words.archivedAbout}>
        <MemoryList list={archived} what={q ? words.noneMatch : words.noArchived} />
      </Card>
    </>
  );
}

/** Two texts line by line, with the lines marked that only one of them has. */
function SideBySide({ a, b }: { a: string; b: string }) {
  const left = a.split('\n');
  const right = b.split('\n');
  const inLeft = new Set(left.map((line) => line.trim()));
  const inRight = new Set(right.map((line) => line.trim()));
  const column = (lines: string[], other: Set<string>) => (
    <pre tabIndex={0}>
      {lines.slice(0, 60).map((line, index) => (
        <span key={index} class={line.trim() !== '' && !other.has(line.trim()) ? 'differs' : ''}>
          {line}
          {'\n'}
        </span>
      ))}
      {lines.length > 60 ? '…' : ''}
    </pre>
  );
  return (
    <div class="two-texts">
      {column(left, inRight)}
      {column(right, inLeft)}
    </div>
  );
}

function DuplicateList() {
  const [limit, setLimit] = useState(20);
  const reply = useResource(`duplicates ${limit}`, (signal) => get<Duplicates>('memory/duplicates', { limit }, signal), { live: 5000, keep: true });
  if (reply.error) return <Failure error={reply.error} retry={reply.reload} />;
  if (!reply.data) return <Loading lines={8} label={words.comparing} />;
  if (reply.data.pairs.length === 0) return <Empty title={words.noDuplicates}>{words.noDuplicatesAbout(formatCount(reply.data.compared))}</Empty>;
  return (
    <>
      <p class="about">{words.duplicatesAbout}</p>
      {reply.data.pairs.map((pair) => (
        <section class="card pair" key={pair.a.path + pair.b.path}>
          <header class="card-head">
            <h2>{words.alike(formatNumber(pair.similarity * 100, 1))}</h2>
          </header>
          <div class="two-heads">
            {[pair.a, pair.b].map((side) => (
              <p key={side.path}>
                <NoteLink path={side.path} title={side.title} item />
                <span class="row-meta">
                  <Time at={side.updated} />
                </span>
              </p>
            ))}
          </div>
          <SideBySide a={pair.a.text} b={pair.b.text} />
        </section>
      ))}
      {reply.data.more ? <Button onClick={() => setLimit(limit * 3)}>{words.morePairs}</Button> : null}
    </>
  );
}

export default function MemoryView() {
  const { query } = location.value;
  const asked = query.get('tab') as Tab | null;
  const tab: Tab = asked && TABS.includes(asked) ? asked : 'overview';
  const changes = useResource('memory changes', (signal) => get<MemoryChanges>('memory/changes', { days: 7, limit: 1000 }, signal), { live: 500 });
  const inactive = useResource('memory inactive', (signal) => get<Inactive>('memory/inactive', {}, signal), { live: 500 });
  const away = inactive.data ? inactive.data.archived.length + inactive.data.forgotten.length + inactive.data.trash.length : undefined;
  return (
    <div class="view memory-view">
      <ViewHead title={words.title} about={words.about} />
      <Tabs
        label={words.title}
        id="memory"
        value={tab}
        tabs={[
          { value: 'overview', label: words.overview },
          { value: 'changes', label: words.changesTitle, count: changes.data?.total ?? changes.data?.changes.length },
          { value: 'away', label: words.awayTitle, count: away },
          { value: 'duplicates', label: words.duplicatesTitle },
        ]}
        onChange={(value) => setQuery({ tab: value === 'overview' ? null : value, to: null, q: null }, { replace: false })}
      />
      <TabPanel id="memory" value={tab}>
        {tab === 'overview' ? <Overview /> : null}
        {tab === 'changes' ? <Changes changes={changes} /> : null}
        {tab === 'away' ? <Away inactive={inactive} /> : null}
        {tab === 'duplicates' ? <DuplicateList /> : null}
      </TabPanel>
    </div>
  );
}
