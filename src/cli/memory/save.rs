//! `sidenote memory save`: saves a text as a memory.

use clap::Args;
use sidenote_base::error::Result;

use crate::cli::args::{DryRunArgs, text_or_stdin, without_hash_signs};
use crate::cli::{CommandContext, output};
use crate::store::SaveRequest;

/// Save a text as a memory and print its path.
///
/// Text between <private> and </private> is not saved, nor is anything that looks like a key or a password.
#[derive(Debug, Args)]
pub(super) struct SaveArgs {
    /// The text; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The title. Default: the first heading of the text, or its first words.
    #[arg(long)]
    title: Option<String>,
    /// The type, such as fact or decision. Default: derived from the text.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The tags, separated by commas.
    #[arg(long, value_delimiter = ',')]
    tags: Vec<String>,
    /// The importance, from 1 to 10. Default: 5.
    #[arg(long, value_name = "N")]
    importance: Option<f64>,
    /// Save the text even if a memory has the same text.
    #[arg(long)]
    allow_duplicate: bool,
    #[command(flatten)]
    dry_run: DryRunArgs,
}

pub(super) fn run(context: &CommandContext, args: &SaveArgs) -> Result<()> {
    let request = SaveRequest {
        text: text_or_stdin(&args.text)?,
        title: args.title.clone(),
        kind: args.kind.clone(),
        tags: without_hash_signs(&args.tags),
        importance: args.importance,
        allow_duplicate: args.allow_duplicate,
        ..SaveRequest::default()
    };
    let reply = context.fresh_store()?.memory_writes().save_memory(&request, args.dry_run.is_set())?;
    if let Some(near) = &reply.near {
        context.out.message(&format!(
            "note: {} says nearly the same (similarity {:.3}); they are linked",
            near.path, near.cosine
        ));
    }
    for remark in &reply.change.plan.remarks {
        context.out.message(&output::plain(&remark.to_string()));
    }
    for notice in &reply.change.notices {
        context.out.message(&format!("notice: {notice}"));
    }
    context.out.reply(&reply, |reply| match &reply.memory {
        Some(memory) => format!("{}\n", output::plain(&memory.path)),
        None => reply.change.diff.clone().unwrap_or_default(),
    })
}
