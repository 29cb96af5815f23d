// One day: its daily note, what is due, and the notes that were created and changed on it.

import { ask, canWrite, placeOf } from '../actions';
import { get } from '../api';
import { formatCount, formatLongDay } from '../format';
import { useKeys } from '../keys';
import { useResource } from '../resource';
import { go, location, noteAddress, setQuery, withQuery } from '../router';
import { strings } from '../strings';
import { fileName } from '../text';
import type { Day, DayNotes } from '../types';
import { Button, Card, Failure, Loading, NoteLink, Time, ViewHead } from '../ui/parts';
import { TaskList } from '../ui/tasks';
import { DayTabs } from './day-tabs';

const words = strings.day;

function Notes({ list, none }: { list: DayNotes; none: string }) {
  if (list.total === 0) return <p class="about">{none}</p>;
  return (
    <>
      <ul class="plain-list day-notes">
        {list.notes.map((note) => (
          <li key={note.path} data-item-row>
            <NoteLink path={note.path} title={note.title} item /> <Time at={note.at} />
          </li>
        ))}
      </ul>
      {list.total > list.notes.length ? <p class="about">{words.more(formatCount(list.total - list.notes.length))}</p> : null}
    </>
  );
}

/** The daily note, or what makes it. */
function DailyNote({ day }: { day: Day }) {
  if (!day.daily) return <p class="failure-text">{day.daily_error}</p>;
  const { path, title } = day.daily;
  if (title !== null) {
    return (
      <p class="daily">
        <NoteLink path={path} title={title} item />
        {canWrite() ? (
          <Button small icon="edit" onClick={() => go(withQuery(noteAddress(path), { edit: '1' }))}>
            {strings.note.edit}
          </Button>
        ) : null}
      </p>
    );
  }
  const create = () =>
    ask(
      'daily',
      { day: day.day },
      {
        title: words.createTitle(fileName(path)),
        button: strings.place.create,
        done: strings.place.created(fileName(path)),
        then: (reply) => {
          const made = placeOf(reply);
          if (made) go(withQuery(noteAddress(made), { edit: '1' }));
        },
      },
    );
  return (
    <p class="daily">
      <span class="about">{words.noDaily(path)}</span>
      {canWrite() ? (
        <Button small icon="plus" onClick={create}>
          {words.create}
        </Button>
      ) : null}
    </p>
  );
}

export default function DayView() {
  const wanted = location.value.query.get('day') ?? '';
  const day = useResource(`day ${wanted}`, (signal) => get<Day>('day', { day: wanted }, signal), { keep: true });
  const data = day.data;
  const show = (to: string) => setQuery({ day: to === data?.today ? null : to }, { replace: false });
  useKeys((event) => {
    if (!data || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') || document.activeElement?.closest('nav, input')) return false;
    show(event.key === 'ArrowLeft' ? data.previous : data.next);
    return true;
  });
  const isToday = data?.day === data?.today;
  return (
    <div class="view day-view">
      <ViewHead title={data ? formatLongDay(`${data.day}T12:00:00`) : words.title} about={data && isToday ? words.isToday : words.about}>
        <Button icon="chevron" label={words.previous} title={words.previousTitle} onClick={() => data && show(data.previous)} disabled={!data} />
        <Button icon="chevron" label={words.next} title={words.nextTitle} onClick={() => data && show(data.next)} disabled={!data} />
        <Button disabled={!data || isToday} onClick={() => setQuery({ day: null }, { replace: false })}>
          {strings.activity.today}
        </Button>
        <label class="choice">
          <span class="visually-hidden">{words.choose}</span>
          <input type="date" value={data?.day ?? wanted} onChange={(event) => event.currentTarget.value && show(event.currentTarget.value)} />
        </label>
      </ViewHead>
      <DayTabs now="day" />
      {day.error ? <Failure error={day.error} retry={day.reload} /> : null}
      {!data && !day.error ? <Loading lines={10} label={strings.tasks.reading} /> : null}
      {data ? (
        <>
          <Card title={words.daily}>
            <DailyNote day={data} />
          </Card>
          <Card title={isToday ? words.dueUntil : words.due} tools={<a href="/tasks">{words.allTasks}</a>}>
            {data.tasks.total === 0 ? <p class="about">{words.nothingDue}</p> : <TaskList tasks={data.tasks.tasks} today={data.today} />}
            {data.tasks.total > data.tasks.tasks.length ? <p class="about">{words.more(formatCount(data.tasks.total - data.tasks.tasks.length))}</p> : null}
          </Card>
          <Card title={words.created} tools={<a href={withQuery('/activity', { day: data.day })}>{words.activity}</a>}>
            <Notes list={data.created} none={words.noneCreated} />
          </Card>
          <Card title={words.changed}>
            <Notes list={data.changed} none={words.noneChanged} />
          </Card>
        </>
      ) : null}
    </div>
  );
}
