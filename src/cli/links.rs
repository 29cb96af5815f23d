//! `sidenote links`, `backlinks`, `unresolved`, `orphans` and `path`: queries of the link graph.

use clap::Args;

use super::list::show_notes;
use super::{CommandContext, output};
use crate::cli::format::ListFormat;
use crate::error::Result;
use crate::store::{Backlink, LinkItem, LinksReply, PathReply, UnresolvedItem};

/// Show a note's links: outgoing, unresolved, and those of other notes to it with the line each stands in.
#[derive(Debug, Args)]
pub(super) struct LinksArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
}

/// List the links of other notes to a note, each with its line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote backlinks \"Start here\"
  sidenote backlinks Plan -0 | xargs -0 grep -n deadline")]
pub(super) struct BacklinksArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    shape: ListFormat,
}

/// List links that lead nowhere, and where they stand.
#[derive(Debug, Args)]
pub(super) struct UnresolvedArgs {
    #[command(flatten)]
    shape: ListFormat,
}

/// List notes that link to no note and that no note links to.
#[derive(Debug, Args)]
pub(super) struct OrphansArgs {
    #[command(flatten)]
    shape: ListFormat,
}

/// Show the shortest chain of links between two notes, either way round.
#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// Where the chain begins.
    from: String,
    /// Where it ends.
    to: String,
}

pub(super) fn run(context: &CommandContext, args: &LinksArgs) -> Result<()> {
    let store = context.fresh_store()?;
    context.out.reply(&store.reads().links(&args.note)?, show)
}

fn show(reply: &LinksReply) -> String {
    let mut text = format!("{}\n", output::plain(&reply.path));
    let place = |item: &LinkItem| {
        let mut meant = item.resolved.as_ref().map_or_else(String::new, |path| format!("-> {path}"));
        if item.broken_subpath {
            meant.push_str("  (no such heading or block)");
        }
        vec![format!("  line {}", item.line), item.original.clone(), meant]
    };
    let mut part = |name: &str, rows: Vec<Vec<String>>| {
        text.push_str(&format!("{name} ({})\n{}", rows.len(), output::columns(&rows)));
    };
    part("outgoing", reply.outgoing.iter().map(place).collect());
    part("unresolved", reply.unresolved.iter().map(place).collect());
    let backlinks = reply.backlinks.iter();
    part(
        "backlinks",
        backlinks.map(|link| vec![format!("  {}:{}", link.path, link.line), link.text.clone()]).collect(),
    );
    text
}

pub(super) fn backlinks(context: &CommandContext, args: &BacklinksArgs) -> Result<()> {
    let links = context.fresh_store()?.reads().links(&args.note)?.backlinks;
    let show = |links: &Vec<Backlink>| {
        let rows = links.iter().map(|link| vec![format!("{}:{}", link.path, link.line), link.text.clone()]);
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.shape.reply(context.out, &links, |links| links, show)
}

pub(super) fn unresolved(context: &CommandContext, args: &UnresolvedArgs) -> Result<()> {
    let items = context.fresh_store()?.reads().unresolved()?;
    let show = |items: &Vec<UnresolvedItem>| {
        let rows = items.iter().map(|item| {
            let places: Vec<String> =
                item.places.iter().map(|(path, line)| format!("{path}:{line}")).collect();
            vec![item.link.clone(), places.join(", ")]
        });
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.shape.reply(context.out, &items, |items| items, show)
}

pub(super) fn orphans(context: &CommandContext, args: &OrphansArgs) -> Result<()> {
    let notes = context.fresh_store()?.reads().orphans()?;
    args.shape.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}

pub(super) fn path(context: &CommandContext, args: &PathArgs) -> Result<()> {
    let store = context.fresh_store()?;
    context.out.reply(&store.reads().path(&args.from, &args.to)?, |reply: &PathReply| match reply.distance {
        None => "no chain of links joins them\n".to_owned(),
        Some(distance) => {
            let paths: String = reply.path.iter().map(|path| format!("{}\n", output::plain(path))).collect();
            paths + &output::count(distance, "link") + "\n"
        }
    })
}
