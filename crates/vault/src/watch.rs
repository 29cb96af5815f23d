//! The file watcher: collects file system events into batches of changed paths. The only user of notify.
//!
//! A batch names paths, not what happened to them; the caller reads the files. Lost events, missing watches and a
//! missing root become a request to rescan the vault, with a reason.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind, RenameMode};
use notify::{Config, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher as _};
use sidenote_base::error::{Error, Result};
use sidenote_base::{platform, safe_open};
use sidenote_markdown::path::NotePath;

use crate::Vault;
use crate::below::lies_in;
use crate::flush_request::{FlushRequest, FollowingSign};
use crate::scan::{FileStat, Scan, ScanOptions, leads_back, on_disk, scan};

/// A batch is complete after this long without events; one save causes several.
const DEBOUNCE: Duration = Duration::from_millis(25);
/// The longest time that a batch waits for the events to stop.
const MAX_DELAY: Duration = Duration::from_millis(100);
/// The interval of rescans while the system delivers no events.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The interval at which the watches are set up again while the system delivers no events.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// The interval at which the targets of symbolic links are checked.
const LINK_INTERVAL: Duration = Duration::from_secs(5);
/// How long [`Watcher::flush`] waits for the event of its marker file.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// The name of the sidecar folder that holds the marker files of [`Watcher::flush`].
pub const MARKER_DIR: &str = "pulse";

/// The paths of a vault that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchBatch {
    /// The files that were created or changed.
    pub files: Vec<NotePath>,
    /// The paths of files and folders that were removed.
    pub gone: Vec<String>,
    /// The reason for a rescan of the vault, if one is needed.
    pub rescan: Option<String>,
    /// The time of the first event.
    pub since: Option<Instant>,
}

impl WatchBatch {
    /// Says whether the batch contains no change.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.gone.is_empty() && self.rescan.is_none()
    }
}

/// The events that were not taken yet.
#[derive(Debug, Default)]
struct PendingEvents {
    /// Each file with the sequence number of its last event.
    files: HashMap<NotePath, u64>,
    /// The paths that were removed.
    gone: BTreeSet<String>,
    /// The new paths of those that only moved.
    moved: HashSet<String>,
    /// The paths that were created since the last batch. If one is removed again, the caller never learns of it.
    come: HashSet<String>,
    rescan: Option<String>,
    /// The symbolic links to files, whose targets cause no events.
    links: BTreeSet<NotePath>,
    /// The symbolic links whose target is missing. It may come back as a folder, which causes no event either.
    dangling: BTreeSet<NotePath>,
    events: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Whether a new folder is being listed, so that the events are incomplete.
    busy: bool,
    /// Whether the last batch left files for the next one.
    is_cut: bool,
    /// The number of the newest marker file whose event arrived.
    newest_marker: u64,
    /// The requests of other processes whose events arrived and that wait for an answer.
    requests: Vec<FlushRequest>,
    /// The reason why there are no events, if there are none.
    blind: Option<String>,
    stopped: bool,
}

impl PendingEvents {
    fn note(&mut self) -> u64 {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.events += 1;
        self.events
    }

    /// Records that a path was created or removed. Its present content is read separately.
    fn record(&mut self, kind: EventKind, name: &str) {
        if matches!(kind, EventKind::Create(_)) && !self.gone.contains(name) {
            self.come.insert(name.to_owned());
        } else if is_removal(kind) {
            self.note();
            self.leave(name);
        }
    }

    fn leave(&mut self, name: &str) {
        if !self.come.contains(name) {
            self.gone.insert(name.to_owned());
        }
    }

    /// Records that one path was renamed to another.
    fn record_move(&mut self, from: &str, to: &str) {
        if self.gone.contains(from) {
            self.moved.insert(to.to_owned());
        }
    }

    /// Says whether another process asks for the pending events, and they are complete.
    fn is_asked(&self) -> bool {
        !self.requests.is_empty() && !self.busy
    }

    /// Returns the time at which the pending events become a batch; `None` if there are none.
    fn due(&self) -> Option<Instant> {
        let is_empty = self.files.is_empty() && self.gone.is_empty() && self.rescan.is_none();
        let (first, last) = self.first.zip(self.last).filter(|_| !is_empty && !self.busy)?;
        Some((last + DEBOUNCE).min(first + MAX_DELAY))
    }

