//! Locates and loads the library of ONNX Runtime, once per process and only before a model runs.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;
use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_config::data_folder;

/// The hint for a missing library.
const HINT: &str = "install it with `pip install onnxruntime` (1.24 or newer) or your system's packages, and if it is \
                    not found, set embed.onnxruntime to the path of libonnxruntime";
/// The library folders of the supported systems.
const FOLDERS: &[&str] = &[
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/opt/onnxruntime/lib",
    "/opt/homebrew/lib",
];
/// Folders that contain a folder for each version of Python.
const PYTHONS: &[&str] = &["/usr/lib", "/usr/local/lib"];

/// Locates the library: at the path in the settings, or else in `ORT_DYLIB_PATH`, or else in the usual folders.
///
/// # Errors
/// Returns `NotFound` if it is not found, or is not at the given path.
pub fn find(setting: &Path) -> Result<PathBuf> {
    let variable = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
    let settings =
        [(setting.to_owned(), "embed.onnxruntime"), (variable.unwrap_or_default(), "ORT_DYLIB_PATH")];
    if let Some((path, name)) = settings.into_iter().find(|(path, _)| !path.as_os_str().is_empty()) {
        let found =
            if path.is_dir() { library_in(&path) } else { Some(path.clone()).filter(|path| path.is_file()) };
        return found.ok_or_else(|| {
            let place = path.display();
            Error::not_found(format!("{name} is set to {place}, but there is no ONNX runtime"))
                .with_hint(HINT)
        });
    }
    let found = search_folders().into_iter().find_map(|folder| library_in(&folder));
    found.ok_or_else(|| Error::not_found("the ONNX runtime was not found").with_hint(HINT))
}

/// Lists the folders to search, the user's own first.
fn search_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = data_folder().map(|folder| folder.join("lib")).into_iter().collect();
    let in_python = |root: &Path| root.join("onnxruntime").join("capi");
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    for root in environments.chain(home) {
        folders.push(root.join("lib"));
        folders.extend(
            pythons_in(&root.join("lib")).iter().map(|python| in_python(&python.join("site-packages"))),
        );
    }
    folders.extend(FOLDERS.iter().map(PathBuf::from));
    for root in PYTHONS {
        for python in pythons_in(Path::new(root)) {
            folders.extend(["site-packages", "dist-packages"].map(|name| in_python(&python.join(name))));
        }
    }
    folders
}

/// Lists the folders `python3*` in a folder, the newest version first.
fn pythons_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.reverse();
    found
}

/// Finds the library in a folder: `libonnxruntime.so`, or else the file with the newest version in its name.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let is_library = |name: &str| {
        let rest = name.strip_prefix("libonnxruntime.");
        rest.is_some_and(|rest| rest == "so" || rest.starts_with("so.") || rest.ends_with("dylib"))
    };
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let version = |name: &String| -> (bool, Vec<u32>) {
        let parts: Vec<u32> = name.split('.').filter_map(|part| part.parse().ok()).collect();
        (parts.is_empty(), parts)
    };
    names.filter(|name| is_library(name)).max_by_key(version).map(|name| folder.join(name))
}

/// Returns the environment of the library, which the first successful call loads.
///
/// # Errors
/// Returns `NotFound` if the library is not found, and `Invalid` if it is not ONNX Runtime or too old.
pub(super) fn environment(setting: &Path) -> Result<&'static Environment> {
    static LOADED: OnceLock<Environment> = OnceLock::new();
    static LOADING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    if let Some(environment) = LOADED.get() {
        return Ok(environment);
    }
    let _guard = LOADING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(environment) = LOADED.get() {
        return Ok(environment);
    }
    let path = find(setting)?;
    let refused = |why: String| {
        Error::new(ErrorKind::Invalid, format!("{} cannot be used: {why}", path.display())).with_hint(HINT)
    };
    // Loading a file that is not ONNX Runtime, or another version of it, can panic.
    let loaded = catch_unwind(|| {
        let builder = ort::init_from(&path).map_err(|error| error.to_string())?;
        builder.with_name("sidenote").build().map_err(|error| error.to_string())
    });
    let environment = match loaded {
        Ok(loaded) => loaded.map_err(refused)?,
        Err(_) => return Err(refused("it is not a supported version of ONNX Runtime".to_owned())),
    };
    Ok(LOADED.get_or_init(|| environment))
}
