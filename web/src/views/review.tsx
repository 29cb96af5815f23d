// What waits for the reader: proposals with what each would change, side by side, and the week in review.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { asError, askUndo, canWrite, say } from '../actions';
import { ApiError, get, post } from '../api';
import { agentName } from '../event-names';
import { formatCount } from '../format';
import { useKeys } from '../keys';
import { changes } from '../live';
import { useResource } from '../resource';
import { location, setQuery, withQuery } from '../router';
import { strings } from '../strings';
import { written } from '../text';
import type { ConsolidateReply, ProposalDetail, ProposalItem, ProposalList } from '../types';
import { Button, Empty, Failure, Loading, NoteLink, Notices, Segments, TabPanel, Tabs, Time, ViewHead } from '../ui/parts';
import { ProposalEditor } from '../ui/proposal-editor';
import { SplitDiff } from '../ui/split-diff';
import { Week } from './week';

const words = strings.review;
const TABS = ['proposals', 'week'] as const;
type Tab = (typeof TABS)[number];

const kindName = (kind: string) => (words.kinds as Record<string, string>)[kind] ?? kind;

/** What was decided, or that a source changed since. Nothing for one that waits. */
function State({ item }: { item: ProposalItem }) {
  if (item.state !== 'waiting') return <span class="chip soft">{words.states[item.state]}</span>;
  return (item.changed?.length ?? 0) > 0 ? <span class="chip late">{words.outdated}</span> : null;
}

function Row({ item, selected, onSelect }: { item: ProposalItem; selected: boolean; onSelect: () => void }) {
  return (
    <li>
      <button type="button" class="proposal-row" data-item data-proposal={item.id} aria-current={selected ? 'true' : undefined} onClick={onSelect}>
        <span class="proposal-kind">
          {kindName(item.kind)} <State item={item} />
        </span>
        <span class="proposal-reason" {...written(item.reason)}>
          {item.reason}
        </span>
        <span class="row-meta">
          <bdi>{agentName(item.author)}</bdi>, <Time at={item.created} />
        </span>
      </button>
    </li>
  );
}

/** What the notes say on which the proposal is based. */
function Evidence({ proposal }: { proposal: ProposalDetail }) {
  const evidence = proposal.evidence ?? [];
  if (evidence.length === 0) return null;
  return (
    <section class="proposal-evidence">
      <h3>{words.evidence}</h3>
      <div class="two-texts">
        {evidence.map((item) => (
          <div key={item.path}>
            <p class="pair-head">
              <NoteLink path={item.path} />
            </p>
            <pre tabIndex={0} {...written(item.text)}>
              {item.text.trim()}
            </pre>
          </div>
        ))}
      </div>
    </section>
  );
}

/** What was decided about a proposal, and how to take that back. */
function Decided({ proposal }: { proposal: ProposalDetail }) {
  const { decision } = proposal;
  if (!decision || proposal.state === 'waiting') return null;
  return (
    <p class="proposal-decided">
      {words.states[proposal.state]} <Time at={decision.at} /> {words.by(agentName(decision.by))}.{' '}
      {decision.operation ? <a href={withQuery('/activity', { op_id: decision.operation })}>{words.toActivity}</a> : null}{' '}
      {canWrite() && decision.operation ? (
        <Button small icon="undo" onClick={() => askUndo(decision.operation ?? '', proposal.reason)}>
          {words.undo}
        </Button>
      ) : null}
      {canWrite() && proposal.state === 'rejected' ? (
        <Button small icon="undo" onClick={() => void reopen(proposal.id)}>
          {words.reopen}
        </Button>
      ) : null}
    </p>
  );
}

async function reopen(id: string): Promise<void> {
  try {
    await post('actions/reopen-proposal', { id });
    say(words.reopened);
  } catch (cause) {
    say(asError(cause).message, { bad: true });
  }
  changes.value += 1;
}

/** Why a proposal that waits cannot be accepted. */
function obstaclesOf(proposal: ProposalDetail): string[] {
  if (proposal.state !== 'waiting') return [];
  const changed = proposal.changed ?? [];
  if (changed.length > 0) return [`${words.changedSince(changed.join(', '))} ${proposal.kind === 'change' ? words.askAgain : words.consolidateAgain}`];
  return proposal.obstacle ? [words.cannot(proposal.obstacle)] : [];
}

interface Deciding {
  busy: boolean;
  error: ApiError | null;
  editing: boolean;
  accept: () => void;
  reject: () => void;
  edit: () => void;
  endEdit: () => void;
}

function Tools({ proposal, deciding }: { proposal: ProposalDetail; deciding: Deciding }) {
  if (proposal.state !== 'waiting' || !canWrite()) return null;
  const { busy, editing } = deciding;
  return (
    <div class="proposal-tools" role="toolbar" aria-label={words.tools}>
      <Button kind="primary" icon="check" disabled={busy || editing || !proposal.expect_hash} onClick={deciding.accept} title={words.acceptKey}>
        {words.accept}
      </Button>
      <Button icon="close" disabled={busy || editing} onClick={deciding.reject} title={words.rejectKey}>
        {words.reject}
      </Button>
      {(proposal.files?.length ?? 0) > 0 ? (
        <Button icon="edit" disabled={busy || editing} onClick={deciding.edit} title={words.editKey}>
          {words.edit}
        </Button>
      ) : null}
    </div>
  );
}

