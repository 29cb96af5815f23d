//! Tests the difference between a scan and the file table: every kind of change of a tree, and random trees against a
//! full comparison.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert_eq, prop_oneof, proptest};
use sidenote::base::platform::{FileKind, FolderState, ListedFolder, create_symlink};
use sidenote::index::{Drift, Index, Options, SyncScope, silent};
use sidenote::markdown::path::NotePath;
use sidenote::vault::Vault;
use sidenote::vault::folder_fingerprint::KnownFolders;
use sidenote::vault::folder_listings::{FolderListing, FolderListings, ScannedFolders};
use sidenote::vault::scan::{ListedEntries, ScanOptions, scan, scan_each};
use tempfile::TempDir;

use crate::support::{TestVault, env_number, until};

/// A vault, a folder next to it that links may lead to, and the file table.
struct Bed {
    folder: TempDir,
    vault: Arc<Vault>,
    index: Index,
    known: BTreeMap<NotePath, (u64, i64, i64)>,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("out/deep")).unwrap();
        fs::write(at("out/o.md"), "out").unwrap();
        fs::write(at("out/deep/p.md"), "deep").unwrap();
        fs::create_dir(at("vault")).unwrap();
        let (vault, index) = open(at("vault"), at("index"));
        Self { folder, vault, index, known: BTreeMap::new() }
    }

    /// Takes a step: `w FILE`, `d PATH`, `m PATH > PATH`, `l PATH > TARGET`; `away` takes what links lead to out of
    /// sight, or brings it back. What cannot be done is left.
    fn take(&self, step: &str) {
        let at = |path: &str| self.folder.path().join(path);
        let inside = |path: &str| at("vault").join(path);
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let (path, other) = rest.split_once(" > ").unwrap_or((rest, ""));
        let above = |path: &PathBuf| fs::create_dir_all(path.parent().unwrap());
        let done = match verb {
            "w" => above(&inside(path)).and_then(|()| fs::write(inside(path), step)),
            "d" if fs::symlink_metadata(inside(path)).is_ok_and(|found| found.is_dir()) => {
                fs::remove_dir_all(inside(path))
            }
            "d" => fs::remove_file(inside(path)),
            "m" => above(&inside(other)).and_then(|()| fs::rename(inside(path), inside(other))),
            "l" => above(&inside(path)).and_then(|()| create_symlink(&at(other), &inside(path))),
            "away" if at("out").exists() => fs::rename(at("out"), at("elsewhere")),
            "away" => fs::rename(at("elsewhere"), at("out")),
            _ => panic!("{step}"),
        };
        drop(done);
    }

    /// Compares what the index says to be different with what a comparison of all that is there says, and brings the
    /// index in line.
    fn check(&mut self) -> Drift {
        let scan = scan(self.vault.root(), &self.vault.scan_options());
        let stat = |file: &sidenote::vault::scan::FileStat| (file.size, file.mtime_ns, file.ctime_ns);
        let found: BTreeMap<NotePath, _> =
            scan.files.iter().map(|file| (file.path.clone(), stat(file))).collect();
        let is_unseen = |path: &NotePath| {
            let is_at = |place: &String| {
                place.is_empty() || path.as_str() == place || path.as_str().starts_with(&format!("{place}/"))
            };
            scan.gaps.unreadable.keys().any(is_at)
        };
        let (mut expect, known) = (Drift::default(), &self.known);
        for (path, stat) in &found {
            match known.get(path) {
                None => expect.added.push(path.clone()),
                Some(old) if old != stat => expect.changed.push(path.clone()),
                Some(_) => {}
            }
        }
        let is_gone = |path: &&NotePath| !found.contains_key(*path) && !is_unseen(path);
        expect.removed = known.keys().filter(is_gone).cloned().collect();
        expect.has_gaps = !scan.gaps.unreadable.is_empty();
        assert_eq!(self.index.drift(&self.vault).unwrap(), expect);
        let report = self.index.sync(SyncScope::All, silent()).unwrap();
        assert_eq!(report.scanned, found.len());
        let in_step = Drift { has_gaps: expect.has_gaps, ..Drift::default() };
        assert_eq!(self.index.drift(&self.vault).unwrap(), in_step);
        self.index.catalog().verify().unwrap();
        self.known.retain(|path, _| !expect.removed.contains(path));
        self.known.extend(found);
        expect
    }

    /// Syncs until equal times prove that the files are unchanged, so that the next scan leaves them out.
    fn settle(&self) {
        // What cannot be looked at stays as it is.
        until("the files are at rest", || self.index.sync(SyncScope::All, silent()).unwrap().read == 0);
    }
}

