//! Link targets of a batch: the files that links resolve to.

use std::sync::Arc;

use sidenote_catalog::{FileId, LinkGroup};
use sidenote_links::dialect::LinkDialects;
use sidenote_links::dialect_evidence::LinkEvidence;
use sidenote_links::resolve::{FileNames, LinkTarget, name_keys};
use sidenote_markdown::link::LinkSyntax;
use sidenote_markdown::path::{NotePath, key};

/// The files that links can resolve to.
pub(super) struct Targets {
    names: FileNames,
    /// The number of each file, in the order of `names`.
    ids: Vec<FileId>,
    /// The path of the vault in its repository.
    below_repository: String,
}

impl Targets {
    /// Creates the table of these files.
    pub(super) fn new<'a>(
        dialects: &Arc<LinkDialects>,
        below_repository: &str,
        table: impl Iterator<Item = (&'a NotePath, FileId)>,
    ) -> Self {
        let (files, _) = table.size_hint();
        let names = FileNames::with_capacity(files).with_dialects(Arc::clone(dialects));
        let below_repository = below_repository.to_owned();
        let mut targets = Self { names, ids: Vec::with_capacity(files), below_repository };
        for (path, id) in table {
            if targets.names.insert_new(path) {
                targets.ids.push(id);
            }
        }
        targets
    }

    /// Returns the target of a link in the file `source`, whose number is `id`, and the dialects that the link speaks for.
    pub(super) fn find(
        &self,
        id: FileId,
        source: &NotePath,
        link: &LinkGroup,
    ) -> (Option<FileId>, LinkEvidence) {
        let (target, evidence) =
            self.names.target_and_evidence(&link.linkpath, link.syntax, source, &self.below_repository);
        let target = match target {
            _ if link.linkpath.is_empty() => Some(id),
            Some(LinkTarget::File(found, _)) => match found.index {
                Some(index) => self.ids.get(index as usize).copied(),
                None => Some(id),
            },
            Some(LinkTarget::Folder(_) | LinkTarget::Elsewhere(_)) | None => None,
        };
        (target, evidence)
    }
}

/// Returns the keys of the file names that a link can mean.
pub(super) fn link_names(link: &LinkGroup) -> Vec<String> {
    if link.syntax == LinkSyntax::Exact {
        vec![key(link.linkpath.rsplit('/').next().unwrap_or(""))]
    } else {
        name_keys(&link.linkpath)
    }
}
