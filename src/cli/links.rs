//! `sidenote links`, `backlinks`, `unresolved`, `orphans` and `path`: queries of the link graph.

use clap::Args;
use sidenote_base::error::Result;

use super::args::AtArgs;
use super::list::show_notes;
use super::{CommandContext, output};
use crate::cli::format::ListFormat;
use crate::store::{
    Backlink, LinkItem, LinksReply, PathReply, RelationItem, RelationsReply, RelationsRequest, UnresolvedItem,
};

/// Show the outgoing links, unresolved links and backlinks of a note, or its relations.
///
/// Each link is printed with its line. With --typed, the relations of the note are shown instead: what properties, fields,
/// lists and sentences say that its links mean, such as works_at. The settings [relations] add types and words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote links Projects/Plan.md
  sidenote links \"Start here\" --at v1.0
  sidenote links Acme --typed
  sidenote links Acme --relation works_at
  sidenote links Acme --typed --depth 2")]
pub(super) struct LinksArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// Show the relations from the note and to it.
    #[arg(long)]
    typed: bool,
    /// Show only relations of this type, or of the one that this property or inverse name means.
    #[arg(long, value_name = "TYPE")]
    relation: Option<String>,
    /// Show the relations of the notes at the other ends, too, up to this distance.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    depth: Option<u8>,
    #[command(flatten)]
    at: AtArgs,
}

/// List the backlinks of a note: the links of other notes to it.
///
/// Each link is printed with its line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote backlinks \"Start here\"
  sidenote backlinks Plan -0 | xargs -0 grep -n deadline")]
pub(super) struct BacklinksArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    format: ListFormat,
}

/// List unresolved links and the places where they occur.
#[derive(Debug, Args)]
pub(super) struct UnresolvedArgs {
    #[command(flatten)]
    format: ListFormat,
}

/// List notes without links to or from other notes.
#[derive(Debug, Args)]
pub(super) struct OrphansArgs {
    #[command(flatten)]
    format: ListFormat,
}

/// Show the shortest path of links between two notes, in either direction.
#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// The note at which the path begins: path, id, title, alias, file name or [[wikilink]].
    from: String,
    /// The note at which the path ends.
    to: String,
}

pub(super) fn run(context: &CommandContext, args: &LinksArgs) -> Result<()> {
    let store = context.fresh_store_at(&args.at)?;
    if args.typed || args.relation.is_some() || args.depth.is_some() {
        let depth = args.depth.map(usize::from);
        let request = RelationsRequest { note: args.note.clone(), kind: args.relation.clone(), depth };
        return context.out.reply(&store.reads().relations(&request)?, show_relations);
    }
    context.out.reply(&store.reads().links(&args.note)?, show)
}

fn show_relations(reply: &RelationsReply) -> String {
    let row = |item: &RelationItem| {
        let kind = if item.inferred { format!("{} (inferred)", item.kind) } else { item.kind.clone() };
        let related = format!("  {} -> {}", item.from, item.to);
        vec![related, kind, format!("{}:{}", item.stated_in, item.line), item.evidence.clone()]
    };
    let rows: Vec<Vec<String>> = reply.relations.iter().map(row).collect();
    let count = if reply.truncated { format!("the first {}", rows.len()) } else { rows.len().to_string() };
    format!("{}\nrelations ({count})\n{}", output::plain(&reply.path), output::columns(&rows))
}

fn show(reply: &LinksReply) -> String {
    let mut text = format!("{}\n", output::plain(&reply.path));
    let row = |item: &LinkItem| {
        let mut target = item.resolved.as_ref().map_or_else(String::new, |path| format!("-> {path}"));
        if item.broken_subpath {
            target.push_str("  (no such heading or block)");
        }
        vec![format!("  line {}", item.line), item.original.clone(), target]
    };
    let mut section = |name: &str, rows: Vec<Vec<String>>| {
        text.push_str(&format!("{name} ({})\n{}", rows.len(), output::columns(&rows)));
    };
    section("outgoing", reply.outgoing.iter().map(row).collect());
    section("unresolved", reply.unresolved.iter().map(row).collect());
    let backlinks = reply.backlinks.iter();
    section(
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
    args.format.reply(context.out, &links, |links| links, show)
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
    args.format.reply(context.out, &items, |items| items, show)
}

pub(super) fn orphans(context: &CommandContext, args: &OrphansArgs) -> Result<()> {
    let notes = context.fresh_store()?.reads().orphans()?;
    args.format.reply(context.out, &notes, |notes| notes, |notes| show_notes(notes))
}

pub(super) fn path(context: &CommandContext, args: &PathArgs) -> Result<()> {
    let store = context.fresh_store()?;
    context.out.reply(&store.reads().path(&args.from, &args.to)?, |reply: &PathReply| match reply.distance {
        None => "no path of links connects the notes\n".to_owned(),
        Some(distance) => {
            let paths: String = reply.path.iter().map(|path| format!("{}\n", output::plain(path))).collect();
            paths + &output::count(distance, "link") + "\n"
        }
    })
}
