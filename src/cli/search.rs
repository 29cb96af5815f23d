//! `sidenote search`: ranks notes for a query and prints their best passages.

use clap::{ArgAction, Args, ValueEnum};
use console::style;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::Result;
use sidenote_catalog::Filter;
use sidenote_memory::validity::Invalidity;
use sidenote_search::validity_order::TimeReason;
use sidenote_search::{Components, MatchType, Mode};

use crate::cli::args::{AsOfArgs, AtArgs};
use crate::cli::format::ListFormat;
use crate::cli::{CommandContext, output, terminal};
use crate::store::{Explained, Fallback, Open, SearchReply, SearchRequest, SearchResult, Searches};

/// The summary in the list of commands, which, unlike the first line of a verbatim doc comment, has no full stop.
const SUMMARY: &str = "Search the notes by words and meaning, or in Obsidian's search language";

/// Search the notes by words and meaning, or in Obsidian's search language.
///
/// A query of plain words ranks notes; not every word must occur. A query with an operator is a
/// condition: it selects the notes that Obsidian's search would, ranked by the words in it.
///
/// Operators of Obsidian:
///
///   "a phrase"  -not  a OR b  (a b)  /regex/  file:  path:  content:  tag:#x
///   match-case:  ignore-case:
///   line:(a b)  block:(a b)  section:(a b)  task:x  task-todo:x  task-done:x
///   [property]  [property:value]
///
/// Operators of sidenote:
///
///   type:  category:  tier:  created:  updated:  links-to:  linked-from:  rel:  is:orphan  is:pinned
#[expect(clippy::doc_paragraphs_missing_punctuation, reason = "a part of the help is a table")]
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    about = SUMMARY,
    disable_help_flag = true,
    after_help = "Examples:
  sidenote search \"how do links survive a rename\"
  sidenote search '\"water level\" -draft' --tag river --limit 5
  sidenote search 'created:>2026-01 (boat OR \"old mill\") -path:Archive'
All options, operators and more examples: sidenote search --help-all",
    after_long_help = "Examples:
  sidenote search \"how do links survive a rename\"
  sidenote search '\"water level\" -draft' --tag river --limit 5
  sidenote search 'tag:#project section:(task-todo:ship) [status:active]'
  sidenote search 'created:>2026-01 (boat OR \"old mill\") -path:Archive'
  sidenote search espresso --mode bm25 --path 'Recipes/**' --explain
  sidenote search boats --updated-after 7d --format '{score} {path}'
  sidenote search draft -0 | xargs -0 wc -w
  sidenote search \"release plan\" --at v1.0
  sidenote search \"opening hours\" --as-of 2024-03-05"
)]
pub(super) struct SearchArgs {
    /// The query.
    ///
    /// If it begins with a minus, write `--` before it: `search -- -draft`.
    #[arg(required = true)]
    query: Vec<String>,
    #[command(flatten)]
    ranking: RankingArgs,
    /// Show how each score was computed.
    #[arg(long)]
    explain: bool,
    /// Do not update the index first.
    #[arg(long, hide_short_help = true)]
    no_sync: bool,
    #[command(flatten)]
    at: AtArgs,
    #[command(flatten)]
    format: ListFormat,
    /// Print this help, which fits a screen.
    #[arg(id = "help", short = 'h', long = "help", action = ArgAction::HelpShort)]
    _help: Option<bool>,
    /// Print help with all options and operators.
    #[arg(id = "help_all", long = "help-all", action = ArgAction::HelpLong)]
    _help_all: Option<bool>,
}

/// Options of `search` and `ask-why`.
#[derive(Debug, Args)]
pub(super) struct RankingArgs {
    /// What to rank by. The setting search.mode is the default.
    #[arg(long, value_enum)]
    mode: Option<ModeArg>,
    /// At most so many notes. Default: search.limit (10).
    ///
    /// The setting search.limit is 10 unless you set it.
    #[arg(long, short = 'n')]
    limit: Option<usize>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only notes whose path matches this glob, or that are in this folder.
    #[arg(long, value_name = "GLOB")]
    path: Option<String>,
    /// Search for the words of a question such as "who works at Acme", instead of answering it by the relations of notes.
    #[arg(long, hide_short_help = true)]
    no_relations: bool,
    /// Only notes in which every word occurs, in the text or in the file name.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    as_of: AsOfArgs,
}

impl RankingArgs {
    /// Makes a search request for a query.
    pub(super) fn request(&self, query: String, now: Timestamp) -> Result<SearchRequest> {
        Ok(SearchRequest {
            query,
            mode: self.mode.map(Mode::from),
            limit: self.limit,
            filter: self.filter.filter(now)?,
            path: self.path.clone(),
            all: self.all,
            no_relations: self.no_relations,
            as_of: self.as_of.instant(now)?,
            fallback: Fallback::IfEmpty,
            ..SearchRequest::default()
        })
    }
}

/// The values of `--mode`.
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

