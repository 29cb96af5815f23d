// The small components that all views share.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ApiError } from '../api';
import { formatAgo, formatFull } from '../format';
import { nameOf } from '../names';
import { noteAddress } from '../router';
import { strings } from '../strings';
import { folderOf, isNotePath, sentence, splitMarks, written } from '../text';
import type { Severity, Tier } from '../types';
import { Icon, type IconName } from './icons';

export function Button(props: {
  children?: ComponentChildren;
  onClick?: (event: MouseEvent) => void;
  kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  icon?: IconName;
  label?: string;
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
  small?: boolean;
  title?: string;
  autofocus?: boolean;
  item?: boolean;
}) {
  const { kind = 'plain', icon, label, pressed, expanded, small, item, autofocus } = props;
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (autofocus) button.current?.focus();
  }, [autofocus, props.disabled]);
  return (
    <button
      ref={button}
      type="button"
      class={`button ${kind}${small ? ' small' : ''}${props.children ? '' : ' icon-only'}`}
      onClick={props.onClick}
      disabled={props.disabled}
      aria-label={label}
      title={props.title ?? (props.children ? undefined : label)}
      aria-pressed={pressed}
      aria-expanded={expanded}
      data-item={item ? '' : undefined}
    >
      {icon ? <Icon name={icon} size={small ? 16 : 18} /> : null}
      {props.children ? <span>{props.children}</span> : null}
    </button>
  );
}

/** A choice of one among a few, shown side by side. */
export function Segments<T extends string>(props: { label: string; value: T; options: { value: T; label: string; title?: string }[]; onChange: (value: T) => void }) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === props.value} title={option.title} onClick={() => props.onChange(option.value)}>
          {option.label}
        </button>
      ))}
    </div>
  );
}

/** Tabs whose panel follows them. The arrow keys move among them. */
export function Tabs<T extends string>(props: { label: string; value: T; id: string; tabs: { value: T; label: string; count?: number | undefined }[]; onChange: (value: T) => void }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const index = props.tabs.findIndex((tab) => tab.value === props.value);
    const next = props.tabs[(index + step + props.tabs.length) % props.tabs.length];
    if (!next) return;
    props.onChange(next.value);
    document.getElementById(`${props.id}-${next.value}`)?.focus();
  };
  useEffect(() => {
    const tab = document.getElementById(`${props.id}-${props.value}`);
    const list = tab?.parentElement;
    // The list alone scrolls, not the page.
    if (tab && list) list.scrollLeft = Math.max(0, tab.offsetLeft - list.offsetLeft - 40);
  }, [props.value]);
  return (
    <div class="tabs" role="tablist" aria-label={props.label} onKeyDown={move}>
      {props.tabs.map((tab) => (
        <button
          key={tab.value}
          id={`${props.id}-${tab.value}`}
          type="button"
          role="tab"
          aria-selected={tab.value === props.value}
          aria-controls={`${props.id}-panel`}
          tabIndex={tab.value === props.value ? 0 : -1}
          onClick={() => props.onChange(tab.value)}
        >
          {tab.label}
          {tab.count === undefined ? null : <span class="count">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}

export function TabPanel(props: { id: string; value: string; children: ComponentChildren }) {
  return (
    <div id={`${props.id}-panel`} role="tabpanel" aria-labelledby={`${props.id}-${props.value}`} class="tab-panel" tabIndex={-1}>
      {props.children}
    </div>
  );
}

export function TierBadge({ tier }: { tier: Tier }) {
  return (
    <span class={`tier ${tier.toLowerCase()}`} title={strings.tierMeaning[tier]}>
      {tier}
    </span>
  );
}

export function SeverityBadge({ severity }: { severity: Severity }) {
  return <span class={`severity ${severity}`}>{strings.severity[severity]}</span>;
}

export function Time({ at }: { at: string | number }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <span>{String(at)}</span>;
  return (
    <time dateTime={date.toISOString()} title={formatFull(at)}>
      {formatAgo(at)}
    </time>
  );
}

/** A link to a note with its folder in a soft tone. */
export function NoteLink(props: { path: string; title?: string | undefined; line?: number; tab?: string; item?: boolean; bare?: boolean }) {
  const folder = folderOf(props.path);
  const title = nameOf(props.path, props.title);
  const options = { ...(props.line === undefined ? {} : { line: props.line }), ...(props.tab === undefined ? {} : { tab: props.tab }) };
  return (
    <span class="note-link">
      {props.path.startsWith('.trash/') ? (
        <bdi class="note-gone" {...written(title)}>{title}</bdi>
      ) : (
        <a href={noteAddress(props.path, options)} {...written(title)} data-item={props.item ? '' : undefined}>
          {title}
        </a>
      )}
      {folder && !props.bare ? <Folder path={folder} /> : null}
    </span>
  );
}

export function PathText({ path }: { path: string }) {
  return isNotePath(path) ? (
    <a class="path" href={noteAddress(path)} {...written(path)}>
      <Breakable text={path} />
    </a>
  ) : (
    <Path text={path} />
  );
}

/** A path, or a place in a file. */
export function Path({ text }: { text: string }) {
  return (
    <bdi class="path" {...written(text)}>
      <Breakable text={text} />
    </bdi>
  );
}

/** The folder of a note, in a soft tone. */
export function Folder({ path }: { path: string }) {
  return (
    <bdi class="note-folder" {...written(path)}>
      <Breakable text={path} />
    </bdi>
  );
}

/** A text whose lines break after a slash rather than within a name. */
export function Breakable({ text }: { text: string }) {
  return <>{text.split('/').map((part, index) => (index === 0 ? part : ['/', <wbr key={index} />, part]))}</>;
}

export function Marked({ text, marks }: { text: string; marks: readonly (readonly [number, number])[] }) {
  return (
    <>
      {splitMarks(text, marks).map((part, index) => (part.marked ? <mark key={index}>{part.text}</mark> : part.text.replace(/\n\s*\n/g, '\n')))}
    </>
  );
}

/** A text in which every occurrence of a name is marked. */
export function MarkedName({ text, name }: { text: string; name: string }) {
  const at = name ? text.toLowerCase().indexOf(name.toLowerCase()) : -1;
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + name.length)}</mark>
      {text.slice(at + name.length)}
    </>
  );
}

/** A text in which what stands between backticks is code. */
export function Coded({ text }: { text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index} dir="auto"><Breakable text={part} /></code> : <Breakable key={index} text={part} />))}</>;
}

