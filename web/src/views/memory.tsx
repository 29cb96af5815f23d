// What the vault remembers, what fades, and what was put away.

import { useState } from 'preact/hooks';
import { get } from '../api';
import { Scatter } from '../charts/scatter';
import { TierAreas } from '../charts/tiers';
import { formatBytes, formatCount, formatDay, formatFixed } from '../format';
import { useResource } from '../resource';
import { location, setQuery } from '../router';
import { strings } from '../strings';
import type { Inactive, InactiveCounts, MemoryChanges, MemoryMonths, MemoryPoints, MemoryStats, Tier } from '../types';
import { Away } from './away';
import { DuplicateList } from './duplicates';
import { Button, Card, Empty, Failure, Loading, NoteLink, TabPanel, Tabs, TierBadge, Time, ViewHead } from '../ui/parts';

const words = strings.memory;
const TABS = ['overview', 'changes', 'away', 'duplicates'] as const;
type Tab = (typeof TABS)[number];
/** The points that are asked for at first, and the most that the server gives. */
const MOST_POINTS = 20_000;
const MOST_ASKED = 50_000;
const TIERS: Tier[] = ['HOT', 'WARM', 'COLD', 'ARCHIVE'];

function Overview() {
  const stats = useResource('memory stats', (signal) => get<MemoryStats>('memory/stats', {}, signal));
  const [most, setMost] = useState(MOST_POINTS);
  const points = useResource(`memory points ${most}`, (signal) => get<MemoryPoints>('memory/points', { limit: most }, signal), { live: 1000, keep: true });
  const left = points.data ? points.data.total - points.data.importance.length : 0;
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
        {points.data && left > 0 ? (
          <p class="about">
            {words.leftOut(points.data.importance.length, points.data.total)} {most < MOST_ASKED ? <Button small onClick={() => setMost(MOST_ASKED)}>{words.showMorePoints}</Button> : null}
          </p>
        ) : null}
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
  const count = (tier: Tier) => changes.data?.counts[tier] ?? 0;
  const total = changes.data.total;
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
        <table class="table stacks" role="table">
          <thead role="rowgroup">
            <tr role="row">
              <th scope="col" role="columnheader">{words.note}</th>
              <th scope="col" role="columnheader">{words.change}</th>
              <th scope="col" role="columnheader">{words.when}</th>
              <th scope="col" role="columnheader">{words.reason}</th>
              <th scope="col" role="columnheader" class="right">
                {words.weight}
              </th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.slice(0, limit).map((change) => (
              <tr key={change.path + change.at} role="row" data-item-row>
                <td role="cell">
                  <NoteLink path={change.path} title={change.title} tab="weight" item />
                </td>
                <td role="cell" class="nowrap">
                  <TierBadge tier={change.from} /> → <TierBadge tier={change.to} />
                </td>
                <td role="cell" class="nowrap">
                  <Time at={change.at} />
                </td>
                <td role="cell" class="stacks-last">{change.why === 'age' ? words.reasons.age : change.last_use ? words.reasons.unused(formatDay(change.last_use)) : words.reasons.never}</td>
                <td role="cell" class="right" data-label={words.weight}>
                  {formatFixed(change.importance, 1)}
                </td>
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

export default function MemoryView() {
  const { query } = location.value;
  const asked = query.get('tab') as Tab | null;
  const tab: Tab = asked && TABS.includes(asked) ? asked : 'overview';
  const changes = useResource('memory changes', (signal) => get<MemoryChanges>('memory/changes', { days: 7, limit: 1000 }, signal), { live: 500 });
  // The list reads the journal, and is asked for where it is shown.
  const inactive = useResource(tab === 'away' ? 'memory inactive' : null, (signal) => get<Inactive>('memory/inactive', {}, signal), { live: 500 });
  const counts = useResource('memory inactive counts', (signal) => get<InactiveCounts>('memory/inactive/counts', {}, signal), { live: 500, keep: true });
  const away = counts.data ? counts.data.archived + counts.data.forgotten + counts.data.trash : undefined;
  return (
    <div class="view memory-view">
      <ViewHead title={words.title} about={words.about} />
      <Tabs
        label={words.title}
        id="memory"
        value={tab}
        tabs={[
          { value: 'overview', label: words.overview },
          { value: 'changes', label: words.changesTitle, count: changes.data?.total },
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
