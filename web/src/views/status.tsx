// The state of the index and of the server, and every setting with its origin.

import { useState } from 'preact/hooks';
import { get } from '../api';
import { formatBytes, formatCount } from '../format';
import { session, vectors } from '../live';
import { useResource } from '../resource';
import { strings } from '../strings';
import { setTheme, theme } from '../theme';
import type { Setting, Status } from '../types';
import { Card, Failure, Loading, Notices, Path, Segments, Time, ViewHead } from '../ui/parts';

const words = strings.status;

function Row({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Settings() {
  const [filter, setFilter] = useState('');
  const settings = useResource('settings', (signal) => get<Setting[]>('settings', {}, signal), { live: 2000 });
  if (settings.error) return <Failure error={settings.error} retry={settings.reload} />;
  if (!settings.data) return <Loading lines={6} />;
  const wanted = filter.toLowerCase();
  const shown = settings.data.filter((setting) => `${setting.key} ${setting.value} ${setting.origin}`.toLowerCase().includes(wanted));
  return (
    <>
      <div class="filters">
        <input type="search" class="input" dir="auto" data-filter-field value={filter} onInput={(event) => setFilter(event.currentTarget.value)} placeholder={words.filter} aria-label={words.filter} />
      </div>
      <div class="table-scroll" tabIndex={0} role="group" aria-label={words.settings}>
        <table class="table settings stacks" role="table">
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader" scope="col">{words.setting}</th>
              <th role="columnheader" scope="col">{words.value}</th>
              <th role="columnheader" scope="col">{words.origin}</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.map((setting) => (
              <tr key={setting.key} role="row" class={setting.origin === 'default' ? '' : 'changed'}>
                <th role="rowheader" scope="row" class="mono">
                  {setting.key}
                </th>
                <td role="cell" class="mono wrap">{setting.value}</td>
                <td role="cell" class="wrap stacks-last">{setting.origin}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 ? <p class="about">{words.noSetting}</p> : null}
    </>
  );
}

export default function StatusView() {
  const status = useResource('status', (signal) => get<Status>('status', {}, signal), { live: 400 });
  const data = status.data;
  const pending = vectors.value?.pending ?? data?.pending ?? 0;
  const done = data ? Math.max(0, data.passages - pending) : 0;
  const share = data && data.passages > 0 ? done / data.passages : 1;
  return (
    <div class="view status-view">
      <ViewHead title={words.title} about={data ? words.summary(formatCount(data.notes), formatCount(data.links)) : ''} />
      {status.error ? <Failure error={status.error} retry={status.reload} /> : null}
      {!data && !status.error ? <Loading lines={10} /> : null}
      {data ? (
        <>
          <Notices notices={data.notices} />
          <div class="status-cards">
            <Card title={words.index}>
              <dl class="facts">
                <Row name={words.generation}>
                  {formatCount(data.generation)} <span class="about">({words.generationAbout})</span>
                </Row>
                <Row name={words.state}>{data.stale ? words.behind(data.behind) : words.current}</Row>
                <Row name={words.files}>{words.fileCounts(data.notes, data.canvases, data.attachments)}</Row>
                {data.excluded > 0 ? <Row name={words.excluded}>{words.excludedCount(data.excluded)}</Row> : null}
                <Row name={words.links}>{words.linkCounts(formatCount(data.links), formatCount(data.unresolved))}</Row>
                <Row name={words.lock}>{data.locked_by ? words.lockedBy(data.locked_by.command, data.locked_by.pid) : data.writer ? words.lockHere : words.lockFree}</Row>
                <Row name={words.following}>{data.following === false ? words.notFollowing : words.isFollowing}</Row>
                <Row name={words.commits}>{data.commits}</Row>
              </dl>
            </Card>
            <Card title={words.vectors}>
              <div class="progress" role="progressbar" aria-label={words.vectors} aria-valuemin={0} aria-valuemax={data.passages} aria-valuenow={done}>
                <span style={{ width: `${100 * share}%` }} class={pending > 0 ? 'working' : ''} />
              </div>
              <p>{pending > 0 ? words.pending(pending, data.passages) : words.allVectors(data.passages)}</p>
              <dl class="facts">
                <Row name={words.model}>{data.embedder === 'none' ? words.noModel : data.embedder}</Row>
                {data.former_embedder ? <Row name={words.formerModel}>{data.former_embedder}</Row> : null}
              </dl>
            </Card>
            <Card title={words.sizes}>
              <dl class="facts">
                <Row name={words.indexSize}>{formatBytes(data.index_bytes)}</Row>
                <Row name={words.vectorSize}>{formatBytes(data.vector_bytes)}</Row>
              </dl>
            </Card>
            <Card title={words.here}>
              <dl class="facts">
                <Row name={words.vault}>
                  <Path text={data.vault} />
                </Row>
                <Row name={words.indexFolder}>
                  <Path text={data.index} />
                </Row>
                <Row name={words.version}>{session.value?.version ?? ''}</Row>
                <Row name={words.writes}>{session.value?.read_only ? words.readOnly : words.readWrite}</Row>
                <Row name={words.asOf}>
                  <Time at={data.at} />
                </Row>
                <Row name={words.theme}>
                  <Segments
                    label={words.theme}
                    value={theme.value}
                    options={[
                      { value: 'system', label: words.themes.system },
                      { value: 'light', label: words.themes.light },
                      { value: 'dark', label: words.themes.dark },
                    ]}
                    onChange={setTheme}
                  />
                </Row>
              </dl>
            </Card>
          </div>
          {data.agents && data.agents.length > 0 ? (
            <Card title={words.agents} about={words.agentsAbout}>
              <dl class="facts">
                {data.agents.map((agent) => (
                  <Row key={agent.rule?.name ?? ''} name={agent.rule?.name ?? words.otherAgents}>
                    {agent.text}
                  </Row>
                ))}
              </dl>
            </Card>
          ) : null}
          <Card title={words.settings} about={words.settingsAbout}>
            <Settings />
          </Card>
        </>
      ) : null}
    </div>
  );
}