const coded = (children: ComponentChildren) => (typeof children === 'string' ? <Coded text={children} /> : children);

export function Empty(props: { title: string; children?: ComponentChildren; icon?: IconName }) {
  return (
    <div class="empty">
      {props.icon ? <Icon name={props.icon} size={26} /> : null}
      <p class="empty-title">{props.title}</p>
      {props.children ? <div class="empty-text">{coded(props.children)}</div> : null}
    </div>
  );
}

export function Failure({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }) {
  // Some messages draw below the first line where a mistake is.
  const [first = '', ...rest] = error.message.split('\n');
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <div>
        <p class="failure-title">{coded(sentence(rest.length > 0 ? first.replace(/:$/, '') : first))}</p>
        {rest.length > 0 ? <pre tabIndex={0}>{rest.join('\n').trimEnd()}</pre> : null}
        {error.taken ? (
          <p>
            {strings.errors.taken} <NoteLink path={error.taken.path} title={error.taken.title} />
          </p>
        ) : null}
        {error.hint ? <p>{coded(sentence(error.hint))}</p> : null}
        {retry ? (
          <Button small onClick={retry}>
            {strings.retry}
          </Button>
        ) : null}
      </div>
    </div>
  );
}

export function Notices({ notices }: { notices?: readonly string[] | undefined }) {
  if (!notices || notices.length === 0) return null;
  return (
    <ul class="notices">
      {notices.map((notice) => (
        <li key={notice}>{coded(sentence(notice))}</li>
      ))}
    </ul>
  );
}

/** Lines in place of what is being loaded. */
export function Loading({ lines = 4, label = strings.loading }: { lines?: number; label?: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class={`bone w${(index * 7) % 4}`} />
      ))}
    </div>
  );
}

export function ViewHead(props: { title: string; about?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="view-head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.about ? <p class="about">{coded(props.about)}</p> : null}
      </div>
      {props.children ? <div class="view-tools">{props.children}</div> : null}
    </header>
  );
}

export function Card(props: { title?: ComponentChildren; about?: ComponentChildren; children: ComponentChildren; tools?: ComponentChildren; id?: string; class?: string }) {
  return (
    <section class={`card ${props.class ?? ''}`} id={props.id}>
      {props.title ? (
        <header class="card-head">
          <div>
            <h2>{props.title}</h2>
            {props.about ? <p class="about">{coded(props.about)}</p> : null}
          </div>
          {props.tools}
        </header>
      ) : null}
      {props.children}
    </section>
  );
}
