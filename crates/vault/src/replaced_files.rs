//! Closes the files that a change replaced, in parallel with the next steps of the change. A file system frees the
//! blocks of a file when its last name and handle are gone, and some tell the disk so before that call returns: ext4
//! without a journal waits for 30 µs and more for each file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use sidenote_base::platform;
use sidenote_base::platform::HeldFile;

use crate::dir::Dir;

/// The fewest files that are let go of by another thread.
const MIN_FILES: usize = 32;
/// The most files that the process holds at a time.
const MAX_HELD: usize = 1024;

/// The number of files that the process holds.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Holds files that are replaced until another thread closes them.
#[derive(Debug)]
pub(crate) struct ReplacedFiles {
    /// Where files go to be closed; `None` if each replacement itself frees what it replaced.
    closing: Option<Sender<HeldFile>>,
    /// The most files that the process may hold.
    most: usize,
}

impl ReplacedFiles {
    /// Starts the thread that closes files if `count` of them may be replaced. It ends once all are closed.
    pub(crate) fn start(count: usize) -> Self {
        // The rest of the process needs handles, too.
        let most = platform::open_file_limit().map_or(MAX_HELD, |limit| (limit / 4).min(MAX_HELD));
        if count < MIN_FILES || most < MIN_FILES {
            return Self { closing: None, most };
        }
        let (closing, files) = channel::<HeldFile>();
        let close = |file| {
            drop(file);
            HELD.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = std::thread::Builder::new().name("sidenote-replaced".to_owned());
        match thread.spawn(move || files.into_iter().for_each(close)) {
            Ok(_) => Self { closing: Some(closing), most },
            Err(error) => {
                tracing::debug!("a rename that replaces a file also frees it: {error}");
                Self { closing: None, most }
            }
        }
    }

    /// Replaces a file by `replace`, and lets another thread free what it was, unless too many files are held.
    pub(crate) fn replace<T>(&self, folder: &Dir, name: &str, replace: impl FnOnce() -> T) -> T {
        let held = self.closing.as_ref().and_then(|closing| Some((closing, self.hold(folder, name)?)));
        let done = replace();
        if let Some((closing, file)) = held
            && closing.send(file).is_err()
        {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
        done
    }

    fn hold(&self, folder: &Dir, name: &str) -> Option<HeldFile> {
        let file = if HELD.fetch_add(1, Ordering::Relaxed) < self.most { folder.hold(name) } else { None };
        if file.is_none() {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
        file
    }
}
