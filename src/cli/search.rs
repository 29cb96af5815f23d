//! `sidenote search`: ranked notes with their best passages.

use clap::{Args, ValueEnum};
use console::style;

use super::{Session, output};
use crate::error::Result;
use crate::index::catalog::{Filter, PutAway};
use crate::search::{MatchType, Mode};
use crate::store::{SearchReply, SearchRequest, SearchResult, Store};

/// Search the notes by words and meaning.
///
/// Words rank; "a phrase" must occur; -word must not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote search \"how do links survive a rename\"
  sidenote search '\"water level\" -draft' --tag river --limit 5
  sidenote search espresso --mode bm25 --path 'Recipes/**' --explain")]
pub(super) struct SearchArgs {
    /// What to look for.
    #[arg(required = true)]
    query: Vec<String>,
    /// Words and meaning, words alone, or meaning alone.
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,
    /// At most this many notes.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only notes whose path matches this glob, or lies in this folder.
    #[arg(long, value_name = "GLOB")]
    path: Option<String>,
    /// Show how each score came about.
    #[arg(long)]
    explain: bool,
    /// Every word must occur.
    #[arg(long)]
    all: bool,
    /// Answer from the index as it is.
    #[arg(long)]
    no_sync: bool,
}

/// The modes as flags spell them.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ModeArg {
    /// Words and meaning.
    Hybrid,
    /// Words alone.
    Bm25,
    /// Meaning alone.
    Vector,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Hybrid => Self::Hybrid,
            ModeArg::Bm25 => Self::Bm25,
            ModeArg::Vector => Self::Vector,
        }
    }
}

/// Conditions that searching and listing share.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only notes with this tag or one below it; may be repeated, and all must be there.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only notes of this type.
    #[arg(long = "type", value_name = "TYPE")]
    note_type: Option<String>,
    /// Only notes of this category.
    #[arg(long)]
    category: Option<String>,
    /// Only notes made on or after this date.
    #[arg(long, value_name = "DATE")]
    created_after: Option<String>,
    /// Only notes made before this date.
    #[arg(long, value_name = "DATE")]
    created_before: Option<String>,
    /// Only notes changed on or after this date.
    #[arg(long, value_name = "DATE")]
    updated_after: Option<String>,
    /// Only notes changed before this date.
    #[arg(long, value_name = "DATE")]
    updated_before: Option<String>,
}

impl FilterArgs {
    pub(super) fn filter(&self) -> Result<Filter> {
        Ok(Filter {
            tags: self.tags.clone(),
            note_type: self.note_type.clone(),
            category: self.category.clone(),
            created_after: Store::date_bound("--created-after", self.created_after.as_deref())?,
            created_before: Store::date_bound("--created-before", self.created_before.as_deref())?,
            updated_after: Store::date_bound("--updated-after", self.updated_after.as_deref())?,
            updated_before: Store::date_bound("--updated-before", self.updated_before.as_deref())?,
            ..Filter::default()
        })
    }
}

pub(super) fn run(session: &Session, args: &SearchArgs) -> Result<()> {
    let store = session.store()?;
    let reply = store.search(&SearchRequest {
        plain: false,
        include: PutAway::default(),
        query: args.query.join(" "),
        mode: args.mode.map(Mode::from),
        limit: args.limit,
        skip: 0,
        filter: args.filter.filter()?,
        path: args.path.clone(),
        all: args.all,
        explain: args.explain,
        no_sync: args.no_sync,
    })?;
    if !session.out.is_json() {
        for note in &reply.notes {
            session.out.say(&format!("note: {note}"));
        }
        if reply.stale {
            session.out.say("note: files changed that the index does not hold yet");
        }
    }
    session.out.reply(&reply, show)
}

fn show(reply: &SearchReply) -> String {
    if reply.results.is_empty() {
        return "nothing found\n".to_owned();
    }
    let mut text = String::new();
    for (at, result) in reply.results.iter().enumerate() {
        text.push_str(&show_one(at + 1, result));
    }
    text
}

fn show_one(rank: usize, result: &SearchResult) -> String {
    let (first, last) = result.lines;
    let place = format!("{}:{first}-{last}", result.path);
    let mut text = format!(
        "{rank:>2}. {}  {}\n",
        style(output::plain(&result.title)).bold(),
        style(output::plain(&place)).cyan()
    );
    // A note's first heading mostly repeats its title.
    let heading =
        result.heading.strip_prefix(&result.title).unwrap_or(&result.heading).trim_start_matches(" > ");
    if !heading.is_empty() {
        text.push_str(&format!("    {}\n", style(output::plain(heading)).dim()));
    }
    let marked = output::mark(&result.snippet, &result.marks);
    // The headings stand above already, and a first heading is mostly the title again.
    let own = result.heading.rsplit(" > ").next().unwrap_or("");
    let repeats = |line: &str| {
        let bare = console::strip_ansi_codes(line);
        let bare = bare.trim_start_matches(['#', ' ']).trim();
        bare.is_empty() || bare == own || bare == result.title
    };
    for line in marked.lines().filter(|line| !repeats(line)).take(4) {
        text.push_str(&format!("    {}\n", line.trim_end()));
    }
    if let Some(parts) = &result.explain {
        let list = |name: &str, rank: Option<usize>, raw: Option<f32>, share: f32| match (rank, raw) {
            (Some(rank), Some(raw)) => format!("{name} #{rank} {raw:.3} -> {share:.3}"),
            _ => format!("{name} -"),
        };
        let found_by = match result.match_type {
            MatchType::Bm25 => "words",
            MatchType::Vector => "meaning",
            MatchType::Both => "words and meaning",
        };
        let read = match (parts.rerank, parts.from_rerank) {
            (Some(raw), Some(share)) => format!("; reranker {raw:.3} -> {share:+.3}"),
            _ => String::new(),
        };
        let line = format!(
            "score {:.4} by {found_by}: {}; {}{read}",
            result.score,
            list("words", parts.bm25_rank, parts.bm25, parts.from_bm25),
            list("meaning", parts.vector_rank, parts.cosine, parts.from_vector)
        );
        text.push_str(&format!("    {}\n", style(line).dim()));
    }
    text
}
