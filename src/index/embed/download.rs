//! Owns fetching a model from its hub, for whoever asks for that in so many words; nothing else here ever does.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::config::Secret;
use crate::error::{Error, ErrorKind, Result};
use crate::index::embed::http::{Http, Trouble};
use crate::index::embed::model_files::{Kept, NOTE, folder_of};
use crate::index::embed::onnx::ListedModel;
use crate::wording::Wording;

/// Where models come from, unless `HF_ENDPOINT` names another place.
const HUB: &str = "https://huggingface.co";
/// What stands beside a graph: its name, and whether no model goes without it.
const BESIDE: &[(&str, bool)] = &[
    ("tokenizer.json", true),
    ("config.json", true),
    ("tokenizer_config.json", false),
    ("special_tokens_map.json", false),
    ("sentence_bert_config.json", false),
    ("1_Pooling/config.json", false),
];

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The model's folder.
    pub folder: PathBuf,
    /// Bytes that came.
    pub bytes: u64,
    /// Whether it was there already.
    pub was_there: bool,
}

/// Hears of a download: the file, how many bytes of it have come, and of how many.
pub type Heard<'a> = dyn Fn(&str, u64, Option<u64>) + 'a;

/// Fetches a model's files into the user's folder of models. A folder holds a model whole or is not there.
///
/// # Errors
/// `Io` where the hub cannot be reached or the disk refuses; `NotFound` where the hub lacks a file.
pub fn fetch(model: &ListedModel, heard: &Heard<'_>) -> Result<Fetched> {
    let folder = folder_of(&model.name).ok_or_else(|| {
        Error::not_found("there is no home folder for models").with_hint("set HOME or XDG_DATA_HOME")
    })?;
    if folder.is_dir() {
        // What is there and whole is not fetched again.
        Kept::open(&folder)?;
        return Ok(Fetched { folder, bytes: 0, was_there: true });
    }
    let hub = std::env::var("HF_ENDPOINT").ok().filter(|hub| !hub.trim().is_empty());
    let hub = hub.unwrap_or_else(|| HUB.to_owned());
    let fresh = folder.with_extension(format!("part-{}", std::process::id()));
    let fetched = fetch_into(&fresh, hub.trim_end_matches('/'), model, heard);
    let moved = fetched.and_then(|bytes| {
        #[expect(clippy::disallowed_methods, reason = "the folder of models is ours")]
        std::fs::rename(&fresh, &folder).map_err(|error| Error::io("move into place", &folder, error))?;
        Ok(bytes)
    });
    match moved {
        Ok(bytes) => Ok(Fetched { folder, bytes, was_there: false }),
        Err(error) => {
            #[expect(clippy::disallowed_methods, reason = "a half of a model is of no use")]
            if let Err(left) = std::fs::remove_dir_all(&fresh)
                && left.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!("{} is left over: {left}", fresh.display());
            }
            Err(error)
        }
    }
}

fn fetch_into(folder: &Path, hub: &str, model: &ListedModel, heard: &Heard<'_>) -> Result<u64> {
    let http = Http::default();
    let token: Secret = std::env::var("HF_TOKEN").unwrap_or_default().into();
    let mut bytes = 0;
    let files = model.files.iter().map(|file| (file.as_str(), true)).chain(BESIDE.iter().copied());
    for (file, is_needed) in files {
        let path = folder.join(file);
        let url = format!("{hub}/{}/resolve/main/{file}", model.source);
        let (status, count) = download(&http, &url, &token, &path, file, heard)
            .map_err(|trouble| explain(&trouble, hub, model, &path))?;
        match status {
            200 => bytes += count,
            _ if !is_needed => remove(&path)?,
            401 | 403 => {
                return Err(Error::invalid(format!(
                    "the hub gives {} only to whom it knows ({status})",
                    model.source
                ))
                .with_hint(by_hand(model).led_by("set HF_TOKEN, or ")));
            }
            _ => {
                return Err(Error::not_found(format!(
                    "the hub has no {file} of {} ({status})",
                    model.source
                ))
                .with_hint(by_hand(model)));
            }
        }
    }
    let note = serde_json::to_vec_pretty(&model.note)
        .map_err(|error| Error::internal("cannot write the model's note").with_source(error))?;
    let path = folder.join(NOTE);
    #[expect(clippy::disallowed_methods, reason = "the folder of models is ours")]
    std::fs::write(&path, note).map_err(|error| Error::io("write", &path, error))?;
    Ok(bytes)
}

fn download(
    http: &Http,
    url: &str,
    token: &Secret,
    path: &Path,
    name: &str,
    heard: &Heard<'_>,
) -> Result<(u16, u64), Trouble> {
    #[expect(clippy::disallowed_methods, reason = "the folder of models is ours")]
    let file =
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).and_then(|()| File::create(path));
    let mut to = BufWriter::new(file.map_err(Trouble::Kept)?);
    let done = http.download(url, token, &mut to, &|count, of| heard(name, count, of))?;
    let file = to.into_inner().map_err(|error| Trouble::Kept(error.into_error()))?;
    file.sync_all().map_err(Trouble::Kept)?;
    Ok(done)
}

fn remove(path: &Path) -> Result<()> {
    crate::index::vectors::remove_if_there(path)
}

fn by_hand(model: &ListedModel) -> Wording {
    let person = format!(
        "download {} of {} elsewhere into one folder, with tokenizer.json and config.json, and run: sidenote model path FOLDER",
        model.files.join(", "),
        model.source
    );
    Wording::new(person, "ask the user to download the model elsewhere")
}

fn explain(trouble: &Trouble, hub: &str, model: &ListedModel, path: &Path) -> Error {
    let why = match trouble {
        Trouble::TimedOut => "it did not answer in time".to_owned(),
        Trouble::Unreachable(why) | Trouble::Broken(why) | Trouble::Address(why) => why.clone(),
        Trouble::Kept(error) => {
            let copy = std::io::Error::new(error.kind(), error.to_string());
            return Error::io("write", path, copy);
        }
    };
    Error::new(ErrorKind::Io, format!("{hub} cannot be reached for {}: {why}", model.source))
        .with_hint(by_hand(model))
}
