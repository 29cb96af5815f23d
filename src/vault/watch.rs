//! Owns the watch over a vault: what the file system says happened, gathered into batches. The only notify user.
//!
//! A batch names places to look at, never what is there: whoever takes it looks for himself. Whatever the system
//! cannot promise (lost events, too few watches, a root that went away) becomes "look at everything", and is said.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::{Error, Result};
use crate::safe_open;
use crate::text::path::NotePath;
use crate::vault::Vault;
use crate::vault::scan::{FileStat, Scan, ScanOptions, leads_back, lies_in, on_disk, scan};

/// So long nothing may happen before a batch counts as whole: a save is several events.
const QUIET: Duration = Duration::from_millis(25);
/// So long a batch waits for quiet.
const LONGEST: Duration = Duration::from_millis(100);
/// How often everything is looked at while there are no events.
const POLL: Duration = Duration::from_secs(2);
/// How often the system is asked for events again while there are none.
const RETRY: Duration = Duration::from_secs(30);
/// How often the targets of symbolic links are looked at.
const LINKS: Duration = Duration::from_secs(5);
/// The longest wait for the file system to tell of our own mark.
const PULSE: Duration = Duration::from_millis(250);

/// The folder of our own marks, in the sidecar.
pub const PULSE_DIR: &str = "pulse";

/// Places of a vault where something happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Files that came or changed.
    pub files: Vec<NotePath>,
    /// Paths of files and folders that are not there any more.
    pub gone: Vec<String>,
    /// Why the whole vault must be looked at, where that is so.
    pub rescan: Option<String>,
    /// When the first of it happened.
    pub since: Option<Instant>,
}

impl Batch {
    /// Says whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.gone.is_empty() && self.rescan.is_none()
    }
}

/// What happened and was not taken yet.
#[derive(Debug, Default)]
struct Pending {
    /// Each file with the number of its last event; the numbers rise.
    files: HashMap<NotePath, u64>,
    /// Names that are not there any more.
    gone: BTreeSet<String>,
    /// The new names of those of them that only moved.
    moved: HashSet<String>,
    /// Names that came since the last batch was taken: one that goes again was never there for whoever takes batches.
    come: HashSet<String>,
    rescan: Option<String>,
    /// Symbolic links to files: the system tells of nothing that happens behind them.
    links: BTreeSet<NotePath>,
    events: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Whether a folder is being listed that came: what happened is not told in full yet.
    busy: bool,
    /// The newest of our own marks that the system told of.
    pulse: u64,
    /// Why there are no events, where there are none.
    blind: Option<String>,
    stopped: bool,
}

impl Pending {
    fn note(&mut self) -> u64 {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.events += 1;
        self.events
    }

    /// Notes that a name came or went; what stands under it now is looked at separately.
    fn pass(&mut self, kind: EventKind, name: &str) {
        if matches!(kind, EventKind::Create(_)) && !self.gone.contains(name) {
            self.come.insert(name.to_owned());
        } else if leaves(kind) {
            self.note();
            self.leave(name);
        }
    }

    fn leave(&mut self, name: &str) {
        if !self.come.contains(name) {
            self.gone.insert(name.to_owned());
        }
    }

    /// Notes that what left one name came to another.
    fn pair(&mut self, from: &str, to: &str) {
        if self.gone.contains(from) {
            self.moved.insert(to.to_owned());
        }
    }

    /// Says when what happened will be a batch; nothing where nothing did.
    fn due(&self) -> Option<Instant> {
        let is_empty = self.files.is_empty() && self.gone.is_empty() && self.rescan.is_none();
        let (first, last) = self.first.zip(self.last).filter(|_| !is_empty && !self.busy)?;
        Some((last + QUIET).min(first + LONGEST))
    }

