// The replies of the API (docs/dev/web.md). Fields that the page does not read are left out.

export interface Session {
  version: string;
  vault: string;
  vault_name: string;
  read_only: boolean;
  generation: number;
  now: string;
  obsidian: boolean;
}

export type Mode = 'hybrid' | 'bm25' | 'vector';
export type Tier = 'HOT' | 'WARM' | 'COLD' | 'ARCHIVE';
export type Severity = 'info' | 'warning' | 'error';
export type Span = [number, number];

export interface Components {
  bm25_rank: number | null;
  bm25: number | null;
  vector_rank: number | null;
  cosine: number | null;
  others?: number;
  from_bm25: number;
  from_vector: number;
  from_others: number;
  from_adjacent?: number;
  rerank?: number;
  from_rerank?: number;
  from_relation?: number;
  from_name?: number;
  from_quotation?: number;
  from_time?: number;
  time?: 'replaces' | 'superseded' | 'not_valid' | 'newer' | 'older';
}

export interface SearchResult {
  path: string;
  id: string;
  title: string;
  heading: string;
  /** Where an attachment says it. */
  place?: { kind: 'page' | 'slide' | 'sheet' | 'chapter'; number: number; name?: string };
  lines: [number, number];
  snippet: string;
  marks: Span[];
  /** The snippet without markup. */
  plain?: { text: string; marks: Span[] };
  score: number;
  match_type: string;
  superseded_by?: string;
  not_valid_before?: string;
  not_valid_since?: string;
  explain?: Components;
  tier?: Tier;
  type?: string;
  updated?: string;
  tags?: string[];
}

export interface Explained {
  words: { word: string; stem: string; notes: number; idf: number }[];
  stop_words?: string[];
  meaning: string;
  condition?: string;
  filters?: string[];
  fusion: string;
  model: string;
  notes: number;
  put_away: number;
}

export interface SearchReply {
  results: SearchResult[];
  mode: Mode;
  stale: boolean;
  embedder: string;
  pending: number;
  notes?: string[];
  explain?: Explained;
  did_you_mean?: string;
  took_ms: number;
}

export interface FacetValue {
  value: string;
  notes: number;
}

export type FacetName = 'folder' | 'tag' | 'type' | 'tier' | 'year';

export type Facets = { total: number; more?: boolean } & Record<FacetName, FacetValue[]>;

export interface Suggestions {
  paths: string[];
  titles: string[];
}

export interface WhyReply {
  path: string;
  found: boolean;
  rank?: number;
  limit: number;
  explain?: Components;
  cosine?: number;
  conditions?: { term: string; holds: boolean }[];
  missing_words?: string[];
  reasons: string[];
  /** Whether restoring the note brings it back into searches. */
  restorable?: boolean;
}

export interface Memory {
  id: string;
  path: string;
  title: string;
  type: string;
  tags: string[];
  created: string;
  updated: string;
  importance: number;
  tier: Tier;
  uses: number;
  days_used: number;
  last_use: string | null;
  usefulness: number;
  protected: boolean;
  pinned: boolean;
  forgotten: boolean;
  superseded_by?: string;
}

export interface OutlineItem {
  level: number;
  text: string;
  line: number;
  id: string;
}

export interface NoteProperty {
  key: string;
  value: unknown;
  type: string;
  html: string;
}

export interface CanvasNode {
  id: string;
  type: string;
  x: number;
  y: number;
  width: number;
  height: number;
  color: string | null;
  html: string;
  label: string | null;
}

export interface CanvasEdge {
  from?: string;
  to?: string;
  fromNode?: string;
  toNode?: string;
  fromSide?: string;
  toSide?: string;
  label?: string | null;
}

