// Tasks of notes in lists: a click on the box of one plans its change.

import { ask, canWrite } from '../actions';
import { formatDay } from '../format';
import { noteAddress } from '../router';
import { strings } from '../strings';
import { plainInline, written } from '../text';
import type { Task } from '../types';
import { NoteLink } from './parts';

const words = strings.tasks;

function TaskRow({ task, today }: { task: Task; today: string }) {
  const text = plainInline(task.text);
  const mixed = !/^[ xX]$/.test(task.status);
  const toggle = () =>
    ask(
      'task',
      { name: task.path, line: task.line, status: task.done ? ' ' : 'x' },
      task.done
        ? { title: strings.note.reopenTask, about: text, button: strings.note.reopen, done: strings.note.reopened }
        : { title: strings.note.completeTask, about: text, button: strings.note.complete, done: strings.note.completed },
    );
  return (
    <li class={`task-row${task.done ? ' done' : ''}`} data-item-row>
      <button type="button" role="checkbox" class="task-box" aria-checked={mixed ? 'mixed' : task.done} aria-label={text || words.task} title={mixed ? strings.note.taskStatus(task.status) : undefined} disabled={!canWrite()} onClick={toggle}>
        {mixed ? task.status : task.done ? '✓' : ''}
      </button>
      <a class="task-text" href={noteAddress(task.path, { line: task.line })} {...written(task.text)} data-item>
        {text || words.task}
      </a>
      {task.due ? (
        <span class={`chip${!task.done && task.due < today ? ' late' : ' soft'}`}>
          {!task.done && task.due < today ? words.overdueSince(formatDay(`${task.due}T12:00:00`)) : task.due === today ? words.dueToday : words.dueOn(formatDay(`${task.due}T12:00:00`))}
        </span>
      ) : null}
    </li>
  );
}

/** Tasks in the given order; those of one note that follow each other are below its name. */
export function TaskList({ tasks, today }: { tasks: Task[]; today: string }) {
  const groups: { path: string; title: string; tasks: Task[] }[] = [];
  for (const task of tasks) {
    const last = groups[groups.length - 1];
    if (last?.path === task.path) last.tasks.push(task);
    else groups.push({ path: task.path, title: task.title, tasks: [task] });
  }
  return (
    <ul class="task-groups">
      {groups.map((group, index) => (
        <li key={`${group.path} ${index}`}>
          <NoteLink path={group.path} title={group.title} />
          <ul class="task-list">
            {group.tasks.map((task) => (
              <TaskRow key={task.line} task={task} today={today} />
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
