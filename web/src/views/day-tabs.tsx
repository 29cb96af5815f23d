// The links between the day and the tasks, which share a place in the navigation.

import { strings } from '../strings';

export function DayTabs({ now }: { now: 'day' | 'tasks' }) {
  return (
    <nav class="tabs view-tabs" aria-label={strings.day.tabs}>
      <a href="/day" aria-current={now === 'day' ? 'page' : undefined}>
        {strings.day.tab}
      </a>
      <a href="/tasks" aria-current={now === 'tasks' ? 'page' : undefined}>
        {strings.tasks.title}
      </a>
    </nav>
  );
}
