//! `sidenote inspect`: prints everything that the parser finds in a note.

use clap::Args;
use sidenote_base::error::Result;

use super::{CommandContext, output};
use crate::store::InspectReply;

/// Print everything that the parser finds in a note.
///
/// This includes properties, headings, links, tasks, passages and problems. With --json, byte spans are included.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
}

pub(super) fn run(context: &CommandContext, args: &InspectArgs) -> Result<()> {
    let store = context.fresh_store()?;
    context.out.reply(&store.reads().inspect(&args.note)?, show)
}

fn show(reply: &InspectReply) -> String {
    let [path, title, id] = [&reply.path, &reply.title, &reply.id].map(|text| output::plain(text));
    let mut text = format!("{path}\n  title  {title}\n  id     {id}\n  hash   {}\n", reply.hash);
    let mut block = |name: &str, rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            text.push_str(&format!("{name}\n"));
            let indented =
                output::columns(&rows).lines().map(|line| format!("  {line}\n")).collect::<String>();
            text.push_str(&indented);
        }
    };
    let at = |line: usize| format!("line {line}");
    let error = reply.frontmatter_error.iter().map(|error| vec![error.clone()]).collect();
    block("frontmatter error", error);
    let properties = reply.properties.iter();
    block(
        "properties",
        properties.map(|p| vec![p.key.clone(), p.kind.to_owned(), p.value.to_string()]).collect(),
    );
    block("aliases", reply.aliases.iter().map(|alias| vec![alias.clone()]).collect());
    block("tags", reply.tags.iter().map(|tag| vec![format!("#{tag}")]).collect());
    let headings = reply.headings.iter();
    block(
        "headings",
        headings.map(|h| vec![at(h.line), format!("{} {}", "#".repeat(h.level.into()), h.text)]).collect(),
    );
    let blocks = reply.blocks.iter();
    block(
        "blocks",
        blocks.map(|b| vec![at(b.lines.0), format!("^{}", b.id), format!("{:?}", b.kind)]).collect(),
    );
    let tasks = reply.tasks.iter();
    block("tasks", tasks.map(|t| vec![at(t.line), format!("[{}]", t.status), t.text.clone()]).collect());
    let links = reply.links.iter();
    let resolved = |path: &Option<String>| {
        path.as_ref().map_or_else(|| "unresolved".to_owned(), |path| format!("-> {path}"))
    };
    block(
        "links",
        links
            .map(|l| vec![at(l.line), l.form.to_owned(), l.original.clone(), resolved(&l.resolved)])
            .collect(),
    );
    let passages = reply.passages.iter();
    block(
        "passages",
        passages.map(|p| vec![format!("lines {}-{}", p.lines.0, p.lines.1), p.heading.clone()]).collect(),
    );
    let problems = reply.problems.iter();
    block("problems", problems.map(|p| vec![p.code.to_owned(), p.message.clone()]).collect());
    text
}
