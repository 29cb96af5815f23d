// The importance of a note over time, and how it fades in the next 90 days if nobody uses it.

import { formatDay, formatFull, formatNumber } from '../format';
import { now } from '../live';
import { strings } from '../strings';
import type { FallReason, Weight } from '../types';

const words = strings.weight;
const WIDTH = 640;
const HEIGHT = 230;
const LEFT = 30;
const RIGHT = 10;
const TOP = 14;
const BOTTOM = 40;
const DAY = 86_400_000;

/** Why a note falls to another tier. */
function reasonOf(weight: Weight, why: FallReason | undefined): string {
  const thresholds = weight.thresholds;
  if (!why) return '';
  if (why === 'age') return words.why.age(thresholds.hot_hours, formatDay(weight.points[0]?.[0] ?? now()));
  return weight.last_use ? words.why.unused(thresholds.warm_days, formatDay(weight.last_use)) : '';
}

export function WeightChart({ weight }: { weight: Weight }) {
  const today = now();
  const points = weight.points.map(([at, value]) => [Date.parse(at), value] as const);
  const ahead = weight.ahead.map(([at, value]) => [Date.parse(at), value] as const);
  const end = Math.max(today + 90 * DAY, ahead[ahead.length - 1]?.[0] ?? 0);
  const first = points[0]?.[0] ?? today - 30 * DAY;
  // The past gets at most twice the room of the 90 days ahead, so that both can be read.
  const start = Math.min(today - 30 * DAY, Math.max(first, today - 365 * DAY));
  const x = (time: number) => LEFT + ((Math.max(start, time) - start) / (end - start)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - value / 10) * (HEIGHT - TOP - BOTTOM);
  const steps = (list: readonly (readonly [number, number])[], until?: number) => {
    let path = '';
    let last: readonly [number, number] | null = null;
    for (const point of list) {
      if (last && point[0] < start) {
        last = point;
        continue;
      }
      path += last === null || path === '' ? `M${x(last?.[0] ?? point[0]).toFixed(1)} ${y(last?.[1] ?? point[1]).toFixed(1)}` : '';
      path += `H${x(point[0]).toFixed(1)}V${y(point[1]).toFixed(1)}`;
      last = point;
    }
    if (last && path === '') path = `M${x(start).toFixed(1)} ${y(last[1]).toFixed(1)}`;
    return until === undefined || !last ? path : `${path}H${x(until).toFixed(1)}`;
  };
  const uses = weight.events.filter((event) => event.kind === 'use');
  const votes = weight.events.filter((event) => event.kind === 'vote');
  const falls = weight.tiers.slice(1);
  return (
    <figure class="weight">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words.chartLabel(formatNumber(weight.importance, 1), weight.tier)}>
        {weight.tiers.map((span) => {
          const from = x(Math.max(today, Date.parse(span.from)));
          const to = span.until ? x(Math.min(end, Date.parse(span.until))) : x(end);
          return <rect key={span.from} class={`band ${span.tier.toLowerCase()}`} x={from} y={TOP} width={Math.max(0, to - from)} height={HEIGHT - TOP - BOTTOM} />;
        })}
        {[0, 2, 4, 6, 8, 10].map((value) => (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(value)} y2={y(value)} />
            <text class="tick" x={LEFT - 7} y={y(value) + 4} text-anchor="end">
              {value}
            </text>
          </g>
        ))}
        <line class="floor" x1={LEFT} x2={WIDTH - RIGHT} y1={y(weight.floor)} y2={y(weight.floor)} />
        <path class="past" d={steps(points, today)} />
        <path class="ahead" d={steps(ahead, end)} />
        <line class="today" x1={x(today)} x2={x(today)} y1={TOP} y2={HEIGHT - BOTTOM} />
        {falls.map((span) => (
          <line key={span.from} class={`fall ${span.tier.toLowerCase()}`} x1={x(Date.parse(span.from))} x2={x(Date.parse(span.from))} y1={TOP} y2={HEIGHT - BOTTOM} />
        ))}
        {uses.map((event) => (
          <line key={`u${event.at}`} class="use" x1={x(Date.parse(event.at))} x2={x(Date.parse(event.at))} y1={HEIGHT - BOTTOM - 9} y2={HEIGHT - BOTTOM - 1}>
            <title>{words.usedAt(formatFull(event.at))}</title>
          </line>
        ))}
        {votes.map((event) => {
          const at = x(Date.parse(event.at));
          const base = HEIGHT - BOTTOM - 12;
          return (
            <path key={`v${event.at}`} class={event.useful ? 'vote up' : 'vote down'} d={event.useful ? `M${at - 4} ${base}L${at} ${base - 8}L${at + 4} ${base}Z` : `M${at - 4} ${base - 8}L${at} ${base}L${at + 4} ${base - 8}Z`}>
              <title>{event.useful ? words.votedUpAt(formatFull(event.at)) : words.votedDownAt(formatFull(event.at))}</title>
            </path>
          );
        })}
        <text class="tick" x={x(start)} y={HEIGHT - 22} text-anchor="start">
          {formatDay(start)}
        </text>
        <text class="tick strong" x={x(today)} y={HEIGHT - 22} text-anchor="middle">
          {words.today}
        </text>
        <text class="tick" x={WIDTH - RIGHT} y={HEIGHT - 22} text-anchor="end">
          {formatDay(end)}
        </text>
      </svg>
      <figcaption class="legend">
        <span>
          <i class="key past" /> {words.weight}
        </span>
        <span>
          <i class="key ahead" /> {words.ahead}
        </span>
        <span>
          <i class="key floor" /> {words.floor(formatNumber(weight.floor, 1))}
        </span>
        {uses.length > 0 ? (
          <span>
            <i class="key use" /> {words.uses(uses.length)}
          </span>
        ) : null}
        {(['up', 'down'] as const).map((side) => {
          const number = votes.filter((vote) => (vote.useful ? 'up' : 'down') === side).length;
          return number > 0 ? (
            <span key={side}>
              <i class={`key vote ${side}`} /> {words.votes[side](number)}
            </span>
          ) : null;
        })}
      </figcaption>
      <ul class="falls">
        {weight.pinned ? <li>{words.pinned}</li> : null}
        {weight.protected ? <li>{words.protected}</li> : null}
        {falls.map((span) => (
          <li key={span.from}>
            {words.falls(span.tier, formatDay(span.from))} {reasonOf(weight, span.why)}
          </li>
        ))}
        {falls.length === 0 ? <li>{words.stays(weight.tier)}</li> : null}
        <li>{words.halfLife(weight.type, formatNumber(weight.half_life_days, 0))}</li>
      </ul>
    </figure>
  );
}