    /// Takes what is there; where that is more than `most` files, only the newest and those that moved.
    fn take(&mut self, most: usize) -> Batch {
        let since = self.first;
        self.come.clear();
        let rescan = self.rescan.take();
        if rescan.is_some() {
            self.files.clear();
            self.gone.clear();
        }
        let moved = std::mem::take(&mut self.moved);
        let gone = std::mem::take(&mut self.gone).into_iter().collect();
        if self.files.len() <= most {
            (self.first, self.last) = (None, None);
            let files = std::mem::take(&mut self.files).into_keys().collect();
            return Batch { files, gone, rescan, since };
        }
        let mut ages: Vec<u64> = self.files.values().copied().collect();
        let at = ages.len() - most.clamp(1, ages.len());
        let oldest = *ages.select_nth_unstable(at).1;
        // A move is recognised where both its sides are in one batch.
        let files = self.files.extract_if(|path, event| *event >= oldest || is_under(path, &moved));
        Batch { files: files.map(|(path, _)| path).collect(), gone, rescan, since }
    }
}

/// Says whether a path or a folder that it lies in is one of these.
fn is_under(path: &NotePath, names: &HashSet<String>) -> bool {
    let path = path.as_str();
    let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
    !names.is_empty() && folders.chain([path]).any(|name| names.contains(name))
}

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rescan(&self, why: String) {
        let mut pending = self.lock();
        pending.note();
        pending.rescan.get_or_insert(why);
        drop(pending);
        self.changed.notify_all();
    }
}

/// A watch that runs until it is dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    /// The folder for our own marks.
    pulse: PathBuf,
    pulses: AtomicU64,
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Event(notify::Result<notify::Event>),
    Stop,
}

