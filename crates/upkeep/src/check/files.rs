//! The files that a check reads: those on the disk, or given ones such as those that git has staged.

use sidenote_base::error::{Error, ErrorKind, Result};
use sidenote_base::parallel;
use sidenote_catalog::CatalogReader;
use sidenote_links::dialect::DialectChoice;
use sidenote_links::dialect_evidence::DialectCounts;
use sidenote_links::resolve::FileNames;
use sidenote_links::rewrite::parse;
use sidenote_markdown::decode::decode;
use sidenote_markdown::path::NotePath;
use sidenote_vault::Vault;
use sidenote_vault::link_dialects::{DialectRules, is_marker, sample};
use sidenote_vault::scan::scan;

use crate::check::problem::Problem;

/// Reads the bytes of a file.
pub(super) type ReadBytes<'a> = dyn Fn(&NotePath) -> Result<Vec<u8>> + Sync + 'a;

/// The files that a check reads.
pub(super) struct CheckedFiles<'a> {
    /// The paths of all files, in order.
    paths: Vec<NotePath>,
    /// One problem for each folder that could not be read.
    gaps: Vec<Problem>,
    read: Box<ReadBytes<'a>>,
}

impl<'a> CheckedFiles<'a> {
    /// Lists the files of a vault on the disk. No index is needed.
    pub(super) fn on_disk(vault: &'a Vault) -> Self {
        let found = scan(vault.root(), &vault.scan_options());
        vault.set_followed_links(found.gaps.followed);
        let gap = |(path, error): (String, Error)| {
            let path = if path.is_empty() { ".".to_owned() } else { path };
            Problem::of_file(path, "unreadable", error.to_string())
        };
        Self {
            paths: found.files.into_iter().map(|file| file.path).collect(),
            gaps: found.gaps.unreadable.into_iter().map(gap).collect(),
            read: Box::new(|path| vault.read(path)),
        }
    }

    /// Lists the files of a vault that an index has as they are on the disk.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if the catalog cannot be read.
    pub(super) fn indexed(vault: &'a Vault, catalog: &CatalogReader) -> Result<Self> {
        let paths = catalog.paths().all()?.into_iter().map(|(path, _)| path).collect();
        Ok(Self::given(paths, Box::new(|path| vault.read(path))))
    }

    /// Creates the list of given files, whose bytes `read` returns.
    pub(super) fn given(mut paths: Vec<NotePath>, read: Box<ReadBytes<'a>>) -> Self {
        paths.sort_unstable();
        Self { paths, gaps: Vec::new(), read }
    }

    /// Returns the paths of all files, in order.
    pub(super) fn paths(&self) -> &[NotePath] {
        &self.paths
    }

    /// Lists the notes and canvases that Obsidian's settings do not exclude.
    pub(super) fn visible(&self, vault: &Vault) -> Vec<&NotePath> {
        let settings = vault.settings();
        let is_visible =
            |path: &&NotePath| (path.is_note() || path.is_canvas()) && !settings.is_excluded(path);
        self.paths.iter().filter(is_visible).collect()
    }

    /// Returns whether there is a file with this path.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.paths.binary_search_by(|known| known.as_str().cmp(path)).is_ok()
    }

    /// Returns the problems of listing the files.
    pub(super) fn gaps(&self) -> &[Problem] {
        &self.gaps
    }

    /// Reads a file. Returns `None` if it was removed meanwhile.
    pub(super) fn read(&self, path: &NotePath) -> Result<Option<Vec<u8>>> {
        match (self.read)(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the names of the files, with the link dialects of the vault. An index can know what its links chose.
    pub(super) fn names(&self, vault: &Vault, known: Option<DialectChoice>) -> Result<FileNames> {
        let mut names = FileNames::with_capacity(self.paths.len());
        for path in &self.paths {
            names.insert(path);
            names.insert_folders_above(path);
        }
        let markers: Vec<NotePath> = self.paths.iter().filter(|path| is_marker(path)).cloned().collect();
        let rules = DialectRules::of(vault);
        rules.decide_for(names, &markers, known, |names| Ok(self.count_links(names, &rules)))
    }

    /// Counts links by the dialects that they speak for. A file that cannot be read has none.
    fn count_links(&self, names: &FileNames, rules: &DialectRules<'_>) -> DialectCounts {
        let notes: Vec<&NotePath> = sample(self.paths.iter().filter(|path| path.is_note()).collect());
        let counted = parallel::map(
            &notes,
            16,
            || (),
            |(), path| {
                let Ok(Some(bytes)) = self.read(path) else { return DialectCounts::default() };
                let note = parse(path, &decode(&bytes).text);
                names.count_evidence(&note, path, rules.below_repository())
            },
        );
        counted.into_iter().fold(DialectCounts::default(), DialectCounts::plus)
    }
}
