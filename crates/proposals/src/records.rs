//! Reads and writes the files of proposals: one JSON file each in the folder `proposals` of the records. A file is
//! replaced as a whole. A damaged one is named, and the others are read.

use std::io::{self, Write as _};

use sidenote_base::error::{Error, Result};
use sidenote_base::wording::Wording;
use sidenote_journal::Journal;
use sidenote_journal::event::Event;
use sidenote_journal::reader::ReadOrder;
use sidenote_markdown::edit::{Content, FileChange, FileLocation};
use sidenote_markdown::path::NotePath;
use sidenote_vault::dir::Dir;

use crate::Proposals;
use crate::proposal::{Decision, Proposal, ProposalKind, ProposalSource, ProposalState};

/// The folder of proposals in the records.
const FOLDER: &str = "proposals";

/// The largest file of a proposal that is read, in bytes. A plan has at most some texts of notes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// All proposals, and the files that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct StoredProposals {
    /// The proposals, the oldest first.
    pub(crate) proposals: Vec<Proposal>,
    /// A sentence for each file that cannot be read.
    pub(crate) damaged: Vec<String>,
    /// The ids of those that do not exist for the caller.
    pub(crate) unseen_ids: Vec<String>,
    /// The names of these files without their ending, which are the ids of their proposals. What a damaged file proposed
    /// counts as decided.
    pub(crate) damaged_ids: Vec<String>,
}

impl StoredProposals {
    /// Returns what is said of the damaged file of a proposal, if it is damaged.
    pub(crate) fn damaged_as(&self, id: &str) -> Option<String> {
        let at = self.damaged_ids.iter().position(|own| own == id)?;
        self.damaged.get(at).cloned()
    }
}

