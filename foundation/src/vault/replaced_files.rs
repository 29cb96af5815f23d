//! Lets go of the files that a change replaces beside what the change does next. A file system frees the blocks of a file when
//! its last name and handle are gone, and some tell the disk so before that call returns: ext4 without a journal waits for
//! 30 µs and more for each file.

use std::sync::mpsc::{SyncSender, sync_channel};

use crate::platform::{self, HeldFile};
use crate::vault::dir::Dir;

/// The fewest files that are let go of by another thread.
const MIN_FILES: usize = 32;
/// The most files that are held at a time.
const MAX_HELD: usize = 1024;

/// Holds files that are replaced until another thread closes them.
#[derive(Debug)]
pub(crate) struct ReplacedFiles {
    /// `None` if each replacement itself frees what it replaced.
    held: Option<SyncSender<HeldFile>>,
}

impl ReplacedFiles {
    /// Starts the thread that closes files if `count` of them may be replaced. It ends once all are closed.
    pub(crate) fn start(count: usize) -> Self {
        // The rest of the process needs handles, too.
        let most = platform::open_file_limit().map_or(MAX_HELD, |limit| (limit / 4).min(MAX_HELD));
        if count < MIN_FILES || most < MIN_FILES {
            return Self { held: None };
        }
        let (held, waiting) = sync_channel::<HeldFile>(most);
        let thread = std::thread::Builder::new().name("sidenote-replaced".to_owned());
        match thread.spawn(move || waiting.into_iter().for_each(drop)) {
            Ok(_) => Self { held: Some(held) },
            Err(error) => {
                tracing::debug!("replaced files are closed by the thread that replaces them: {error}");
                Self { held: None }
            }
        }
    }

    /// Replaces a file by `replace`, and lets another thread free what it was. Waits if too many files are held.
    pub(crate) fn replace<T>(&self, folder: &Dir, name: &str, replace: impl FnOnce() -> T) -> T {
        let held = self.held.as_ref().and_then(|sender| Some((sender, folder.hold(name)?)));
        let done = replace();
        if let Some((sender, file)) = held
            && sender.send(file).is_err()
        {
            tracing::debug!("a replaced file is closed by the thread that replaced it");
        }
        done
    }
}