function Detail({ proposal, deciding }: { proposal: ProposalDetail; deciding: Deciding }) {
  const about = (words.kindAbout as Record<string, string>)[proposal.kind];
  return (
    <article class="proposal" aria-labelledby="proposal-reason">
      <header>
        <h2 id="proposal-reason" tabIndex={-1} {...written(proposal.reason)}>
          {proposal.reason}
        </h2>
        <p class="about">
          <span class="chip">{kindName(proposal.kind)}</span> {words.proposed(agentName(proposal.author))} <Time at={proposal.created} />. {about}
        </p>
        <Tools proposal={proposal} deciding={deciding} />
      </header>
      <Decided proposal={proposal} />
      {deciding.error ? <Failure error={deciding.error} /> : null}
      <Notices notices={obstaclesOf(proposal)} />
      <Notices notices={(proposal.left_out?.length ?? 0) > 0 ? [words.leftOut(proposal.left_out?.join(', ') ?? '')] : undefined} />
      <Notices notices={proposal.plan.remarks?.map((remark) => `${remark.path}:${remark.line}: ${remark.message}`)} />
      {deciding.editing ? <ProposalEditor key={proposal.id} proposal={proposal} onEnd={deciding.endEdit} /> : null}
      <SplitDiff key={proposal.id} diff={proposal.diff} planned={proposal.state !== 'accepted'} />
      <Evidence proposal={proposal} />
    </article>
  );
}

/** Decides about the proposal that is shown, and goes on with the one after it. */
function useDeciding(proposal: ProposalDetail | null, goOn: () => void): Deciding {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [editing, setEditing] = useState(false);
  const id = proposal?.id;
  useEffect(() => {
    setError(null);
    setEditing(false);
  }, [id]);
  const decide = async (work: (proposal: ProposalDetail) => Promise<void>) => {
    if (!proposal || proposal.state !== 'waiting' || busy || editing || !canWrite()) return;
    setBusy(true);
    setError(null);
    try {
      await work(proposal);
      goOn();
    } catch (cause) {
      setError(asError(cause));
    }
    setBusy(false);
    changes.value += 1;
  };
  return {
    busy,
    error,
    editing,
    accept: () =>
      void decide(async ({ id, expect_hash }) => {
        // Without it there is nothing that can be applied, and the view says why.
        if (!expect_hash) throw new ApiError(0, { message: words.cannotNow });
        const reply = await post<{ change: { id?: string } }>('actions/accept-proposal', { id, expect_hash });
        say(words.accepted, { undo: reply.change.id ?? null });
      }),
    reject: () =>
      void decide(async ({ id }) => {
        await post('actions/reject-proposal', { id });
        say(words.rejected, { undo: () => reopen(id) });
      }),
    edit: () => {
      if (proposal?.state === 'waiting' && (proposal.files?.length ?? 0) > 0 && canWrite()) setEditing(true);
    },
    endEdit: () => setEditing(false),
  };
}

