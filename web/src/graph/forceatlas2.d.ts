declare module 'graphology-layout-forceatlas2/iterate' {
  interface Options {
    linLogMode: boolean;
    outboundAttractionDistribution: boolean;
    adjustSizes: boolean;
    edgeWeightInfluence: number;
    scalingRatio: number;
    strongGravityMode: boolean;
    gravity: number;
    slowDown: number;
    barnesHutOptimize: boolean;
    barnesHutTheta: number;
  }
  /** Runs one iteration of ForceAtlas2 over matrices of 10 numbers a node and 3 numbers an edge. */
  export default function iterate(options: Options, nodes: Float32Array, edges: Float32Array): object;
}
