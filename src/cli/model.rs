//! `sidenote model`: lists, sets, installs and verifies embedders and rerankers.

use std::cell::RefCell;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use sidenote_base::error::{Error, ErrorKind, Result};

use super::{CommandContext, output};
use crate::store::{
    Installed, ModelItem, ModelKind, ModelSet, ModelState, ModelUse, Models, ModelsShown, Verified,
};

/// List, set, install and verify the models that search uses.
///
/// An embedder computes vectors; a reranker scores the best hits again. Models are set in your settings file. Only
/// `install` downloads anything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote model list
  sidenote model install BGESmallENV15 && sidenote model use BGESmallENV15
  sidenote model path ~/models/e5-small
  sidenote model use openai:bge-m3 --base-url http://localhost:11434/v1
  sidenote model path ~/models/ms-marco-MiniLM-L-6-v2 --rerank
  sidenote model verify
  sidenote model use e5")]
pub(super) struct ModelArgs {
    #[command(subcommand)]
    action: ModelAction,
}

#[derive(Debug, Subcommand)]
enum ModelAction {
    /// List the models that have a name, and whether each is installed and in use.
    List,
    /// Show the models that the settings select.
    Show,
    /// Set a model by name.
    ///
    /// The name is e5 (built in), none, auto, openai:MODEL, or that of an installed model of the list.
    Use(UseArgs),
    /// Download a model of the list into your folder of models.
    #[command(
        after_help = "If the hub cannot be reached, download the files in another way and set their folder:
  sidenote model path FOLDER"
    )]
    Install {
        /// The name of the model.
        name: String,
    },
    /// Set a model by its folder.
    ///
    /// The folder holds an ONNX graph and its tokenizer.json. The model is verified first.
    Path(PathArgs),
    /// Load the selected models and verify them on known texts.
    Verify,
}

#[derive(Debug, Args)]
struct UseArgs {
    /// The name of the model.
    name: String,
    /// The URL of the endpoint, without /embeddings.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The number of dimensions of the vectors.
    #[arg(long, value_name = "N")]
    dimensions: Option<usize>,
    /// With the name none: use no reranker, instead of no embedder.
    #[arg(long)]
    rerank: bool,
    /// Change nothing; print what would be set.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct PathArgs {
    /// The folder.
    folder: PathBuf,
    /// The folder holds a reranker, not an embedder.
    #[arg(long)]
    rerank: bool,
    /// Change nothing; verify the model and print what would be set.
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(context: &CommandContext, args: &ModelArgs) -> Result<()> {
    let models = Models::open(context.open.vault.as_deref(), &context.open.flags)?;
    let out = context.out;
    match &args.action {
        ModelAction::List => out.reply(&models.list()?, |items| show_list(items)),
        ModelAction::Show => out.reply(&models.show()?, show_models),
        ModelAction::Use(args) => {
            let want = ModelUse {
                name: args.name.clone(),
                base_url: args.base_url.clone(),
                dimensions: args.dimensions,
                rerank: args.rerank,
            };
            out.reply(&models.choose(&want, args.dry_run)?, show_set)
        }
        ModelAction::Path(args) => {
            out.reply(&models.choose_folder(&args.folder, args.rerank, args.dry_run)?, show_set)
        }
        ModelAction::Install { name } => {
            let bar = DownloadBar::default();
            let installed = models.install(name, &|file, count, of| bar.tell(file, count, of));
            bar.finish();
            out.reply(&installed?, show_installed)
        }
        ModelAction::Verify => {
            let tried = models.verify()?;
            out.reply(&tried, |tried| tried.iter().map(show_verified).collect())?;
            if tried.iter().all(Verified::is_ok) {
                return Ok(());
            }
            Err(Error::new(ErrorKind::Corrupt, "a model failed verification")
                .with_hint("download it again, or run: sidenote model use e5"))
        }
    }
}

fn show_list(items: &[ModelItem]) -> String {
    let mut text = String::new();
    for (kind, title) in [(ModelKind::Embedder, "Embedders"), (ModelKind::Reranker, "Rerankers")] {
        let rows: Vec<Vec<String>> = items
            .iter()
            .filter(|item| item.kind == kind)
            .map(|item| {
                let state = match (item.in_use, item.installed) {
                    (true, _) => "in use",
                    (false, true) => "installed",
                    (false, false) => "-",
                };
                vec![
                    format!("  {}", item.name),
                    state.to_owned(),
                    item.dimensions.map_or_else(String::new, |length| length.to_string()),
                    item.source.clone(),
                    item.about.clone(),
                ]
            })
            .collect();
        text.push_str(&format!("{title}\n{}", output::columns(&rows)));
    }
    text
}

fn show_models(shown: &ModelsShown) -> String {
    let mut rows = vec![vec!["provider".to_owned(), shown.provider.clone()]];
    rows.extend(show_state("embedder", &shown.embedder));
    rows.extend(show_state("reranker", &shown.reranker));
    let library = shown.onnxruntime.as_ref();
    let library = library.map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
    rows.push(vec!["onnxruntime".to_owned(), library]);
    output::columns(&rows)
}

fn show_state(what: &str, state: &ModelState) -> Vec<Vec<String>> {
    let mut rows = vec![vec![what.to_owned(), state.name.clone()]];
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.map(|value| vec![format!("  {name}"), value]));
    };
    add("dimensions", state.dimensions.map(|length| length.to_string()));
    add("input limit", state.max_tokens.map(|tokens| format!("{tokens} tokens")));
    add("fingerprint", state.fingerprint.clone());
    add("folder", state.folder.as_ref().map(|folder| folder.display().to_string()));
    add("problem", state.trouble.clone());
    rows
}

