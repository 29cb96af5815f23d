//! The toolsets of six other memory servers, and the memory tool of the Claude API, over the same notes. Each has a file with its names, its arguments and the
//! forms of its replies. The work on notes is done by the services of `store`, and connections belong to `mcp`.

mod graph;
mod longterm;
mod mem;
mod memories;
mod rulebook;
mod tiered;
mod vector;

pub use memories::answer_line;
use sidenote_mcp::Toolset;

/// Memories as Markdown files, with links between them.
pub const MEM: Toolset = Toolset::new("mem", mem::tools);
/// Memories with importance and decay.
pub const LONGTERM: Toolset = Toolset::new("longterm", longterm::tools);
/// Memories with intents, votes and handoffs.
pub const VECTOR: Toolset = Toolset::new("vector", vector::tools);
/// Memories with tiers, pins and explanations.
pub const TIERED: Toolset = Toolset::new("tiered", tiered::tools);
/// Memories in three levels of detail.
pub const RULEBOOK: Toolset = Toolset::new("rulebook", rulebook::tools);
/// A knowledge graph of entities, observations and relations.
pub const GRAPH: Toolset = Toolset::new("graph", graph::tools).with_resource(graph::RESOURCE);
/// The files of the memory folder, as the memory tool of the Claude API has them.
pub const MEMORIES: Toolset = Toolset::new("memories", memories::tools);

/// The toolsets, in the order in which they are listed.
pub const TOOLSETS: [Toolset; 7] = [MEM, LONGTERM, VECTOR, TIERED, RULEBOOK, GRAPH, MEMORIES];