function Proposals({ list, onConsolidate, searching }: { list: ProposalList; onConsolidate: () => void; searching: boolean }) {
  const { query } = location.value;
  const kind = query.get('kind') ?? '';
  const decided = query.get('decided') === '1';
  const shown = list.proposals.filter((item) => !kind || item.kind === kind);
  const asked = query.get('id');
  /** What was decided here and is in the list until it is loaded again. */
  const done = useRef(new Set<string>());
  useEffect(() => done.current.clear(), [list]);
  const selected = asked ?? shown.find((item) => !done.current.has(item.id))?.id ?? null;
  // What is shown stays when the list changes, so that a key decides about nothing else.
  useEffect(() => {
    if (selected && !asked) setQuery({ id: selected });
  }, [selected, asked]);
  const detail = useResource(selected ? `proposal ${selected}` : null, (signal) => get<ProposalDetail>(`proposals/${encodeURIComponent(selected ?? '')}`, {}, signal));
  const proposal = detail.data?.id === selected ? detail.data : null;
  const rows = useRef<HTMLUListElement>(null);
  const wantsFocus = useRef(false);

  const select = (id: string | null) => {
    wantsFocus.current = true;
    setQuery({ id });
  };
  const step = (by: number): boolean => {
    const at = shown.findIndex((item) => item.id === selected);
    const next = shown[Math.min(shown.length - 1, Math.max(0, at + by))];
    if (next) select(next.id);
    return true;
  };
  const goOn = () => {
    const at = shown.findIndex((item) => item.id === selected);
    if (selected) done.current.add(selected);
    select((shown[at + 1] ?? shown[at - 1])?.id ?? null);
  };
  const deciding = useDeciding(proposal, goOn);
  useKeys((event) => {
    switch (event.key) {
      case 'j':
        return step(1);
      case 'k':
        return step(-1);
      case 'a':
        if (!event.repeat) deciding.accept();
        return true;
      case 'r':
        if (!event.repeat) deciding.reject();
        return true;
      case 'e':
        deciding.edit();
        return true;
      default:
        return false;
    }
  });
  useLayoutEffect(() => {
    const row = rows.current?.querySelector<HTMLElement>('[aria-current]');
    // The list alone scrolls, not the page.
    if (row && rows.current) {
      const { top, bottom } = rows.current.getBoundingClientRect();
      const box = row.getBoundingClientRect();
      if (box.top < top) rows.current.scrollTop += box.top - top;
      else if (box.bottom > bottom) rows.current.scrollTop += box.bottom - bottom;
    }
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    (row ?? document.querySelector<HTMLElement>('main h1'))?.focus({ preventScroll: true });
  }, [selected]);

  const kinds = [...new Set(list.proposals.map((item) => item.kind))].sort();
  const countOf = (name: string) => list.proposals.filter((item) => item.kind === name).length;
  const choose = (changed: Record<string, string | null>) => setQuery({ id: null, ...changed });
  return (
    <>
      <div class="filters">
        <Segments
          label={words.which}
          value={decided ? 'all' : 'waiting'}
          options={[
            { value: 'waiting', label: words.waitingOnly },
            { value: 'all', label: words.withDecided },
          ]}
          onChange={(value) => choose({ decided: value === 'all' ? '1' : null, kind: null })}
        />
        {kinds.length > 1 ? (
          <>
            <Button small pressed={kind === ''} onClick={() => choose({ kind: null })}>
              {words.allKinds(list.proposals.length)}
            </Button>
            {kinds.map((name) => (
              <Button key={name} small pressed={kind === name} onClick={() => choose({ kind: name })}>
                {words.ofKind(kindName(name), countOf(name))}
              </Button>
            ))}
          </>
        ) : null}
      </div>
      <Notices notices={list.damaged} />
      {shown.length === 0 && !asked ? (
        <Empty title={decided ? words.none : words.noneWaits} icon="review">
          <p>{canWrite() ? words.noneAbout : words.noneReadOnly}</p>
          {canWrite() ? (
            <Button onClick={onConsolidate} disabled={searching}>
              {searching ? words.searching : words.consolidate}
            </Button>
          ) : null}
        </Empty>
      ) : (
        <div class="review-body">
          {shown.length > 0 ? (
            <nav class="proposal-list" aria-label={words.list}>
              <ul ref={rows}>
                {shown.map((item) => (
                  <Row key={item.id} item={item} selected={item.id === selected} onSelect={() => select(item.id)} />
                ))}
              </ul>
            </nav>
          ) : (
            <p class="about">{words.noneWaits}</p>
          )}
          <div class="proposal-side">
            {detail.error ? <Failure error={detail.error} retry={detail.reload} /> : proposal ? <Detail proposal={proposal} deciding={deciding} /> : <Loading lines={8} />}
          </div>
        </div>
      )}
    </>
  );
}

export default function ReviewView() {
  const { query } = location.value;
  const asked = query.get('tab') as Tab | null;
  const tab: Tab = asked && TABS.includes(asked) ? asked : 'proposals';
  const decided = query.get('decided') === '1';
  const list = useResource(`proposals ${decided}`, (signal) => get<ProposalList>('proposals', { decided }, signal), { keep: true });
  const [searching, setSearching] = useState(false);
  const consolidate = async () => {
    if (searching) return;
    setSearching(true);
    try {
      const reply = await post<ConsolidateReply>('actions/consolidate', {});
      say(words.found(reply.proposals.length, reply.later, formatCount(reply.notes)));
      for (const notice of reply.notices ?? []) say(notice, { bad: true });
    } catch (cause) {
      const error = asError(cause);
      say(error.hint ? `${error.message}; ${error.hint}` : error.message, { bad: true });
    }
    setSearching(false);
    changes.value += 1;
  };
  return (
    <div class="view review-view">
      <ViewHead title={words.title} about={words.about}>
        {canWrite() && tab === 'proposals' ? (
          <Button onClick={() => void consolidate()} disabled={searching} title={words.consolidateAbout}>
            {searching ? words.searching : words.consolidate}
          </Button>
        ) : null}
      </ViewHead>
      <Tabs
        label={words.title}
        id="review"
        value={tab}
        tabs={[
          { value: 'proposals', label: words.proposals, count: list.data?.waiting },
          { value: 'week', label: words.week },
        ]}
        onChange={(value) => setQuery({ tab: value === 'proposals' ? null : value, id: null, kind: null, decided: null, week: null }, { replace: false })}
      />
      <TabPanel id="review" value={tab}>
        {tab === 'week' ? <Week /> : list.error ? <Failure error={list.error} retry={list.reload} /> : list.data ? <Proposals list={list.data} onConsolidate={() => void consolidate()} searching={searching} /> : <Loading lines={8} />}
      </TabPanel>
    </div>
  );
}
