//! `sidenote memory recall`: prints the memories that are relevant to a prompt.

use clap::{Args, ValueEnum};
use serde::Serialize;
use sidenote_base::error::Result;

use crate::cli::args::{AsOfArgs, text_or_stdin};
use crate::cli::{CommandContext, output};
use crate::store::{RecallBudget, RecallReply, RecallRequest, xml_block};

/// Print the memories that are relevant to a prompt, as an agent receives them.
#[derive(Debug, Args)]
pub(super) struct RecallArgs {
    /// The prompt; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    prompt: String,
    /// The maximum number of memories.
    #[arg(long, default_value_t = 10)]
    max: usize,
    /// The maximum size of the output in tokens.
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// The format of the output.
    #[arg(long, value_enum, default_value_t = RecallFormat::Xml)]
    format: RecallFormat,
    #[command(flatten)]
    as_of: AsOfArgs,
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RecallFormat {
    /// An XML block, as agents receive it.
    Xml,
    /// JSON, as with --json.
    Json,
    /// A heading and a code block for each memory.
    Markdown,
}

pub(super) fn run(context: &CommandContext, args: &RecallArgs) -> Result<()> {
    let format = if context.out.is_json() { RecallFormat::Json } else { args.format };
    // The line end counts, too.
    let budget =
        args.budget.map(|tokens| RecallBudget::new(tokens, move |reply| printed(reply, format) + "\n"));
    let request = RecallRequest {
        prompt: text_or_stdin(&args.prompt)?,
        limit: Some(args.max),
        as_of: args.as_of.instant(context.now())?,
        budget,
        ..RecallRequest::default()
    };
    let reply = context.store()?.recalls().recall(&request)?;
    for notice in &reply.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    match format {
        RecallFormat::Json => context.out.print(&(printed(&reply, format) + "\n")),
        RecallFormat::Xml => context.out.reply(&reply, |reply| {
            let block = printed(reply, format);
            if block.is_empty() { block } else { block + "\n" }
        }),
        RecallFormat::Markdown => context.out.reply(&reply, |reply| printed(reply, format)),
    }
}

/// The result of a recall, with its counts.
#[derive(Debug, Serialize)]
struct CountedRecall {
    /// The number of memories.
    #[serde(rename = "memoriesInjected")]
    memories_injected: usize,
    /// Whether there is an active context.
    #[serde(rename = "contextIncluded")]
    context_included: bool,
    /// The memories and the context.
    #[serde(flatten)]
    reply: RecallReply,
}

impl CountedRecall {
    fn of(reply: RecallReply) -> Self {
        Self { memories_injected: reply.memories.len(), context_included: reply.context.is_some(), reply }
    }
}

/// Returns a reply as it is printed.
fn printed(reply: &RecallReply, format: RecallFormat) -> String {
    match format {
        // Keys are strings and numbers are finite, so that nothing in a reply is refused.
        RecallFormat::Json => {
            serde_json::to_string_pretty(&CountedRecall::of(reply.clone())).unwrap_or_default()
        }
        RecallFormat::Xml => xml_block(reply.context.as_ref(), &reply.memories),
        RecallFormat::Markdown => markdown(reply),
    }
}

/// Formats the context as a quotation, and each memory as a heading and a fenced code block.
fn markdown(reply: &RecallReply) -> String {
    let context =
        reply.context.iter().map(|work_context| format!("> {}\n\n", output::plain(&work_context.text)));
    let memories = reply.memories.iter().map(|memory| {
        let text = output::plain_lines(&memory.text);
        let fence = fence_for(&text);
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let newer = Some(memory.newer.join(", ")).filter(|newer| !newer.is_empty());
        let invalid = Some(memory.invalidity.phrase()).filter(|invalid| !invalid.is_empty());
        let said = invalid.into_iter().chain(newer.map(|newer| format!("said later: {newer}")));
        let invalid: String = said.map(|said| format!("({})\n\n", output::plain(&said))).collect();
        format!("## {}\n\n{invalid}{fence}markdown\n{text}{end}{fence}\n\n", output::plain(&memory.title))
    });
    context.chain(memories).collect()
}

/// Returns a code fence that is longer than each run of backticks in the text, so that the text cannot close it.
fn fence_for(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    "`".repeat(runs.max().unwrap_or(0).max(2) + 1)
}
