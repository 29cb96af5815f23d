// The graph of the vault, or around one note.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get, put } from '../api';
import { formatCount, formatNumber } from '../format';
import { colourNodes, edgePalette, edgesOf, EDGE_COLOURS, neighbours, nodeCount, nodeTitle, positionsToKeep, sizeNodes, startPositions, storedPlaces, type ColourBy, type LegendItem, type SizeBy } from '../graph/model';
import { DIMMED, HIDDEN, NORMAL, RAISED, Renderer, type Camera } from '../graph/renderer';
import type { LayoutReport, LayoutRequest } from '../graph/layout.worker';
import LayoutWorker from '../graph/layout.worker?worker';
import { useKeys } from '../keys';
import { useResource } from '../resource';
import { go, location, noteAddress, setQuery, withQuery } from '../router';
import { strings } from '../strings';
import { nameOf } from '../names';
import { written } from '../text';
import { colour, colours } from '../theme';
import type { GraphMatches, GraphReply, Positions } from '../types';
import { Button, Empty, Failure, Folder, Loading, Path, Segments, TierBadge } from '../ui/parts';
import type { Tier } from '../types';

const words = strings.graph;
const COLOURS: ColourBy[] = ['folder', 'tag', 'type', 'tier'];
const SIZES: SizeBy[] = ['links', 'weight', 'same'];
const KINDS = [0, 1, 2, 3, 4] as const;
/** The share of nodes with a kept place from which the kept picture is shown without a new layout. */
const ENOUGH_KEPT = 0.9;
/** Up to this many nodes that match a filter all have their names. */
const FEW = 25;
/** Graphs with more nodes than this are drawn in several frames. */
const LARGE = 5000;

/** The graph that was shown last: its places, and what the reader looked at, for when they come back to it. */
interface Former {
  key: string;
  paths: Map<string, readonly [number, number]>;
  /** Whether its layout had ended. */
  complete: boolean;
  camera: Camera;
  fitted: number;
  isMoved: boolean;
  selected: string | null;
  q: string;
}
let former: Former | null = null;

/** How many times larger than everything a single node is shown. */
const timesFor = (count: number) => (count > 3000 ? 8 : count > 200 ? 2.5 : 1);

const keyOf = (graph: GraphReply, node: number) => graph.paths[node] ?? `?${nodeTitle(graph, node)}`;

async function matchedOf(q: string, signal: AbortSignal): Promise<ReadonlySet<number>> {
  return new Set((await get<GraphMatches>('graph/matches', { q }, signal)).ids);
}

