// The week in review: what was written by whom, what was used most, what fades, and how much waits.

import { useState } from 'preact/hooks';
import { get } from '../api';
import { agentName } from '../event-names';
import { formatDay } from '../format';
import { now } from '../live';
import { useResource } from '../resource';
import { location, setQuery, withQuery } from '../router';
import { strings } from '../strings';
import type { WeekReview, WrittenBy } from '../types';
import { Button, Card, Failure, Loading, NoteLink, TierBadge } from '../ui/parts';

const words = strings.review;
const DAY = 86_400_000;
/** The notes of a list that are shown at first. */
const AT_FIRST = 6;

/** The first ten characters of a time are its day; the noon of a day lies in it in every zone. */
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
const noonAfter = (time: string, days: number) => dayOf(Date.parse(time) + days * DAY + DAY / 2);

function Paths({ title, paths }: { title: string; paths: string[] }) {
  const [all, setAll] = useState(false);
  if (paths.length === 0) return null;
  const shown = all ? paths : paths.slice(0, AT_FIRST);
  return (
    <div class="week-paths">
      <h4>{title}</h4>
      <ul class="plain-list">
        {shown.map((path) => (
          <li key={path}>
            <NoteLink path={path} item />
          </li>
        ))}
      </ul>
      {shown.length < paths.length ? (
        <Button small onClick={() => setAll(true)}>
          {strings.more(paths.length - shown.length)}
        </Button>
      ) : null}
    </div>
  );
}

function Author({ author }: { author: WrittenBy }) {
  return (
    <section class="week-author">
      <h3>
        <bdi>{author.by === 'you' ? words.you : agentName(author.by)}</bdi> <span class="row-meta">{words.operations(author.operations)}</span>
      </h3>
      <Paths title={words.created(author.created.length)} paths={author.created} />
      <Paths title={words.changed(author.changed.length)} paths={author.changed} />
      <Paths title={words.removed(author.removed.length)} paths={author.removed} />
    </section>
  );
}

export function Week() {
  const week = location.value.query.get('week') ?? '';
  const reply = useResource(`review ${week}`, (signal) => get<WeekReview>('review', { week }, signal), { live: 1000, keep: true });
  if (reply.error) return <Failure error={reply.error} retry={reply.reload} />;
  if (!reply.data) return <Loading lines={8} />;
  const { from, until, written, recalled, fading, faded, waiting } = reply.data;
  const goTo = (day: string | null) => setQuery({ week: day });
  const isPast = Date.parse(until) <= now();
  return (
    <>
      <div class="filters">
        <Button small pressed={week === ''} onClick={() => goTo(null)}>
          {words.lastDays}
        </Button>
        <Button small onClick={() => goTo(noonAfter(from, -1))}>
          {words.weekBefore}
        </Button>
        <Button small disabled={week === '' || !isPast} onClick={() => goTo(noonAfter(until, 0))}>
          {words.weekAfter}
        </Button>
        <span class="about" role="status">
          {words.period(formatDay(from), formatDay(Date.parse(until) - 1))}
        </span>
      </div>
      <div class="week-cards">
        <Card title={words.writtenTitle} about={words.writtenAbout}>
          {written.length === 0 ? <p class="about">{words.nothingWritten}</p> : written.map((author) => <Author key={author.by} author={author} />)}
        </Card>
        <div>
          <Card title={words.recalledTitle} about={words.recalledAbout}>
            {recalled.length === 0 ? (
              <p class="about">{words.nothingRecalled}</p>
            ) : (
              <ul class="rows">
                {recalled.map((note) => (
                  <li key={note.path} data-item-row>
                    <NoteLink path={note.path} title={note.title} tab="weight" item />
                    <span class="row-meta">{words.uses(note.uses)}</span>
                  </li>
                ))}
              </ul>
            )}
          </Card>
          <Card title={words.fadingTitle} about={words.fadingAbout}>
            {fading.length === 0 ? (
              <p class="about">{words.nothingFades}</p>
            ) : (
              <ul class="rows">
                {fading.map((note) => (
                  <li key={note.path} data-item-row>
                    <NoteLink path={note.path} title={note.title} tab="weight" item />
                    <span>
                      <TierBadge tier={note.from} /> → <TierBadge tier={note.to} />
                    </span>
                  </li>
                ))}
              </ul>
            )}
            {faded > fading.length ? <p class="about">{words.moreFade(faded - fading.length)}</p> : null}
          </Card>
          <Card title={words.waitingTitle}>
            <p>{waiting === 0 ? words.noneWaits : <a href={withQuery('/review', {})}>{words.waits(waiting)}</a>}</p>
          </Card>
        </div>
      </div>
    </>
  );
}