    /// Takes the pending events. Of more than `most` files, only the newest and those that moved are taken.
    fn take(&mut self, most: usize) -> WatchBatch {
        let since = self.first;
        self.come.clear();
        let rescan = self.rescan.take();
        if rescan.is_some() {
            self.files.clear();
            self.gone.clear();
        }
        self.is_cut = self.files.len() > most;
        let moved = std::mem::take(&mut self.moved);
        let gone = std::mem::take(&mut self.gone).into_iter().collect();
        if self.files.len() <= most {
            (self.first, self.last) = (None, None);
            let files = std::mem::take(&mut self.files).into_keys().collect();
            return WatchBatch { files, gone, rescan, since };
        }
        let mut ages: Vec<u64> = self.files.values().copied().collect();
        let at = ages.len() - most.clamp(1, ages.len());
        let oldest = *ages.select_nth_unstable(at).1;
        // A move is recognized only if both its paths are in one batch.
        let files = self.files.extract_if(|path, event| *event >= oldest || is_under(path, &moved));
        WatchBatch { files: files.map(|(path, _)| path).collect(), gone, rescan, since }
    }
}

/// Says whether a path or one of its parent folders is in `names`.
fn is_under(path: &NotePath, names: &HashSet<String>) -> bool {
    let path = path.as_str();
    let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
    !names.is_empty() && folders.chain([path]).any(|name| names.contains(name))
}

#[derive(Debug, Default)]
struct WatchState {
    pending: Mutex<PendingEvents>,
    changed: Condvar,
}

impl WatchState {
    fn lock(&self) -> MutexGuard<'_, PendingEvents> {
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

/// A file watcher that runs until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<WatchState>,
    root: PathBuf,
    /// The folder of the marker files.
    markers: PathBuf,
    /// The number of the marker file; 0 while there is none.
    mark: Mutex<u64>,
    /// The sign that this process answers the requests of others, while it does.
    sign: Mutex<Option<FollowingSign>>,
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Event(notify::Result<notify::Event>),
    /// Symbolic links lead to folders that were missing before.
    FoldersCameBack,
    Stop,
}

