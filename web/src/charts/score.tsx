// The parts of a score as one stacked bar, each with its name.

import { formatFixed, formatNumber, formatSimilarity } from '../format';
import { strings } from '../strings';
import type { Components } from '../types';

const KEYS = ['from_name', 'from_quotation', 'from_relation', 'from_bm25', 'from_vector', 'from_others', 'from_adjacent', 'from_rerank', 'from_time'] as const;
type Key = (typeof KEYS)[number];

export interface Part {
  key: Key;
  value: number;
}

export function partsOf(explain: Components): Part[] {
  return KEYS.map((key) => ({ key, value: explain[key] ?? 0 })).filter((part) => Math.abs(part.value) > 0.0005);
}

/** The bar: parts that add, side by side. `most` is the sum that fills the width. */
export function ScoreBar({ explain, most, label }: { explain: Components; most: number; label: string }) {
  const parts = partsOf(explain).filter((part) => part.value > 0);
  return (
    <span class="score-bar" role="img" aria-label={label}>
      {parts.map((part) => (
        <span key={part.key} class={`score-part ${part.key}`} style={{ width: `${(100 * part.value) / (most || 1)}%` }} />
      ))}
    </span>
  );
}

/** What stands behind a reason, in the terms of the field. */
function term(key: Key, explain: Components): string | undefined {
  const why = strings.score.why;
  if (key === 'from_bm25' && explain.bm25 !== null) return why.wordsTerm(formatNumber(explain.bm25, 2));
  if (key === 'from_vector' && explain.cosine !== null) return why.meaningTerm(formatNumber(explain.cosine, 3));
  return undefined;
}

function reason(key: Key, explain: Components): string {
  const why = strings.score.why;
  switch (key) {
    case 'from_bm25':
      return explain.bm25_rank === null ? '' : why.words(explain.bm25_rank);
    case 'from_vector':
      return explain.vector_rank === null ? why.noVector : why.meaning(explain.vector_rank, explain.cosine === null ? null : formatSimilarity(explain.cosine));
    case 'from_others':
      return why.others;
    case 'from_adjacent':
      return why.adjacent;
    case 'from_rerank':
      return explain.rerank === undefined ? '' : why.rerank(formatNumber(explain.rerank));
    case 'from_relation':
      return why.relation;
    case 'from_name':
      return why.name;
    case 'from_quotation':
      return why.quotation;
    case 'from_time':
      return explain.time ? why.time[explain.time] : '';
  }
}

/** How far a result is below the one above it, and by which part most. */
export function gapBelow(above: Components, aboveScore: number, explain: Components, score: number): { gap: number; part: Key } | null {
  if (aboveScore - score < 0.0005) return null;
  const lost = KEYS.map((key) => ({ key, by: (above[key] ?? 0) - (explain[key] ?? 0) })).sort((a, b) => b.by - a.by)[0];
  return lost ? { gap: aboveScore - score, part: lost.key } : null;
}

/** The parts one below the other, with values and what they come from. */
export function ScoreParts({ explain, score }: { explain: Components; score: number }) {
  return (
    <dl class="score-parts">
      {partsOf(explain).map((part) => (
        <div key={part.key}>
          <dt>
            <span class={`swatch ${part.key}`} aria-hidden="true" />
            {strings.score.parts[part.key]}
          </dt>
          <dd class="score-value">{(part.value < 0 ? '−' : '+') + formatFixed(Math.abs(part.value), 3)}</dd>
          <dd class="score-reason" title={term(part.key, explain)}>
            {reason(part.key, explain)}
          </dd>
        </div>
      ))}
      <div class="score-sum">
        <dt>{strings.score.sum}</dt>
        <dd class="score-value">{formatFixed(score, 3)}</dd>
        <dd class="score-reason" />
      </div>
    </dl>
  );
}