impl Watch {
    /// Watches a vault and Obsidian's settings in it. `sidecar` is a folder of ours that may be written to.
    ///
    /// Where the system gives no events, the watch asks for a look at everything now and then, and
    /// [`Watch::blind`] says why.
    ///
    /// # Errors
    /// `Internal` where no thread can be started.
    pub fn start(vault: &Vault, sidecar: &Path) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (messages, received) = channel();
        let pulse = sidecar.join(PULSE_DIR);
        let mut gatherer = Gatherer {
            root: vault.root().to_owned(),
            settings: vault.config_folder(),
            pulse: pulse.clone(),
            options: vault.scan_options(),
            linked: BTreeSet::new(),
            shared: Arc::clone(&shared),
            messages: messages.clone(),
            watcher: None,
        };
        gatherer.begin();
        let thread = std::thread::Builder::new()
            .name("sidenote-watch".to_owned())
            .spawn(move || gatherer.run(&received))
            .map_err(|error| Error::internal("cannot start the watch").with_source(error))?;
        Ok(Self { shared, pulse, pulses: AtomicU64::new(0), messages, thread: Some(thread) })
    }

    /// Says why there are no events, where there are none.
    pub fn blind(&self) -> Option<String> {
        self.shared.lock().blind.clone()
    }

    /// Takes the next batch, where one is whole: where nothing more happened for a moment, or much has. Where more
    /// than `most` files wait, the newest come first: an edit must not wait behind a copy.
    pub fn next(&self, most: usize) -> Option<Batch> {
        let mut pending = self.shared.lock();
        let is_due = pending.due().is_some_and(|due| due <= Instant::now());
        is_due.then(|| pending.take(most))
    }

    /// Waits until there is a batch to take, as long as `patience` at most.
    pub fn wait(&self, patience: Duration) {
        let end = Instant::now() + patience;
        let mut pending = self.shared.lock();
        loop {
            let due = pending.due().map_or(end, |due| due.min(end));
            let left = due.saturating_duration_since(Instant::now());
            if pending.stopped || left.is_zero() {
                return;
            }
            pending =
                self.shared.changed.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks for a look at everything.
    pub fn rescan(&self, why: String) {
        self.shared.rescan(why);
    }

    /// Takes all that happened up to this moment; `None` where the system does not tell.
    ///
    /// A mark of ours is made in the sidecar: events come in order, so once the system tells of the mark it has told
    /// of everything before.
    pub fn flush(&self) -> Option<Batch> {
        if self.shared.lock().blind.is_some() {
            return None;
        }
        let number = self.pulses.fetch_add(1, Ordering::SeqCst) + 1;
        let mark = self.pulse.join(mark(number));
        safe_open::create(&mark).ok()?;
        let end = Instant::now() + PULSE;
        let mut pending = self.shared.lock();
        while pending.pulse < number && pending.blind.is_none() && !pending.stopped {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            pending =
                self.shared.changed.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let told = pending.pulse >= number;
        let batch = told.then(|| {
            let mut batch = pending.take(usize::MAX);
            batch.files.extend(pending.links.iter().cloned());
            batch
        });
        drop(pending);
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        if let Err(error) = fs::remove_file(&mark) {
            tracing::debug!(%error, "a mark of the watch is left");
        }
        batch
    }

    /// Counts the places that wait to be looked at.
    pub fn waiting(&self) -> usize {
        let pending = self.shared.lock();
        pending.files.len() + pending.gone.len() + usize::from(pending.rescan.is_some())
    }

    /// Wakes whoever waits, for good.
    pub fn stop(&self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
        // A thread that is gone already needs no telling.
        drop(self.messages.send(Message::Stop));
        if self.thread.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("the watch panicked; changes are seen at the next command");
        }
    }
}

/// Names a mark; those of other processes have other names.
fn mark(number: u64) -> String {
    format!("{}-{number}", std::process::id())
}

/// The thread that hears the system's events.
struct Gatherer {
    root: PathBuf,
    settings: PathBuf,
    pulse: PathBuf,
    options: ScanOptions,
    /// Symbolic links to folders, as paths from the root, whether they are followed or not.
    linked: BTreeSet<String>,
    shared: Arc<Shared>,
    messages: Sender<Message>,
    watcher: Option<RecommendedWatcher>,
}

impl Gatherer {
    /// Asks the system for events, or says why there are none.
    fn begin(&mut self) {
        self.watcher = None;
        let messages = self.messages.clone();
        // The receiver lives as long as the watcher, but for the last moment.
        let hear = move |event| drop(messages.send(Message::Event(event)));
        let blind = match notify::recommended_watcher(hear) {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.watch_all().err()
            }
            Err(error) => Some(said(&error)),
        };
        if blind.is_some() {
            self.watcher = None;
        }
        let mut pending = self.shared.lock();
        if let Some(why) = &blind
            && pending.blind.as_ref() != Some(why)
        {
            tracing::warn!("changes are looked for every {} s: {why}", POLL.as_secs());
        }
        pending.blind = blind;
        drop(pending);
        self.shared.changed.notify_all();
    }

    fn watch_all(&mut self) -> std::result::Result<(), String> {
        // One level alone: a vault or an index that is away for the moment must not be made up.
        match fs::create_dir(&self.pulse) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(format!("{} cannot be made: {error}", self.pulse.display()));
            }
            _ => {}
        }
        if !fs::symlink_metadata(&self.pulse).is_ok_and(|found| found.is_dir()) {
            return Err(format!("{} is no folder", self.pulse.display()));
        }
        self.clear_marks();
        let pulse = self.pulse.clone();
        self.add(&pulse)?;
        self.watch_below("")?;
        let settings = self.settings.clone();
        if settings.is_dir() { self.add(&settings) } else { Ok(()) }
    }

    /// Removes the marks of processes that were killed.
    fn clear_marks(&self) {
        let Ok(entries) = fs::read_dir(&self.pulse) else { return };
        let is_old = |entry: &fs::DirEntry| {
            let made = entry.metadata().and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > RETRY))
        };
        for entry in entries.flatten().filter(is_old) {
            #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::debug!(%error, "a mark of the watch is left");
            }
        }
    }

    fn add(&mut self, folder: &Path) -> std::result::Result<(), String> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        match watcher.watch(folder, RecursiveMode::NonRecursive) {
            // A folder that went away again has nothing to tell.
            Err(error) if is_missing(&error) => Ok(()),
            watched => watched.map_err(|error| said(&error)),
        }
    }

    /// Watches a folder and those below it, as far as a scan goes, and gives what the scan found.
    fn watch_below(&mut self, path: &str) -> std::result::Result<Scan, String> {
        let mut watched = BTreeSet::new();
        let options = ScanOptions { below: path.to_owned(), ..self.options.clone() };
        loop {
            let found = scan(&self.root, &options);
            let fresh: Vec<String> =
                found.folders.iter().filter(|folder| !watched.contains(*folder)).cloned().collect();
            if fresh.is_empty() {
                let is_linked = |file: &&FileStat| file.symlink;
                let links = found.files.iter().filter(is_linked).map(|file| file.path.clone());
                // The target of a link may be away for the moment.
                let lost = found.gaps.unseen.keys().filter_map(|lost| NotePath::from_disk(lost));
                let lost = lost.filter(|path| self.root.join(path.as_str()).is_symlink());
                let links: Vec<NotePath> = links.chain(lost).collect();
                self.shared.lock().links.extend(links);
                self.linked.extend(found.gaps.followed.iter().map(|link| link.path.clone()));
                return Ok(found);
            }
            // What comes between a look and the watch shows at the next look.
            for folder in fresh {
                if self.shared.lock().stopped {
                    return Ok(found);
                }
                self.add(&on_disk(&self.root, &folder))?;
                watched.insert(folder);
            }
        }
    }

    /// Looks at what links lead to.
    fn look_behind_links(&self) {
        let mut pending = self.shared.lock();
        let event = pending.note();
        let links = pending.links.clone();
        pending.files.extend(links.into_iter().map(|path| (path, event)));
        drop(pending);
        self.shared.changed.notify_all();
    }

    fn run(mut self, messages: &Receiver<Message>) {
        let mut asked = Instant::now();
        loop {
            let is_blind = self.watcher.is_none();
            let message = if is_blind {
                messages.recv_timeout(POLL)
            } else if self.shared.lock().links.is_empty() {
                messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                messages.recv_timeout(LINKS)
            };
            match message {
                // What is waiting behind is of no interest any more, be it thousands of events.
                _ if self.shared.lock().stopped => break,
                Ok(Message::Event(event)) => self.hear(event),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if !is_blind => self.look_behind_links(),
                Err(RecvTimeoutError::Timeout) => {
                    if asked.elapsed() >= RETRY {
                        asked = Instant::now();
                        self.begin();
                    }
                    self.shared.rescan("the system gives no events".to_owned());
                }
            }
        }
    }

    /// Loses sight: from now on everything is looked at now and then, until the system gives events again.
    fn lose(&mut self, why: String) {
        self.watcher = None;
        tracing::warn!("changes are looked for every {} s: {why}", POLL.as_secs());
        self.shared.lock().blind = Some(why.clone());
        self.shared.rescan(why);
    }

    /// Asks for a look at everything, and watches the folders that may have come meanwhile.
    fn look_at_all(&mut self, why: String) {
        match self.watch_below("") {
            Ok(_) => self.shared.rescan(why),
            Err(why) => self.lose(why),
        }
    }

    fn hear(&mut self, event: notify::Result<notify::Event>) {
        let event = match event {
            Ok(event) => event,
            Err(error) if is_missing(&error) => return,
            Err(error) => return self.look_at_all(said(&error)),
        };
        if event.need_rescan() {
            return self.look_at_all("the system lost events".to_owned());
        }
        if !tells_of_a_change(event.kind) {
            return;
        }
        for path in &event.paths {
            if let Some(name) = path.strip_prefix(&self.pulse).ok().and_then(Path::to_str) {
                self.hear_pulse(name);
            } else if *path == self.settings {
                let settings = self.settings.clone();
                if let Err(why) = self.add(&settings) {
                    return self.lose(why);
                }
                self.shared.rescan("Obsidian's settings changed".to_owned());
            } else if path.starts_with(&self.settings) {
                let is_setting = path.extension().is_some_and(|extension| extension == "json");
                if is_setting && !path.ends_with("workspace.json") {
                    self.shared.rescan("Obsidian's settings changed".to_owned());
                }
            } else if let Ok(inner) = path.strip_prefix(&self.root) {
                match inner.to_str() {
                    Some(inner) if lies_in(inner, &self.options.hidden) => {}
                    Some("") if !self.root.is_dir() => {
                        return self.lose(format!("{} is gone", self.root.display()));
                    }
                    Some(inner) => {
                        // Something else may have its name already, and that must not hide what went.
                        if NotePath::from_disk(inner).is_some() {
                            self.shared.lock().pass(event.kind, inner);
                        }
                        self.look(path, inner);
                    }
                    None => {}
                }
            }
        }
        if let (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) =
            (event.kind, &*event.paths)
            && let [Ok(from), Ok(to)] = [from, to].map(|path| path.strip_prefix(&self.root))
            && let [Some(from), Some(to)] = [from, to].map(Path::to_str)
        {
            self.shared.lock().pair(from, to);
        }
    }

    fn hear_pulse(&self, name: &str) {
        let own = name.strip_prefix(&format!("{}-", std::process::id())).and_then(|n| n.parse::<u64>().ok());
        if let Some(number) = own {
            let mut pending = self.shared.lock();
            pending.pulse = pending.pulse.max(number);
            drop(pending);
            self.shared.changed.notify_all();
        }
    }

    /// Takes in what happened to one path of the vault.
    fn look(&mut self, disk: &Path, inner: &str) {
        let Some(path) = NotePath::from_disk(inner) else { return };
        let found = fs::metadata(disk);
        let is_folder = found.as_ref().is_ok_and(fs::Metadata::is_dir);
        // Of several links to one folder one is followed, and only a look at everything tells which.
        let is_link = disk.is_symlink();
        if is_folder && is_link || !is_link && self.linked.contains(inner) {
            if !(is_folder && is_link) {
                self.linked.remove(inner);
            }
            return self.look_at_all(format!("{inner} is or was a link to a folder"));
        }
        if is_folder {
            if leads_back(&self.root, inner).unwrap_or(true) {
                return;
            }
            self.shared.lock().busy = true;
            let found = self.watch_below(inner);
            let mut pending = self.shared.lock();
            for file in found.as_ref().map_or(&[][..], |found| &found.files) {
                let event = pending.note();
                pending.files.insert(file.path.clone(), event);
            }
            pending.busy = false;
            drop(pending);
            if let Err(why) = found {
                return self.lose(why);
            }
        } else {
            let mut pending = self.shared.lock();
            let event = pending.note();
            if found.is_err() && fs::symlink_metadata(disk).is_err() {
                pending.leave(inner);
            } else if disk.is_symlink() {
                pending.links.insert(path.clone());
            }
            // Also where it is gone: a look at everything may have seen it meanwhile.
            pending.files.insert(path, event);
        }
        self.shared.changed.notify_all();
    }
}

/// Says whether an event can mean other bytes, names or rights; opening and reading do not.
fn tells_of_a_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(MetadataKind::AccessTime)) => false,
        _ => true,
    }
}

/// Says whether an event means that something left its name.
fn leaves(kind: EventKind) -> bool {
    let is_rename = matches!(kind, EventKind::Modify(ModifyKind::Name(mode)) if mode != RenameMode::To);
    is_rename || matches!(kind, EventKind::Remove(_))
}

fn is_missing(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Says in one sentence why there are no events.
fn said(error: &notify::Error) -> String {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the system's watches are used up; `sysctl fs.inotify.max_user_watches` says how many there are"
                .to_owned()
        }
        _ => error.to_string(),
    }
}
