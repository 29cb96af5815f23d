//! `sidenote ask-why`: explains why a query finds a note, or does not.

use clap::Args;
use console::style;
use sidenote_base::error::Result;
use sidenote_search::stage::StagePlace;

use super::search::{RankingArgs, show_components};
use super::{CommandContext, output};
use crate::store::{WhyReply, WhyRequest};

/// Explain why a note is, or is not, among the results of a search.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote ask-why \"how do links survive\" \"Links and renames\"
  sidenote ask-why 'tag:#river -\"water level\"' Gauge --limit 5")]
pub(super) struct WhyArgs {
    /// The query.
    query: String,
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    ranking: RankingArgs,
}

pub(super) fn run(context: &CommandContext, args: &WhyArgs) -> Result<()> {
    let search = args.ranking.request(args.query.clone(), context.now())?;
    let reply = context.store()?.searches().why(&WhyRequest { search, note: args.note.clone() })?;
    context.out.reply(&reply, show)
}

fn show(reply: &WhyReply) -> String {
    let verdict = if reply.found { "is found" } else { "is not found" };
    let mut text = format!("{} {verdict}\n", style(output::plain(&reply.path)).cyan());
    for reason in &reply.reasons {
        text.push_str(&format!("  {}\n", output::plain(reason)));
    }
    if reply.restorable {
        text.push_str("  `memory restore` brings it back\n");
    }
    for condition in &reply.conditions {
        let result = if condition.holds { "matches" } else { "does not match" };
        text.push_str(&format!("  {result:<14}  {}\n", output::plain(&condition.term)));
    }
    if let Some(components) = &reply.explain {
        text.push_str(&format!("  {}\n", show_components(components)));
    } else if let Some(cosine) = reply.cosine {
        text.push_str(&format!("  similarity {cosine:.3} to its nearest passage\n"));
    }
    if !reply.stages.is_empty() {
        let place = |at: &StagePlace| match at.place {
            Some(place) => format!("{} #{place}", at.stage),
            None => format!("{} -", at.stage),
        };
        let places: Vec<String> = reply.stages.iter().map(place).collect();
        text.push_str(&format!("  place after each stage: {}\n", places.join(", ")));
    }
    if !reply.missing_words.is_empty() {
        text.push_str(&format!("  missing words: {}\n", output::plain(&reply.missing_words.join(", "))));
    }
    text
}
