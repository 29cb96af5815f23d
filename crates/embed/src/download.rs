//! Downloads the files of a model from its hub. This happens only when the user asks for it explicitly.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::wording::Wording;
use sidenote_config::Secret;
use sidenote_http_client::{Http, HttpError};

use crate::model_files::{INSTALL_RECORD, ModelFiles, folder_of};
use crate::onnx::ListedModel;

/// The address of the hub, unless `HF_ENDPOINT` names another one.
const HUB: &str = "https://huggingface.co";
/// The files of a model other than its graph and weights: the name of each, and whether it is required.
const METADATA_FILES: &[(&str, bool)] = &[
    ("tokenizer.json", true),
    ("config.json", true),
    ("tokenizer_config.json", false),
    ("special_tokens_map.json", false),
    ("sentence_bert_config.json", false),
    ("1_Pooling/config.json", false),
];

/// The result of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The folder of the model.
    pub folder: PathBuf,
    /// The number of bytes downloaded.
    pub bytes: u64,
    /// Whether the model was installed already, so that nothing was downloaded.
    pub was_installed: bool,
}

/// A callback for the progress of a download. It gets the name of the file, the number of bytes received so far, and
/// the total if it is known.
pub type Progress<'a> = dyn Fn(&str, u64, Option<u64>) + 'a;

/// Downloads the files of a model into the user's folder of models. The folder of a model is either complete or does
/// not exist.
///
/// # Errors
/// Returns `Io` if the hub cannot be reached or a file cannot be written, `NotFound` if the hub lacks a required file
/// or there is no home folder, and `Invalid` if the hub requires a token.
pub fn fetch(model: &ListedModel, progress: &Progress<'_>) -> Result<Download> {
    let folder = folder_of(&model.name).ok_or_else(|| {
        Error::not_found("there is no home folder for models").with_hint("set HOME or XDG_DATA_HOME")
    })?;
    if folder.is_dir() {
        // A complete model is not downloaded again.
        ModelFiles::open(&folder)?;
        return Ok(Download { folder, bytes: 0, was_installed: true });
    }
    let hub = std::env::var("HF_ENDPOINT").ok().filter(|hub| !hub.trim().is_empty());
    let hub = hub.unwrap_or_else(|| HUB.to_owned());
    let partial = folder.with_extension(format!("part-{}", std::process::id()));
    let fetched = fetch_into(&partial, hub.trim_end_matches('/'), model, progress);
    let moved = fetched.and_then(|bytes| {
        #[expect(clippy::disallowed_methods, reason = "the folder of models belongs to sidenote")]
        std::fs::rename(&partial, &folder).map_err(|error| Error::io("move into place", &folder, error))?;
        Ok(bytes)
    });
    match moved {
        Ok(bytes) => Ok(Download { folder, bytes, was_installed: false }),
        Err(error) => {
            #[expect(clippy::disallowed_methods, reason = "an incomplete model is of no use")]
            if let Err(failure) = std::fs::remove_dir_all(&partial)
                && failure.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!("the incomplete model {} cannot be removed: {failure}", partial.display());
            }
            Err(error)
        }
    }
}

/// Downloads all files of a model into a new folder, and returns the number of bytes.
fn fetch_into(folder: &Path, hub: &str, model: &ListedModel, progress: &Progress<'_>) -> Result<u64> {
    let http = Http::default();
    let token: Secret = std::env::var("HF_TOKEN").unwrap_or_default().into();
    let mut bytes = 0;
    let files = model.files.iter().map(|file| (file.as_str(), true)).chain(METADATA_FILES.iter().copied());
    for (file, is_needed) in files {
        let path = folder.join(file);
        let url = format!("{hub}/{}/resolve/main/{file}", model.source);
        let (status, count) = download(&http, &url, &token, &path, file, progress)
            .map_err(|error| download_error(&error, hub, model, &path))?;
        match status {
            200 => bytes += count,
            _ if !is_needed => remove(&path)?,
            401 | 403 => {
                return Err(Error::invalid(format!(
                    "the hub requires a token for {} ({status})",
                    model.source
                ))
                .with_hint(manual_download_hint(model).led_by("set HF_TOKEN, or ")));
            }
            _ => {
                return Err(Error::not_found(format!(
                    "the hub has no {file} of {} ({status})",
                    model.source
                ))
                .with_hint(manual_download_hint(model)));
            }
        }
    }
    let record = serde_json::to_vec_pretty(&model.record).map_err(|error| {
        Error::internal("cannot write the install record of the model").with_source(error)
    })?;
    let path = folder.join(INSTALL_RECORD);
    #[expect(clippy::disallowed_methods, reason = "the folder of models belongs to sidenote")]
    std::fs::write(&path, record).map_err(|error| Error::io("write", &path, error))?;
    Ok(bytes)
}

/// Downloads one file to `path`, and returns the HTTP status and the number of bytes.
fn download(
    http: &Http,
    url: &str,
    token: &Secret,
    path: &Path,
    name: &str,
    progress: &Progress<'_>,
) -> Result<(u16, u64), HttpError> {
    #[expect(clippy::disallowed_methods, reason = "the folder of models belongs to sidenote")]
    let file =
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).and_then(|()| File::create(path));
    let mut to = BufWriter::new(file.map_err(HttpError::Write)?);
    let result = http.download(url, token, &mut to, &|count, of| progress(name, count, of))?;
    let file = to.into_inner().map_err(|error| HttpError::Write(error.into_error()))?;
    file.sync_all().map_err(HttpError::Write)?;
    Ok(result)
}

fn remove(path: &Path) -> Result<()> {
    sidenote_base::atomic_file::remove_if_there(path)
}

/// Returns the hint to download a model by other means.
fn manual_download_hint(model: &ListedModel) -> Wording {
    let person = format!(
        "download {} of {} elsewhere into one folder, with tokenizer.json and config.json, and run: sidenote model path FOLDER",
        model.files.join(", "),
        model.source
    );
    Wording::new(person, "ask the user to download the model elsewhere")
}

/// Converts the failure of a download to an error with a hint.
fn download_error(error: &HttpError, hub: &str, model: &ListedModel, path: &Path) -> Error {
    let why = match error {
        HttpError::TimedOut => "it did not answer in time".to_owned(),
        HttpError::Unreachable(why) | HttpError::Broken(why) | HttpError::Address(why) => why.clone(),
        HttpError::Write(error) => {
            let copy = std::io::Error::new(error.kind(), error.to_string());
            return Error::io("write", path, copy);
        }
    };
    Error::new(ErrorKind::Io, format!("{hub} cannot be reached for {}: {why}", model.source))
        .with_hint(manual_download_hint(model))
}
