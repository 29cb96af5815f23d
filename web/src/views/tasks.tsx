// The tasks of all notes: open ones first, by the day on which they are due.

import { useState } from 'preact/hooks';
import { get } from '../api';
import { formatCount } from '../format';
import { useResource } from '../resource';
import { location, setQuery } from '../router';
import { strings } from '../strings';
import type { TaskBoard } from '../types';
import { Button, Empty, Failure, Loading, Segments, ViewHead } from '../ui/parts';
import { TaskList } from '../ui/tasks';
import { DayTabs } from './day-tabs';

const words = strings.tasks;
/** The tasks that are shown at first, and at most. */
const PART = 100;
const MOST = 1000;
const STATES = ['open', 'done', 'all'] as const;
type State = (typeof STATES)[number];
const DUES = ['overdue', 'today', 'week', 'some', 'none'] as const;

export default function TasksView() {
  const { query } = location.value;
  const state = (STATES as readonly string[]).includes(query.get('show') ?? '') ? (query.get('show') as State) : 'open';
  const filters = { done: state === 'all' ? undefined : state === 'done' ? '1' : '0', due: query.get('due') ?? '', folder: query.get('folder') ?? '', status: query.get('status') ?? '', q: query.get('q') ?? '' };
  const [limit, setLimit] = useState(PART);
  const board = useResource(JSON.stringify([filters, limit]), (signal) => get<TaskBoard>('tasks', { ...filters, limit }, signal), { keep: true });
  const data = board.data;
  const filtered = Boolean(filters.due || filters.folder || filters.status || filters.q);
  const folders = Object.entries(data?.folders ?? {}).filter(([name]) => name !== '');
  const statuses = Object.keys(data?.statuses ?? {}).filter((status) => !/^[ xX]$/.test(status));
  const clear = () => setQuery({ due: null, folder: null, status: null, q: null }, { replace: false });
  return (
    <div class="view tasks-view">
      <ViewHead title={words.title} about={data ? words.summary(data.open, data.done, data.overdue) : words.about} />
      <DayTabs now="tasks" />
      <div class="filters" role="group" aria-label={words.filters}>
        <Segments label={words.show} value={state} options={STATES.map((value) => ({ value, label: words.states[value] }))} onChange={(value) => setQuery({ show: value === 'open' ? null : value }, { replace: false })} />
        <label class="choice">
          <span>{words.due}</span>
          <select value={filters.due} onChange={(event) => setQuery({ due: event.currentTarget.value || null })}>
            <option value="">{words.any}</option>
            {DUES.map((due) => (
              <option key={due} value={due}>
                {words.dues[due]}
              </option>
            ))}
          </select>
        </label>
        {folders.length > 0 || filters.folder ? (
          <label class="choice">
            <span>{words.folder}</span>
            <select value={filters.folder} onChange={(event) => setQuery({ folder: event.currentTarget.value || null })}>
              <option value="">{words.any}</option>
              {filters.folder && !folders.some(([name]) => name === filters.folder) ? <option value={filters.folder}>{filters.folder}</option> : null}
              {folders.map(([name, number]) => (
                <option key={name} value={name}>
                  {words.counted(name, formatCount(number))}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        {statuses.length > 0 ? (
          <label class="choice">
            <span>{words.status}</span>
            <select value={filters.status} onChange={(event) => setQuery({ status: event.currentTarget.value || null, show: event.currentTarget.value ? 'all' : null })}>
              <option value="">{words.any}</option>
              {statuses.map((status) => (
                <option key={status} value={status}>
                  [{status}]
                </option>
              ))}
            </select>
          </label>
        ) : null}
        <input type="search" class="input" data-filter-field dir="auto" aria-label={words.text} placeholder={words.text} autocomplete="off" value={filters.q} onInput={(event) => setQuery({ q: event.currentTarget.value })} />
      </div>
      {board.error ? <Failure error={board.error} retry={board.reload} /> : null}
      {!data && !board.error ? <Loading lines={10} label={words.reading} /> : null}
      {data && data.tasks.length === 0 ? (
        <Empty title={filtered ? words.noneFiltered : state === 'open' && data.done > 0 ? words.allDone : words.none} icon="check">
          {filtered ? <Button onClick={clear}>{words.clear}</Button> : data.open + data.done === 0 ? words.noneAdvice : null}
        </Empty>
      ) : null}
      {data && data.tasks.length > 0 ? <TaskList tasks={data.tasks} today={data.today} /> : null}
      {data && data.total > data.tasks.length ? (
        limit < MOST ? (
          <Button onClick={() => setLimit(Math.min(MOST, limit * 3))}>{strings.more(data.total - data.tasks.length)}</Button>
        ) : (
          <p class="about">{words.narrow(formatCount(data.total))}</p>
        )
      ) : null}
    </div>
  );
}