impl Proposals<'_> {
    /// Returns a time that another one follows whenever proposals are made, edited or decided; `None` while there are none.
    ///
    /// # Errors
    /// `Io` if the folder of proposals cannot be read.
    pub fn last_change(&self) -> Result<Option<(i64, i64)>> {
        let records = self.core.vault.records();
        let Some(folder) = self.core.vault.open_records(&records)? else { return Ok(None) };
        // Each file is replaced as a whole, which changes the folder.
        let entry = folder.entry(FOLDER).map_err(|error| Error::io("read", records.join(FOLDER), error))?;
        Ok(entry.map(|folder| folder.modified))
    }

    /// Reads all proposals.
    pub(crate) fn stored(&self) -> Result<StoredProposals> {
        let mut stored = StoredProposals::default();
        let records = self.core.vault.records();
        let Some(folder) = self.core.vault.open_records(&records.join(FOLDER))? else { return Ok(stored) };
        let failed = |error| Error::io("read", records.join(FOLDER), error);
        let mut names: Vec<String> =
            folder.names().map_err(failed)?.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        for name in names.iter().filter(|name| name.ends_with(".json")) {
            let read = folder.read_at_most(name, LARGEST).map_err(|error| error.to_string());
            let parsed = read.and_then(|bytes| {
                serde_json::from_slice::<Proposal>(&bytes).map_err(|error| error.to_string())
            });
            match parsed {
                Ok(proposal) => stored.proposals.push(self.settled(proposal)?),
                Err(error) => {
                    let path = records.join(FOLDER).join(name);
                    stored.damaged_ids.push(name.trim_end_matches(".json").to_owned());
                    stored.damaged.push(format!(
                        "{} is no proposal and is skipped: {error}; delete it to have the same proposed again",
                        path.display()
                    ));
                }
            }
        }
        self.leave_out_unseen(&mut stored)?;
        stored.proposals.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(stored)
    }

    /// Leaves out what is about files that do not exist for an agent.
    fn leave_out_unseen(&self, stored: &mut StoredProposals) -> Result<()> {
        let vault = &self.core.vault;
        if !vault.is_fenced() {
            return Ok(());
        }
        let exists = |place: &FileLocation| match place {
            FileLocation::Vault(path) => !vault.withholds(path),
            FileLocation::Trash(path) => vault.may_show_trashed(path),
            FileLocation::Settings(_) => true,
        };
        for proposal in std::mem::take(&mut stored.proposals) {
            // A note that is gone may have been hidden, whatever it is called now.
            let is_there = |source: &ProposalSource| {
                NotePath::from_disk(&source.path).is_none_or(|path| self.core.vault.has_entry(&path))
            };
            let mut places = proposal.sources.iter().filter_map(|source| FileLocation::parse(&source.path));
            let is_seen = proposal.sources.iter().all(is_there)
                && places.all(|place| exists(&place))
                && proposal.plan.files.iter().flat_map(FileChange::places).all(exists);
            if is_seen {
                stored.proposals.push(proposal);
            } else {
                stored.unseen_ids.push(proposal.id);
            }
        }
        // The reason can quote a text.
        stored.damaged.clear();
        Ok(())
    }

    /// Returns a proposal as the caller may see it: somebody else, who may know more, worded its reason, and planned it. What it
    /// quotes of a note that is no longer so is left out, because the note may have been hidden then.
    pub(crate) fn as_seen(&self, mut proposal: Proposal) -> Result<Proposal> {
        let vault = &self.core.vault;
        if !vault.is_fenced() {
            return Ok(proposal);
        }
        proposal.plan.remarks.retain(|remark| !vault.withholds(&remark.path));
        let is_of_other = proposal.kind == ProposalKind::Change && proposal.author != self.core.client;
        let is_outdated = !self.changed_sources(&proposal)?.is_empty();
        if is_of_other || is_outdated {
            proposal.reason = format!("{} of {}", proposal.plan.operation, proposal.paths().join(", "));
        }
        if is_outdated {
            (proposal.evidence, proposal.texts, proposal.left_out) = Default::default();
            (proposal.diff, proposal.plan.remarks) = Default::default();
            for file in &mut proposal.plan.files {
                file.content = Content::Keep;
            }
        }
        Ok(proposal)
    }

    /// Counts a proposal as accepted whose change the journal has, because the program ended before that was noted.
    fn settled(&self, proposal: Proposal) -> Result<Proposal> {
        let Some(started) = proposal.started.filter(|_| proposal.state == ProposalState::Waiting) else {
            return Ok(proposal);
        };
        let changed = proposal.paths();
        let sources: Vec<&ProposalSource> =
            proposal.sources.iter().filter(|source| changed.contains(&source.path)).collect();
        let has = |event: &Event, source: &ProposalSource| {
            let mut files = event.files.iter();
            files.any(|file| file.path.to_string() == source.path && file.before == Some(source.hash))
        };
        let journal = Journal::open(&self.core.vault, &self.core.vault.records());
        for event in journal.events(ReadOrder::NewestFirst)?.of_changes() {
            let event = event?;
            if event.at < started {
                break;
            }
            let is_it =
                event.op == proposal.plan.operation && sources.iter().all(|source| has(&event, source));
            if is_it && !sources.is_empty() {
                let decision =
                    Decision { at: event.at, by: self.core.client.clone(), operation: Some(event.id) };
                return Ok(Proposal { state: ProposalState::Accepted, decision: Some(decision), ..proposal });
            }
        }
        Ok(proposal)
    }

    /// Finds a proposal by its id, or by the beginning of it.
    pub(crate) fn named(&self, id: &str) -> Result<Proposal> {
        let wanted = id.trim().to_ascii_lowercase();
        let stored = self.stored()?;
        let begins = |proposal: &Proposal| !wanted.is_empty() && proposal.id.starts_with(&wanted);
        let mut found: Vec<Proposal> = stored.proposals.into_iter().filter(begins).collect();
        match found.len() {
            1 => found.pop().ok_or_else(|| unknown(id)),
            0 => Err(unknown(id)),
            count => Err(Error::new(
                sidenote_base::error::ErrorKind::Exists,
                format!("{count} proposals begin with {id:?}"),
            )
            .with_hint("give more of the id")),
        }
    }

    /// Removes the file of a proposal that no longer fits its notes.
    pub(crate) fn discard(&self, id: &str) -> Result<()> {
        let records = self.core.vault.records();
        let Some(folder) = self.core.vault.open_records(&records.join(FOLDER))? else { return Ok(()) };
        let name = format!("{id}.json");
        folder.remove(&name).map_err(|error| Error::io("remove", records.join(FOLDER).join(&name), error))
    }

    /// Writes the file of a proposal.
    pub(crate) fn store(&self, proposal: &Proposal) -> Result<()> {
        self.core.vault.refuse_read_only()?;
        let records = self.core.vault.records();
        let text = serde_json::to_string_pretty(proposal)
            .map_err(|error| Error::internal("cannot write the proposal as JSON").with_source(error))?;
        let folder = self.core.vault.create_records_dir(&records)?;
        let name = format!("{}.json", proposal.id);
        let path = records.join(FOLDER).join(&name);
        let write = || -> io::Result<()> {
            let folder: Dir = folder.open_or_create_dir(FOLDER)?;
            // The name of the process keeps two of them apart.
            let temporary = format!("{}.{}.tmp", proposal.id, std::process::id());
            if folder.entry(&temporary)?.is_some() {
                folder.remove(&temporary)?;
            }
            let mut file = folder.create(&temporary, 0o666)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_data()?;
            drop(file);
            folder.rename_replace(&temporary, &folder, &name)?;
            folder.sync()
        };
        write().map_err(|error| Error::io("write", path, error))
    }
}

fn unknown(id: &str) -> Error {
    Error::not_found(format!("there is no proposal {id:?}")).with_hint(
        Wording::new("`sidenote proposals` lists those that wait", "")
            .with_tool("proposals", "proposals with the action list lists those that wait"),
    )
}