/// Filters of the commands that search and list.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only notes with this tag or one nested below it.
    ///
    /// If repeated, notes need all of the tags.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only notes of this type.
    #[arg(long = "type", value_name = "TYPE")]
    note_type: Option<String>,
    /// Only notes of this category.
    #[arg(long, hide_short_help = true)]
    category: Option<String>,
    /// Only notes created since 2026-11-21, yesterday or 7d.
    #[arg(long, value_name = "DATE")]
    created_after: Option<String>,
    /// Only notes created before this date.
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    created_before: Option<String>,
    /// Only notes changed since 2026-11-21, yesterday or 7d.
    #[arg(long, value_name = "DATE")]
    updated_after: Option<String>,
    /// Only notes changed before this date.
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    updated_before: Option<String>,
}

impl FilterArgs {
    /// Parses the filters. Dates such as 7d are relative to `now`.
    pub(super) fn filter(&self, now: Timestamp) -> Result<Filter> {
        Ok(Filter {
            tags: self.tags.clone(),
            note_type: self.note_type.clone(),
            category: self.category.clone(),
            created_after: Searches::date_bound("--created-after", self.created_after.as_deref(), now)?,
            created_before: Searches::date_bound("--created-before", self.created_before.as_deref(), now)?,
            updated_after: Searches::date_bound("--updated-after", self.updated_after.as_deref(), now)?,
            updated_before: Searches::date_bound("--updated-before", self.updated_before.as_deref(), now)?,
            ..Filter::default()
        })
    }
}

pub(super) fn run(context: &CommandContext, args: &SearchArgs) -> Result<()> {
    let request = args.ranking.request(args.query.join(" "), context.now())?;
    // The notes of a revision have no vectors.
    let by_meaning = Some(&request).filter(|_| args.at.at.is_none());
    let first_query = by_meaning.and_then(|request| request.text_to_embed(context.now()));
    let store = context.open_store(Open { at: args.at.at.clone(), first_query, ..context.open.clone() })?;
    let is_by_words = matches!(request.mode, None | Some(Mode::Bm25));
    let by_words =
        (args.at.at.is_some() && !is_by_words).then_some("--at searches by words; --mode is not used");
    let request = if by_words.is_some() { SearchRequest { mode: None, ..request } } else { request };
    // A program that reads the list must not get notes that do not meet the condition.
    let request =
        if args.format.is_given() { SearchRequest { fallback: Fallback::Never, ..request } } else { request };
    let mut reply = store.searches().search(&SearchRequest {
        explain: args.explain,
        no_sync: args.no_sync,
        ..request
    })?;
    reply.notes.extend(by_words.map(|text| text.to_owned().into()));
    if !context.out.is_json() {
        for note in &reply.notes {
            context.out.message(&format!("note: {note}"));
        }
        if reply.stale {
            context.out.message("note: some files changed and are not in the index yet");
        }
        if let Some(suggestion) = &reply.did_you_mean {
            context.out.message(&format!("did you mean: {}", output::plain(suggestion)));
        }
    }
    args.format.reply(context.out, &reply, |reply| &reply.results, show)
}

fn show(reply: &SearchReply) -> String {
    let mut text = reply.explain.as_ref().map_or_else(String::new, |explain| show_query(explain, reply.mode));
    if reply.results.is_empty() {
        return text + "no results\n";
    }
    for (at, result) in reply.results.iter().enumerate() {
        text.push_str(&show_result(at + 1, result));
    }
    text
}

/// The number of lines of a snippet that are shown.
const SHOWN_LINES: usize = 4;

fn show_result(rank: usize, result: &SearchResult) -> String {
    let (first, last) = result.lines;
    let place = format!("{}:{first}-{last}", result.path);
    let mut text = format!(
        "{rank:>2}. {}  {}\n",
        style(output::plain(&result.title)).bold(),
        style(output::plain(&place)).cyan()
    );
    // The first heading of a note usually repeats its title.
    let heading =
        result.heading.strip_prefix(&result.title).unwrap_or(&result.heading).trim_start_matches(" > ");
    if !heading.is_empty() {
        text.push_str(&format!("    {}\n", style(output::plain(heading)).dim()));
    }
    if result.invalidity != Invalidity::default() {
        let phrase = output::plain(&result.invalidity.phrase());
        text.push_str(&format!("    {}\n", style(phrase).yellow()));
    }
    // What another note states is shown instead of the passage, and what this note states is the snippet.
    if let Some(statement) = result.statement.as_ref().filter(|statement| statement.path != result.path) {
        let place = format!("{}:{}", statement.path, statement.line);
        text.push_str(&format!(
            "    {}  {}\n",
            style(output::plain(&place)).dim(),
            output::plain(&statement.text)
        ));
        return text + &explained(result);
    }
    let marked = output::highlight(&result.snippet, &result.marks);
    // The headings are printed above already, and the first heading usually repeats the title.
    let last_heading = result.heading.rsplit(" > ").next().unwrap_or("");
    let repeats = |line: &str| {
        let bare = console::strip_ansi_codes(line);
        let bare = bare.trim_start_matches(['#', ' ']).trim();
        bare.is_empty() || bare == last_heading || bare == result.title
    };
    let mut lines = marked.lines().filter(|line| !repeats(line)).map(str::trim_end).peekable();
    for at in 0..SHOWN_LINES {
        let Some(line) = lines.next() else { break };
        let goes_on = at + 1 == SHOWN_LINES && lines.peek().is_some();
        text.push_str(&terminal::indented(
            "    ",
            &if goes_on { format!("{line} …") } else { line.to_owned() },
        ));
    }
    text + &explained(result)
}

