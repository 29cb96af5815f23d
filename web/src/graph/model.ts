// The graph of the server as arrays for drawing: which nodes and edges are shown, where they begin, and their colours.

import { strings } from '../strings';
import { folderOf, shownName } from '../text';
import { colour, darkNow } from '../theme';
import type { GraphReply, Positions } from '../types';

export type ColourBy = 'folder' | 'tag' | 'type' | 'tier';
export type SizeBy = 'links' | 'weight' | 'same';

export interface LegendItem {
  name: string;
  colour: string;
  count: number;
  /** The filter that this part of the graph meets, and what it is about. */
  filter?: string;
  filterName?: string;
}

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const PALETTE = ['--c1', '--c2', '--c4', '--c5', '--c3', '--c6', '--c7'];

export function nodeCount(graph: GraphReply): number {
  return graph.paths.length + graph.unresolved.length;
}

export function nodeTitle(graph: GraphReply, node: number): string {
  if (node >= graph.paths.length) return graph.unresolved[node - graph.paths.length] ?? '';
  return shownName(graph.paths[node] ?? '', graph.titles[node]);
}

/** Two indices for each edge that is shown, without loops. */
export function edgesOf(graph: GraphReply, kinds: ReadonlySet<number>): { ends: Uint32Array; kinds: Uint8Array } {
  const { from, to, kind } = graph.edges;
  const ends = new Uint32Array(from.length * 2);
  const shown = new Uint8Array(from.length);
  let count = 0;
  // A fixed shuffle, so that the first portion drawn is a fair part of all.
  const total = from.length;
  let step = Math.max(1, Math.floor(total * 0.618));
  while (gcd(step, total) !== 1) step += 1;
  for (let index = 0, at = 0; index < total; index++, at = (at + step) % total) {
    const a = from[at] ?? 0;
    const b = to[at] ?? 0;
    const k = kind[at] ?? 0;
    if (a === b || !kinds.has(k)) continue;
    ends[count * 2] = a;
    ends[count * 2 + 1] = b;
    shown[count] = k;
    count += 1;
  }
  return { ends: ends.subarray(0, count * 2), kinds: shown.subarray(0, count) };
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** The places that the server keeps, by the index of the node. */
export function storedPlaces(graph: GraphReply, stored: Positions | null): (node: number) => readonly [number, number] | undefined {
  const places = new Map<number | string, number>();
  stored?.ids.forEach((id, index) => places.set(id, index));
  stored?.names.forEach((name, index) => places.set(name, (stored?.ids.length ?? 0) + index));
  return (node) => {
    const index = places.get(node < graph.paths.length ? (graph.ids[node] ?? -1) : nodeTitle(graph, node));
    return index === undefined ? undefined : [stored?.x[index] ?? 0, stored?.y[index] ?? 0];
  };
}

/** The distance between neighbours if the placed nodes were spread evenly. */
function spacingOf(positions: Float32Array, placed: Uint8Array): number {
  let [left, right, top, bottom, count] = [Infinity, -Infinity, Infinity, -Infinity, 0];
  for (let node = 0; node < placed.length; node++) {
    if (!placed[node]) continue;
    const [x, y] = [positions[node * 2] ?? 0, positions[node * 2 + 1] ?? 0];
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
    count += 1;
  }
  const area = count > 1 ? Math.max(right - left, 1) * Math.max(bottom - top, 1) : 0;
  return area > 0 ? Math.sqrt(area / count) : 24;
}

/**
 * The places at which nodes begin: those that are known, else by folder, so that the first picture says something. The same
 * graph begins the same way each time. `kept` is the share of files with a place of their own.
 */
export function startPositions(graph: GraphReply, placeOf: (node: number) => readonly [number, number] | undefined): { positions: Float32Array; kept: number } {
  const count = nodeCount(graph);
  const files = graph.paths.length;
  const positions = new Float32Array(count * 2);
  const placed = new Uint8Array(count);
  let kept = 0;
  for (let node = 0; node < count; node++) {
    const place = placeOf(node);
    if (!place) continue;
    positions.set(place, node * 2);
    placed[node] = 1;
    if (node < files) kept += 1;
  }
  const known = kept > 0;
  if (!known) {
    const groups = new Map<string, number[]>();
    for (let node = 0; node < files; node++) {
      const folder = folderOf(graph.paths[node] ?? '');
      const group = groups.get(folder);
      if (group) group.push(node);
      else groups.set(folder, [node]);
    }
    const list = [...groups.entries()].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    let area = 0;
    list.forEach(([, nodes], index) => {
      const spread = 9 * Math.sqrt(nodes.length);
      area += (spread + 14) ** 2;
      const radius = Math.sqrt(area) * 0.9;
      const angle = index * GOLDEN;
      nodes.forEach((node, inner) => {
        const near = 9 * Math.sqrt(inner);
        positions[node * 2] = Math.cos(angle) * radius + Math.cos(inner * GOLDEN) * near;
        positions[node * 2 + 1] = Math.sin(angle) * radius + Math.sin(inner * GOLDEN) * near;
        placed[node] = 1;
      });
    });
  }
  // The rest begins beside a neighbour that has a place, as far from it as neighbours are.
  const spacing = spacingOf(positions, placed);
  const { from, to } = graph.edges;
  for (let round = 0; round < 2; round++) {
    for (let edge = 0; edge < from.length; edge++) {
      const a = from[edge] ?? 0;
      const b = to[edge] ?? 0;
      const [known, fresh] = placed[a] ? [a, b] : [b, a];
      if (!placed[known] || placed[fresh]) continue;
      const angle = fresh * GOLDEN;
      const distance = spacing * (0.35 + (fresh % 7) * 0.08);
      positions[fresh * 2] = (positions[known * 2] ?? 0) + Math.cos(angle) * distance;
      positions[fresh * 2 + 1] = (positions[known * 2 + 1] ?? 0) + Math.sin(angle) * distance;
      placed[fresh] = 1;
    }
  }
  let left = 0;
  let far = 0;
  for (let node = 0; node < count; node++) if (placed[node]) far = Math.max(far, Math.hypot(positions[node * 2] ?? 0, positions[node * 2 + 1] ?? 0));
  for (let node = 0; node < count; node++) {
    if (placed[node]) continue;
    const angle = left * GOLDEN;
    positions[node * 2] = Math.cos(angle) * (far * 1.05 + 10);
    positions[node * 2 + 1] = Math.sin(angle) * (far * 1.05 + 10);
    left += 1;
  }
  return { positions, kept: files === 0 ? 1 : kept / files };
}

/** Positions as whole numbers within ±20000, as they are kept. */
export function positionsToKeep(graph: GraphReply, x: Float32Array, y: Float32Array): Positions {
  let most = 1;
  for (let node = 0; node < nodeCount(graph); node++) most = Math.max(most, Math.abs(x[node] ?? 0), Math.abs(y[node] ?? 0));
  const factor = 20_000 / most;
  const kept: Positions = { ids: graph.ids, names: graph.unresolved, x: [], y: [] };
  for (let node = 0; node < nodeCount(graph); node++) {
    kept.x.push(Math.round((x[node] ?? 0) * factor));
    kept.y.push(Math.round((y[node] ?? 0) * factor));
  }
  return kept;
}

function rgb(text: string): [number, number, number] {
  const hex = /^#([0-9a-f]{6})$/i.exec(text)?.[1];
  if (!hex) return [128, 128, 128];
  return [Number.parseInt(hex.slice(0, 2), 16), Number.parseInt(hex.slice(2, 4), 16), Number.parseInt(hex.slice(4, 6), 16)];
}

export function unit(name: string, alpha: number): [number, number, number, number] {
  const [r, g, b] = rgb(colour(name));
  return [r / 255, g / 255, b / 255, alpha];
}

/** The colour of each kind of edge, as variables. */
export const EDGE_COLOURS = ['--line-strong', '--c4', '--c2', '--c3', '--c5'];

export function edgePalette(): [number, number, number, number][] {
  const alpha = darkNow() ? 0.5 : 0.6;
  return EDGE_COLOURS.map((name, kind) => unit(name, kind === 0 ? alpha * 0.8 : alpha));
}

/** The filter that selects a part of the graph by what its colour means. */
function filterOf(by: ColourBy, name: string): string {
  const quoted = /[^\p{L}\p{N}_-]/u.test(name) ? `"${name.replace(/"/g, '\\"')}"` : name;
  switch (by) {
    case 'folder':
      return `path:"${name.replace(/"/g, '\\"')}/"`;
    case 'tag':
      return `#${name}`;
    default:
      return `${by}:${quoted}`;
  }
}

/** The share of the files in one folder from which the folders in it are told apart. */
const NEARLY_ALL = 0.9;

/** The folder by which each file has its colour: the top one, or one in it where nearly all files are in the same. */
function colourFolders(graph: GraphReply): GraphReply['folders'] & { within: string } {
  const whole = graph.paths.map(folderOf);
  const prefix = (folder: string, levels: number) => folder.split('/').slice(0, levels).join('/');
  let folders = graph.folders;
  let within = '';
  for (let levels = 2; levels <= 4; levels++) {
    const counts = new Map<number, number>();
    for (const group of folders.of) counts.set(group, (counts.get(group) ?? 0) + 1);
    const [most, size] = [...counts].reduce((best, item) => (item[1] > best[1] ? item : best), [-1, 0]);
    const name = folders.names[most] ?? '';
    if (name === '' || size < NEARLY_ALL * whole.length) break;
    const groups = new Map<string, number>();
    const of = whole.map((folder) => {
      const part = prefix(folder, levels);
      const known = groups.get(part);
      if (known !== undefined) return known;
      groups.set(part, groups.size);
      return groups.size - 1;
    });
    folders = { names: [...groups.keys()], of };
    within = `${name}/`;
  }
  return { ...folders, within };
}

/** The colour of each node, and what the colours mean, the most frequent first. */
export function colourNodes(graph: GraphReply, by: ColourBy): { bytes: Uint8Array; legend: LegendItem[] } {
  const count = nodeCount(graph);
  const files = graph.paths.length;
  const folders = by === 'folder' ? colourFolders(graph) : null;
  const named = folders ?? (by === 'type' ? graph.types : by === 'tier' ? graph.tiers : null);
  const names = named?.names ?? graph.tags.names;
  const groupOf = (node: number): number => (named ? (named.of[node] ?? -1) : (graph.tags.of[node]?.[0] ?? -1));
  const counts = new Map<number, number>();
  for (let node = 0; node < files; node++) {
    const group = graph.kinds[node] === 2 && by !== 'folder' ? -1 : groupOf(node);
    counts.set(group, (counts.get(group) ?? 0) + 1);
  }
  const order = [...counts.entries()].filter(([group]) => group >= 0 && names[group] !== '').sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const grey = colour('--c8');
  const pale = colour('--none') || grey;
  const colours = new Map<number, string>();
  const legend: LegendItem[] = [];
  if (by === 'tier') {
    names.forEach((name, group) => {
      const shade = colour(`--${name.toLowerCase()}`) || grey;
      colours.set(group, shade);
      if (counts.get(group)) legend.push({ name, colour: shade, count: counts.get(group) ?? 0, filter: filterOf(by, name) });
    });
  } else {
    order.slice(0, PALETTE.length).forEach(([group, size], index) => {
      const shade = colour(PALETTE[index] ?? '--c8');
      colours.set(group, shade);
      const name = names[group] ?? '';
      const shown = folders && name.startsWith(folders.within) ? name.slice(folders.within.length) : name;
      legend.push({ name: shown, colour: shade, count: size, filter: filterOf(by, name), filterName: name });
    });
    const rest = order.slice(PALETTE.length).reduce((sum, [, size]) => sum + size, 0);
    if (rest > 0) legend.push({ name: strings.graph.others, colour: grey, count: rest });
    const none = [...counts.entries()].filter(([group]) => group < 0 || names[group] === '').reduce((sum, [, size]) => sum + size, 0);
    if (none > 0) legend.push({ name: strings.graph.none[by], colour: pale, count: none });
  }
  const bytes = new Uint8Array(count * 4);
  const soft = rgb(colour('--faint'));
  for (let node = 0; node < count; node++) {
    const group = groupOf(node);
    const shade = node >= files ? soft : rgb(colours.get(group) ?? (group < 0 || names[group] === '' ? pale : grey));
    bytes.set(shade, node * 4);
    bytes[node * 4 + 3] = 235;
  }
  return { bytes, legend };
}

/** The radius of each node, in pixels at a scale of 1. */
export function sizeNodes(graph: GraphReply, by: SizeBy, size: Float32Array): void {
  const files = graph.paths.length;
  for (let node = 0; node < size.length; node++) {
    if (node >= files) size[node] = 3;
    else if (by === 'links') size[node] = Math.min(16, 3 + 1.1 * Math.sqrt((graph.in[node] ?? 0) + (graph.out[node] ?? 0)));
    else if (by === 'weight') size[node] = 2 + (graph.importance[node] ?? 0) ** 1.35 / 2.2;
    else size[node] = 4;
  }
}

/** The nodes that edges lead to from a node, in either direction. */
export function neighbours(graph: GraphReply, node: number): number[] {
  const found = new Set<number>();
  const { from, to } = graph.edges;
  for (let edge = 0; edge < from.length; edge++) {
    if (from[edge] === node) found.add(to[edge] ?? 0);
    else if (to[edge] === node) found.add(from[edge] ?? 0);
  }
  found.delete(node);
  return [...found];
}
