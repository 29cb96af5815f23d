// Importance against last use: a point for each note, on a canvas, since there can be many.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatAgo, formatNumber } from '../format';
import { now } from '../live';
import { go, noteAddress } from '../router';
import { strings } from '../strings';
import { shownName } from '../text';
import { colour, colours } from '../theme';
import type { MemoryPoints } from '../types';
import { NoteLink } from '../ui/parts';

const words = strings.memory;
const HEIGHT = 300;
const LEFT = 36;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 30;
const DAY = 86_400_000;
const TICKS = [0, 1, 3, 7, 14, 30, 90, 180, 365, 730, 1825, 3650];

/** The place of an age on the axis: recent days get more room. */
const scale = (days: number) => Math.log1p(Math.max(0, days));

export function Scatter({ points }: { points: MemoryPoints }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(640);
  const [hover, setHover] = useState<{ index: number; x: number; y: number } | null>(null);
  const places = useRef<Float32Array>(new Float32Array());
  const tick = colours.value;
  const today = now();
  const ages = points.importance.map((_, index) => Math.max(0, today - (points.last_use[index] || points.created[index] || today)) / DAY);
  const most = scale(Math.max(30, ages.reduce((max, age) => Math.max(max, age), 0)) * 1.05);

  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    setWidth(box.clientWidth);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(HEIGHT * ratio);
    context.scale(ratio, ratio);
    context.clearRect(0, 0, width, HEIGHT);
    const x = (days: number) => width - RIGHT - (scale(days) / most) * (width - LEFT - RIGHT);
    const y = (value: number) => TOP + (1 - value / 10) * (HEIGHT - TOP - BOTTOM);
    context.font = '12px ui-sans-serif, system-ui, sans-serif';
    context.fillStyle = colour('--faint');
    context.strokeStyle = colour('--line');
    context.lineWidth = 1;
    context.textAlign = 'right';
    for (let value = 0; value <= 10; value += 2) {
      context.fillText(String(value), LEFT - 8, y(value) + 4);
      context.beginPath();
      context.moveTo(LEFT, Math.round(y(value)) + 0.5);
      context.lineTo(width - RIGHT, Math.round(y(value)) + 0.5);
      context.stroke();
    }
    context.textAlign = 'center';
    let last = Infinity;
    for (const days of TICKS) {
      if (scale(days) > most) break;
      const at = x(days);
      if (last - at < 56) continue;
      last = at;
      context.textAlign = days === 0 ? 'right' : 'center';
      context.fillText(words.age(days), days === 0 ? width - RIGHT : at, HEIGHT - 8);
    }
    const tierColours = points.tiers.names.map((name) => colour(`--${name.toLowerCase()}`));
    const count = points.importance.length;
    const radius = count > 5000 ? 2 : count > 500 ? 3 : 4.5;
    places.current = new Float32Array(count * 2);
    context.globalAlpha = count > 5000 ? 0.35 : 0.7;
    for (let index = 0; index < count; index++) {
      // Many notes have the same importance: a fixed shift by index keeps them apart.
      const shift = (((index * 2654435761) >>> 16) % 100) / 100 - 0.5;
      const px = x(ages[index] ?? 0);
      const py = y(points.importance[index] ?? 0) + shift * 12;
      places.current[index * 2] = px;
      places.current[index * 2 + 1] = py;
      context.fillStyle = tierColours[points.tiers.of[index] ?? 0] ?? '#888';
      context.beginPath();
      context.arc(px, py, radius, 0, 6.3);
      context.fill();
    }
    context.globalAlpha = 1;
  }, [points, width, tick, most]);

  const find = (event: PointerEvent | MouseEvent): number => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return -1;
    const px = event.clientX - box.left;
    const py = event.clientY - box.top;
    let best = -1;
    let distance = 144;
    for (let index = 0; index < points.importance.length; index++) {
      const dx = (places.current[index * 2] ?? 0) - px;
      const dy = (places.current[index * 2 + 1] ?? 0) - py;
      const square = dx * dx + dy * dy;
      if (square < distance) {
        distance = square;
        best = index;
      }
    }
    return best;
  };
  const top = useMemo(
    () =>
      points.importance
        .map((_, index) => index)
        .sort((a, b) => (points.importance[b] ?? 0) - (points.importance[a] ?? 0) || (points.last_use[b] ?? 0) - (points.last_use[a] ?? 0))
        .slice(0, 30),
    [points],
  );
  const title = (index: number) => shownName(points.paths[index] ?? '', points.titles[index]);
  return (
    <figure class="scatter">
      <div class="scatter-box">
        <canvas
          ref={canvas}
          style={{ width: '100%', height: `${HEIGHT}px` }}
          role="img"
          aria-label={words.scatterLabel(points.importance.length)}
          onPointerMove={(event) => {
            const index = find(event);
            setHover(index < 0 ? null : { index, x: places.current[index * 2] ?? 0, y: places.current[index * 2 + 1] ?? 0 });
          }}
          onPointerLeave={() => setHover(null)}
          onClick={(event) => {
            const index = find(event);
            const path = points.paths[index];
            if (path) go(noteAddress(path, { tab: 'weight' }));
          }}
        />
        {hover ? (
          <div class="tooltip" style={{ left: `${Math.min(width - 220, Math.max(0, hover.x - 110))}px`, top: `${hover.y > 90 ? hover.y - 72 : hover.y + 14}px` }}>
            <strong>{title(hover.index)}</strong>
            <span>
              {words.weight} {formatNumber(points.importance[hover.index] ?? 0, 1)} · {points.tiers.names[points.tiers.of[hover.index] ?? 0]} ·{' '}
              {points.last_use[hover.index] ? words.usedAgo(formatAgo(points.last_use[hover.index] ?? 0)) : words.neverUsed}
            </span>
          </div>
        ) : null}
      </div>
      <figcaption class="legend">
        {points.tiers.names.map((name) => (
          <span key={name}>
            <i class={`key ${name.toLowerCase()}`} /> {name}
          </span>
        ))}
        <span class="about">{words.scatterAxis}</span>
      </figcaption>
      <details>
        <summary>{words.asList}</summary>
        <ul class="rows">
          {top.map((index) => (
            <li key={points.paths[index]} data-item-row>
              <NoteLink path={points.paths[index] ?? ''} title={title(index)} tab="weight" item />
              <span class="row-meta">
                {words.weight} {formatNumber(points.importance[index] ?? 0, 1)} · {points.tiers.names[points.tiers.of[index] ?? 0]} · {points.last_use[index] ? words.usedAgo(formatAgo(points.last_use[index] ?? 0)) : words.neverUsed}
              </span>
            </li>
          ))}
        </ul>
      </details>
    </figure>
  );
}
