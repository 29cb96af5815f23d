// The frame of the page: the views by address, the navigation, and what concerns all of them.

import { Component, render, type ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { AskDialog, Toasts } from './actions';
import { ApiError } from './api';
import { drafts, isDirty } from './drafts';
import { formatCount } from './format';
import { helpOpen, openSearch, shortcuts, setShortcuts, startKeys } from './keys';
import { listen, loadSession, online, session, sessionError, vectors, waiting } from './live';
import { followLinks, location, noteAddress, noteOfAddress, withQuery } from './router';
import { strings } from './strings';
import './styles/base.css';
import './styles/page.css';
import { written } from './text';
import { applyTheme } from './theme';
import { BrokenLinkDialog } from './ui/broken-link';
import { Dialog } from './ui/dialog';
import { Icon, type IconName } from './ui/icons';
import { Coded, Failure, Loading, ViewHead } from './ui/parts';
import { askNew, PlaceDialog } from './ui/place-note';
import SearchView from './views/search';

type Load = () => Promise<{ default: ComponentType }>;

interface View {
  name: keyof typeof strings.nav;
  icon: IconName;
  address: string;
  matches: (path: string) => boolean;
  load: Load;
}

const views: View[] = [
  { name: 'search', icon: 'search', address: '/', matches: (path) => path === '/' || path === '/search', load: () => Promise.resolve({ default: SearchView }) },
  { name: 'notes', icon: 'folder', address: '/notes', matches: (path) => path === '/notes', load: () => import('./views/notes') },
  { name: 'day', icon: 'day', address: '/day', matches: (path) => path === '/day', load: () => import('./views/day') },
  { name: 'graph', icon: 'graph', address: '/graph', matches: (path) => path === '/graph', load: () => import('./views/graph') },
  { name: 'memory', icon: 'memory', address: '/memory', matches: (path) => path === '/memory', load: () => import('./views/memory') },
  { name: 'activity', icon: 'activity', address: '/activity', matches: (path) => path === '/activity', load: () => import('./views/activity') },
  { name: 'review', icon: 'review', address: '/review', matches: (path) => path === '/review', load: () => import('./views/review') },
  { name: 'health', icon: 'health', address: '/health', matches: (path) => path === '/health', load: () => import('./views/health') },
  { name: 'status', icon: 'status', address: '/status', matches: (path) => path === '/status', load: () => import('./views/status') },
];
const tasksView = { matches: (path: string) => path === '/tasks', load: (() => import('./views/tasks')) as Load };
const noteView = { matches: (path: string) => path.startsWith('/note/'), load: (() => import('./views/note')) as Load };

/** Shows an error of a view instead of an empty page. */
class Guard extends Component<{ at: string; children: preact.ComponentChildren }, { error: Error | null; at: string }> {
  override state = { error: null as Error | null, at: this.props.at };

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: { at: string }) {
    if (before.at !== this.props.at && this.state.error) this.setState({ error: null });
  }

  override render() {
    return this.state.error ? <Failure error={new ApiError(0, { message: this.state.error.message })} retry={() => this.setState({ error: null })} /> : this.props.children;
  }
}

/** When the page was loaded again last because a part of it could not be loaded. */
const RELOADED = 'sidenote-reloaded';

/** Loads the page again, but not again and again. */
function reloadOnce(): void {
  if (Date.now() - Number(sessionStorage.getItem(RELOADED) ?? 0) < 10_000) return;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  window.location.reload();
}

function Lazy({ load }: { load: Load }) {
  const [view, setView] = useState<{ load: Load; Shown: ComponentType } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let current = true;
    setError(null);
    load().then(
      (module) => current && setView({ load, Shown: module.default }),
      async (cause: unknown) => {
        // Whether the server is away is known after this.
        await loadSession();
        if (current) setError(cause instanceof Error ? cause : new Error(String(cause)));
      },
    );
    return () => {
      current = false;
    };
  }, [load]);
  const isOnline = online.value;
  // A server that is back may have another version of the page, with other names of its parts.
  useEffect(() => {
    if (error && isOnline) reloadOnce();
  }, [error, isOnline]);
  if (error) return <Failure error={new ApiError(0, { message: isOnline ? strings.errors.noPart : strings.errors.offline, hint: error.message })} retry={() => window.location.reload()} />;
  if (view?.load !== load) return <Loading lines={8} />;
  return <view.Shown />;
}

/** Follows the link to the search page with the cursor in its field, unless the screen is touched: there a keyboard would come up. */
function followToSearch(event: MouseEvent): void {
  if (event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && !window.matchMedia('(pointer: coarse)').matches) openSearch();
}