fn open(root: PathBuf, index: PathBuf) -> (Arc<Vault>, Index) {
    let vault = Arc::new(Vault::open(root).unwrap().with_follow_outside(true));
    let options = Options { folder: Some(index), ..Options::default() };
    (Arc::clone(&vault), Index::open(vault, options).unwrap())
}

fn said(drift: &Drift) -> String {
    let kinds = [('+', &drift.added), ('~', &drift.changed), ('-', &drift.removed)];
    let said = kinds.iter().flat_map(|(sign, paths)| paths.iter().map(move |path| format!("{sign}{path}")));
    said.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_scan_reports_added_changed_moved_and_removed_files() {
    for (before, after, expect) in [
        (&["w a", "w b/c.md"][..], &["d a", "w a/n.md"][..], "+a/n.md, -a"),
        (&["w a/n.md", "w a/b/n.md"], &["d a", "w a"], "+a, -a/b/n.md, -a/n.md"),
        // A slash comes after some characters and before others.
        (&["w a/n.md", "w a b/n.md", "w a!.md", "w a0/n.md", "w a.md"], &["d a/n.md"], "-a/n.md"),
        (&["w a b/n.md", "w a!.md", "w a/b/n.md", "w a/n.md", "w a0/n.md"], &["d a"], "-a/b/n.md, -a/n.md"),
        (&["w a!/b.md", "w a/b.md", "w a0/b.md"], &["w a b/b.md", "w a/b!.md"], "+a b/b.md, +a/b!.md"),
        (&["w a/b/n.md", "w a/b/c/n.md"], &["m a/b > a/d"], "+a/d/c/n.md, +a/d/n.md, -a/b/c/n.md, -a/b/n.md"),
        (&["w a/b/n.md"], &["m a > b"], "+b/b/n.md, -a/b/n.md"),
        // Links to folders, which come when all else is listed.
        (&["l a > out", "w b.md"], &["w c.md"], "+c.md"),
        (&["l a > out"], &["d a", "w a/o.md"], "~a/o.md, -a/deep/p.md"),
        (&["w a/o.md", "w a/b.md"], &["d a", "l a > out"], "+a/deep/p.md, ~a/o.md, -a/b.md"),
        (&["l a > out"], &["d a"], "-a/deep/p.md, -a/o.md"),
        (&["l b > out"], &["l a > out"], "+a/deep/p.md, +a/o.md, -b/deep/p.md, -b/o.md"),
        (&["l b > out/deep"], &["l a > out"], "+a/deep/p.md, +a/o.md, -b/p.md"),
        (&["w a/n.md", "l b > out"], &["d b", "l b > vault/a"], "-b/deep/p.md, -b/o.md"),
        (&["w a/n.md"], &["m a > b", "l a > vault/b"], "+b/n.md, -a/n.md"),
        (&["l a > out"], &["d a", "l a > out/o.md"], "+a, -a/deep/p.md, -a/o.md"),
        (&["l a > out/o.md"], &["d a", "l a > out"], "+a/deep/p.md, +a/o.md, -a"),
        (&["l a/b > out", "l c > vault/a"], &["d a"], "-a/b/deep/p.md, -a/b/o.md"),
        // What could not be looked at is as it was.
        (&["l a > out", "l b.md > out/o.md", "w c.md"], &["away", "d c.md"], "-c.md"),
        (&["w a/b/n.md", "w a/n.md"], &["d a/b", "l a/b > nowhere", "d a/n.md"], "-a/n.md"),
        (&["w a/n.md", "w b.md"], &["d a", "l a > vault/a", "w b.md"], "~b.md"),
        (&["w a.md"], &["d a.md", "l a.md > nowhere"], ""),
    ] {
        for settles in [false, true] {
            let mut bed = Bed::new();
            before.iter().for_each(|step| bed.take(step));
            bed.check();
            if settles {
                bed.settle();
            }
            after.iter().for_each(|step| bed.take(step));
            assert_eq!(said(&bed.check()), expect, "{before:?} {after:?} {settles}");
        }
    }
}

/// Lists a folder with files, and checks how many of them a scan leaves out after a change.
#[track_caller]
fn check_left_out(change: impl FnOnce(&std::path::Path), expect: &[(&str, usize)]) {
    let mut bed = Bed::new();
    for path in ["one.md", "two.md", "a/one.md", "a/two.md", "b/one.md"] {
        bed.take(&format!("w {path}"));
    }
    bed.check();
    bed.settle();
    let root = bed.vault.root().to_owned();
    change(&root);
    let fingerprints = bed.index.catalog().paths().fingerprints().unwrap();
    let known =
        KnownFolders { fingerprints: &fingerprints, is_excluded: None, listings: &FolderListings::default() };
    let mut left_out = BTreeMap::new();
    let options = bed.vault.scan_options();
    scan_each(&root, &options, Some(&known), |listing| {
        assert!(listing.unchanged == 0 || listing.files.is_empty());
        left_out.insert(listing.path, listing.unchanged);
        Ok::<_, std::convert::Infallible>(())
    })
    .unwrap();
    let left_out: Vec<(&str, usize)> = left_out.iter().map(|(path, count)| (path.as_str(), *count)).collect();
    assert_eq!(left_out, expect);
    bed.check();
}

#[test]
fn a_scan_leaves_out_the_files_of_unchanged_folders() {
    let all = [("", 2), ("a", 2), ("b", 1)];
    check_left_out(|_| {}, &all);
    check_left_out(
        |root| fs::write(root.join("a/one.md"), "w a/o_e.md").unwrap(),
        &[("", 2), ("a", 0), ("b", 1)],
    );
    check_left_out(
        |root| {
            // The same length and the same time of modification.
            let path = root.join("two.md");
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            fs::write(&path, "w tw_.md").unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        },
        &[("", 0), ("a", 2), ("b", 1)],
    );
    check_left_out(
        |root| {
            fs::rename(root.join("a/one.md"), root.join("a/three.md")).unwrap();
            fs::rename(root.join("a/two.md"), root.join("a/one.md")).unwrap();
            fs::rename(root.join("a/three.md"), root.join("a/two.md")).unwrap();
        },
        &[("", 2), ("a", 0), ("b", 1)],
    );
    check_left_out(|root| fs::remove_file(root.join("b/one.md")).unwrap(), &[("", 2), ("a", 2), ("b", 0)]);
    check_left_out(|root| fs::write(root.join("b/two.md"), "").unwrap(), &[("", 2), ("a", 2), ("b", 0)]);
    check_left_out(
        |root| fs::rename(root.join("b"), root.join("c")).unwrap(),
        &[("", 2), ("a", 2), ("c", 0)],
    );
}

/// Scans a vault with the listings that its index has, and returns the folders whose entries came from there.
fn not_listed(bed: &Bed) -> Vec<String> {
    let (fingerprints, root) = (bed.index.catalog().paths().fingerprints().unwrap(), bed.vault.root());
    let listings = FolderListings::load(&bed.folder.path().join("index/listings"));
    let known = KnownFolders { fingerprints: &fingerprints, is_excluded: None, listings: &listings };
    let mut folders = Vec::new();
    scan_each(root, &bed.vault.scan_options(), Some(&known), |listing| {
        folders.extend((listing.entries == ListedEntries::FromLastScan).then_some(listing.path));
        Ok::<_, std::convert::Infallible>(())
    })
    .unwrap();
    folders.sort();
    folders
}

/// Checks which folders a scan does not list after a change, because their entries are those of the last scan.
#[track_caller]
fn check_not_listed(change: &str, expect: &[&str]) {
    let mut bed = Bed::new();
    for step in ["w one.md", "w a/one.md", "w a/two.md", "w b/one.md", "w b/deep/one.md", "l c > out"] {
        bed.take(step);
    }
    bed.check();
    let all = ["", "a", "b", "b/deep", "c", "c/deep"];
    let keeps_times = ListedFolder::open(bed.vault.root()).unwrap().state().is_some();
    if keeps_times {
        until("the folders are at rest", || {
            bed.index.sync(SyncScope::All, silent()).unwrap();
            not_listed(&bed) == all
        });
    }
    bed.take(change);
    assert_eq!(not_listed(&bed), if keeps_times { expect } else { &[] }, "{change}");
    bed.check();
}

#[test]
fn a_scan_lists_only_folders_whose_entries_changed() {
    for (change, expect) in [
        ("w a/one.md", &["", "a", "b", "b/deep", "c", "c/deep"][..]),
        ("w a/three.md", &["", "b", "b/deep", "c", "c/deep"]),
        ("d a/two.md", &["", "b", "b/deep", "c", "c/deep"]),
        ("m a/two.md > a/three.md", &["", "b", "b/deep", "c", "c/deep"]),
        ("m a/two.md > b/two.md", &["", "b/deep", "c", "c/deep"]),
        ("m b/deep > a/deep", &["", "c", "c/deep"]),
        ("d b/deep", &["", "a", "c", "c/deep"]),
        ("l a/link.md > vault/one.md", &["", "b", "b/deep", "c", "c/deep"]),
        ("w new/one.md", &["a", "b", "b/deep", "c", "c/deep"]),
        ("d c", &["a", "b", "b/deep"]),
    ] {
        check_not_listed(change, expect);
    }
}

/// To write all listings for one new file would cost more than to list its folder.
#[test]
fn listings_are_written_when_many_entries_are_listed_again() {
    let state = |number| FolderState { id: (1, number), modified: (5, 0), changed: (5, 0) };
    let listing = |number, files: usize| {
        let mut listing = FolderListing::new(state(number));
        (0..files).for_each(|file| listing.push(&format!("{file}.md"), FileKind::File));
        listing
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("listings");
    let update = |kept: &[&str], fresh: &[(&str, u64, usize)]| {
        let fresh = fresh.iter().map(|&(folder, number, files)| (folder.to_owned(), listing(number, files)));
        let kept = kept.iter().map(|folder| (*folder).to_owned()).collect();
        FolderListings::load(&path).update(&path, ScannedFolders { kept, fresh: fresh.collect() }).unwrap();
        let now = FolderListings::load(&path);
        let has = |(folder, number)| now.get(folder, state(number)).is_some();
        [("a", 1), ("a", 2), ("b", 1), ("b", 2)].map(has)
    };
    assert_eq!(update(&[], &[("a", 1, 90), ("b", 1, 3)]), [true, false, true, false]);
    assert_eq!(update(&["a"], &[("b", 2, 4)]), [true, false, true, false], "a few entries");
    assert_eq!(update(&["a"], &[("b", 2, 9)]), [true, false, false, true], "a tenth of the entries");
    assert_eq!(update(&["b"], &[("a", 2, 9)]), [false, true, false, true]);
    assert_eq!(update(&[], &[("b", 1, 9)]), [false, false, true, false], "a was removed");
}

/// Some file systems may change the entries of a folder and leave its times: the names in an encrypted folder depend on whether
/// it is unlocked. A listing with an entry that is not there is not used.
#[test]
fn a_listing_with_an_entry_that_is_not_there_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("vault/sub")).unwrap();
    fs::write(folder.path().join("vault/a.md"), "a").unwrap();
    create_symlink(folder.path(), &folder.path().join("vault/link")).unwrap();
    let root = folder.path().join("vault");
    // Without a state that tells of changes, no listing is used.
    let found = ListedFolder::open(&root).unwrap().state();
    let state = found.unwrap_or(FolderState { id: (1, 2), modified: (5, 0), changed: (5, 0) });
    let path = folder.path().join("listings");
    for (entries, is_used) in [
        (&[("a.md", FileKind::File), ("sub", FileKind::Dir), ("link", FileKind::Symlink)][..], true),
        (&[("a.md", FileKind::File), ("gone.md", FileKind::File)], false),
        (&[("a.md", FileKind::File), ("gone", FileKind::Dir)], false),
        (&[("a.md", FileKind::File), ("gone", FileKind::Symlink)], false),
        (&[("a.md", FileKind::File), ("sub", FileKind::File)], false),
        (&[("a.md", FileKind::Dir)], false),
        (&[("link", FileKind::Dir)], false),
        (&[("link", FileKind::File)], false),
    ] {
        let mut listing = FolderListing::new(state);
        entries.iter().for_each(|(name, kind)| listing.push(name, *kind));
        let fresh = std::iter::once((String::new(), listing)).collect();
        FolderListings::default().update(&path, ScannedFolders { kept: Vec::new(), fresh }).unwrap();
        let listings = FolderListings::load(&path);
        let known = KnownFolders {
            fingerprints: &std::collections::HashMap::new(),
            is_excluded: None,
            listings: &listings,
        };
        let mut listed = BTreeMap::new();
        let gaps = scan_each(&root, &ScanOptions::default(), Some(&known), |listing| {
            let files: Vec<String> = listing.files.iter().map(|file| file.path.to_string()).collect();
            listed.insert(listing.path, (files, listing.entries == ListedEntries::FromLastScan));
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap();
        assert_eq!(listed[""], (vec!["a.md".to_owned()], is_used && found.is_some()), "{entries:?}");
        assert!(listed.contains_key("sub") && gaps.unreadable.is_empty(), "{entries:?} {gaps:?}");
    }
}

/// A small file stands for no more memory than a vault of its size needs.
#[test]
fn a_listing_that_unpacks_to_much_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("listings");
    let body = lz4_flex::block::compress(&vec![0; 1 << 20]);
    let hashed = [(1_u32 << 20).to_le_bytes().as_slice(), &body].concat();
    fs::write(&path, [&[1], blake3::hash(&hashed).as_bytes().as_slice(), &hashed].concat()).unwrap();
    let state = FolderState { id: (1, 2), modified: (5, 0), changed: (5, 0) };
    assert!(FolderListings::load(&path).get("", state).is_none());
    // A vault with one name again and again is listed each time.
    let mut listing = FolderListing::new(state);
    (0..10_000).for_each(|_| listing.push("a", FileKind::File));
    let fresh = std::iter::once((String::new(), listing)).collect();
    fs::remove_file(&path).unwrap();
    FolderListings::default().update(&path, ScannedFolders { kept: Vec::new(), fresh }).unwrap();
    assert!(!path.exists());
}

/// The index may come from a stranger.
#[test]
fn impossible_listings_are_not_used() {
    let state = FolderState { id: (1, 2), modified: (5, 0), changed: (5, 0) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("listings");
    for (name, is_used) in
        [("../b.md", false), ("b/c.md", false), ("", false), (".b", false), ("b\0c", false), ("b.md", true)]
    {
        let mut listing = FolderListing::new(state);
        listing.push("a.md", FileKind::File);
        listing.push(name, FileKind::File);
        let fresh = std::iter::once(("a".to_owned(), listing)).collect();
        FolderListings::default().update(&path, ScannedFolders { kept: Vec::new(), fresh }).unwrap();
        let listings = FolderListings::load(&path);
        assert_eq!(listings.get("a", state).is_some(), is_used, "{name:?}");
        assert!(listings.get("a", FolderState { changed: (6, 0), ..state }).is_none());
    }
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(FolderListings::load(&path).get("a", state).is_none());
        let mut changed = whole.clone();
        changed[cut] ^= 1;
        fs::write(&path, changed).unwrap();
        assert!(FolderListings::load(&path).get("a", state).is_none());
    }
}

proptest! {
    #[test]
    fn listings_are_read_as_they_were_written(names in proptest::collection::vec("[^./\0][^/\0]{0,12}", 0..20)) {
        let state = FolderState { id: (1, 2), modified: (5, 0), changed: (5, 0) };
        let kinds = [FileKind::File, FileKind::Dir, FileKind::Symlink, FileKind::Other];
        let entries: Vec<(&str, FileKind)> =
            names.iter().map(String::as_str).zip(kinds.into_iter().cycle()).collect();
        let mut listing = FolderListing::new(state);
        entries.iter().for_each(|(name, kind)| listing.push(name, *kind));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("listings");
        let fresh = std::iter::once((String::new(), listing)).collect();
        FolderListings::default().update(&path, ScannedFolders { kept: Vec::new(), fresh }).unwrap();
        let listings = FolderListings::load(&path);
        prop_assert_eq!(listings.get("", state).unwrap().entries().collect::<Vec<_>>(), entries);
    }
}

#[test]
fn a_changed_setting_of_what_is_excluded_is_seen_in_unchanged_folders() {
    let vault = TestVault::new(&[("a/one.md", "heron"), ("b/two.md", "heron")]);
    let store = vault.store();
    until("the files are at rest", || store.index().sync(silent()).unwrap().read == 0);
    for (filters, changed) in [(r#"["a/"]"#, 1), (r#"["a/"]"#, 0), (r#"["b/"]"#, 2), ("[]", 1), ("[]", 0)] {
        vault.write(".obsidian/app.json", format!(r#"{{"userIgnoreFilters":{filters}}}"#));
        let report = store.index().sync(silent()).unwrap();
        assert_eq!(report.changed, changed, "{filters}");
        until("the files are at rest", || store.index().sync(silent()).unwrap().read == 0);
    }
}

/// A number that an older snapshot found must not mean another file.
#[test]
fn file_numbers_are_not_reused() {
    let mut bed = Bed::new();
    let mut numbers = Vec::new();
    for step in ["w a.md", "w b.md", "w c.md", "w d.md"] {
        bed.take(step);
        bed.check();
        let path = step.trim_start_matches("w ");
        numbers.push(bed.index.catalog().row_at(path).unwrap().unwrap().id);
        if path != "a.md" {
            bed.take(&format!("d {path}"));
            bed.check();
        }
    }
    assert_eq!(numbers, [1, 2, 3, 4]);
    // Neither are those of an index that holds nothing, and that is opened again.
    bed.take("d a.md");
    bed.check();
    let Bed { folder, index, known, .. } = bed;
    drop(index);
    let (vault, index) = open(folder.path().join("vault"), folder.path().join("index"));
    let mut bed = Bed { folder, vault, index, known };
    bed.take("w e.md");
    bed.check();
    assert_eq!(bed.index.catalog().row_at("e.md").unwrap().unwrap().id, 5);
}

#[test]
fn a_missing_root_removes_nothing() {
    let mut bed = Bed::new();
    ["w a.md", "w b/c.md", "l d > out"].iter().for_each(|step| bed.take(step));
    bed.check();
    let (root, away) = (bed.vault.root().to_owned(), bed.folder.path().join("away"));
    fs::rename(&root, &away).unwrap();
    assert_eq!(said(&bed.check()), "");
    fs::rename(&away, &root).unwrap();
    assert_eq!(said(&bed.check()), "");
}

#[test]
fn an_unreadable_folder_keeps_its_entries() {
    // A path that is too long is refused to everybody, also to the superuser.
    let mut bed = Bed::new();
    let long = |letter: &str| letter.repeat(250);
    let deep = (0..15).map(|_| long("d")).collect::<Vec<_>>().join("/");
    ["b.md".to_owned(), "c/d.md".to_owned(), format!("{deep}/e.md"), format!("{deep}/f/g.md")]
        .iter()
        .for_each(|path| bed.take(&format!("w {path}")));
    bed.check();
    let farther = bed.folder.path().join(long("x")).join(long("y"));
    fs::create_dir_all(&farther).unwrap();
    fs::rename(bed.vault.root(), farther.join("vault")).unwrap();
    fs::remove_dir_all(farther.join("vault/c")).unwrap();
    let Bed { folder, index, known, .. } = bed;
    drop(index);
    let (vault, index) = open(farther.join("vault"), folder.path().join("index"));
    let mut bed = Bed { folder, vault, index, known };
    assert_eq!(said(&bed.check()), "-c/d.md");
    assert_eq!(bed.known.len(), 3);
}

#[test]
fn a_scan_holds_one_folder_and_the_differences_in_memory() {
    for folders in [3, 60] {
        let paths: Vec<String> =
            (0..folders * 10).map(|n| format!("{}/{}/n{n}.md", n / 50, n / 10)).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "heron")).collect();
        let vault = TestVault::new(&files);
        let store = vault.store();
        let mut settled = (0..1000).map(|_| store.index().sync(silent()).unwrap());
        let report = settled.find(|report| report.read == 0).expect("files at rest are not read for ever");
        assert_eq!((report.scanned, report.peak_files), (folders * 10, 10));
        vault.write("0/0/n0.md", "otter");
        vault.rename("0/1/n10.md", "0/1/moved.md");
        let report = store.index().sync(silent()).unwrap();
        assert_eq!((report.scanned, report.changed, report.moved), (folders * 10, 1, 1));
        assert!(report.peak_files <= 10 + 4, "{}", report.peak_files);
    }
}

fn some_path() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(vec!["a", "b", "a b", "a0", "n.md", "é.md"]);
    proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn some_step() -> impl Strategy<Value = String> {
    let targets =
        vec!["out", "out/deep", "out/o.md", "vault", "vault/a", "vault/b/a", "vault/n.md", "nowhere"];
    prop_oneof![
        5 => some_path().prop_map(|path| format!("w {path}")),
        2 => some_path().prop_map(|path| format!("d {path}")),
        3 => (some_path(), some_path()).prop_map(|(from, to)| format!("m {from} > {to}")),
        3 => (some_path(), proptest::sample::select(targets)).prop_map(|(path, to)| format!("l {path} > {to}")),
        1 => Just("away".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(env_number("SIDENOTE_TEST_TREES", 32) as u32))]
    #[test]
    fn any_tree_is_compared_as_by_a_full_comparison(
        rounds in proptest::collection::vec(proptest::collection::vec(some_step(), 1..10), 1..6)
    ) {
        let mut bed = Bed::new();
        for (round, steps) in rounds.into_iter().enumerate() {
            steps.iter().for_each(|step| bed.take(step));
            bed.check();
            if round % 2 == 0 {
                bed.settle();
            }
        }
    }
}
