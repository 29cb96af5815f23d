//! One side of a comparison: the vault as a commit has it, or as it is on the disk.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use serde::Serialize;
use sidenote_base::clock::Timestamp;
use sidenote_base::error::{ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_config::Config;
use sidenote_git::{CommitInfo, NamedCommit, ObjectId, Objects};
use sidenote_links::dialect::LinkDialects;
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_links::note_diff::LinkEnd;
use sidenote_links::resolve::{FileNames, LinkTarget};
use sidenote_links::rewrite::parse;
use sidenote_markdown::decode::decode;
use sidenote_markdown::link::{Link, LinkSyntax};
use sidenote_markdown::note::Note;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;
use sidenote_vault::link_dialects::{DialectRules, is_marker, sample};
use sidenote_vault::revision_files::RevisionSettings;
use sidenote_vault::scan::scan;

use crate::revision::Revisions;
use crate::revision::renames::is_document;

/// So many files are read at a time.
pub(super) const GROUP: usize = 256;

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffSide {
    /// The revision as it was named; `files` for the files as they are.
    pub revision: String,
    /// The id of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The time of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Timestamp>,
}

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In the repository.
    Blob(ObjectId),
    /// On the disk.
    Disk,
}

/// The vault on one side.
pub(super) struct Side {
    pub(super) shown: DiffSide,
    /// The commit; `None` for the files on the disk.
    pub(super) commit: Option<ObjectId>,
    /// All files.
    pub(super) files: BTreeMap<NotePath, Place>,
    vault: Arc<Vault>,
    objects: Option<Objects>,
    names: SideNames,
}

impl Side {
    /// Reads the state of the vault in a commit, or on the disk.
    ///
    /// # Errors
    /// Those of running git; `Io` if the cache cannot be written; `Invalid` if the settings of the commit cannot be parsed.
    pub(super) fn of(revisions: &Revisions, named: Option<NamedCommit>) -> Result<Self> {
        match named {
            Some(named) => Self::of_commit(revisions, named),
            None => Self::of_files(revisions),
        }
    }

    fn of_commit(revisions: &Revisions, named: NamedCommit) -> Result<Self> {
        let repository = &revisions.repository;
        let info: CommitInfo = repository.describe(&named.id)?;
        let config_dir = &revisions.config.vault.config_dir;
        // The folder is only needed until the dialects are known.
        let settings = RevisionSettings::write(repository, &info, config_dir)?;
        let config = Config::load(settings.root(), &[])
            .map_err(|error| error.of(&format!("the settings in {}", named.name)))?;
        let vault = Vault::open(settings.root())?.with_config_dir(config_dir)?.with_link_rules(&config.links);
        let files = repository.tree(&named.id)?.into_iter().filter(|file| !file.is_link);
        let files = files.filter_map(|file| Some((NotePath::from_disk(&file.path)?, Place::Blob(file.blob))));
        let mut side = Self {
            shown: DiffSide {
                revision: named.name,
                commit: Some(named.id.to_string()),
                date: Some(Timestamp::from_millis(info.committed_at.saturating_mul(1000))),
            },
            commit: Some(named.id),
            files: files.collect(),
            vault: Arc::new(vault),
            objects: Some(repository.objects()?),
            names: SideNames::default(),
        };
        side.find_names()?;
        Ok(side)
    }

    fn of_files(revisions: &Revisions) -> Result<Self> {
        let vault = &revisions.vault;
        let scanned = scan(vault.root(), &vault.scan_options());
        for error in scanned.gaps.unreadable.values() {
            tracing::warn!("{error}; what is there counts as removed");
        }
        let mut side = Self {
            shown: DiffSide { revision: "files".to_owned(), commit: None, date: None },
            commit: None,
            files: scanned.files.into_iter().map(|file| (file.path, Place::Disk)).collect(),
            vault: Arc::clone(vault),
            objects: None,
            names: SideNames::default(),
        };
        side.find_names()?;
        Ok(side)
    }

    /// Builds the table by which links are followed.
    fn find_names(&mut self) -> Result<()> {
        let mut names = FileNames::with_capacity(self.files.len());
        for path in self.files.keys() {
            names.insert(path);
            names.insert_folders_above(path);
        }
        let markers: Vec<NotePath> = self.files.keys().filter(|path| is_marker(path)).cloned().collect();
        let vault = Arc::clone(&self.vault);
        let rules = DialectRules::of(&vault).in_repository();
        self.names =
            SideNames(rules.decide_for(names, &markers, None, |names| {
                self.count_links(names, rules.below_repository())
            })?);
        Ok(())
    }