function Nav() {
  const { path } = location.value;
  const pending = vectors.value?.pending ?? 0;
  const waits = waiting.value ?? 0;
  return (
    <header class="nav">
      <a class="brand" href="/" title={session.value?.vault ?? ''}>
        <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M8 10h10M8 16h10M8 22h6" />
          <path class="side" d="M23.5 8v16" />
        </svg>
        <span class="brand-text">
          <strong>{session.value?.vault_name || strings.product}</strong>
          {session.value?.read_only ? <span class="chip soft">{strings.nav.readOnly}</span> : null}
        </span>
      </a>
      <nav aria-label={strings.nav.label}>
        <ul>
          {views.map((view) => (
            <li key={view.name}>
              <a href={view.address} aria-current={view.matches(path) ? 'page' : view.name === 'day' && tasksView.matches(path) ? 'true' : undefined} onClick={view.name === 'search' ? followToSearch : undefined}>
                <Icon name={view.icon} size={20} />
                <span>{strings.nav[view.name] as string}</span>
                {view.name === 'review' && waits > 0 ? (
                  <span class="nav-count">
                    <span aria-hidden="true">{formatCount(waits)}</span>
                    <span class="visually-hidden">{strings.nav.waits(waits)}</span>
                  </span>
                ) : null}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="nav-foot">
        {session.value && !session.value.read_only ? (
          <button type="button" class="nav-help" onClick={() => askNew()}>
            <Icon name="plus" size={18} /> <span>{strings.place.new}</span>
          </button>
        ) : null}
        {pending > 0 ? (
          <a class="nav-vectors" href="/status">
            <span class="working" aria-hidden="true" />
            <span>{strings.nav.vectors(pending, formatCount(pending))}</span>
          </a>
        ) : null}
        <button type="button" class="nav-help" onClick={() => (helpOpen.value = true)}>
          <kbd>?</kbd> <span>{strings.nav.help}</span>
        </button>
      </div>
    </header>
  );
}

/** Names the notes whose drafts are not shown, so that none is forgotten. */
function Unsaved({ path }: { path: string }) {
  const shown = path.startsWith('/note/') ? noteOfAddress(path) : null;
  const others = [...drafts.value.values()].filter((draft) => isDirty(draft) && draft.path !== shown);
  if (others.length === 0) return null;
  return (
    <p class="banner unsaved" role="status">
      {strings.editor.unsavedIn}{' '}
      {others.map((draft) => (
        <a key={draft.path} href={withQuery(noteAddress(draft.path), { edit: '1' })} {...written(draft.name)}>
          {draft.name}
        </a>
      ))}
    </p>
  );
}

function Help() {
  if (!helpOpen.value) return null;
  return (
    <Dialog title={strings.help.title} onClose={() => (helpOpen.value = false)}>
      <div class="help-groups">
        {strings.help.groups.map((group) => (
          <section key={group.title}>
            <h3>{group.title}</h3>
            <dl>
              {group.keys.map(([keys, about]) => (
                <div key={keys}>
                  <dt>
                    {keys.split(' ').map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{about}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="check">
        <input type="checkbox" checked={shortcuts.value} onChange={(event) => setShortcuts(event.currentTarget.checked)} /> <span>{strings.help.turnOff}</span>
      </label>
    </Dialog>
  );
}

function Page() {
  const { path } = location.value;
  const view = views.find((item) => item.matches(path));
  const isTasks = tasksView.matches(path);
  const load = view?.load ?? (isTasks ? tasksView.load : noteView.matches(path) ? noteView.load : null);
  useEffect(() => {
    if (view) document.title = strings.pageTitle(strings.nav[view.name] as string);
    else if (isTasks) document.title = strings.pageTitle(strings.tasks.title);
    else if (!load) document.title = strings.pageTitle(strings.notFound.title);
  }, [path]);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    // Another view: the focus goes to its heading, for readers who hear the page.
    if (view?.name === 'search') return;
    let tries = 0;
    const timer = window.setInterval(() => {
      const heading = document.querySelector<HTMLElement>('main h1');
      if (heading) heading.focus({ preventScroll: true });
      if (heading || ++tries > 40) window.clearInterval(timer);
    }, 25);
    return () => window.clearInterval(timer);
  }, [path]);
  const error = sessionError.value;
  return (
    <div class="frame">
      <a class="skip" href="#main">
        {strings.skip}
      </a>
      <Nav />
      <main id="main" tabIndex={-1} class={view?.name === 'graph' ? 'full' : ''}>
        {online.value || error ? null : (
          <p class="banner" role="alert">
            {strings.nav.offline}
          </p>
        )}
        <Unsaved path={path} />
        {error ? error.status === 401 ? <p class="banner" role="alert"><Coded text={strings.nav.signIn} /></p> : <Failure error={error} retry={() => void loadSession()} /> : null}
        {load && !(error?.status === 401 && !session.value) ? (
          <Guard at={path}>
            <Lazy load={load} key={view?.name ?? (isTasks ? 'tasks' : 'note')} />
          </Guard>
        ) : load ? null : (
          <div class="view">
            <ViewHead title={strings.notFound.title} about={strings.notFound.about} />
            <p>
              <a href="/">{strings.notFound.home}</a>
            </p>
          </div>
        )}
      </main>
      <AskDialog />
      <BrokenLinkDialog />
      <PlaceDialog />
      <Help />
      <Toasts />
    </div>
  );
}

applyTheme();
startKeys();
document.addEventListener('click', followLinks);
void loadSession();
listen();
const root = document.getElementById('app');
if (root) render(<Page />, root);