export interface Note {
  path: string;
  id: string;
  title: string;
  hash: string;
  kind: 'note' | 'canvas' | 'attachment';
  created: string;
  updated: string;
  size: number;
  html: string;
  text?: string;
  outline?: OutlineItem[];
  properties: NoteProperty[];
  frontmatter_error: string | null;
  tags: string[];
  aliases: string[];
  memory: Memory | null;
  notices: string[];
  canvas?: { nodes: CanvasNode[]; edges: CanvasEdge[] };
}

export interface LinkItem {
  original: string;
  line: number;
  form: string;
  embed: boolean;
  resolved: string | null;
  broken_subpath: boolean;
}

export interface Backlink {
  path: string;
  line: number;
  text: string;
}

export interface LinksReply {
  path: string;
  outgoing: LinkItem[];
  unresolved: LinkItem[];
  backlinks: Backlink[];
}

export interface RelationsReply {
  path: string;
  relations: { from: string; type: string; to: string; inferred: boolean; stated_in: string; line: number; evidence: string; distance: number }[];
  truncated: boolean;
}

export interface MentionsReply {
  path: string;
  names: string[];
  mentions: { path: string; line: number; name: string; text: string }[];
  more: boolean;
}

export interface RelatedReply {
  path: string;
  related: { path: string; id: string; title: string; score: number; cosine?: number; common?: string[]; linked: boolean }[];
  notes?: string[];
}

export interface TouchedFile {
  path: string;
  to?: string;
  before?: string;
  after?: string;
}

export interface JournalEvent {
  id: string;
  at: string;
  op: string;
  folders?: { from: string; to: string }[];
  files?: TouchedFile[];
  undoes?: string;
  note?: string;
  subject?: string;
  undone?: string | null;
  /** The event that restored what this one deleted. */
  restored?: string | null;
  /** Of an undo or redo: what it took back, or did again. */
  of?: EventName;
  undoable?: boolean;
  session?: string;
  [more: string]: unknown;
}

export interface EventName {
  id: string;
  op: string;
  subject?: string | null;
}

export interface ActivityReply {
  events: JournalEvent[];
  next: string | null;
  sessions: string[];
  agents: string[];
  ops: string[];
  /** What a redo would do again. */
  redo?: EventName;
}

export interface UndoState {
  possible: boolean;
  diff?: string;
  kind?: string;
  message?: string;
  hint?: string | null;
  /** The files that stand in the way, each with the reason. */
  files?: [string, string][];
  /** The operations to undo first, the newest first. */
  later?: LaterOperation[];
  notices?: string[];
}

/** A later operation that stands in the way of an undo. */
export interface LaterOperation extends EventName {
  at: string;
  by?: string;
  tool?: string;
  undoable: boolean;
}

export interface OperationReply {
  event: JournalEvent;
  diff: string | null;
  diff_missing?: string | null;
  undo: UndoState;
}

export interface GitHistory {
  path: string;
  commits: { commit: string; date: string; author: string; subject: string; path: string; was?: string; words?: { added: number; removed: number } }[];
  more: boolean;
  shallow: boolean;
  repository?: boolean;
}

export type FallReason = 'age' | 'unused';

/** Which value decides the tier of a note. */
export type TierReason = 'archived' | 'new' | 'in-use' | 'pinned' | 'few-uses' | 'few-days' | 'unused';

export interface Weight {
  path: string;
  type: string;
  half_life_days: number;
  floor: number;
  protected: boolean;
  pinned: boolean;
  forgotten: boolean;
  tier: Tier;
  importance: number;
  uses: number;
  days_used: number;
  last_use: string | null;
  points: [string, number][];
  ahead: [string, number][];
  events: { at: string; kind: 'use' | 'vote' | 'checkpoint' | 'tier'; useful?: boolean; importance?: number; tier?: Tier }[];
  tiers: { tier: Tier; from: string; until: string | null; why?: FallReason }[];
  tier_reason: TierReason;
  thresholds: { hot_hours: number; warm_uses: number; warm_days: number; warm_use_days: number };
}

export interface Named {
  names: string[];
  of: number[];
}

