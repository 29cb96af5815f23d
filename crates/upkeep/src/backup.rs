//! Creates backups of the vault and restores them.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{Error, Result};
use sidenote_base::safe_open;
use sidenote_change::Changes;
use sidenote_change::operation::ChangeReply;
use sidenote_journal::event::{Event, OP_RESTORE_BACKUP};
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::{ChangeSet, Content, ContentHash, FileChange, FileLocation, Remark};
use sidenote_markdown::path::NotePath;
use sidenote_open_vault::catalog_overlay::View;
use sidenote_open_vault::idempotency::Calls;
use sidenote_open_vault::sync::IndexSync;
use sidenote_vault::backup_folder;
use sidenote_vault::backup_folder::{BackupManifest, PREFIX, UnfinishedBackup};

use crate::Upkeep;
use crate::export::Form;

/// The time after the last backup at which an automatic one is due.
const DAY: i64 = 24 * 3_600_000;

/// The number of new notes at which an automatic backup is due earlier.
const NOTES: usize = 100;

/// A backup.
#[derive(Debug, Clone, Serialize)]
pub struct BackupItem {
    /// The name of the backup.
    pub name: String,
    /// The folder of the backup.
    pub path: PathBuf,
    /// When the backup was created.
    pub at: String,
    /// The number of notes.
    pub notes: usize,
    /// The number of files.
    pub files: usize,
    /// The size in bytes.
    pub bytes: u64,
    /// The files that could not be read or that lead back into the vault, which the backup lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl BackupItem {
    fn of(path: PathBuf, manifest: &BackupManifest) -> Self {
        Self {
            name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            at: manifest.at.clone(),
            notes: manifest.notes,
            files: manifest.files.len(),
            bytes: manifest.bytes(),
            left_out: manifest.left_out.clone(),
            path,
        }
    }
}

/// The result of restoring a backup.
#[derive(Debug, Clone, Serialize)]
pub struct RestoreReply {
    /// The backup.
    pub backup: BackupItem,
    /// The folder of the new vault, unless the backup was restored into this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<PathBuf>,
    /// The change of this vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeReply>,
}

