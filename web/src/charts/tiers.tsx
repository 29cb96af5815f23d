// The notes of each tier at the end of each month, as stacked areas.

import { useState } from 'preact/hooks';
import { formatCount, formatMonth } from '../format';
import { strings } from '../strings';
import type { MemoryMonths, Tier } from '../types';

const TIERS: Tier[] = ['ARCHIVE', 'COLD', 'WARM', 'HOT'];
const WIDTH = 640;
const HEIGHT = 240;
const LEFT = 44;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 26;

/** A round number at or above a value, for the axis. */
export function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  for (const step of [1, 2, 4, 5, 8, 10]) if (step * power >= value) return step * power;
  return 10 * power;
}

export function TierAreas({ months }: { months: MemoryMonths }) {
  const [at, setAt] = useState<number | null>(null);
  const count = months.months.length;
  const totals = months.months.map((_, index) => TIERS.reduce((sum, tier) => sum + (months[tier][index] ?? 0), 0));
  const top = niceTop(Math.max(1, ...totals));
  const x = (index: number) => LEFT + (count <= 1 ? 0.5 : index / (count - 1)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const sums = new Array<number>(count).fill(0);
  const areas = TIERS.map((tier) => {
    const lower = [...sums];
    for (let index = 0; index < count; index++) sums[index] = (sums[index] ?? 0) + (months[tier][index] ?? 0);
    const upper = [...sums];
    const forward = upper.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
    const back = lower.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).reverse();
    return { tier, path: `M${forward.join('L')}L${back.join('L')}Z` };
  });
  const shown = at ?? count - 1;
  const every = Math.max(1, Math.ceil(count / 8));
  const move = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGSVGElement).getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * WIDTH;
    setAt(Math.min(count - 1, Math.max(0, Math.round(((place - LEFT) / (WIDTH - LEFT - RIGHT)) * (count - 1)))));
  };
  return (
    <figure class="tier-areas">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={strings.memory.areasLabel} onPointerMove={move} onPointerLeave={() => setAt(null)}>
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={y(top * share)} y2={y(top * share)} />
            {Number.isInteger(top * share) ? (
              <text class="tick" x={LEFT - 6} y={y(top * share) + 4} text-anchor="end">
                {formatCount(top * share)}
              </text>
            ) : null}
          </g>
        ))}
        {areas.map((area) => (
          <path key={area.tier} class={`area ${area.tier.toLowerCase()}`} d={area.path} />
        ))}
        {at === null ? null : <line class="today" x1={x(at)} x2={x(at)} y1={TOP} y2={HEIGHT - BOTTOM} />}
        {months.months.map((name, index) =>
          (count - 1 - index) % every === 0 ? (
            <text key={name} class="tick" x={x(index)} y={HEIGHT - 8} text-anchor={index === 0 ? 'start' : index === count - 1 ? 'end' : 'middle'}>
              {formatMonth(name)}
            </text>
          ) : null,
        )}
      </svg>
      <figcaption class="legend">
        <span class="strong">{months.months[shown] ? formatMonth(months.months[shown]) : ''}</span>
        {[...TIERS].reverse().map((tier) => (
          <span key={tier}>
            <i class={`key ${tier.toLowerCase()}`} /> {tier} {formatCount(months[tier][shown] ?? 0)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
