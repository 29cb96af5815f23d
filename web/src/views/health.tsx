// The problems of the vault by code, and their fixes: a diff first, applied after a yes.

import { useState } from 'preact/hooks';
import { ask, canWrite, closeDialog } from '../actions';
import { get } from '../api';
import { formatCount } from '../format';
import { useResource } from '../resource';
import { location, noteAddress, setQuery } from '../router';
import { strings } from '../strings';
import { isNotePath, written } from '../text';
import type { ChangeReply, CheckReply, Problem, Severity } from '../types';
import { BrokenLinkButtons } from '../ui/broken-link';
import { Breakable, Button, Empty, Failure, Loading, Path, SeverityBadge, ViewHead } from '../ui/parts';

const words = strings.health;
const PAGE = 200;
const RANK: Record<Severity, number> = { error: 0, warning: 1, info: 2 };

function Row({ problem }: { problem: Problem }) {
  const fix = problem.fixes?.[0];
  const place = problem.line > 0 ? `${problem.path}:${problem.line}` : problem.path;
  return (
    <li class="problem" data-item-row>
      <SeverityBadge severity={problem.severity} />
      <div class="problem-main">
        {isNotePath(problem.path) ? (
          <a class="path" data-item href={noteAddress(problem.path, problem.line > 0 ? { line: problem.line } : {})} {...written(problem.path)}>
            <Breakable text={place} />
          </a>
        ) : (
          <span tabIndex={-1} data-item>
            <Path text={place} />
          </span>
        )}
        <p><Breakable text={problem.message} /></p>
        {fix ? <p class="about">{words.fixIs(fix.description)}</p> : null}
      </div>
      {problem.code === 'broken-link' && problem.target && !fix ? <BrokenLinkButtons broken={{ note: problem.path, link: problem.target, line: problem.line }} /> : null}
      {fix && canWrite() ? (
        <Button small onClick={() => ask('fix', { fingerprints: [problem.fingerprint] }, { title: words.fixTitle, button: words.apply, done: words.fixed(1) })}>
          {words.fix}
        </Button>
      ) : null}
    </li>
  );
}

/** The broken links that a repair leaves, each with what can be done. */
function Remaining({ plan, problems }: { plan: ChangeReply; problems: Problem[] }) {
  const repaired = new Set((plan.repaired ?? []).map(([path, line]) => `${path}:${line}`));
  const left = problems.filter((problem) => problem.code === 'broken-link' && !repaired.has(`${problem.path}:${problem.line}`));
  if (left.length === 0) return null;
  return (
    <section class="remaining">
      {repaired.size === 0 ? <p>{words.nothingCertain}</p> : null}
      <p>{words.remain(left.length)}</p>
      <ul class="problems">
        {left.map((problem) => (
          <li class="problem" key={problem.fingerprint + problem.line}>
            <div class="problem-main">
              <Path text={`${problem.path}:${problem.line}`} />
              <p><Breakable text={problem.message} /></p>
            </div>
            {problem.target ? <RemainingButtons problem={problem} target={problem.target} /> : null}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The same buttons as in the list; the dialog gives way to that of the link. */
function RemainingButtons({ problem, target }: { problem: Problem; target: string }) {
  return (
    <span onClickCapture={closeDialog}>
      <BrokenLinkButtons broken={{ note: problem.path, link: target, line: problem.line }} />
    </span>
  );
}

export default function HealthView() {
  const [limit, setLimit] = useState(PAGE);
  const code = location.value.query.get('code') ?? '';
  const check = useResource('check', (signal) => get<CheckReply>('check', {}, signal), { live: 700 });
  const data = check.data;
  const severityOf = new Map<string, Severity>();
  const fixable = new Map<string, number>();
  for (const problem of data?.problems ?? []) {
    if (!severityOf.has(problem.code)) severityOf.set(problem.code, problem.severity);
    if (problem.fixes && problem.fixes.length > 0) fixable.set(problem.code, (fixable.get(problem.code) ?? 0) + 1);
  }
  const codes = Object.entries(data?.counts ?? {})
    .filter(([, count]) => count > 0)
    .sort(([a, countA], [b, countB]) => RANK[severityOf.get(a) ?? 'info'] - RANK[severityOf.get(b) ?? 'info'] || countB - countA);
  const shown = (data?.problems ?? []).filter((problem) => !code || problem.code === code).sort((a, b) => RANK[a.severity] - RANK[b.severity]);
  const fixesHere = code ? (fixable.get(code) ?? 0) : (data?.fixable ?? 0);
  const total = data?.problems.length ?? 0;
  return (
    <div class="view health-view">
      <ViewHead title={words.title} about={data ? words.summary(total, data.notes, data.canvases) : words.about}>
        {data && canWrite() && fixesHere > 0 ? (
          <Button kind="primary" onClick={() => ask('fix', code ? { code } : {}, { title: words.fixAllTitle(fixesHere), about: words.fixAllAbout, button: words.apply, done: words.fixed(fixesHere) })}>
            {words.fixAll(fixesHere)}
          </Button>
        ) : null}
        {data && canWrite() && (data.counts['broken-link'] ?? 0) > 0 ? (
          <Button onClick={() => ask('repair', {}, { title: words.repairTitle, about: words.repairAbout, button: words.apply, done: words.repaired, below: (plan) => <Remaining plan={plan} problems={data.problems} /> })}>{words.repair}</Button>
        ) : null}
      </ViewHead>
      {check.error ? <Failure error={check.error} retry={check.reload} /> : null}
      {!data && !check.error ? <Loading lines={10} label={words.checking} /> : null}
      {data && total === 0 ? (
        <Empty title={words.none} icon="check">
          {words.noneAbout(formatCount(data.notes))}
        </Empty>
      ) : null}
      {data && total > 0 ? (
        <div class="health-body">
          <nav class="codes" aria-label={words.codes}>
            <ul>
              <li>
                <button type="button" aria-pressed={!code} onClick={() => setQuery({ code: null })}>
                  <span class="facet-value">{words.all}</span>
                  <span class="facet-count">{formatCount(total)}</span>
                </button>
              </li>
              {codes.map(([name, count]) => (
                <li key={name}>
                  <button
                    type="button"
                    aria-pressed={code === name}
                    onClick={() => {
                      setLimit(PAGE);
                      setQuery({ code: code === name ? null : name }, { replace: false });
                    }}
                    title={data.codes[name]}
                  >
                    <span class={`dot ${severityOf.get(name) ?? 'info'}`} aria-hidden="true" />
                    <span class="facet-value">{name}</span>
                    <span class="facet-count">{formatCount(count)}</span>
                  </button>
                </li>
              ))}
            </ul>
          </nav>
          <div class="problems-side">
            {code && data.codes[code] ? <p class="code-about">{data.codes[code]}</p> : null}
            <ul class="problems">
              {shown.slice(0, limit).map((problem, index) => (
                <Row key={`${problem.fingerprint}${index}`} problem={problem} />
              ))}
            </ul>
            {shown.length > limit ? <Button onClick={() => setLimit(limit * 3)}>{strings.more(shown.length - limit)}</Button> : null}
          </div>
        </div>
      ) : null}
    </div>
  );
}