function Jump({ graph, onPick }: { graph: GraphReply; onPick: (node: number) => void }) {
  const [text, setText] = useState('');
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const found = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    if (wanted.length < 2) return [];
    const first: number[] = [];
    const later: number[] = [];
    const total = nodeCount(graph);
    for (let node = 0; node < total && first.length < 12; node++) {
      const title = nodeTitle(graph, node).toLowerCase();
      if (title.startsWith(wanted)) first.push(node);
      else if (later.length < 12 && (title.includes(wanted) || (graph.paths[node] ?? '').toLowerCase().includes(wanted))) later.push(node);
    }
    return [...first, ...later].slice(0, 10);
  }, [graph, text]);
  const pick = (node: number | undefined) => {
    if (node === undefined) return;
    setOpen(false);
    onPick(node);
  };
  const shown = open && found.length > 0;
  return (
    <div class="jump">
      <input
        type="text"
        class="input"
        data-filter-field
        dir="auto"
        list={undefined}
        role="combobox"
        aria-expanded={shown}
        aria-controls="jump-list"
        aria-autocomplete="list"
        aria-activedescendant={shown ? `jump-${at}` : undefined}
        value={text}
        placeholder={words.jump}
        aria-label={words.jump}
        autocomplete="off"
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
          setOpen(true);
        }}
        onFocus={(event) => event.currentTarget.select()}
        onBlur={() => window.setTimeout(() => setOpen(false), 150)}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
            event.preventDefault();
            setAt((at + (event.key === 'ArrowDown' ? 1 : -1) + found.length) % Math.max(1, found.length));
          } else if (event.key === 'Enter') pick(found[at]);
        }}
      />
      {shown ? (
        <ul id="jump-list" role="listbox" aria-label={words.jump} class="jump-list">
          {found.map((node, index) => (
            <li key={node} id={`jump-${index}`} role="option" aria-selected={index === at} onPointerDown={() => pick(node)}>
              <span {...written(nodeTitle(graph, node))}>{nodeTitle(graph, node)}</span>
              <Folder path={graph.paths[node] ?? words.unresolvedNode} />
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

function NodeCard({ graph, node, onClose, onPick }: { graph: GraphReply; node: number; onClose: () => void; onPick: (node: number) => void }) {
  const path = graph.paths[node];
  const near = useMemo(() => neighbours(graph, node), [graph, node]);
  const tier = path ? (graph.tiers.names[graph.tiers.of[node] ?? 0] as Tier | undefined) : undefined;
  return (
    <section class="node-card" aria-label={nodeTitle(graph, node)}>
      <header>
        <h2>{nodeTitle(graph, node)}</h2>
        <Button small kind="quiet" icon="close" label={strings.close} onClick={onClose} />
      </header>
      {path ? (
        <>
          <p><Path text={path} /></p>
          <p class="about">
            {tier && graph.kinds[node] !== 2 ? <TierBadge tier={tier} /> : null} {words.degree(graph.in[node] ?? 0, graph.out[node] ?? 0)}
            {graph.kinds[node] !== 2 ? ` · ${words.weight(formatNumber(graph.importance[node] ?? 0, 1))}` : ''}
          </p>
          <p class="card-buttons">
            <a class="button primary small" href={noteAddress(path)}>
              <span>{words.open}</span>
            </a>
            <a class="button plain small" href={withQuery('/graph', { around: path })}>
              <span>{words.around}</span>
            </a>
          </p>
        </>
      ) : (
        <p class="about">{words.unresolvedAbout}</p>
      )}
      {near.length > 0 ? (
        <>
          <h3>{words.neighbours(near.length)}</h3>
          <ul class="plain-list near">
            {near.slice(0, 40).map((other) => (
              <li key={other}>
                <button type="button" class="link-button" onClick={() => onPick(other)}>
                  {nodeTitle(graph, other)}
                </button>
              </li>
            ))}
          </ul>
          {near.length > 40 ? <p class="about">{strings.more(near.length - 40)}</p> : null}
        </>
      ) : null}
    </section>
  );
}

export default function GraphView() {
  const { query } = location.value;
  const around = query.get('around') ?? '';
  const depth = Math.min(4, Math.max(1, Number(query.get('depth') ?? 1) || 1));
  const q = query.get('q') ?? '';
  const colourBy = (COLOURS.find((value) => value === query.get('colour')) ?? 'folder') as ColourBy;
  const sizeBy = (SIZES.find((value) => value === query.get('size')) ?? 'links') as SizeBy;
  const hiddenKinds = query.get('without') ?? '';
  const showUnresolved = query.get('unresolved') !== '0';
  const showAttachments = query.get('attachments') === '1';
  const showOrphans = query.get('orphans') !== '0';

  const graph = useResource(
    around ? `around ${around} ${depth}` : 'whole',
    async (signal) => {
      const [reply, positions] = await Promise.all([
        around ? get<GraphReply>('graph/around', { name: around, depth }, signal) : get<GraphReply>('graph', {}, signal),
        around ? null : get<Positions>('graph/positions', {}, signal).catch(() => null),
      ]);
      return { reply, positions };
    },
    { live: 3000 },
  );
  const [filterText, setFilterText] = useState(q);
  useEffect(() => setFilterText(q), [q]);
  const matched = useResource(q.trim().length >= 2 ? `matched ${q}` : null, (signal) => matchedOf(q, signal), { live: 3000 });
  const data = graph.data?.reply ?? null;
  const matches = useMemo(() => {
    const [ids, graph] = [matched.data, data];
    if (!q || !ids || !graph) return null;
    return graph.ids.flatMap((id, node) => (ids.has(id) ? [node] : []));
  }, [q, matched.data, data]);
  const latestMatches = useRef(matches);
  latestMatches.current = matches;
  const box = useRef<HTMLDivElement>(null);
  const renderer = useRef<Renderer | null>(null);
  const worker = useRef<Worker | null>(null);
  const isComplete = useRef(false);
  /** The filter whose matches the camera was moved to last. */
  const framed = useRef<string | null>(null);
  const [selected, setSelected] = useState(-1);
  const [hovered, setHovered] = useState(-1);
  /** Places of the layout that wait until the picture before them is complete, and what begins after it. */
  const waiting = useRef<{ positions: Float32Array | null; start: (() => void) | null; complete: boolean }>({ positions: null, start: null, complete: false });
  const [progress, setProgress] = useState<number | null>(null);
  const [broken, setBroken] = useState<string | null>(null);
  const [legend, setLegend] = useState<LegendItem[]>([]);
  const [panel, setPanel] = useState(window.innerWidth >= 900);
  const [kept, setKept] = useState<'' | 'kept' | 'not'>('');
  // The card of a note would hide matches.
  const filteredBy = useRef(q);
  useEffect(() => {
    if (q === filteredBy.current) return;
    filteredBy.current = q;
    if (q) setSelected(-1);
  }, [q]);
  const key = around ? `${around} ${depth}` : 'whole';
  const themeTurn = colours.value;

  // One renderer for the life of the view.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    try {
      renderer.current = new Renderer(element);
    } catch {
      setBroken(words.noWebGl);
      return;
    }
    return () => {
      worker.current?.terminate();
      renderer.current?.destroy();
      renderer.current = null;
    };
  }, []);

  const shownEdges = useMemo(() => (data ? edgesOf(data, new Set(KINDS.filter((kind) => !hiddenKinds.includes(String(kind))))) : null), [data, hiddenKinds]);

  const layout = (from: Float32Array, live: boolean) => {
    const draw = renderer.current;
    if (!draw || !data || !shownEdges) return;
    worker.current?.terminate();
    const count = nodeCount(data);
    const next = new LayoutWorker();
    worker.current = next;
    const calm = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    setProgress(0);
    next.onmessage = (event: MessageEvent<LayoutReport>) => {
      if (worker.current !== next) return;
      const { positions, done, share } = event.data;
      if (done || !calm) {
        if (!done && count > LARGE && !waiting.current.complete) waiting.current.positions = positions;
        else show(positions, live);
      }
      setProgress(done ? null : share);
      if (done) {
        next.terminate();
        worker.current = null;
        isComplete.current = true;
        performance.mark('graph-laid-out');
        if (!around) void keep();
      }
    };
    const request: LayoutRequest = {
      positions: from,
      edges: shownEdges.ends.slice(),
      iterations: count > 20_000 ? 120 : count > 3000 ? 250 : 500,
      budget: around ? 4000 : 90_000,
      interval: count > 20_000 ? 1500 : count > 3000 ? 500 : 120,
    };
    next.postMessage(request);
  };

  const show = (positions: Float32Array, refit: boolean) => {
    const draw = renderer.current;
    if (!draw) return;
    waiting.current.positions = null;
    waiting.current.complete = false;
    draw.setPositions(positions);
    // A reader who moved the camera keeps it.
    if (refit && !draw.isMoved) frame();
  };

  /** Shows what the filter matches, or everything. */
  const frame = () => {
    const draw = renderer.current;
    if (!draw) return;
    draw.fit();
    const some = latestMatches.current ?? [];
    if (some.length > 0) draw.fit(some, some.length === 1 ? timesFor(draw.count) : undefined);
  };

  const keep = async () => {
    const draw = renderer.current;
    if (!draw || !data) return;
    try {
      await put('graph/positions', positionsToKeep(data, draw.x, draw.y));
      setKept('kept');
    } catch {
      setKept('not');
    }
  };

  // A new graph: places, edges, and a layout where places are missing.
  useEffect(() => {
    const draw = renderer.current;
    if (!draw || !data || !shownEdges) return;
    const count = nodeCount(data);
    // A graph that was shown before, here or before another view: its nodes stay where they are.
    const before = former?.key === key ? former : null;
    const same = before !== null;
    const known = before && before.paths.size > 0 ? (node: number) => before.paths.get(keyOf(data, node)) : storedPlaces(data, graph.data?.positions ?? null);
    const start = startPositions(data, known);
    const missing = before && !before.complete ? 1 : 1 - start.kept;
    isComplete.current = missing <= 1 - ENOUGH_KEPT;
    draw.label = (node) => nodeTitle(data, node);
    draw.setGraph(count, data.paths.length, start.positions);
    sizeNodes(data, sizeBy, draw.size);
    draw.sizesChanged();
    performance.mark('graph-nodes');
    waiting.current = { positions: null, start: null, complete: false };
    draw.onComplete = () => {
      performance.mark('graph-complete');
      const { positions, start } = waiting.current;
      waiting.current.complete = true;
      waiting.current.start = null;
      if (start) start();
      else if (positions) show(positions, !same);
    };
    draw.home = around ? 0 : -1;
    if (before) {
      Object.assign(draw.camera, before.camera);
      draw.fitted = before.fitted;
      draw.isMoved = before.isMoved;
      framed.current = before.q;
      const selected = before.selected === null ? -1 : Array.from({ length: count }, (_, node) => node).findIndex((node) => keyOf(data, node) === before.selected);
      setSelected(selected);
      draw.selected = selected;
    } else {
      draw.fit();
      framed.current = null;
      setSelected(-1);
      draw.selected = -1;
    }
    if (count > 1 && missing > 1 - ENOUGH_KEPT) {
      // A large graph is drawn once before its layout begins, which takes a core for a minute.
      const begin = () => layout(start.positions, !same);
      if (count > LARGE) waiting.current.start = begin;
      else begin();
    } else setKept(around ? '' : 'kept');
  }, [data]);

  // Remembers the places and the camera for the next answer, and for when the reader comes back.
  const remembered = useRef({ selected: -1, q: '' });
  remembered.current = { selected, q };
  useLayoutEffect(() => {
    const draw = renderer.current;
    if (!draw || !data) return;
    return () => {
      const paths = new Map<string, readonly [number, number]>();
      for (let node = 0; node < draw.count; node++) paths.set(keyOf(data, node), [draw.x[node] ?? 0, draw.y[node] ?? 0]);
      const { selected, q } = remembered.current;
      former = { key, paths, complete: isComplete.current, camera: { ...draw.camera }, fitted: draw.fitted, isMoved: draw.isMoved, selected: selected < 0 ? null : keyOf(data, selected), q };
    };
  }, [data, key]);

  useEffect(() => {
    if (shownEdges) renderer.current?.setEdges(shownEdges.ends, shownEdges.kinds);
  }, [shownEdges]);

  useEffect(() => {
    const draw = renderer.current;
    if (!draw || !data) return;
    const made = colourNodes(data, colourBy);
    draw.setColours(made.bytes);
    draw.setPalette({ edges: edgePalette(), label: colour('--text'), halo: colour('--bg'), ring: colour('--accent') });
    setLegend(made.legend);
  }, [data, colourBy, themeTurn]);

  useEffect(() => {
    const draw = renderer.current;
    if (!draw || !data) return;
    sizeNodes(data, sizeBy, draw.size);
    draw.sizesChanged();
  }, [data, sizeBy]);

  // What is hidden, dimmed and raised.
  useEffect(() => {
    const draw = renderer.current;
    if (!draw || !data) return;
    const files = data.paths.length;
    const match = matches ? new Set(matches) : null;
    // In a large graph the pointer only shows a name: drawing all edges for it would take too long.
    const focus = hovered >= 0 && draw.count <= LARGE ? hovered : selected;
    const near = focus >= 0 ? new Set([focus, ...neighbours(data, focus)]) : null;
    for (let node = 0; node < draw.count; node++) {
      const hidden = (node >= files && !showUnresolved) || (node < files && data.kinds[node] === 2 && !showAttachments) || (node < files && !showOrphans && !(data.in[node] ?? 0) && !(data.out[node] ?? 0));
      draw.state[node] = hidden ? HIDDEN : match ? (match.has(node) ? (near?.has(node) && node === focus ? RAISED : NORMAL) : DIMMED) : node === focus ? RAISED : near && !near.has(node) ? DIMMED : NORMAL;
    }
    draw.named = match && match.size <= FEW ? [...match] : [];
    draw.selected = selected;
    draw.focus(focus);
    draw.nodesChanged();
  }, [data, matches, selected, hovered >= 0 && (data ? nodeCount(data) : 0) <= LARGE ? hovered : -1, showUnresolved, showAttachments, showOrphans]);

  // A filter brings its matches into view.
  useEffect(() => {
    if (!data || framed.current === q) return;
    if (q === '') framed.current = q;
    else if (matches) {
      framed.current = q;
      if (matches.length > 0) frame();
    }
  }, [data, q, matches]);

  useEffect(() => {
    const draw = renderer.current;
    if (!draw) return;
    draw.hovered = hovered;
    draw.overlay();
  }, [hovered]);

  const pick = (node: number) => {
    setSelected(node);
    const draw = renderer.current;
    if (draw && node >= 0) draw.centerOn(node, timesFor(draw.count));
  };

  // Pointer: drag to move, wheel to zoom, click to select.
  useEffect(() => {
    const element = box.current;
    const draw = renderer.current;
    if (!element || !draw) return;
    const pointers = new Map<number, { x: number; y: number }>();
    let moved = 0;
    let wheel: number | undefined;
    const place = (event: PointerEvent | WheelEvent) => {
      const bounds = element.getBoundingClientRect();
      return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
    };
    const down = (event: PointerEvent) => {
      if (event.target instanceof Element && event.target.closest('.graph-overlay')) return;
      element.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      moved = 0;
    };
    const move = (event: PointerEvent) => {
      const now = place(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        if (event.pointerType === 'mouse') setHovered(draw.pick(now.x, now.y));
        return;
      }
      draw.moving = true;
      if (pointers.size === 1) {
        draw.pan(now.x - before.x, now.y - before.y);
        moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      } else {
        const other = [...pointers.entries()].find(([id]) => id !== event.pointerId)?.[1];
        if (other) {
          const distance = Math.hypot(before.x - other.x, before.y - other.y);
          if (distance > 0) draw.zoom(Math.hypot(now.x - other.x, now.y - other.y) / distance, (now.x + other.x) / 2, (now.y + other.y) / 2);
        }
        moved += 10;
      }
      pointers.set(event.pointerId, now);
    };
    const up = (event: PointerEvent) => {
      if (!pointers.delete(event.pointerId)) return;
      draw.moving = false;
      draw.view();
      if (moved < 5) {
        const now = place(event);
        setSelected(draw.pick(now.x, now.y));
      }
    };
    const turn = (event: WheelEvent) => {
      if (event.target instanceof Element && event.target.closest('.graph-overlay')) return;
      event.preventDefault();
      draw.moving = true;
      const now = place(event);
      draw.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), now.x, now.y);
      window.clearTimeout(wheel);
      wheel = window.setTimeout(() => {
        draw.moving = false;
        draw.view();
      }, 160);
    };
    const leave = () => setHovered(-1);
    const open = (event: MouseEvent) => {
      const bounds = element.getBoundingClientRect();
      const node = draw.pick(event.clientX - bounds.left, event.clientY - bounds.top);
      const path = node < 0 ? undefined : data?.paths[node];
      if (path) go(noteAddress(path));
    };
    element.addEventListener('pointerdown', down);
    element.addEventListener('pointermove', move);
    element.addEventListener('pointerup', up);
    element.addEventListener('pointercancel', up);
    element.addEventListener('pointerleave', leave);
    element.addEventListener('wheel', turn, { passive: false });
    element.addEventListener('dblclick', open);
    return () => {
      element.removeEventListener('pointerdown', down);
      element.removeEventListener('pointermove', move);
      element.removeEventListener('pointerup', up);
      element.removeEventListener('pointercancel', up);
      element.removeEventListener('pointerleave', leave);
      element.removeEventListener('wheel', turn);
      element.removeEventListener('dblclick', open);
    };
  }, [data]);

  const clearFilter = () => {
    setFilterText('');
    setQuery({ q: null });
  };

  useKeys((event) => {
    const draw = renderer.current;
    if (!draw) return false;
    const inView = document.activeElement === document.body || document.activeElement === box.current;
    switch (event.key) {
      case '+':
      case '=':
        draw.zoom(1.35);
        return true;
      case '-':
        draw.zoom(1 / 1.35);
        return true;
      case '0':
        draw.fit();
        return true;
      case 'ArrowLeft':
      case 'ArrowRight':
      case 'ArrowUp':
      case 'ArrowDown':
        if (!inView) return false;
        draw.pan(event.key === 'ArrowLeft' ? 60 : event.key === 'ArrowRight' ? -60 : 0, event.key === 'ArrowUp' ? 60 : event.key === 'ArrowDown' ? -60 : 0);
        return true;
      case 'Escape':
        // The camera stays where it is.
        if (selected >= 0) setSelected(-1);
        else if (q) clearFilter();
        else return false;
        return true;
      case 'Enter': {
        const path = data?.paths[selected];
        if (!inView || !path) return false;
        go(noteAddress(path));
        return true;
      }
      default:
        return false;
    }
  });

  const flag = (name: string, on: boolean, fallback: boolean) => setQuery({ [name]: on === fallback ? null : on ? '1' : '0' });
  const kindsThere = useMemo(() => new Set(data?.edges.kind ?? []), [data]);
  const most = useMemo(() => {
    if (!data) return [];
    const degree = (node: number) => (data.in[node] ?? 0) + (data.out[node] ?? 0);
    return data.paths
      .map((_, node) => node)
      .filter((node) => data.kinds[node] !== 2)
      .sort((a, b) => degree(b) - degree(a))
      .slice(0, 12);
  }, [data]);

  return (
    <div class="graph-view">
      <div class={`graph-panel${panel ? ' open' : ''}`}>
        <div class="graph-title">
          <h1 tabIndex={-1}>{around ? words.aroundTitle(nameOf(around)) : words.title}</h1>
          <Button small kind="quiet" icon={panel ? 'close' : 'menu'} label={panel ? words.hidePanel : words.showPanel} expanded={panel} onClick={() => setPanel(!panel)} />
        </div>
        {panel ? (
          <div class="graph-controls">
            {around ? (
              <>
                <p>
                  <a href="/graph">{words.whole}</a>
                </p>
                <fieldset>
                  <legend>{words.depth}</legend>
                  <Segments label={words.depth} value={String(depth)} options={['1', '2', '3', '4'].map((value) => ({ value, label: value }))} onChange={(value) => setQuery({ depth: value === '1' ? null : value })} />
                </fieldset>
              </>
            ) : null}
            {data ? <Jump graph={data} onPick={pick} /> : null}
            <form
              class="graph-filter"
              onSubmit={(event) => {
                event.preventDefault();
                setQuery({ q: filterText || null });
              }}
            >
              <input
                type="search"
                class="input"
                dir="auto"
                value={filterText}
                placeholder={words.filter}
                aria-label={words.filterLabel}
                aria-describedby="filter-state"
                autocomplete="off"
                onInput={(event) => {
                  setFilterText(event.currentTarget.value);
                  if (event.currentTarget.value === '') setQuery({ q: null });
                }}
                onBlur={() => setQuery({ q: filterText || null })}
              />
              <p id="filter-state" class="about" role="status">
                {q ? (matched.error ? matched.error.message : matched.data ? words.matched(matches?.length ?? 0) : strings.loading) : words.filterHint}
              </p>
            </form>
            <fieldset>
              <legend>{words.colourBy}</legend>
              <Segments label={words.colourBy} value={colourBy} options={COLOURS.map((value) => ({ value, label: words.colours[value] }))} onChange={(value) => setQuery({ colour: value === 'folder' ? null : value })} />
              <ul class="graph-legend">
                {legend.map((item) => (
                  <li key={item.name}>
                    <i style={{ background: item.colour }} />
                    {item.filter ? (
                      <button
                        type="button"
                        class="link-button facet-value"
                        aria-pressed={q === item.filter}
                        title={words.legendFilter(item.filterName ?? item.name)}
                        onClick={() => {
                          const next = q === item.filter ? '' : (item.filter ?? '');
                          setFilterText(next);
                          setQuery({ q: next || null });
                        }}
                      >
                        <bdi {...written(item.name)}>{item.name}</bdi>
                      </button>
                    ) : (
                      <bdi class="facet-value" {...written(item.name)}>{item.name || words.rootFolder}</bdi>
                    )}
                    <span class="facet-count">{formatCount(item.count)}</span>
                  </li>
                ))}
                {data && data.unresolved.length > 0 && showUnresolved ? (
                  <li>
                    <i class="hollow" />
                    <span class="facet-value">{words.unresolved}</span>
                    <span class="facet-count">{formatCount(data.unresolved.length)}</span>
                  </li>
                ) : null}
              </ul>
            </fieldset>
            <fieldset>
              <legend>{words.sizeBy}</legend>
              <Segments label={words.sizeBy} value={sizeBy} options={SIZES.map((value) => ({ value, label: words.sizes[value] }))} onChange={(value) => setQuery({ size: value === 'links' ? null : value })} />
            </fieldset>
            <fieldset>
              <legend>{words.edges}</legend>
              {KINDS.filter((kind) => kindsThere.has(kind)).map((kind) => (
                <label class="check" key={kind}>
                  <input type="checkbox" checked={!hiddenKinds.includes(String(kind))} onChange={(event) => setQuery({ without: event.currentTarget.checked ? hiddenKinds.replace(String(kind), '') || null : hiddenKinds + String(kind) })} />
                  <i class="edge-key" style={{ background: `var(${EDGE_COLOURS[kind]})` }} /> <span>{words.edgeKinds[kind]}</span>
                </label>
              ))}
            </fieldset>
            <fieldset>
              <legend>{words.show}</legend>
              <label class="check">
                <input type="checkbox" checked={showUnresolved} onChange={(event) => flag('unresolved', event.currentTarget.checked, true)} /> <span>{words.unresolved}</span>
              </label>
              <label class="check">
                <input type="checkbox" checked={showOrphans} onChange={(event) => flag('orphans', event.currentTarget.checked, true)} /> <span>{words.orphans}</span>
              </label>
              <label class="check">
                <input type="checkbox" checked={showAttachments} onChange={(event) => flag('attachments', event.currentTarget.checked, false)} /> <span>{words.attachments}</span>
              </label>
            </fieldset>
            <details>
              <summary>{words.mostLinked}</summary>
              <ul class="plain-list">
                {most.map((node) => (
                  <li key={node}>
                    <button type="button" class="link-button" onClick={() => pick(node)}>
                      {data ? nodeTitle(data, node) : ''}
                    </button>
                  </li>
                ))}
              </ul>
            </details>
            {around ? null : (
              <Button
                small
                onClick={() => {
                  if (!data) return;
                  renderer.current?.fit();
                  layout(startPositions(data, () => undefined).positions, true);
                }}
              >
                {words.again}
              </Button>
            )}
          </div>
        ) : null}
      </div>
      <div class="graph-stage">
        <div ref={box} class="graph-box" tabIndex={0} role="application" aria-roledescription={words.role} aria-label={data ? words.label(formatCount(nodeCount(data)), formatCount(data.edges.from.length)) : words.title}>
          {broken ? <Empty title={broken} icon="graph" /> : null}
        </div>
        {graph.error ? (
          <div class="graph-message">
            <Failure error={graph.error} retry={graph.reload} />
          </div>
        ) : null}
        {!data && !graph.error ? (
          <div class="graph-message">
            <Loading lines={3} />
          </div>
        ) : null}
        {data && nodeCount(data) === 0 ? (
          <div class="graph-message">
            <Empty title={words.empty} icon="graph">
              {words.emptyAbout}
            </Empty>
          </div>
        ) : null}
        <div class="graph-overlay graph-buttons">
          <Button icon="plus" label={words.zoomIn} onClick={() => renderer.current?.zoom(1.35)} />
          <Button icon="minus" label={words.zoomOut} onClick={() => renderer.current?.zoom(1 / 1.35)} />
          <Button icon="fit" label={words.fit} onClick={() => renderer.current?.fit()} />
        </div>
        <p class="graph-overlay graph-state" role="status">
          {data ? words.counts(formatCount(data.paths.length), formatCount(data.edges.from.length)) : ''}
          {shownEdges && renderer.current && renderer.current.edgesShown < shownEdges.kinds.length ? ` · ${words.partDrawn}` : ''}
          {progress !== null ? ` · ${words.layingOut(Math.round(progress * 100))}` : kept === 'not' ? ` · ${words.notKept}` : ''}
        </p>
        {data && selected >= 0 && selected < nodeCount(data) ? (
          <div class="graph-overlay">
            <NodeCard graph={data} node={selected} onClose={() => setSelected(-1)} onPick={pick} />
          </div>
        ) : null}
      </div>
    </div>
  );
}