impl Watcher {
    /// Watches a vault and Obsidian's settings in it. `sidecar` is a writable folder outside the notes.
    ///
    /// If the system delivers no events, the watcher requests a rescan periodically.
    ///
    /// # Errors
    /// `Internal` if the thread cannot be started.
    pub fn start(vault: &Vault, sidecar: &Path) -> Result<Self> {
        let shared = Arc::new(WatchState::default());
        let (messages, received) = channel();
        let markers = sidecar.join(MARKER_DIR);
        let mut gatherer = EventCollector {
            root: vault.root().to_owned(),
            settings: vault.config_folder(),
            markers: markers.clone(),
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
            .map_err(|error| Error::internal("cannot start the file watcher").with_source(error))?;
        let root = vault.root().to_owned();
        let (mark, sign) = (Mutex::default(), Mutex::default());
        Ok(Self { shared, root, markers, mark, sign, messages, thread: Some(thread) })
    }

    /// Takes the next batch if it is complete: if there were no events for a moment, if it is old enough, or if another
    /// process asks for it. Of more than `most` files the newest come first, so that an edit does not wait for a bulk
    /// copy. Returns with it the requests of other processes, which must be answered once it is indexed.
    pub fn next(&self, most: usize) -> (Option<WatchBatch>, Vec<FlushRequest>) {
        let mut pending = self.shared.lock();
        if pending.is_asked() {
            let batch = pending.take(most);
            // What is left after a cut was changed before the request, too.
            let requests = if pending.is_cut { Vec::new() } else { std::mem::take(&mut pending.requests) };
            let batch = self.with_links(pending, batch);
            return (Some(batch).filter(|batch| !batch.is_empty()), requests);
        }
        let is_due = pending.due().is_some_and(|due| due <= Instant::now());
        (is_due.then(|| pending.take(most)), Vec::new())
    }

    /// Answers requests.
    pub fn answer(&self, requests: &[FlushRequest]) {
        requests.iter().for_each(|request| request.answer(&self.markers));
    }

    /// Says whether this process answers the requests of others, which it can while the system delivers events.
    ///
    /// # Errors
    /// The error of the sign, which cannot be written.
    pub fn offer_answers(&self) -> std::io::Result<()> {
        let mut sign = self.sign.lock().unwrap_or_else(PoisonError::into_inner);
        let is_blind = self.shared.lock().blind.is_some();
        if is_blind {
            *sign = None;
        } else if sign.is_none() {
            *sign = Some(FollowingSign::put(&self.markers)?);
        }
        Ok(())
    }

    /// Waits until a batch is complete or another process asks for it, at most for `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let end = Instant::now() + timeout;
        let mut pending = self.shared.lock();
        loop {
            let due = pending.due().map_or(end, |due| due.min(end));
            let left = due.saturating_duration_since(Instant::now());
            if pending.stopped || left.is_zero() || pending.is_asked() {
                return;
            }
            pending =
                self.shared.changed.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Requests a rescan of the vault.
    pub fn rescan(&self, why: String) {
        self.shared.rescan(why);
    }

    /// Takes all events up to now; `None` if the system does not deliver them.
    ///
    /// It renames a marker file in the sidecar. Events arrive in order, so once the event of the marker arrives, all
    /// earlier ones have arrived.
    pub fn flush(&self) -> Option<WatchBatch> {
        if self.shared.lock().blind.is_some() {
            return None;
        }
        let number = self.renumber_mark()?;
        let end = Instant::now() + FLUSH_TIMEOUT;
        let mut pending = self.shared.lock();
        while pending.newest_marker < number && pending.blind.is_none() && !pending.stopped {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            pending =
                self.shared.changed.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let told = pending.newest_marker >= number;
        if told {
            tracing::trace!("the system reported the marker file of the watcher");
        } else {
            tracing::debug!("the system did not report the marker file of the watcher; the vault is scanned");
        }
        if !told {
            return None;
        }
        let batch = pending.take(usize::MAX);
        Some(self.with_links(pending, batch))
    }

    /// Adds to a batch what causes no events: the files behind symbolic links, and folders that came back behind them.
    fn with_links(&self, pending: MutexGuard<'_, PendingEvents>, mut batch: WatchBatch) -> WatchBatch {
        batch.files.extend(pending.links.iter().cloned());
        let dangling = pending.dangling.clone();
        drop(pending);
        if dangling.iter().any(|path| leads_to_folder(&self.root, path)) {
            batch.rescan.get_or_insert_with(|| FOLDER_CAME_BACK.to_owned());
            // Where the thread has ended, nobody watches the folder.
            drop(self.messages.send(Message::FoldersCameBack));
        }
        batch
    }

    /// Gives the marker file the next number, and returns it; `None` if that is not possible.
    ///
    /// A new file each time would be slow where a file system, such as ext4, does not reuse the numbers of removed files
    /// for some seconds: it passes over all of them.
    fn renumber_mark(&self) -> Option<u64> {
        let mut current = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, number) = (*current, *current + 1);
        let path = |number| self.markers.join(mark(number));
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        let renamed = before > 0 && fs::rename(path(before), path(number)).is_ok();
        // Another process removes the marker files of processes that were killed, and may take this one for one of them.
        if !renamed {
            safe_open::create(&path(number)).ok()?;
        }
        *current = number;
        Some(number)
    }

    /// Returns the number of pending paths.
    pub fn waiting(&self) -> usize {
        let pending = self.shared.lock();
        pending.files.len() + pending.gone.len() + usize::from(pending.rescan.is_some())
    }

    /// Stops the watcher and wakes every thread that waits for a batch.
    pub fn stop(&self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop();
        // If the thread has ended, nobody receives the message.
        drop(self.messages.send(Message::Stop));
        if self.thread.take().map(JoinHandle::join).is_some_and(|joined| joined.is_err()) {
            tracing::error!("the file watcher panicked; changes are found by the next command");
        }
        let number = *self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
        if number > 0
            && let Err(error) = fs::remove_file(self.markers.join(mark(number)))
        {
            tracing::debug!(%error, "a marker file of the watcher could not be removed");
        }
    }
}

/// Why the vault is scanned when the target of a symbolic link came back as a folder.
const FOLDER_CAME_BACK: &str = "a symbolic link leads to a folder that was missing";

/// Says whether a symbolic link of the vault leads to a folder now.
fn leads_to_folder(root: &Path, link: &NotePath) -> bool {
    root.join(link.as_str()).is_dir()
}

/// Returns the name of a marker file of this process.
fn mark(number: u64) -> String {
    format!("{}-{number}", std::process::id())
}

/// The state of the thread that receives the system's events.
struct EventCollector {
    root: PathBuf,
    settings: PathBuf,
    markers: PathBuf,
    options: ScanOptions,
    /// The symbolic links to folders, followed or not, as paths from the root.
    linked: BTreeSet<String>,
    shared: Arc<WatchState>,
    messages: Sender<Message>,
    watcher: Option<RecommendedWatcher>,
}

impl EventCollector {
    /// Sets up the watches, or records why that is not possible.
    fn begin(&mut self) {
        self.watcher = None;
        let messages = self.messages.clone();
        // The receiver may be dropped shortly before the watcher.
        let send = move |event| drop(messages.send(Message::Event(event)));
        // Whoever only reads the files causes no event.
        let changes = Config::default().with_event_kinds(EventKindMask::CORE | EventKindMask::ACCESS_CLOSE);
        let blind = match RecommendedWatcher::new(send, changes) {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.watch_all().err()
            }
            Err(error) => Some(describe_error(&error)),
        };
        if blind.is_some() {
            self.watcher = None;
        }
        // The watches stay: they tell at once what this machine changes.
        let blind = blind.or_else(|| {
            let kind = platform::unnotified_file_system(&self.root)?;
            Some(format!(
                "changes by other machines and programs are not reported by this file system ({kind})"
            ))
        });
        let mut pending = self.shared.lock();
        if let Some(why) = &blind
            && pending.blind.as_ref() != Some(why)
        {
            tracing::warn!("the vault is rescanned every {} s: {why}", POLL_INTERVAL.as_secs());
        }
        pending.blind = blind;
        drop(pending);
        self.shared.changed.notify_all();
    }

    fn watch_all(&mut self) -> std::result::Result<(), String> {
        // Only the last level is created: a vault or index that is missing for the moment must not be recreated.
        match fs::create_dir(&self.markers) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(format!("cannot create {}: {error}", self.markers.display()));
            }
            _ => {}
        }
        if !fs::symlink_metadata(&self.markers).is_ok_and(|found| found.is_dir()) {
            return Err(format!("{} is not a folder", self.markers.display()));
        }
        self.clear_marks();
        let markers = self.markers.clone();
        self.add(&markers)?;
        self.watch_below("")?;
        let settings = self.settings.clone();
        if settings.is_dir() { self.add(&settings) } else { Ok(()) }
    }

    /// Removes the marker files of processes that were killed.
    fn clear_marks(&self) {
        let Ok(entries) = fs::read_dir(&self.markers) else { return };
        let is_old = |entry: &fs::DirEntry| {
            if entry.file_name().to_str().is_some_and(FollowingSign::is_own) {
                return false;
            }
            let made = entry.metadata().and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > RETRY_INTERVAL))
        };
        for entry in entries.flatten().filter(is_old) {
            #[expect(clippy::disallowed_methods, reason = "the sidecar's own file")]
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::debug!(%error, "a marker file of the watcher could not be removed");
            }
        }
    }

    fn add(&mut self, folder: &Path) -> std::result::Result<(), String> {
        if self.is_covered(folder) {
            return Ok(());
        }
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let mode = if platform::WATCHES_SUBFOLDERS && folder.starts_with(&self.root) {
            RecursiveMode::Recursive
        } else {
            RecursiveMode::NonRecursive
        };
        match watcher.watch(folder, mode) {
            // A folder that was removed again needs no watch.
            Err(error) if is_missing(&error) => Ok(()),
            watched => watched.map_err(|error| describe_error(&error)),
        }
    }

    /// Says whether the watch of the root reports the events of a folder: where one watch covers all subfolders, and no
    /// link leads to the folder.
    fn is_covered(&self, folder: &Path) -> bool {
        let inner = folder.strip_prefix(&self.root).ok().and_then(platform::slash_path);
        platform::WATCHES_SUBFOLDERS
            && inner.is_some_and(|inner| !inner.is_empty() && !self.linked.contains(&inner))
    }

    /// Watches a folder and those of its subfolders that a scan lists, and returns the scan.
    fn watch_below(&mut self, path: &str) -> std::result::Result<Scan, String> {
        let mut watched = BTreeSet::new();
        let options = ScanOptions { below: path.to_owned(), ..self.options.clone() };
        loop {
            let found = scan(&self.root, &options);
            self.linked.extend(found.gaps.followed.iter().map(|link| link.path.clone()));
            let fresh: Vec<String> =
                found.folders.iter().filter(|folder| !watched.contains(*folder)).cloned().collect();
            if fresh.is_empty() {
                let is_linked = |file: &&FileStat| file.symlink;
                let links = found.files.iter().filter(is_linked).map(|file| file.path.clone());
                // The target of a link may be missing only for the moment.
                let lost = found.gaps.unreadable.keys().filter_map(|lost| NotePath::from_disk(lost));
                let lost = lost.filter(|path| self.root.join(path.as_str()).is_symlink());
                let lost: Vec<NotePath> = lost.collect();
                let is_dangling = |path: &&NotePath| fs::metadata(self.root.join(path.as_str())).is_err();
                // A drive that does not answer must not keep others from the events.
                let dangling: Vec<NotePath> = lost.iter().filter(is_dangling).cloned().collect();
                let mut pending = self.shared.lock();
                pending.dangling.extend(dangling);
                pending.links.extend(links.chain(lost));
                drop(pending);
                return Ok(found);
            }
            // A file that is created between the scan and the watch is found by the next scan.
            for folder in fresh {
                if self.shared.lock().stopped {
                    return Ok(found);
                }
                self.add(&on_disk(&self.root, &folder))?;
                watched.insert(folder);
            }
        }
    }

    /// Reports the files behind symbolic links as changed, because they cause no events, and watches folders that came back
    /// behind them.
    fn check_link_targets(&mut self) {
        let dangling = self.shared.lock().dangling.clone();
        let folders: Vec<_> = dangling.iter().filter(|path| leads_to_folder(&self.root, path)).collect();
        let mut pending = self.shared.lock();
        for path in &folders {
            pending.dangling.remove(*path);
            pending.links.remove(*path);
        }
        if !folders.is_empty() {
            drop(pending);
            return self.rescan_all(FOLDER_CAME_BACK.to_owned());
        }
        let event = pending.note();
        let links = pending.links.clone();
        pending.files.extend(links.into_iter().map(|path| (path, event)));
        drop(pending);
        self.shared.changed.notify_all();
    }

    fn run(mut self, messages: &Receiver<Message>) {
        let (mut asked, mut polled) = (Instant::now(), Instant::now());
        loop {
            // Where the system reports only some changes, such as those of this machine, the watches stay.
            let is_blind = self.watcher.is_none() || self.shared.lock().blind.is_some();
            let message = if is_blind {
                messages.recv_timeout(POLL_INTERVAL.saturating_sub(polled.elapsed()))
            } else if self.shared.lock().links.is_empty() {
                messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                messages.recv_timeout(LINK_INTERVAL)
            };
            match message {
                // The events that still wait are dropped.
                _ if self.shared.lock().stopped => break,
                Ok(Message::Event(event)) => self.handle(event),
                Ok(Message::FoldersCameBack) => self.check_link_targets(),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if !is_blind => self.check_link_targets(),
                Err(RecvTimeoutError::Timeout) => {
                    polled = Instant::now();
                    if self.watcher.is_none() && asked.elapsed() >= RETRY_INTERVAL {
                        asked = Instant::now();
                        self.begin();
                    }
                    self.shared.rescan("the system delivers no events".to_owned());
                }
            }
        }
    }

    /// Switches to periodic rescans until the system delivers events again.
    fn switch_to_polling(&mut self, why: String) {
        self.watcher = None;
        tracing::warn!("the vault is rescanned every {} s: {why}", POLL_INTERVAL.as_secs());
        self.shared.lock().blind = Some(why.clone());
        self.shared.rescan(why);
    }

    /// Requests a rescan, and watches the folders that may have been created meanwhile.
    fn rescan_all(&mut self, why: String) {
        match self.watch_below("") {
            Ok(_) => self.shared.rescan(why),
            Err(why) => self.switch_to_polling(why),
        }
    }

    fn handle(&mut self, event: notify::Result<notify::Event>) {
        let event = match event {
            Ok(event) => event,
            Err(error) if is_missing(&error) => return,
            Err(error) => return self.rescan_all(describe_error(&error)),
        };
        if event.need_rescan() {
            return self.rescan_all("the system lost events".to_owned());
        }
        if !is_change(event.kind) {
            return;
        }
        for path in &event.paths {
            if let Some(name) = path.strip_prefix(&self.markers).ok().and_then(Path::to_str) {
                self.see_marker(name);
            } else if *path == self.settings {
                let settings = self.settings.clone();
                if let Err(why) = self.add(&settings) {
                    return self.switch_to_polling(why);
                }
                self.shared.rescan("Obsidian's settings changed".to_owned());
            } else if path.starts_with(&self.settings) {
                let is_setting = path.extension().is_some_and(|extension| extension == "json");
                if is_setting && !path.ends_with("workspace.json") {
                    self.shared.rescan("Obsidian's settings changed".to_owned());
                }
            } else if let Ok(inner) = path.strip_prefix(&self.root) {
                match platform::slash_path(inner).as_deref() {
                    Some(inner) if lies_in(inner, &self.options.hidden) => {}
                    Some("") if !self.root.is_dir() => {
                        return self.switch_to_polling(format!("{} is gone", self.root.display()));
                    }
                    Some(inner) => {
                        // Another file may already have its name. That must not hide the removal.
                        if NotePath::from_disk(inner).is_some() {
                            self.shared.lock().record(event.kind, inner);
                        }
                        self.record_path(path, inner);
                    }
                    None => {}
                }
            }
        }
        if let (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) =
            (event.kind, &*event.paths)
            && let [Ok(from), Ok(to)] = [from, to].map(|path| path.strip_prefix(&self.root))
            && let [Some(from), Some(to)] = [from, to].map(platform::slash_path)
        {
            self.shared.lock().record_move(&from, &to);
        }
    }

    fn see_marker(&self, name: &str) {
        if let Some(request) = FlushRequest::of_file(name) {
            let mut pending = self.shared.lock();
            if !pending.requests.contains(&request) {
                pending.requests.push(request);
            }
            drop(pending);
            self.shared.changed.notify_all();
            return;
        }
        let own = name.strip_prefix(&format!("{}-", std::process::id())).and_then(|n| n.parse::<u64>().ok());
        if let Some(number) = own {
            let mut pending = self.shared.lock();
            pending.newest_marker = pending.newest_marker.max(number);
            drop(pending);
            self.shared.changed.notify_all();
        }
    }

    /// Records an event of one path of the vault.
    fn record_path(&mut self, disk: &Path, inner: &str) {
        let Some(path) = NotePath::from_disk(inner) else { return };
        let found = fs::metadata(disk);
        let is_folder = found.as_ref().is_ok_and(fs::Metadata::is_dir);
        // Of several links to one folder only one is followed, and only a rescan shows which.
        let is_link = disk.is_symlink();
        if is_folder && is_link || !is_link && self.linked.contains(inner) {
            if !(is_folder && is_link) {
                self.linked.remove(inner);
            }
            return self.rescan_all(format!("{inner} is or was a symbolic link to a folder"));
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
                return self.switch_to_polling(why);
            }
        } else {
            let mut pending = self.shared.lock();
            let event = pending.note();
            if found.is_err() && fs::symlink_metadata(disk).is_err() {
                pending.leave(inner);
            } else if disk.is_symlink() {
                pending.links.insert(path.clone());
                if found.is_err() {
                    pending.dangling.insert(path.clone());
                }
            }
            // A removed file is added too, because a rescan may have seen it meanwhile.
            pending.files.insert(path, event);
        }
        self.shared.changed.notify_all();
    }
}

/// Says whether an event can mean a change of content, name or permissions.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(MetadataKind::AccessTime)) => false,
        _ => true,
    }
}

/// Says whether an event means that a path was removed or renamed away.
fn is_removal(kind: EventKind) -> bool {
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

/// Describes in one sentence why there are no events.
fn describe_error(error: &notify::Error) -> String {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the system has no watches left; raise `sysctl fs.inotify.max_user_watches`".to_owned()
        }
        _ => error.to_string(),
    }
}