    /// Counts links by the dialects that they speak for.
    fn count_links(&mut self, names: &FileNames, below_repository: &str) -> Result<DialectCounts> {
        let notes: Vec<NotePath> = sample(self.files.keys().filter(|path| path.is_note()).cloned().collect());
        let mut counts = DialectCounts::default();
        for group in notes.chunks(GROUP) {
            let contents = self.read(group)?;
            let both: Vec<_> = group.iter().zip(contents).collect();
            let count = |(): &mut (), (path, content): &(&NotePath, Option<Vec<u8>>)| {
                let decoded = decode(content.as_deref().unwrap_or_default());
                names.count_evidence(&Note::parse(&decoded.text), path, below_repository)
            };
            counts = parallel::map(&both, 16, || (), count).into_iter().fold(counts, DialectCounts::plus);
        }
        Ok(counts)
    }

    /// Reads files, in order. A file that is not there any more, or cannot be read, has no content.
    ///
    /// # Errors
    /// Those of running git.
    pub(super) fn read(&mut self, paths: &[NotePath]) -> Result<Vec<Option<Vec<u8>>>> {
        let Some(objects) = &mut self.objects else {
            let vault = &self.vault;
            let read = |path: &NotePath| match vault.read(path) {
                Ok(content) => Some(content),
                Err(error) => {
                    if error.kind() != ErrorKind::NotFound {
                        tracing::warn!("{error}; it counts as empty");
                    }
                    None
                }
            };
            return Ok(paths.iter().map(read).collect());
        };
        let blobs: Vec<Option<ObjectId>> = paths
            .iter()
            .map(|path| match self.files.get(path) {
                Some(Place::Blob(blob)) => Some(blob.clone()),
                _ => None,
            })
            .collect();
        let known: Vec<ObjectId> = blobs.iter().flatten().cloned().collect();
        let mut contents = objects.blobs(&known)?.into_iter();
        Ok(blobs.into_iter().map(|blob| blob.and_then(|_| contents.next().flatten())).collect())
    }

    /// Returns the table by which links are followed.
    pub(super) fn names(&self) -> &SideNames {
        &self.names
    }
}

/// The files of one side, by which links are followed.
#[derive(Debug, Default)]
pub(super) struct SideNames(FileNames);

impl SideNames {
    /// Returns the dialects of the folders.
    pub(super) fn dialects(&self) -> &LinkDialects {
        self.0.dialects()
    }

    /// Returns where each link of a note leads. `identity` gives a path the name by which it is known on both sides.
    pub(super) fn ends(
        &self,
        path: &NotePath,
        note: &Note,
        identity: impl Fn(&str) -> String,
    ) -> Vec<LinkEnd> {
        let place = |found: String| LinkEnd::Place { identity: identity(&found), path: found };
        let end = |link: &Link| match self.0.target(&link.path, link.form.syntax(), path) {
            Some(LinkTarget::File(found, _)) => place(found.path.as_str().to_owned()),
            Some(LinkTarget::Folder(folder)) => place(format!("{folder}/")),
            Some(LinkTarget::Elsewhere(place)) => {
                LinkEnd::Place { identity: format!("\0{place}"), path: place }
            }
            None if self.leads_beyond(link, path) => {
                LinkEnd::Place { identity: format!("\0{}", link.path), path: link.path.clone() }
            }
            None => LinkEnd::Nowhere,
        };
        note.links.iter().map(end).collect()
    }

    /// Returns whether a link that is followed as a path leads out of what the vault contains.
    fn leads_beyond(&self, link: &Link, path: &NotePath) -> bool {
        let unit = self.0.dialects().unit_of(path);
        if link.form.syntax() != LinkSyntax::Markdown || !unit.can_lead_beyond() {
            return false;
        }
        let has_folder = |folder: &str| Ok::<_, Infallible>(self.0.has_folder(folder));
        unit.leads_beyond_files(&link.path, path, has_folder).unwrap_or_else(|never| match never {})
    }
}

/// A note or canvas that was read.
pub(super) struct ReadNote {
    pub(super) text: String,
    pub(super) note: Note,
}

impl ReadNote {
    /// Returns the empty note in place of one that does not exist.
    pub(super) fn none() -> Self {
        Self { text: String::new(), note: Note::default() }
    }

    /// Parses a note or canvas.
    pub(super) fn of(path: &NotePath, content: &[u8]) -> Self {
        debug_assert!(is_document(path), "{path} is a note or a canvas");
        let text = decode(content).text.into_owned();
        Self { note: parse(path, &text), text }
    }
}
