//! `sidenote memory`: saves, lists, recalls and weighs memories.

use clap::{Args, Subcommand, ValueEnum};
use console::style;
use serde::Serialize;

use super::change::{Dry, DryPlan, show_change, text_or_stdin};
use super::search::FilterArgs;
use crate::cli::{Session, maintain, output, terminal, transfer};
use crate::error::{Error, Result};
use crate::index::catalog::{Filter, Inactive};
use crate::store::{
    ExplainReply, Fallback, Intent, IntentScore, Memory, MemoryListRequest, MemoryRanking, MemorySort,
    MemoryStats, RecallRequest, ReplyForm, SaveRequest, SearchRequest, SearchResult, Searches, Store, Tier,
    xml_block,
};

/// Keep, find, weigh, forget and recall memories: notes that gain weight by use and lose it by time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote memory save \"We chose plain files\" --type decision --tags design
  sidenote memory search \"storage\" --intent fact_check
  sidenote memory recall \"how do we store notes?\" --budget 500
  sidenote memory explain \"Plain files\" --query storage")]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    Save(SaveArgs),
    Search(SearchArgs),
    List(ListArgs),
    /// Show totals: tiers, types, uses, storage, context, model.
    Stats,
    Forget(ForgetArgs),
    /// Bring a memory back that was forgotten, archived or cleaned up.
    Restore(OneArgs),
    /// Keep a memory warm for good: it does not fade out of recall and is never evicted.
    Pin(OneArgs),
    /// End what `pin` did.
    Unpin(OneArgs),
    Vote(VoteArgs),
    Tier(TierArgs),
    Explain(ExplainArgs),
    SetContext(SetContextArgs),
    /// End what set-context said.
    ClearContext(DryPlan),
    Recall(RecallArgs),
    Timeline(TimelineArgs),
    ByType(ByTypeArgs),
    ByTags(ByTagsArgs),
    ByDate(ByDateArgs),
    Audit(AuditArgs),
    Maintain(maintain::MaintainArgs),
    Cleanup(maintain::CleanupArgs),
    Export(transfer::ExportArgs),
    Import(transfer::ImportArgs),
}