export interface GraphReply {
  generation: number;
  ids: number[];
  paths: string[];
  titles: string[];
  folders: Named;
  types: Named;
  tiers: Named;
  tags: { names: string[]; of: number[][] };
  kinds: number[];
  importance: number[];
  in: number[];
  out: number[];
  unresolved: string[];
  edges: { from: number[]; to: number[]; kind: number[]; relation: number[] };
  relations: string[];
  matched: number[] | null;
}

/** The files that meet a filter of the graph. */
export interface GraphMatches {
  generation: number;
  ids: number[];
  more: boolean;
}

export interface Positions {
  ids: number[];
  /** Link texts without a target; their places come after those of the files. */
  names: string[];
  x: number[];
  y: number[];
}

export interface MemoryStats {
  memories: number;
  tiers: Partial<Record<Tier, number>>;
  types: { type: string; notes: number }[];
  pinned: number;
  forgotten: number;
  uses: number;
  used: number;
  bytes: number;
  max_bytes: number;
  usage_percent: number;
  context: { text: string; expires_at: string | null } | null;
  maintained: string | null;
  oldest: string | null;
  newest: string | null;
}

export interface MemoryPoints {
  /** The number of all notes, also of those that are left out. */
  total: number;
  ids: (string | number)[];
  paths: string[];
  titles: string[];
  types: Named;
  tiers: Named;
  importance: number[];
  last_use: number[];
  created: number[];
  uses: number[];
  flags: number[];
}

export type MemoryMonths = { months: string[] } & Record<Tier, number[]>;

export interface MemoryChanges {
  days: number;
  /** The number of all changes, and by the tier that they lead to. */
  total: number;
  counts: Partial<Record<Tier, number>>;
  changes: { path: string; title: string; from: Tier; to: Tier; at: string; importance: number; why: FallReason | null; last_use: string | null }[];
}

export interface Trashed {
  /** The path in the trash. */
  path: string;
  /** The path that the file had. */
  was: string;
  title: string;
  at: string;
  agent: string;
  operation: string;
}

/** The deleted files that a query matches: their number, and the first of them. */
export interface TrashMatches {
  total: number;
  files: Trashed[];
}

/** An archived or forgotten note, with the operation that made it so if sidenote did. */
/** `latest` is the time of the file, where no operation is known. */
export type InactiveNote = Memory & { since?: { at: string; agent: string; operation: string }; latest?: string };

export interface TrashedText {
  path: string;
  text: string | null;
}

/** How many notes are archived, forgotten and in the trash. */
export interface InactiveCounts {
  archived: number;
  forgotten: number;
  trash: number;
}

export interface Inactive {
  archived: InactiveNote[];
  forgotten: InactiveNote[];
  trash: Trashed[];
}

export interface DuplicateSide {
  path: string;
  title: string;
  text: string;
  updated: string;
}

export interface Duplicates {
  pairs: { a: DuplicateSide; b: DuplicateSide; similarity: number; by: 'text' | 'content' | 'meaning' }[];
  by_text: number;
  compared: number;
  more: boolean;
}

export interface Problem {
  path: string;
  line: number;
  column: number;
  code: string;
  severity: Severity;
  message: string;
  target?: string;
  fingerprint: string;
  fixes?: { description: string }[];
}

export interface CheckReply {
  notes: number;
  canvases: number;
  counts: Record<string, number>;
  problems: Problem[];
  behind: number;
  fixed: boolean;
  codes: Record<string, string>;
  fixable: number;
}

export interface Status {
  vault: string;
  index: string;
  notes: number;
  canvases: number;
  attachments: number;
  excluded: number;
  passages: number;
  links: number;
  unresolved: number;
  generation: number;
  embedder: string;
  former_embedder?: string;
  vectors: number;
  pending: number;
  index_bytes: number;
  vector_bytes: number;
  behind: number;
  stale: boolean;
  commits: string;
  locked_by: { pid: number; command: string } | null;
  at: string;
  following?: boolean;
  writer?: boolean;
  read_only?: boolean;
  notices?: string[];
  agents?: { rule: { name: string } | null; text: string }[];
}

