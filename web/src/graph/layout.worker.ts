// The layout of a graph, computed beside the page: ForceAtlas2, as graphology has it.

import iterate from 'graphology-layout-forceatlas2/iterate';

export interface LayoutRequest {
  /** x and y of each node. */
  positions: Float32Array;
  /** Two indices of nodes for each edge. */
  edges: Uint32Array;
  iterations: number;
  /** Milliseconds after which it ends in any case; 0 for none. */
  budget: number;
  /** Milliseconds between two reports. */
  interval: number;
}

export interface LayoutReport {
  positions: Float32Array;
  done: boolean;
  share: number;
}

const PER_NODE = 10;
const PER_EDGE = 3;

let stopped = false;
let turn = 0;

self.onmessage = (event: MessageEvent<LayoutRequest | 'stop'>) => {
  if (event.data === 'stop') {
    stopped = true;
    return;
  }
  stopped = false;
  run(event.data, ++turn);
};

function run(request: LayoutRequest, mine: number): void {
  const count = request.positions.length / 2;
  const edgeCount = request.edges.length / 2;
  const nodes = new Float32Array(count * PER_NODE);
  const edges = new Float32Array(edgeCount * PER_EDGE);
  for (let node = 0; node < count; node++) {
    const at = node * PER_NODE;
    nodes[at] = request.positions[node * 2] ?? 0;
    nodes[at + 1] = request.positions[node * 2 + 1] ?? 0;
    nodes[at + 6] = 1;
    nodes[at + 7] = 1;
    nodes[at + 8] = 1;
  }
  for (let edge = 0; edge < edgeCount; edge++) {
    const from = (request.edges[edge * 2] ?? 0) * PER_NODE;
    const to = (request.edges[edge * 2 + 1] ?? 0) * PER_NODE;
    edges[edge * PER_EDGE] = from;
    edges[edge * PER_EDGE + 1] = to;
    edges[edge * PER_EDGE + 2] = 1;
    nodes[from + 6] = (nodes[from + 6] ?? 0) + 1;
    nodes[to + 6] = (nodes[to + 6] ?? 0) + 1;
  }
  const options = {
    linLogMode: false,
    outboundAttractionDistribution: false,
    adjustSizes: false,
    edgeWeightInfluence: 1,
    scalingRatio: 10,
    strongGravityMode: true,
    // Nodes without links stay near in a small graph, which would else be small in its middle.
    gravity: count < 2000 ? 0.2 : 0.05,
    slowDown: 1 + Math.log(Math.max(2, count)),
    barnesHutOptimize: count > 2000,
    barnesHutTheta: 0.8,
  };
  const begin = performance.now();
  let done = 0;
  let reported = begin;
  const report = (end: boolean) => {
    const positions = new Float32Array(count * 2);
    for (let node = 0; node < count; node++) {
      positions[node * 2] = nodes[node * PER_NODE] ?? 0;
      positions[node * 2 + 1] = nodes[node * PER_NODE + 1] ?? 0;
    }
    const message: LayoutReport = { positions, done: end, share: done / request.iterations };
    self.postMessage(message, { transfer: [positions.buffer] });
  };
  const step = () => {
    if (mine !== turn) return;
    const start = performance.now();
    do {
      iterate(options, nodes, edges);
      done += 1;
    } while (done < request.iterations && performance.now() - start < 60);
    const now = performance.now();
    const end = stopped || done >= request.iterations || (request.budget > 0 && now - begin > request.budget);
    if (end || now - reported > request.interval) {
      reported = now;
      report(end);
    }
    if (!end) setTimeout(step, 0);
  };
  step();
}