fn show_set(set: &ModelSet) -> String {
    let file = set.edited.file.display();
    let mut text = match (set.edited.changes.is_empty(), set.edited.applied) {
        (true, _) => format!("{file} is up to date already\n"),
        (false, true) => format!("{file}\n"),
        (false, false) => format!("{file} would change\n"),
    };
    for change in &set.edited.changes {
        text.push_str(&format!("  {change}\n"));
    }
    for note in &set.notes {
        text.push_str(&format!("{note}\n"));
    }
    text
}

fn show_installed(installed: &Installed) -> String {
    let Installed { name, folder, bytes, was_there } = installed;
    let folder = folder.display();
    if *was_there {
        format!("{name} is already installed in {folder}\n")
    } else {
        format!("{name}: {} in {folder}\nto use it, run: sidenote model use {name}\n", output::bytes(*bytes))
    }
}

fn show_verified(tried: &Verified) -> String {
    let kind = match tried.kind {
        ModelKind::Embedder => "embedder",
        ModelKind::Reranker => "reranker",
    };
    let mut text = format!(
        "{kind} {}: {:.0} ms to load and try, {:.1} ms for a text\n",
        tried.name, tried.load_ms, tried.text_ms
    );
    let rows = tried.checks.iter().map(|check| {
        let mark = if check.ok { "  ok" } else { "  FAILED" };
        vec![mark.to_owned(), check.what.clone(), check.found.clone()]
    });
    text.push_str(&output::columns(&rows.collect::<Vec<_>>()));
    text
}

/// The progress of a download, a bar for each file.
#[derive(Default)]
struct DownloadBar {
    bar: RefCell<Option<(String, ProgressBar)>>,
}

impl DownloadBar {
    fn tell(&self, file: &str, count: u64, of: Option<u64>) {
        let mut current = self.bar.borrow_mut();
        if current.as_ref().is_none_or(|(name, _)| name != file) {
            let bar = ProgressBar::new(of.unwrap_or(0));
            let style = ProgressStyle::with_template("{msg:>28} {bytes}/{total_bytes} {bytes_per_sec}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(file.to_owned());
            if let Some((_, done)) = current.replace((file.to_owned(), bar)) {
                done.finish_and_clear();
            }
        }
        if let Some((_, bar)) = &*current {
            bar.set_position(count);
        }
    }

    fn finish(&self) {
        if let Some((_, bar)) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }
}