/// Keep a text as a memory. Prints its path.
///
/// What stands between <private> and </private> is not kept, nor is what looks like a key.
#[derive(Debug, Args)]
struct SaveArgs {
    /// The text; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The title; else its first heading, or its first words.
    #[arg(long)]
    title: Option<String>,
    /// The type, such as fact or decision; else what its words tell.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Tags, with commas between.
    #[arg(long, value_delimiter = ',')]
    tags: Vec<String>,
    /// 1 to 10; 5 where nothing is said.
    #[arg(long, value_name = "N")]
    importance: Option<f64>,
    /// Keep it although a note says exactly the same.
    #[arg(long)]
    allow_duplicate: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Search memories, by relevance or for an intent.
#[derive(Debug, Args)]
struct SearchArgs {
    /// What to find.
    #[arg(required = true)]
    query: Vec<String>,
    /// What it is for: continuity, fact_check, frequent, associative or explore.
    #[arg(long)]
    intent: Option<String>,
    /// Only of this tier: hot, warm, cold or archive.
    #[arg(long)]
    tier: Option<String>,
    /// How many.
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Look through archived and forgotten memories, too.
    #[arg(long)]
    deep: bool,
    /// Find what is put away: forgotten, archived.
    #[arg(long, value_delimiter = ',', value_enum)]
    include: Vec<Include>,
    /// Tell how scores came about.
    #[arg(long)]
    explain: bool,
    /// Decides what chance does, for equal answers.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Include {
    Forgotten,
    Archived,
}

/// List memories; without filters, count them by tier.
#[derive(Debug, Args)]
struct ListArgs {
    /// Only of this tier: hot, warm, cold or archive.
    #[arg(long)]
    tier: Option<String>,
    /// Only forgotten ones.
    #[arg(long)]
    forgotten: bool,
    /// Only pinned ones.
    #[arg(long)]
    pinned: bool,
    /// The order.
    #[arg(long, value_enum)]
    sort: Option<SortArg>,
    /// How many at most.
    #[arg(long)]
    limit: Option<usize>,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SortArg {
    Importance,
    Created,
    Accessed,
}

/// Take a memory out of search and recall; `restore` brings it back.
#[derive(Debug, Args)]
struct ForgetArgs {
    /// The memory by any of its names, or words that it is found by.
    name: String,
    /// Move it to the trash instead.
    #[arg(long, requires = "confirm")]
    hard: bool,
    /// Say that --hard is meant.
    #[arg(long)]
    confirm: bool,
    #[command(flatten)]
    dry: Dry,
}

/// The one memory that a command is about.
#[derive(Debug, Args)]
struct OneArgs {
    /// The memory: id, path, title, alias or [[wikilink]].
    name: String,
    #[command(flatten)]
    dry: Dry,
}

/// Say whether a memory was of use.
#[derive(Debug, Args)]
struct VoteArgs {
    /// The memory by any of its names.
    name: String,
    /// Whether it was.
    #[arg(value_enum)]
    vote: Vote,
    #[command(flatten)]
    dry: DryPlan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Vote {
    Up,
    Down,
}

/// Put a memory into the archive. The other tiers follow from age and use.
#[derive(Debug, Args)]
struct TierArgs {
    /// The memory by any of its names.
    name: String,
    /// The tier: archive.
    tier: String,
    #[command(flatten)]
    dry: Dry,
}

/// Tell what a memory is worth, and why.
#[derive(Debug, Args)]
struct ExplainArgs {
    /// The memory by any of its names.
    name: String,
    /// How it would score for this.
    #[arg(long)]
    query: Option<String>,
}

/// Say what is being worked on: it stands first in every recall.
#[derive(Debug, Args)]
struct SetContextArgs {
    /// In a sentence; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// For so many hours.
    #[arg(long, value_name = "HOURS")]
    ttl: Option<f64>,
    #[command(flatten)]
    dry: DryPlan,
}

/// Give the memories that help with a prompt, as an agent gets them.
#[derive(Debug, Args)]
struct RecallArgs {
    /// The prompt; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    prompt: String,
    /// How many at most.
    #[arg(long, default_value_t = 10)]
    max: usize,
    /// How many tokens the block may take.
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// The form.
    #[arg(long, value_enum, default_value_t = Form::Xml)]
    format: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Xml,
    Json,
    Markdown,
}

/// List what was made before and after a memory.
#[derive(Debug, Args)]
struct TimelineArgs {
    /// The memory by any of its names.
    name: String,
    /// How many on either side.
    #[arg(long, default_value_t = 5)]
    window: usize,
}

/// List memories of a type, the most important first.
#[derive(Debug, Args)]
struct ByTypeArgs {
    /// The type.
    kind: String,
    /// How many at most.
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// List memories with any of some tags, the most important first.
#[derive(Debug, Args)]
struct ByTagsArgs {
    /// Tags, with commas between.
    #[arg(value_delimiter = ',', required = true)]
    tags: Vec<String>,
    /// How many at most.
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// List memories made in a time, the newest first.
#[derive(Debug, Args)]
struct ByDateArgs {
    /// From this date on.
    from: String,
    /// Before this date; until now where not given.
    to: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// List what the journal tells of a memory, or of all, the newest first.
#[derive(Debug, Args)]
struct AuditArgs {
    /// The memory by any of its names.
    name: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub(super) fn run(session: &Session, args: MemoryArgs) -> Result<()> {
    match args.command {
        MemoryCommand::Save(args) => save(session, &args),
        MemoryCommand::Search(args) => search(session, &args),
        MemoryCommand::List(args) => list(session, &args),
        MemoryCommand::Stats => {
            session.out.reply(&session.fresh_store()?.memories().memory_stats()?, show_stats)
        }
        MemoryCommand::Forget(args) => forget(session, &args),
        MemoryCommand::Restore(args) => {
            change(session, &args, |store, name, dry_run| store.memory_writes().restore_memory(name, dry_run))
        }
        MemoryCommand::Pin(args) => {
            change(session, &args, |store, name, dry_run| store.memory_writes().pin(name, dry_run))
        }
        MemoryCommand::Unpin(args) => {
            change(session, &args, |store, name, dry_run| store.memory_writes().unpin(name, dry_run))
        }
        MemoryCommand::Vote(args) => {
            let store = session.fresh_store()?;
            if args.dry.dry_run {
                let memory = store.memories().memory(&args.name)?;
                return session.out.reply(&memory, |memory| {
                    let way = if args.vote == Vote::Up { "up" } else { "down" };
                    let (path, now) = (output::plain(&memory.path), memory.state.usefulness);
                    format!("{path} would be voted {way}; its usefulness is {now} now\n")
                });
            }
            let voted = store.memories().vote(&args.name, args.vote == Vote::Up)?;
            session.out.reply(&voted, |memory| {
                format!("{}: usefulness {}\n", output::plain(&memory.path), memory.state.usefulness)
            })
        }
        MemoryCommand::Tier(args) => tier(session, &args),
        MemoryCommand::Explain(args) => {
            let reply = session.fresh_store()?.recalls().explain(&args.name, args.query.as_deref())?;
            session.out.reply(&reply, show_explain)
        }
        MemoryCommand::SetContext(args) => {
            let (store, text) = (session.store()?, text_or_stdin(&args.text)?);
            let (context, verb) = if args.dry.dry_run {
                (store.memories().plan_context(&text, args.ttl)?, "would be set")
            } else {
                (store.memories().set_context(&text, args.ttl)?, "set")
            };
            session.out.reply(&context, |context| {
                context.expires_at.map_or_else(
                    || format!("{verb} until clear-context\n"),
                    |until| format!("{verb} until {}\n", until.rfc3339()),
                )
            })
        }
        MemoryCommand::ClearContext(dry) => {
            let store = session.store()?;
            if dry.dry_run {
                let is_set = store.memories().context()?.is_some();
                let reply = serde_json::json!({ "cleared": false, "would_clear": is_set });
                let said = if is_set { "would be cleared\n" } else { "there is no context\n" };
                return session.out.reply(&reply, |_| said.to_owned());
            }
            let cleared = store.memories().clear_context()?;
            let reply = serde_json::json!({ "cleared": cleared });
            let said = if cleared { "cleared\n" } else { "there was no context\n" };
            session.out.reply(&reply, |_| said.to_owned())
        }
        MemoryCommand::Recall(args) => recall(session, &args),
        MemoryCommand::Timeline(args) => {
            let reply = session.fresh_store()?.memories().timeline(&args.name, args.window)?;
            session.out.reply(&reply, |reply| {
                let mark = |at: usize| if at == reply.anchor { "→" } else { "" }.to_owned();
                let rows = reply.memories.iter().enumerate();
                let rows = rows.map(|(at, memory)| [vec![mark(at)], row_of(memory)].concat());
                output::columns(&rows.collect::<Vec<_>>())
            })
        }
        MemoryCommand::Maintain(args) => maintain::maintain(session, &args),
        MemoryCommand::Cleanup(args) => maintain::cleanup(session, &args),
        MemoryCommand::Export(args) => transfer::export(session, &args),
        MemoryCommand::Import(args) => transfer::import(session, &args),
        MemoryCommand::ByType(args) => {
            let mut request = important(args.limit);
            request.filter.note_type = Some(args.kind);
            show_list(session, &request)
        }
        MemoryCommand::ByTags(args) => {
            show_list(session, &MemoryListRequest { any_tag: args.tags, ..important(args.limit) })
        }
        MemoryCommand::ByDate(args) => {
            let mut request = MemoryListRequest { limit: Some(args.limit), ..MemoryListRequest::default() };
            request.filter.created_after = Searches::date_bound("FROM", Some(&args.from), session.now())?;
            request.filter.created_before = Searches::date_bound("TO", args.to.as_deref(), session.now())?;
            show_list(session, &request)
        }
        MemoryCommand::Audit(args) => {
            let mut events = session.fresh_store()?.memories().audit(args.name.as_deref())?;
            events.truncate(args.limit);
            session.out.reply(&events, |events| {
                let row = |event: &crate::store::Event| {
                    let by = event.more.get("by").and_then(|by| by.as_str()).unwrap_or("").to_owned();
                    vec![event.at.rfc3339(), event.op.clone(), by]
                };
                output::columns(&events.iter().map(row).collect::<Vec<_>>())
            })
        }
    }
}

fn important(limit: usize) -> MemoryListRequest {
    MemoryListRequest { sort: MemorySort::Importance, limit: Some(limit), ..MemoryListRequest::default() }
}

fn read_tier(text: Option<&str>) -> Result<Option<Tier>> {
    let wrong = |text: &str| {
        Error::invalid(format!("{text:?} is no tier")).with_hint("use hot, warm, cold or archive")
    };
    text.map(|text| Tier::parse(text).ok_or_else(|| wrong(text))).transpose()
}

fn save(session: &Session, args: &SaveArgs) -> Result<()> {
    let request = SaveRequest {
        text: text_or_stdin(&args.text)?,
        title: args.title.clone(),
        kind: args.kind.clone(),
        tags: super::change::bare_tags(&args.tags),
        importance: args.importance,
        allow_duplicate: args.allow_duplicate,
        ..SaveRequest::default()
    };
    let reply = session.fresh_store()?.memory_writes().save_memory(&request, args.dry.is_set())?;
    if let Some(near) = &reply.near {
        session.out.say(&format!(
            "note: {} says nearly the same (cosine {:.3}); they are linked",
            near.path, near.cosine
        ));
    }
    for remark in &reply.change.plan.remarks {
        session.out.say(&output::plain(&remark.to_string()));
    }
    for notice in &reply.change.notices {
        session.out.say(&format!("notice: {notice}"));
    }
    session.out.reply(&reply, |reply| match &reply.memory {
        Some(memory) => format!("{}\n", output::plain(&memory.path)),
        None => reply.change.diff.clone().unwrap_or_default(),
    })
}

/// A memory that answers.
#[derive(Debug, Serialize)]
struct MemoryHit {
    /// The memory.
    #[serde(flatten)]
    memory: Memory,
    /// Source text around the best matches.
    snippet: String,
    /// Comparable within one reply.
    score: f64,
    /// How the score came about, where an intent was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<IntentScore>,
}

impl MemoryHit {
    fn of(result: SearchResult) -> Option<Self> {
        Some(Self {
            memory: result.memory?,
            snippet: result.snippet,
            score: result.intent_score.map_or_else(|| f64::from(result.score), |parts| parts.total),
            parts: result.intent_score,
        })
    }
}

fn search(session: &Session, args: &SearchArgs) -> Result<()> {
    let wrong = |text: &str| {
        let names: Vec<&str> = Intent::ALL.iter().map(|intent| intent.name()).collect();
        Error::invalid(format!("{text:?} is no intent")).with_hint(format!("use {}", names.join(", ")))
    };
    let intent =
        args.intent.as_deref().map(|text| Intent::parse(text).ok_or_else(|| wrong(text))).transpose()?;
    let tier = read_tier(args.tier.as_deref())?;
    let wants = |what| args.deep || args.include.contains(&what);
    let include = Inactive { archived: wants(Include::Archived), forgotten: wants(Include::Forgotten) };
    let request = SearchRequest {
        query: args.query.join(" "),
        limit: Some(args.limit),
        filter: args.filter.filter(session.now())?,
        include,
        fallback: Fallback::IfEmpty,
        memories: Some(MemoryRanking { intent, tier, seed: args.seed }),
        ..SearchRequest::default()
    };
    let store = session.store()?;
    let found = store.searches().search(&request)?;
    for notice in &found.notes {
        session.out.say(&format!("notice: {notice}"));
    }
    if found.stale {
        session.out.say("notice: files changed that the index does not hold yet");
    }
    if let Some(better) = &found.did_you_mean {
        session.out.say(&format!("did you mean: {}", output::plain(better)));
    }
    let hits: Vec<MemoryHit> = found.results.into_iter().filter_map(MemoryHit::of).collect();
    if hits.is_empty() {
        session.tell_absent(&store.reads().absent(&request.filter, None, None)?);
    }
    session.out.reply(&hits, |hits| {
        let mut out = String::new();
        for hit in hits {
            let memory = &hit.memory;
            out.push_str(&format!(
                "{}  {} {} {:.1}  {:.3}\n",
                style(output::plain(&memory.path)).bold(),
                memory.state.tier,
                output::plain(&memory.kind),
                memory.state.importance,
                hit.score
            ));
            if let (true, Some(parts)) = (args.explain, &hit.parts) {
                out.push_str(&format!(
                    "    relevance {:.3} → {:.3}   recency {:.3} → {:.3}   utility {:.3} → {:.3}   chance × {:.3}\n",
                    parts.relevance.raw,
                    parts.relevance.weighted,
                    parts.recency.raw,
                    parts.recency.weighted,
                    parts.utility.raw,
                    parts.utility.weighted,
                    parts.jitter
                ));
            }
            for line in hit.snippet.lines() {
                out.push_str(&terminal::indented("    ", &output::plain(line)));
            }
        }
        out
    })
}

fn list(session: &Session, args: &ListArgs) -> Result<()> {
    let tier = read_tier(args.tier.as_deref())?;
    let filter = args.filter.filter(session.now())?;
    let is_plain = tier.is_none()
        && !args.forgotten
        && !args.pinned
        && filter.is_unrestricted()
        && args.sort.is_none()
        && args.limit.is_none();
    if is_plain && !session.out.is_json() {
        let stats = session.fresh_store()?.memories().memory_stats()?;
        return session.out.print(&show_tiers(&stats));
    }
    let sort = match args.sort {
        None | Some(SortArg::Created) => MemorySort::Created,
        Some(SortArg::Importance) => MemorySort::Importance,
        Some(SortArg::Accessed) => MemorySort::Accessed,
    };
    let request = MemoryListRequest {
        filter,
        tier,
        any_tag: Vec::new(),
        forgotten: args.forgotten,
        pinned: args.pinned,
        sort,
        limit: args.limit,
    };
    show_list(session, &request)
}

fn show_list(session: &Session, request: &MemoryListRequest) -> Result<()> {
    let store = session.fresh_store()?;
    let memories = store.memories().list(request)?;
    if memories.is_empty() {
        session.tell_absent(&store.reads().absent(&request.filter, None, None)?);
        for tag in &request.any_tag {
            let filter = Filter { tags: vec![tag.clone()], ..Filter::default() };
            session.tell_absent(&store.reads().absent(&filter, None, None)?);
        }
    }
    session.out.reply(&memories, |memories| show_memories(memories))
}

fn show_memories(memories: &[Memory]) -> String {
    output::columns(&memories.iter().map(row_of).collect::<Vec<_>>())
}

fn row_of(memory: &Memory) -> Vec<String> {
    let state = &memory.state;
    let marks = [(state.pinned, "pinned"), (state.forgotten, "forgotten")];
    let marks: Vec<&str> = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    vec![
        memory.created.rfc3339().chars().take(10).collect(),
        state.tier.to_string(),
        format!("{:.1}", state.importance),
        format!("{}×", state.uses),
        memory.kind.clone(),
        memory.path.clone(),
        marks.join(" "),
    ]
}

fn forget(session: &Session, args: &ForgetArgs) -> Result<()> {
    let store = session.fresh_store()?;
    let include = Inactive { archived: true, forgotten: args.hard };
    let (memory, by_query) = store.recalls().meant(&args.name, include)?;
    let reply = store.memory_writes().forget(&memory.path, args.hard, args.dry.is_set())?;
    let named = format!("{} ({})", memory.path, memory.title);
    if by_query {
        session.out.say(&format!("note: {named} is what the query means"));
    }
    if reply.applied {
        let done = if args.hard { "moved to the trash" } else { "forgotten" };
        session.out.say(&format!("{named} is {done}; `sidenote undo` brings it back"));
    }
    session.out.reply(&reply, show_change)
}

fn change(
    session: &Session,
    args: &OneArgs,
    act: impl FnOnce(&Store, &str, bool) -> Result<crate::store::ChangeReply>,
) -> Result<()> {
    let reply = act(&session.fresh_store()?, &args.name, args.dry.is_set())?;
    session.out.reply(&reply, show_change)
}

fn tier(session: &Session, args: &TierArgs) -> Result<()> {
    match read_tier(Some(&args.tier))? {
        Some(Tier::Archive) => {
            let reply = session.fresh_store()?.memory_writes().archive(&args.name, args.dry.is_set())?;
            session.out.reply(&reply, show_change)
        }
        _ => Err(Error::invalid(format!("the tier {} cannot be given", args.tier))
            .with_hint("hot, warm and cold follow from age and use; `pin` makes a memory warm for good")),
    }
}

fn recall(session: &Session, args: &RecallArgs) -> Result<()> {
    let request = RecallRequest {
        prompt: text_or_stdin(&args.prompt)?,
        limit: Some(args.max),
        budget: args.budget,
        form: if args.format == Form::Json { ReplyForm::Data } else { ReplyForm::Block },
        ..RecallRequest::default()
    };
    let reply = session.store()?.recalls().recall(&request)?;
    for notice in &reply.notices {
        session.out.say(&format!("notice: {notice}"));
    }
    match args.format {
        Form::Json => session.out.print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&reply)
                .map_err(|error| Error::internal("cannot write the reply as JSON").with_source(error))?
        )),
        Form::Xml => session.out.reply(&reply, |reply| {
            let block = xml_block(reply.context.as_ref(), &reply.memories);
            if block.is_empty() { block } else { block + "\n" }
        }),
        Form::Markdown => session.out.reply(&reply, |reply| {
            let context =
                reply.context.iter().map(|context| format!("> {}\n\n", output::plain(&context.text)));
            let items = reply.memories.iter().map(|item| {
                let text = output::plain_lines(&item.text);
                let fence = fence(&text);
                let end = if text.ends_with('\n') { "" } else { "\n" };
                format!("## {}\n\n{fence}markdown\n{text}{end}{fence}\n\n", output::plain(&item.title))
            });
            context.chain(items).collect()
        }),
    }
}

/// Makes a fence of a code block that nothing in a text can close: longer than each run of backticks in it.
fn fence(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    "`".repeat(runs.max().unwrap_or(0).max(2) + 1)
}

/// Draws a bar of at most thirty blocks.
fn bar(count: usize, most: usize) -> String {
    "█".repeat((count * 30).div_ceil(most.max(1)))
}

fn show_bars(rows: &[(String, usize)]) -> String {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let row =
        |(name, count): &(String, usize)| vec![format!("  {name}"), count.to_string(), bar(*count, most)];
    output::columns(&rows.iter().map(row).collect::<Vec<_>>())
}

fn show_tiers(stats: &MemoryStats) -> String {
    show_bars(&stats.tiers.iter().map(|(tier, count)| (tier.to_string(), *count)).collect::<Vec<_>>())
}

fn show_stats(stats: &MemoryStats) -> String {
    let head = |text: &str| format!("{}\n", style(text).bold());
    let taken = format!(
        "  {} of {} ({:.1} %){}\n",
        output::bytes(stats.bytes),
        output::bytes(stats.max_bytes),
        stats.usage_percent,
        if stats.usage_percent > 80.0 { "  nearly full: `sidenote memory cleanup` makes room" } else { "" }
    );
    let context = stats.context.as_ref().map_or_else(
        || "  none\n".to_owned(),
        |context| {
            let until =
                context.expires_at.map(|until| format!(" (until {})", until.rfc3339())).unwrap_or_default();
            format!("  {}{until}\n", output::plain(&context.text))
        },
    );
    [
        head("Tiers"),
        show_tiers(stats),
        format!(
            "  {}, {} pinned, {} forgotten\n",
            output::count(stats.memories, "note"),
            stats.pinned,
            stats.forgotten
        ),
        head("Types"),
        show_bars(&stats.types.iter().map(|item| (item.kind.clone(), item.notes)).collect::<Vec<_>>()),
        head("Uses"),
        format!("  {} of {}\n", output::count(stats.uses, "use"), output::count(stats.used, "note")),
        head("Storage"),
        taken,
        head("Context"),
        context,
        head("Maintenance"),
        stats.maintained.map_or_else(
            || "  not done yet\n".to_owned(),
            |last| format!("  tiers were looked at {}\n", last.rfc3339()),
        ),
        head("Health"),
        format!("  model {}, {} without a vector\n", stats.embedder, output::count(stats.pending, "passage")),
        format!("  {} of the journal unreadable\n", output::count(stats.corrupt_lines, "line")),
    ]
    .concat()
}

fn show_explain(reply: &ExplainReply) -> String {
    let state = &reply.memory.state;
    let part = |name: &str, part: &crate::store::ScoreComponent| {
        vec![format!("  {name}"), format!("{:.3}", part.raw), format!("{:.3}", part.weighted)]
    };
    let score = &reply.score;
    let rows = [
        vec!["  score".to_owned(), "raw".to_owned(), "weighted".to_owned()],
        part("similarity", &score.similarity),
        part("recency", &score.recency),
        part("frequency", &score.frequency),
        vec!["  total".to_owned(), String::new(), format!("{:.3}", score.total)],
    ];
    let last = state.last_use.map_or_else(|| "never".to_owned(), crate::clock::Timestamp::rfc3339);
    format!(
        "{}\n  {}, {}, importance {:.1} (half-life {} days, floor {})\n  used {} on {}, last {last}; usefulness {}\n  recall: {} ({})\n{}",
        style(output::plain(&reply.memory.path)).bold(),
        state.tier,
        output::plain(&reply.memory.kind),
        state.importance,
        reply.half_life_days,
        reply.floor,
        output::count(state.uses, "time"),
        output::count(state.days_used, "day"),
        state.usefulness,
        if reply.eligible { "yes" } else { "no" },
        reply.reason,
        output::columns(&rows)
    )
}