impl Upkeep<'_> {
    /// Returns the folder of backups.
    pub fn backup_folder(&self, given: Option<&Path>) -> PathBuf {
        match given {
            Some(folder) => folder.to_owned(),
            None if self.core.config.backup.dir.as_os_str().is_empty() => {
                self.core.vault.root().join(backup_folder::own_folder())
            }
            // A relative path is relative to the vault.
            None => self.core.vault.root().join(&self.core.config.backup.dir),
        }
    }

    /// Copies the vault and its journal, with an export for other programs, and removes old backups.
    ///
    /// # Errors
    /// `Conflict` if another process makes a backup; `Invalid` if the folder lies among the notes; `Io` if a file
    /// cannot be read or written. An incomplete backup is removed.
    #[tracing::instrument(skip_all)]
    pub fn backup(&self, folder: Option<&Path>) -> Result<BackupItem> {
        if self.core.agent.is_some()
            && let Some(last) = self.backup_of_today(folder)?
        {
            return Ok(last);
        }
        // A backup has all files, whoever asks for it.
        if let Some(owner) = self.core.for_owner() {
            let backup = Upkeep::of(&owner).backup(folder)?;
            return self.as_seen(backup);
        }
        self.core.vault.refuse_read_only()?;
        IndexSync::of(self.core).refresh()?;
        let folder = self.backup_folder(folder);
        let mut draft = UnfinishedBackup::begin(&self.core.vault, &folder)?;
        draft.copy()?;
        draft.export(|out| self.export(Form::Json, out).map(drop))?;
        let now = self.core.clock.now();
        let notes = self.core.index.catalog().totals().notes()?;
        let name = format!("{PREFIX}{}", now.local().strftime("%Y%m%d_%H%M%S"));
        let lock = self.core.vault.lock(&self.core.vault.records())?;
        let (path, manifest) =
            draft.end(&lock, &name, now.exact_rfc3339(), notes, self.core.config.backup.keep)?;
        drop(lock);
        let item = BackupItem::of(path, &manifest);
        let mut event = Event::new("backup", now);
        event.more.insert("backup".to_owned(), Value::from(item.name.as_str()));
        event.more.insert("count".to_owned(), Value::from(notes));
        Calls::of(self.core).sign(&mut event);
        self.core.journal().append(&event)?;
        Ok(item)
    }

    /// Returns a backup with the numbers of the files that exist for the caller, which learns of no others.
    fn as_seen(&self, backup: BackupItem) -> Result<BackupItem> {
        if !self.core.vault.is_fenced() {
            return Ok(backup);
        }
        let catalog = self.core.index.catalog();
        let (notes, paths) = (catalog.totals().notes()?, catalog.paths().all()?);
        let size = |path: &NotePath| self.core.vault.disk_path(path).metadata().map_or(0, |file| file.len());
        let bytes = paths.iter().map(|(path, _)| size(path)).sum();
        Ok(BackupItem { notes, files: paths.len(), bytes, left_out: Vec::new(), ..backup })
    }

    /// Returns the newest backup if it was made within a day. An agent with a rule gets it in place of another one, so that it
    /// cannot push out the backups of a person.
    fn backup_of_today(&self, folder: Option<&Path>) -> Result<Option<BackupItem>> {
        let Some(last) = self.backups(folder)?.into_iter().next() else { return Ok(None) };
        let age = Timestamp::parse(&last.at).map(|at| self.core.clock.now().millis() - at.millis());
        if age.is_none_or(|age| !(0..DAY).contains(&age)) {
            return Ok(None);
        }
        self.as_seen(last).map(Some)
    }

    /// Creates an automatic backup if the settings enable it and it is due: a day or a hundred new notes after the last
    /// one. Returns the backup if one was created.
    ///
    /// # Errors
    /// `Conflict` if another process makes a backup; `Invalid` if the backup folder lies among the notes; `Io` if a
    /// file cannot be read or written.
    pub fn backup_if_due(&self) -> Result<Option<BackupItem>> {
        if let Some(owner) = self.core.for_owner() {
            return Upkeep::of(&owner).backup_if_due();
        }
        if !self.core.config.backup.auto || self.core.vault.is_read_only() {
            return Ok(None);
        }
        let mut last = None;
        for event in self.core.journal().events(ReadOrder::NewestFirst)?.with_any(&["\"backup\""]) {
            let event = event?;
            if event.op == "backup" {
                last = Some(event);
                break;
            }
        }
        let is_due = match last {
            None => true,
            Some(last) => {
                let notes = self.core.index.catalog().totals().notes()?;
                let before = last.more.get("count").and_then(Value::as_u64).unwrap_or(0);
                let before = usize::try_from(before).unwrap_or(usize::MAX);
                // A time in the future was written with a wrong clock.
                !(0..DAY).contains(&(self.core.clock.now().millis() - last.at.millis()))
                    || notes / NOTES > before / NOTES
            }
        };
        if is_due { self.backup(None).map(Some) } else { Ok(None) }
    }

    /// Lists backups, the newest first.
    ///
    /// # Errors
    /// `Io` if the backup folder cannot be listed.
    pub fn backups(&self, folder: Option<&Path>) -> Result<Vec<BackupItem>> {
        let found = backup_folder::list(&self.backup_folder(folder), self.core.vault.root())?;
        Ok(found.into_iter().map(|(path, manifest)| BackupItem::of(path, &manifest)).collect())
    }

    fn find_backup(&self, name: &str, folder: Option<&Path>) -> Result<(PathBuf, BackupManifest)> {
        let given = PathBuf::from(name);
        let path = if given.is_dir() { given } else { self.backup_folder(folder).join(name) };
        if !path.is_dir() {
            return Err(Error::not_found(format!("there is no backup {name:?}")).with_hints(
                "`sidenote backup list` lists them; or give the path of one",
                "ask the user which one is meant",
            ));
        }
        let manifest = backup_folder::open(&path)?;
        Ok((path, manifest))
    }

    /// Restores a backup: into the new or empty folder `to`, or else into this vault. In this vault, missing and
    /// changed files get their former bytes, and new files stay.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Exists` if the folder is not empty; `Corrupt` if the backup is damaged;
    /// `Conflict` if a file changed meanwhile or another process holds the write lock; `Io` if the files cannot be
    /// written.
    #[tracing::instrument(skip_all)]
    pub fn restore_backup(
        &self,
        name: &str,
        folder: Option<&Path>,
        to: Option<&Path>,
        dry_run: bool,
    ) -> Result<RestoreReply> {
        let (path, manifest) = self.find_backup(name, folder)?;
        let item = BackupItem::of(path.clone(), &manifest);
        if let Some(to) = to {
            if !dry_run {
                backup_folder::restore(&self.core.vault, &path, to)?;
            }
            return Ok(RestoreReply { backup: item, to: Some(to.to_owned()), change: None });
        }
        let change = Changes::of(self.core).apply_planned(
            |lock| {
                let plan = self.plan_return(&path, &manifest)?;
                if let Some(lock) = lock {
                    self.bring_journal_back(lock, &path, &manifest)?;
                }
                Ok(plan)
            },
            dry_run,
        )?;
        Ok(RestoreReply { backup: item, to: None, change: Some(change) })
    }

    fn bring_journal_back(
        &self,
        lock: &sidenote_vault::write_lock::WriteLock,
        backup: &Path,
        manifest: &BackupManifest,
    ) -> Result<()> {
        let read = |(path, name, file)| Ok((name, backup_folder::read(backup, path, file)?));
        let months = backup_folder::journal(manifest).map(read).collect::<Result<Vec<_>>>()?;
        months.iter().try_for_each(|(name, bytes)| self.core.journal().restore_lines(lock, name, bytes))
    }

    /// Plans to give missing and changed files the bytes of a backup.
    fn plan_return(&self, folder: &Path, manifest: &BackupManifest) -> Result<ChangeSet> {
        // The view is created only to update the index.
        View::new(self.core)?;
        let mut plan = ChangeSet::new(OP_RESTORE_BACKUP);
        for (name, file) in manifest.of_vault() {
            // Hidden files and symbolic links are restored only to a new vault.
            let Some(path) = NotePath::from_disk(name).filter(|_| file.link.is_none()) else { continue };
            let before = match self.core.vault.open_file(&path) {
                Ok(_) if self.core.vault.disk_path(&path).is_symlink() => {
                    plan.remarks.push(stays(&path, "no plain file stands in its place"));
                    continue;
                }
                Ok(found) => {
                    let mut hasher = blake3::Hasher::new();
                    match hasher.update_reader(found) {
                        Ok(_) => Some(hasher.finalize()),
                        Err(error) => {
                            plan.remarks.push(stays(&path, &error.to_string()));
                            continue;
                        }
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) if safe_open::is_refusal(&error) => {
                    plan.remarks.push(stays(&path, "no plain file stands in its place"));
                    continue;
                }
                // Another file or folder is at its path, or at the path of one of its folders.
                Err(error) => {
                    plan.remarks.push(stays(&path, &error.to_string()));
                    continue;
                }
            };
            if before.is_some_and(|before| file.blake3.as_deref() == Some(before.to_hex().as_str())) {
                continue;
            }
            let bytes = backup_folder::read(folder, &format!("notes/{name}"), file)?;
            let place = FileLocation::Vault(path);
            plan.files.push(FileChange {
                from: before.is_some().then(|| place.clone()),
                to: Some(place),
                before: before.map(|hash| ContentHash::from_bytes(*hash.as_bytes())),
                content: Content::Whole(bytes),
            });
        }
        Ok(plan)
    }
}

/// Returns a remark that a file is not restored, with the reason.
fn stays(path: &NotePath, why: &str) -> Remark {
    let message = format!("it is not restored: {why}");
    Remark { code: "in-the-way".to_owned(), path: path.clone(), line: 1, column: 1, message }
}
