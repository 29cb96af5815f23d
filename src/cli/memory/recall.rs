//! `sidenote memory recall`: prints the memories that are relevant to a prompt.

use clap::{Args, ValueEnum};

use crate::cli::args::text_or_stdin;
use crate::cli::{CommandContext, output};
use crate::error::{Error, Result};
use crate::store::{RecallReply, RecallRequest, ReplyForm, xml_block};

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
    let request = RecallRequest {
        prompt: text_or_stdin(&args.prompt)?,
        limit: Some(args.max),
        budget: args.budget,
        form: if args.format == RecallFormat::Json { ReplyForm::Data } else { ReplyForm::Block },
        ..RecallRequest::default()
    };
    let reply = context.store()?.recalls().recall(&request)?;
    for notice in &reply.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    match args.format {
        RecallFormat::Json => context.out.print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&reply)
                .map_err(|error| Error::internal("cannot write the reply as JSON").with_source(error))?
        )),
        RecallFormat::Xml => context.out.reply(&reply, |reply| {
            let block = xml_block(reply.context.as_ref(), &reply.memories);
            if block.is_empty() { block } else { block + "\n" }
        }),
        RecallFormat::Markdown => context.out.reply(&reply, markdown),
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
        format!("## {}\n\n{fence}markdown\n{text}{end}{fence}\n\n", output::plain(&memory.title))
    });
    context.chain(memories).collect()
}

/// Returns a code fence that is longer than each run of backticks in the text, so that the text cannot close it.
fn fence_for(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    "`".repeat(runs.max().unwrap_or(0).max(2) + 1)
}
