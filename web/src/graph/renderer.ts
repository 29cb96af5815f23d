// Draws a graph by WebGL: the positions are in a texture, the edges and nodes read them there, so that a step of the
// layout sends nothing but that texture. Edges are drawn in portions, a portion a frame, so that the page stays quick.

import { shortened } from '../text';

export interface Camera {
  x: number;
  y: number;
  /** Pixels of CSS for each unit of the graph. */
  scale: number;
}

export interface Palette {
  /** Red, green, blue, alpha of 0 to 1 for each kind of edge. */
  edges: [number, number, number, number][];
  label: string;
  halo: string;
  ring: string;
}

export const HIDDEN = 0;
export const NORMAL = 1;
export const DIMMED = 2;
export const RAISED = 3;

const TEXTURE_WIDTH = 1024;
const PORTION = 40_000;
const PORTION_MOVING = 12_000;
/** So many edges are drawn while everything is seen, where more lines would not be told apart; all of them when nearer. */
const MOST_FAR = 150_000;

const COMMON = `#version 300 es
precision highp float;
precision highp int;
uniform highp sampler2D nodes;
uniform vec2 center;
uniform vec2 factor;
vec4 node(uint id) { return texelFetch(nodes, ivec2(int(id) % ${TEXTURE_WIDTH}, int(id) / ${TEXTURE_WIDTH}), 0); }
`;

const EDGE_VERTEX = `${COMMON}
layout(location = 0) in uvec2 ends;
uniform vec4 colours[8];
uniform float strength;
out vec4 colour;
void main() {
  uint other = ends.y & 0x0fffffffu;
  uint kind = ends.y >> 28;
  vec4 self = node(ends.x);
  vec4 far = node(other);
  float least = min(self.w, far.w);
  bool raised = max(self.w, far.w) > 2.5 && least > 0.5;
  if (least < 0.5) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); colour = vec4(0.0); return; }
  gl_Position = vec4((self.xy - center) * factor, 0.0, 1.0);
  vec4 base = colours[kind];
  float alpha = base.a * strength;
  if (raised) alpha = max(alpha, 0.75);
  else if (least > 1.5 && least < 2.5) alpha *= 0.25;
  colour = vec4(base.rgb * alpha, alpha);
}`;

