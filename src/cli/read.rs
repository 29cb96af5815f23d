//! `sidenote read`, `outline` and `inspect`: the text of one note, its headings, or everything that the parser finds in it.

use clap::Args;

use super::{CommandContext, output, split_lines};
use crate::cli::format::ListFormat;
use crate::error::Result;
use crate::store::{InspectReply, ReadRequest};
use crate::text::note::Heading;

/// Print a note, a section, a block or some lines. UTF-8 comes out byte for byte; what is none is named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote read Projects/Plan.md
  sidenote read '[[Start here#Search]]'
  sidenote read \"Start here\" --section ^first-step
  sidenote read Inbox --lines 1-10")]
pub(super) struct ReadArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    /// Only this section: a heading (nested ones joined by #), or ^block.
    #[arg(long, value_name = "HEADING|^BLOCK")]
    section: Option<String>,
    /// Only these lines, such as 10-20.
    #[arg(long, value_name = "A-B")]
    lines: Option<String>,
}

/// Show the headings of a note, each below the one that it belongs to.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote outline \"Start here\"
  sidenote outline Plan --format '{line}: {text}'")]
pub(super) struct OutlineArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
    #[command(flatten)]
    shape: ListFormat,
}

/// Show everything that sidenote reads out of a note, with byte spans in --json.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// The note: path, id, title, alias, file name or [[wikilink]].
    note: String,
}

pub(super) fn run(context: &CommandContext, args: &ReadArgs) -> Result<()> {
    let store = context.fresh_store()?;
    let reply = store.reads().read(&ReadRequest {
        note: args.note.clone(),
        section: args.section.clone(),
        lines: args.lines.as_deref().map(split_lines).transpose()?,
    })?;
    store.memories().used(&reply.path, "read");
    reply.notices.iter().for_each(|notice| context.out.message(notice));
    context.out.reply_exact(&reply, |reply| reply.text.clone())
}

pub(super) fn outline(context: &CommandContext, args: &OutlineArgs) -> Result<()> {
    let headings = context.fresh_store()?.reads().inspect(&args.note)?.headings;
    let show = |headings: &Vec<Heading>| {
        let least = headings.iter().map(|heading| heading.level).min().unwrap_or(1);
        let rows = headings.iter().map(|heading| {
            let indent = "  ".repeat((heading.level - least).into());
            vec![format!("{:>5}", heading.line), format!("{indent}{}", heading.text)]
        });
        output::columns(&rows.collect::<Vec<_>>())
    };
    args.shape.reply(context.out, &headings, |headings| headings, show)
}

pub(super) fn inspect(context: &CommandContext, args: &InspectArgs) -> Result<()> {
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
    let meant = |path: &Option<String>| {
        path.as_ref().map_or_else(|| "unresolved".to_owned(), |path| format!("-> {path}"))
    };
    block(
        "links",
        links.map(|l| vec![at(l.line), l.form.to_owned(), l.original.clone(), meant(&l.resolved)]).collect(),
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
