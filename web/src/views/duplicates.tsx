// Pairs of notes that say nearly the same, side by side, with the words marked that differ.

import { useMemo, useState } from 'preact/hooks';
import { get } from '../api';
import { formatCount, formatSimilarity } from '../format';
import { useResource } from '../resource';
import { strings } from '../strings';
import { fileName, wordDifferences, written } from '../text';
import type { Duplicates } from '../types';
import { Button, Empty, Failure, Loading, NoteLink, Time } from '../ui/parts';

const words = strings.memory;
type Pair = Duplicates['pairs'][number];

function SideBySide({ pair }: { pair: Pair }) {
  const texts = useMemo(() => wordDifferences(pair.a.text, pair.b.text), [pair.a.text, pair.b.text]);
  // Notes with one title are told apart by the names of their files.
  const title = (side: Pair['a']) => (pair.a.title === pair.b.title ? fileName(side.path) : side.title);
  return (
    <div class="two-texts">
      {[pair.a, pair.b].map((side, index) => (
        <div key={side.path}>
          <p class="pair-head">
            <NoteLink path={side.path} title={title(side)} item />{' '}
            <span class="row-meta">
              {words.changedAt} <Time at={side.updated} />
            </span>
          </p>
          <pre tabIndex={0} {...written(side.text)}>{texts[index]?.map((part, at) => (part.marked ? <mark key={at}>{part.text}</mark> : part.text))}</pre>
        </div>
      ))}
    </div>
  );
}

function PairCard({ pair }: { pair: Pair }) {
  const percent = formatSimilarity(pair.similarity);
  return (
    <section class="card pair">
      <header class="card-head">
        <h3>{pair.by === 'text' ? words.alikeText(percent) : pair.by === 'content' ? words.alikeContent : words.alikeMeaning(percent)}</h3>
      </header>
      <SideBySide pair={pair} />
    </section>
  );
}

function Group({ title, about, pairs }: { title: string; about: string; pairs: Pair[] }) {
  if (pairs.length === 0) return null;
  return (
    <section class="pairs">
      <h2>{title}</h2>
      <p class="about">{about}</p>
      {pairs.map((pair) => (
        <PairCard key={pair.a.path + pair.b.path} pair={pair} />
      ))}
    </section>
  );
}

export function DuplicateList() {
  const [limit, setLimit] = useState(20);
  const reply = useResource(`duplicates ${limit}`, (signal) => get<Duplicates>('memory/duplicates', { limit }, signal), { live: 5000, keep: true });
  if (reply.error) return <Failure error={reply.error} retry={reply.reload} />;
  if (!reply.data) return <Loading lines={8} label={words.comparing} />;
  if (reply.data.pairs.length === 0) return <Empty title={words.noDuplicates}>{words.noDuplicatesAbout(formatCount(reply.data.compared))}</Empty>;
  const by = (kind: Pair['by']) => reply.data?.pairs.filter((pair) => pair.by === kind) ?? [];
  return (
    <>
      <Group title={words.sameText(reply.data.by_text)} about={words.sameTextAbout} pairs={by('text')} />
      <Group title={words.sameContent(by('content').length)} about={words.sameContentAbout} pairs={by('content')} />
      <Group title={words.sameMeaning(by('meaning').length)} about={words.sameMeaningAbout} pairs={by('meaning')} />
      {reply.data.more ? <Button onClick={() => setLimit(limit * 3)}>{words.morePairs}</Button> : null}
    </>
  );
}