const EDGE_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 colour;
out vec4 result;
void main() { result = colour; }`;

const NODE_VERTEX = `${COMMON}
layout(location = 0) in vec4 paint;
uniform float zoom;
uniform float ratio;
uniform float unresolvedFrom;
out vec4 colour;
out float size;
out float hollow;
void main() {
  vec4 self = node(uint(gl_VertexID));
  if (self.w < 0.5) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); gl_PointSize = 0.0; return; }
  gl_Position = vec4((self.xy - center) * factor, 0.0, 1.0);
  size = clamp(self.z * zoom, 1.5, 60.0) * 2.0 * ratio;
  if (self.w > 2.5) size += 4.0 * ratio;
  gl_PointSize = size + 2.0;
  colour = paint;
  if (self.w > 1.5 && self.w < 2.5) colour.a = 0.13;
  hollow = float(gl_VertexID) >= unresolvedFrom ? 1.0 : 0.0;
}`;

const NODE_FRAGMENT = `#version 300 es
precision mediump float;
in vec4 colour;
in float size;
in float hollow;
out vec4 result;
void main() {
  float radius = size * 0.5;
  float far = length(gl_PointCoord - vec2(0.5)) * (size + 2.0);
  float cover = clamp(radius - far + 0.5, 0.0, 1.0);
  if (hollow > 0.5) cover *= clamp(far - radius + max(1.6, radius * 0.35) + 0.5, 0.0, 1.0);
  float alpha = colour.a * cover;
  result = vec4(colour.rgb * alpha, alpha);
}`;

function program(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram {
  const made = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(kind);
    if (!shader || !made) throw new Error('WebGL has no shaders');
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made) ?? 'a shader does not link');
  return made;
}

function context(canvas: HTMLCanvasElement, keep: boolean): WebGL2RenderingContext {
  const gl = canvas.getContext('webgl2', { antialias: !keep, alpha: true, premultipliedAlpha: true, preserveDrawingBuffer: keep, powerPreference: 'high-performance' });
  if (!gl) throw new Error('no WebGL');
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  gl.clearColor(0, 0, 0, 0);
  return gl;
}

/** One of the two WebGL layers, with its copy of the texture of nodes. */
class Layer {
  readonly gl: WebGL2RenderingContext;
  readonly program: WebGLProgram;
  private readonly texture: WebGLTexture | null;
  private readonly places = new Map<string, WebGLUniformLocation | null>();
  private rows = 0;

  constructor(canvas: HTMLCanvasElement, keep: boolean, vertex: string, fragment: string) {
    this.gl = context(canvas, keep);
    this.program = program(this.gl, vertex, fragment);
    this.texture = this.gl.createTexture();
    const { gl } = this;
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    gl.useProgram(this.program);
  }

  place(name: string): WebGLUniformLocation | null {
    const known = this.places.get(name);
    if (known !== undefined) return known;
    const found = this.gl.getUniformLocation(this.program, name);
    this.places.set(name, found);
    return found;
  }

  upload(data: Float32Array, rows: number): void {
    const { gl } = this;
    if (rows === 0) return;
    if (rows !== this.rows) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, TEXTURE_WIDTH, rows, 0, gl.RGBA, gl.FLOAT, data);
      this.rows = rows;
    } else gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, TEXTURE_WIDTH, rows, gl.RGBA, gl.FLOAT, data);
  }
}

export class Renderer {
  readonly camera: Camera = { x: 0, y: 0, scale: 1 };
  count = 0;
  x = new Float32Array();
  y = new Float32Array();
  size = new Float32Array();
  state = new Uint8Array();
  /** Called when a picture is complete, with all edges. */
  onComplete: (() => void) | null = null;
  label: (node: number) => string = () => '';
  selected = -1;
  hovered = -1;
  /** The node that the graph is around. */
  home = -1;
  /** The nodes that have their names in any case. */
  named: number[] = [];
  moving = false;
  /** Whether the reader moved the camera since everything was shown, so that it is not moved for them any more. */
  isMoved = false;
  /** The scale at which everything is seen, which sizes are relative to. */
  fitted = 1;

  private readonly edgeLayer: Layer;
  private readonly nodeLayer: Layer;
  private readonly text: CanvasRenderingContext2D | null;
  private readonly canvases: HTMLCanvasElement[];
  private texels = new Float32Array();
  private rows = 0;
  private edgeCount = 0;
  private edgesDone = 0;
  private ends: Uint32Array = new Uint32Array();
  private elements: WebGLBuffer | null = null;
  private focusEdges = 0;
  private focused = -1;
  private dirtyLabels = false;
  private unresolvedFrom = Infinity;
  private dirtyNodes = true;
  private dirtyView = true;
  private frame = 0;
  private order: Uint32Array = new Uint32Array();
  private width = 1;
  private height = 1;
  private ratio = 1;
  private palette: Palette = { edges: [], label: '#000', halo: '#fff', ring: '#000' };
  private readonly observer: ResizeObserver;

  constructor(private readonly box: HTMLElement) {
    this.canvases = ['edges', 'nodes', 'labels'].map((name) => {
      const canvas = document.createElement('canvas');
      canvas.className = `graph-layer ${name}`;
      canvas.setAttribute('aria-hidden', 'true');
      box.append(canvas);
      return canvas;
    });
    const [edges, nodes, labels] = this.canvases;
    if (!edges || !nodes || !labels) throw new Error('no canvas');
    this.edgeLayer = new Layer(edges, true, EDGE_VERTEX, EDGE_FRAGMENT);
    this.nodeLayer = new Layer(nodes, false, NODE_VERTEX, NODE_FRAGMENT);
    this.text = labels.getContext('2d');
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(box);
    this.resize();
  }

  private resize(): void {
    const width = Math.max(1, this.box.clientWidth);
    const height = Math.max(1, this.box.clientHeight);
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    for (const canvas of this.canvases) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    this.view();
  }

  /** Sets the nodes and edges. `ends` has two indices an edge, `kinds` one number under 8. */
  setGraph(count: number, unresolvedFrom: number, positions: Float32Array): void {
    this.count = count;
    this.unresolvedFrom = unresolvedFrom;
    this.x = new Float32Array(count);
    this.y = new Float32Array(count);
    this.size = new Float32Array(count).fill(3);
    this.state = new Uint8Array(count).fill(NORMAL);
    this.rows = Math.max(1, Math.ceil(count / TEXTURE_WIDTH));
    this.texels = new Float32Array(this.rows * TEXTURE_WIDTH * 4);
    this.setPositions(positions);
  }

  setPositions(positions: Float32Array): void {
    for (let node = 0; node < this.count; node++) {
      this.x[node] = positions[node * 2] ?? 0;
      this.y[node] = positions[node * 2 + 1] ?? 0;
    }
    this.nodesChanged();
  }

  setEdges(ends: Uint32Array, kinds: Uint8Array): void {
    const { gl } = this.edgeLayer;
    this.edgeCount = kinds.length;
    this.ends = ends;
    this.focused = -1;
    const data = new Uint32Array(kinds.length * 4);
    for (let edge = 0; edge < kinds.length; edge++) {
      const from = ends[edge * 2] ?? 0;
      const to = ends[edge * 2 + 1] ?? 0;
      const kind = ((kinds[edge] ?? 0) << 28) >>> 0;
      data[edge * 4] = from;
      data[edge * 4 + 1] = (to | kind) >>> 0;
      data[edge * 4 + 2] = to;
      data[edge * 4 + 3] = (from | kind) >>> 0;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 0, 0);
    this.view();
  }

  /** Sets the colours of the nodes: four bytes a node. */
  setColours(bytes: Uint8Array): void {
    const { gl } = this.nodeLayer;
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 4, gl.UNSIGNED_BYTE, true, 0, 0);
    this.view();
  }

  setPalette(palette: Palette): void {
    this.palette = palette;
    const { gl } = this.edgeLayer;
    const flat = new Float32Array(32);
    palette.edges.forEach((colour, index) => flat.set(colour, index * 4));
    gl.uniform4fv(this.edgeLayer.place('colours'), flat);
    this.view();
  }

  /** The number of edges that are drawn at the present distance. */
  get edgesShown(): number {
    return this.camera.scale < this.fitted * 2.5 ? Math.min(this.edgeCount, MOST_FAR) : this.edgeCount;
  }

  /** Has the edges of a node drawn in any case. */
  focus(node: number): void {
    if (node === this.focused) return;
    this.focused = node;
    const found: number[] = [];
    if (node >= 0) {
      for (let edge = 0; edge < this.edgeCount; edge++) {
        if (this.ends[edge * 2] === node || this.ends[edge * 2 + 1] === node) found.push(edge * 2, edge * 2 + 1);
      }
    }
    const { gl } = this.edgeLayer;
    this.elements ??= gl.createBuffer();
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.elements);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(found), gl.STATIC_DRAW);
    this.focusEdges = found.length;
    this.view();
  }

  /** Draws the labels and rings anew, and nothing else. */
  overlay(): void {
    this.dirtyLabels = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  /** Says that positions, sizes or states changed. */
  nodesChanged(): void {
    this.dirtyNodes = true;
    this.view();
  }

  /** Sorts the nodes by size, for labels. */
  sizesChanged(): void {
    const size = this.size;
    this.order = new Uint32Array(this.count);
    for (let node = 0; node < this.count; node++) this.order[node] = node;
    this.order.sort((a, b) => (size[b] ?? 0) - (size[a] ?? 0));
    this.nodesChanged();
  }

  /** Says that the camera or the colours changed. */
  view(): void {
    this.dirtyView = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  /** Shows everything, or some nodes: at most so many times larger than everything. */
  fit(nodes?: Iterable<number>, times = 40): void {
    if (nodes) this.frameNodes(nodes, times);
    else this.frameAll();
    this.isMoved = false;
    this.view();
  }

  private frameAll(): void {
    const all = this.extentOf(Array.from({ length: this.count }, (_, node) => node), 70);
    if (!all) return;
    this.camera.scale = all.count === 1 ? 1 : Math.min(all.scale, 200);
    this.fitted = this.camera.scale;
    this.camera.x = all.x;
    this.camera.y = all.y;
  }

  private frameNodes(nodes: Iterable<number>, times: number): void {
    // Names and the buttons of the picture need some room beside the nodes.
    const some = this.extentOf(nodes, 200);
    if (!some) return;
    this.camera.scale = Math.max(this.fitted * 0.2, Math.min(some.scale, this.fitted * times));
    this.camera.x = some.x;
    this.camera.y = some.y;
  }

  /** The middle of nodes that are not hidden, and the scale at which they fill the picture. */
  private extentOf(nodes: Iterable<number>, room: number): { x: number; y: number; scale: number; count: number } | null {
    const xs: number[] = [];
    const ys: number[] = [];
    for (const node of nodes) {
      if (node >= this.count || this.state[node] === HIDDEN) continue;
      xs.push(this.x[node] ?? 0);
      ys.push(this.y[node] ?? 0);
    }
    if (xs.length === 0) return null;
    xs.sort((a, b) => a - b);
    ys.sort((a, b) => a - b);
    // The outermost few of a large graph do not make all others small.
    const cut = xs.length > 500 ? Math.floor(xs.length * 0.004) : 0;
    const left = xs[cut] ?? 0;
    const right = xs[xs.length - 1 - cut] ?? 0;
    const top = ys[cut] ?? 0;
    const bottom = ys[ys.length - 1 - cut] ?? 0;
    const fill = (size: number, extent: number) => Math.max(size - room, size / 4) / Math.max(1e-6, extent);
    const scale = Math.min(fill(this.width, right - left), fill(this.height, bottom - top));
    return { x: (left + right) / 2, y: (top + bottom) / 2, scale, count: xs.length };
  }

  /** Changes the scale and leaves the point under (px, py) where it is. */
  zoom(by: number, px = this.width / 2, py = this.height / 2): void {
    this.isMoved = true;
    const [gx, gy] = this.toGraph(px, py);
    this.camera.scale = Math.min(this.fitted * 400, Math.max(this.fitted * 0.2, this.camera.scale * by));
    this.camera.x = gx - (px - this.width / 2) / this.camera.scale;
    this.camera.y = gy - (py - this.height / 2) / this.camera.scale;
    this.view();
  }

  pan(dx: number, dy: number): void {
    this.isMoved = true;
    this.camera.x -= dx / this.camera.scale;
    this.camera.y -= dy / this.camera.scale;
    this.view();
  }

  /** Shows a node in the middle, at least so many times larger than when everything is seen. */
  centerOn(node: number, times: number): void {
    this.isMoved = true;
    this.camera.x = this.x[node] ?? 0;
    this.camera.y = this.y[node] ?? 0;
    this.camera.scale = Math.max(this.camera.scale, this.fitted * times);
    this.view();
  }

  toGraph(px: number, py: number): [number, number] {
    return [this.camera.x + (px - this.width / 2) / this.camera.scale, this.camera.y + (py - this.height / 2) / this.camera.scale];
  }

  toScreen(node: number): [number, number] {
    return [((this.x[node] ?? 0) - this.camera.x) * this.camera.scale + this.width / 2, ((this.y[node] ?? 0) - this.camera.y) * this.camera.scale + this.height / 2];
  }

  private get nodeZoom(): number {
    return Math.min(4, Math.max(0.35, Math.sqrt(this.camera.scale / this.fitted) * this.base));
  }

  /** The factor of sizes: smaller for larger graphs and smaller screens. */
  private get base(): number {
    const room = Math.min(1.3, Math.sqrt(this.width * this.height) / 850);
    return room * (this.count > 20_000 ? 0.35 : this.count > 3000 ? 0.5 : this.count > 300 ? 0.85 : 1.2);
  }

  radius(node: number): number {
    return Math.min(60, Math.max(1.5, (this.size[node] ?? 0) * this.nodeZoom));
  }

  /** The node at a place of the screen, or -1. */
  pick(px: number, py: number): number {
    let best = -1;
    let nearest = Infinity;
    for (let node = 0; node < this.count; node++) {
      if (this.state[node] === HIDDEN) continue;
      const [sx, sy] = this.toScreen(node);
      const dx = sx - px;
      const dy = sy - py;
      const square = dx * dx + dy * dy;
      const reach = this.radius(node) + 5;
      if (square < reach * reach && square < nearest) {
        nearest = square;
        best = node;
      }
    }
    return best;
  }

  private draw(): void {
    this.frame = 0;
    if (this.dirtyNodes) {
      this.dirtyNodes = false;
      for (let node = 0; node < this.count; node++) {
        this.texels[node * 4] = this.x[node] ?? 0;
        this.texels[node * 4 + 1] = this.y[node] ?? 0;
        this.texels[node * 4 + 2] = this.size[node] ?? 0;
        this.texels[node * 4 + 3] = this.state[node] ?? 0;
      }
      this.edgeLayer.upload(this.texels, this.rows);
      this.nodeLayer.upload(this.texels, this.rows);
    }
    if (this.dirtyView) {
      this.dirtyView = false;
      this.box.dataset['camera'] = `${this.camera.x} ${this.camera.y} ${this.camera.scale}`;
      this.edgesDone = 0;
      for (const layer of [this.edgeLayer, this.nodeLayer]) {
        const { gl } = layer;
        gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
        gl.clear(gl.COLOR_BUFFER_BIT);
        gl.uniform2f(layer.place('center'), this.camera.x, this.camera.y);
        gl.uniform2f(layer.place('factor'), (2 * this.camera.scale) / this.width, (-2 * this.camera.scale) / this.height);
      }
      this.drawNodes();
      this.dirtyLabels = true;
    }
    if (this.dirtyLabels) {
      this.dirtyLabels = false;
      this.drawLabels();
    }
    this.drawEdges();
  }

  private drawEdges(): void {
    const { gl } = this.edgeLayer;
    const most = this.edgesShown;
    const portion = Math.min(this.moving ? PORTION_MOVING : PORTION, most - this.edgesDone);
    if (portion > 0) {
      const near = Math.min(3, Math.max(1, this.camera.scale / this.fitted));
      gl.uniform1f(this.edgeLayer.place('strength'), Math.min(1, (this.edgeCount > 100_000 ? 0.2 : this.edgeCount > 20_000 ? 0.35 : this.edgeCount > 3000 ? 0.65 : 1) * near));
      gl.drawArrays(gl.LINES, this.edgesDone * 2, portion * 2);
      this.edgesDone += portion;
      if (this.focusEdges > 0 && this.edgesDone >= most) gl.drawElements(gl.LINES, this.focusEdges, gl.UNSIGNED_INT, 0);
    }
    if (this.edgesDone < most) {
      if (!this.moving && !this.frame) this.frame = requestAnimationFrame(() => this.draw());
    } else if (this.count > 0) this.onComplete?.();
  }

  private drawNodes(): void {
    const { gl } = this.nodeLayer;
    gl.uniform1f(this.nodeLayer.place('zoom'), this.nodeZoom);
    gl.uniform1f(this.nodeLayer.place('ratio'), this.ratio);
    gl.uniform1f(this.nodeLayer.place('unresolvedFrom'), Math.min(this.unresolvedFrom, 1e9));
    gl.drawArrays(gl.POINTS, 0, this.count);
  }

  private drawLabels(): void {
    const { text } = this;
    if (!text) return;
    text.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    text.clearRect(0, 0, this.width, this.height);
    text.font = '12px ui-sans-serif, system-ui, sans-serif';
    text.textBaseline = 'middle';
    text.lineJoin = 'round';
    const taken: [number, number, number, number][] = [];
    const put = (node: number, force: boolean): boolean => {
      const [sx, sy] = this.toScreen(node);
      if (sx < -20 || sy < 0 || sx > this.width || sy > this.height) return false;
      const name = this.label(node);
      const shown = shortened(name, 42);
      const width = text.measureText(shown).width;
      const left = sx + this.radius(node) + 4;
      const box: [number, number, number, number] = [left - 2, sy - 8, left + width + 2, sy + 8];
      if (!force && (box[2] > this.width || taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]))) return false;
      taken.push(box);
      text.strokeStyle = this.palette.halo;
      text.lineWidth = 3.5;
      text.strokeText(shown, left, sy);
      text.fillStyle = this.palette.label;
      text.fillText(shown, left, sy);
      return true;
    };
    for (const node of new Set([this.home, this.selected, this.hovered])) {
      if (node < 0) continue;
      const [sx, sy] = this.toScreen(node);
      text.beginPath();
      text.arc(sx, sy, this.radius(node) + 4, 0, 6.3);
      text.strokeStyle = this.palette.ring;
      text.lineWidth = 2;
      text.stroke();
      text.font = '600 12px ui-sans-serif, system-ui, sans-serif';
      put(node, true);
      text.font = '12px ui-sans-serif, system-ui, sans-serif';
    }
    for (const node of this.named) if (node !== this.selected && node !== this.hovered && node !== this.home && this.state[node] !== HIDDEN) put(node, true);
    if (this.moving && this.count > 5000) return;
    const most = Math.round((this.width * this.height) / 20_000);
    let shown = 0;
    for (let index = 0; index < this.order.length && shown < most && index < 6000; index++) {
      const node = this.order[index] ?? 0;
      const state = this.state[node];
      if (state === HIDDEN || state === DIMMED || node === this.selected || node === this.hovered || node === this.home || this.named.includes(node)) continue;
      if (put(node, false)) shown += 1;
    }
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    for (const layer of [this.edgeLayer, this.nodeLayer]) layer.gl.getExtension('WEBGL_lose_context')?.loseContext();
    for (const canvas of this.canvases) canvas.remove();
  }
}