export interface Setting {
  key: string;
  value: string;
  origin: string;
}

export interface Remark {
  code: string;
  path: string;
  line: number;
  message: string;
}

/** The place of a file of a plan: a path in the vault or in its trash. */
export type Place = { vault?: string; trash?: string };

export interface ChangeReply {
  applied: boolean;
  id?: string;
  plan?: { operation: string; files: { from?: Place; to?: Place }[]; remarks?: Remark[] };
  diff?: string;
  notices?: string[];
  /** Of a repair: the path and line of each link that is repaired. */
  repaired?: [string, number][];
  expect_hash?: string;
  /** Of a write: the hash of the note after it. */
  hash?: string | null;
  /** Of the undo of a session: what would be taken back, and what would stay. */
  session?: { operations: SessionOperation[]; stays: SessionOperation[] };
  /** Of the undo of a session: what was taken back, the newest first. */
  undone?: string[];
}

export interface ProposalItem {
  id: string;
  kind: string;
  state: 'waiting' | 'accepted' | 'rejected';
  reason: string;
  author: string;
  created: string;
  /** The files that it changes. */
  paths: string[];
  /** The sources that changed since, so that it cannot be accepted. */
  changed?: string[];
}

export interface ProposalList {
  proposals: ProposalItem[];
  waiting: number;
  damaged?: string[];
}

export interface ProposalDetail extends Omit<ProposalItem, 'paths'> {
  evidence?: { path: string; text: string }[];
  plan: { remarks?: Remark[] };
  diff: string;
  /** The numbers, names and dates of the sources that a given text leaves out. */
  left_out?: string[];
  /** The texts that it would give to files. */
  files?: { path: string; text: string }[];
  /** Why its plan cannot be applied although no source changed. */
  obstacle?: string;
  decision?: { at: string; by: string; operation?: string };
  /** Stands for all that it would do; null where it cannot be accepted. */
  expect_hash: string | null;
}

export interface ConsolidateReply {
  proposals: ProposalItem[];
  later: number;
  notes: number;
  waiting: number;
  notices?: string[];
}

export interface WrittenBy {
  by: string;
  operations: number;
  created: string[];
  changed: string[];
  removed: string[];
}

export interface WeekReview {
  from: string;
  until: string;
  written: WrittenBy[];
  recalled: { path: string; title: string; uses: number }[];
  fading: { path: string; title: string; from: Tier; to: Tier }[];
  faded: number;
  waiting: number;
}

export interface SessionOperation {
  id: string;
  at: string;
  op: string;
  subject: string | null;
  reason?: string;
}

export interface FolderNote {
  path: string;
  title: string;
}

export interface FolderView {
  path: string;
  folders: { path: string; notes: number; has_folders: boolean }[];
  notes: FolderNote[];
  own: number;
  total: number;
}

export interface Templates {
  folder: string;
  templates: FolderNote[];
}

export interface Task {
  path: string;
  title: string;
  line: number;
  status: string;
  done: boolean;
  text: string;
  due?: string;
}

export interface TaskBoard {
  total: number;
  open: number;
  done: number;
  overdue: number;
  statuses: Record<string, number>;
  folders: Record<string, number>;
  today: string;
  tasks: Task[];
}

export interface DayNotes {
  total: number;
  notes: { path: string; title: string; at: string }[];
}

export interface Day {
  day: string;
  today: string;
  previous: string;
  next: string;
  daily: { path: string; title: string | null } | null;
  daily_error: string | null;
  created: DayNotes;
  changed: DayNotes;
  tasks: { total: number; tasks: Task[] };
}

export interface ConflictFile {
  path: string;
  hash: string | null;
  text: string | null;
}