/// Formats how the score of a result came about, if that was asked for.
fn explained(result: &SearchResult) -> String {
    let mut text = String::new();
    if let Some(parts) = &result.explain {
        let found_by = match result.match_type {
            MatchType::Bm25 => "words",
            MatchType::Vector => "meaning",
            MatchType::Both => "words and meaning",
            MatchType::Relation => "relation",
            MatchType::Link => "link",
            MatchType::Exact => "condition",
            MatchType::Replacement => "the note that it supersedes",
        };
        let line = format!("score {:.4} by {found_by}: {}", result.score, show_components(parts));
        text.push_str(&format!("    {}\n", style(line).dim()));
    }
    text
}

/// Formats the components of a score on one line.
pub(super) fn show_components(parts: &Components) -> String {
    let list = |name: &str, rank: Option<usize>, raw: Option<f32>, share: f32| {
        let rank = rank.map_or_else(String::new, |rank| format!(" #{rank}"));
        let raw = raw.map_or_else(|| " -".to_owned(), |raw| format!(" {raw:.3}"));
        let share = if share > 0.0 { format!(" -> {share:.4}") } else { String::new() };
        format!("{name}{rank}{raw}{share}")
    };
    let mut shown = vec![
        list("words", parts.bm25_rank, parts.bm25, parts.from_bm25),
        list("meaning", parts.vector_rank, parts.cosine, parts.from_vector),
    ];
    if parts.others.is_some() {
        shown.push(list("other passages", None, parts.others, parts.from_others));
    }
    if let Some(share) = parts.from_adjacent {
        shown.push(format!("adjacent note -> {share:.4}"));
    }
    if let Some(share) = parts.from_relation {
        shown.push(format!("relation -> {share:.4}"));
    }
    if let Some(share) = parts.from_link {
        shown.push(format!("link in words that fit -> {share:.4}"));
    }
    if let Some(share) = parts.from_name {
        shown.push(format!("name -> {share:.4}"));
    }
    if let Some(share) = parts.from_quotation {
        shown.push(format!("quotation -> {share:.4}"));
    }
    if let (Some(raw), Some(share)) = (parts.rerank, parts.from_rerank) {
        shown.push(format!("reranker {raw:.3} -> {share:+.4}"));
    }
    if let Some(share) = parts.from_time.filter(|share| *share != 0.0) {
        let why = match parts.time {
            Some(TimeReason::Superseded) => "superseded",
            Some(TimeReason::NotValid) => "not valid now",
            Some(TimeReason::Newer) => "newer than the next note, which says nearly the same",
            Some(TimeReason::Older) => "older",
            Some(TimeReason::Replaces) | None => "supersedes the next note",
        };
        shown.push(format!("{why} -> {share:+.4}"));
    }
    shown.join("; ")
}

/// Formats how a query was parsed and evaluated.
fn show_query(explain: &Explained, mode: Mode) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, text: String| rows.push(vec![name.to_owned(), text]);
    let words =
        explain.words.iter().map(|word| format!("{} ({}, idf {:.2})", word.word, word.notes, word.idf));
    if !explain.words.is_empty() {
        row("words", words.collect::<Vec<_>>().join(", "));
    }
    if !explain.stop_words.is_empty() {
        row("ignored", format!("{}: too common to rank by", explain.stop_words.join(", ")));
    }
    if !explain.meaning.is_empty() {
        row("meaning", format!("{:?} with {}", explain.meaning, explain.model));
    }
    if let Some(condition) = &explain.condition {
        row("condition", condition.clone());
    }
    if let Some(sifted) = &explain.sifted {
        let mut told = format!(
            "{} of {} notes may match, {} certainly; {} verified, {} rejected",
            sifted.maybe, explain.notes, sifted.sure, sifted.judged, sifted.dropped
        );
        if !sifted.first_dropped.is_empty() {
            told.push_str(&format!(": {}", sifted.first_dropped.join(", ")));
        }
        row("", told);
    }
    if !explain.filters.is_empty() {
        row("filters", explain.filters.join(", "));
    }
    if explain.put_away > 0 {
        row("hidden", format!("{}: archived or forgotten", output::count(explain.put_away, "note")));
    }
    if !explain.stages.is_empty() {
        let stages: Vec<&str> = explain.stages.iter().map(|stage| stage.name()).collect();
        row("stages", stages.join(", "));
    }
    row("fusion", format!("{:?}, {:?}", mode, explain.fusion).to_lowercase());
    style(output::columns(&rows)).dim().to_string()
}
