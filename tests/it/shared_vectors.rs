//! Tests the vectors that clones, worktrees and vaults of a user share: what one of them embedded, no other embeds again,
//! and no damage, kill or other process makes a wrong vector of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::{Just, ProptestConfig, Strategy as _, any, prop, prop_assert, prop_oneof, proptest};
use serde_json::Value;
use sidenote::base::platform;
use sidenote::embed::{Effort, Embed, ModelId};
use sidenote::index::shared_vectors::{LookupScope, SharedVectorHealth, SharedVectorLimits, SharedVectors};
use sidenote::index::{EmbedReport, Index, Options, SyncScope, silent};
use sidenote::vault::Vault;
use sidenote::vectors::VectorRecord;
use tempfile::TempDir;

use crate::git::{git, init};
use crate::support::{
    TestVault, clean_env, env_number, env_path, program, repository, say, stderr, stdout, until,
};
#[cfg(unix)]
use crate::support::{mode_of, set_mode, symlink, without_root_privileges};

const DIMENSIONS: usize = 8;

/// A model that counts the texts that it embeds, and makes the vector of a text of its hash.
pub(crate) struct Counter {
    model: ModelId,
    max_tokens: usize,
    pub(crate) embedded: AtomicUsize,
}

impl Counter {
    pub(crate) fn new() -> Arc<Self> {
        Self::of("counter/a", DIMENSIONS, "1", 256)
    }

    pub(crate) fn of(name: &str, dimensions: usize, fingerprint: &str, max_tokens: usize) -> Arc<Self> {
        let model = ModelId::new(name, dimensions, fingerprint);
        Arc::new(Self { model, max_tokens, embedded: AtomicUsize::new(0) })
    }
}

impl Embed for Counter {
    fn model(&self) -> &ModelId {
        &self.model
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn duplicate_threshold(&self) -> f32 {
        1.0
    }

    fn embed(&self, texts: &[&str], _: Effort) -> sidenote::base::error::Result<Vec<Vec<f32>>> {
        self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        let vector = |text: &&str| {
            let hash = blake3::hash(text.as_bytes());
            hash.as_bytes()[..self.model.dimensions()].iter().map(|&byte| f32::from(byte) - 127.5).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// A cache folder of a user.
struct Cache(TempDir);

impl Cache {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The folder of the shared vectors.
    fn root(&self) -> PathBuf {
        self.0.path().join("sidenote/vectors")
    }

    fn vectors(&self, limits: SharedVectorLimits) -> SharedVectors {
        SharedVectors::new(&self.root(), &*Counter::new(), limits)
    }

    /// The only segment of the only model.
    fn segment(&self) -> PathBuf {
        self.vectors(SharedVectorLimits::default()).folder().join("00000000")
    }
}

/// Opens the index of a vault with a model.
fn open(vault: &TestVault, cache: Option<&Cache>, model: &Arc<Counter>) -> Index {
    let embedder: Arc<dyn Embed> = Arc::<Counter>::clone(model);
    let shared_vectors = cache.map(Cache::root);
    let options = Options { embedder: Some(embedder), shared_vectors, ..Options::default() };
    let index = Index::open(Arc::new(Vault::open(vault.root()).unwrap()), options).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    index
}

/// Embeds everything that is missing; gives how many texts were embedded, and how many vectors were reused.
#[track_caller]
fn fill(vault: &TestVault, cache: Option<&Cache>, model: &Arc<Counter>) -> (usize, usize) {
    let before = model.embedded.load(Ordering::SeqCst);
    let index = open(vault, cache, model);
    let EmbedReport { embedded, reused } = index.embed_all(silent()).unwrap();
    assert_eq!(
        model.embedded.load(Ordering::SeqCst) - before,
        embedded,
        "the report counts what was embedded"
    );
    assert_eq!(index.snapshot().unwrap().pending, 0);
    (embedded, reused)
}

/// Gives the vectors of a log by key, of those whose checksum is right or not.
fn log(folder: &Path, dimensions: usize) -> BTreeMap<i64, Vec<u8>> {
    let keys = fs::read(folder.join("keys")).unwrap();
    let vectors = fs::read(folder.join("vectors")).unwrap();
    let keys = keys[16..].chunks_exact(16).map(|record| i64::from_le_bytes(record[..8].try_into().unwrap()));
    keys.zip(vectors[16..].chunks_exact(4 + dimensions).map(<[u8]>::to_vec)).collect()
}

/// The vectors in the index of a vault, which has those of one model.
fn index_log(root: &Path, dimensions: usize) -> BTreeMap<i64, Vec<u8>> {
    let mut models = fs::read_dir(root.join(".sidenote/index/vectors")).unwrap();
    let folder = models.next().unwrap().unwrap().path();
    assert!(models.next().is_none());
    log(&folder, dimensions)
}

const NOTES: usize = 12;

fn vault() -> TestVault {
    let vault = TestVault::new(&[]);
    for at in 0..NOTES {
        vault.write(&format!("Area {}/Note {at}.md", at % 3), format!("The heron of note {at} waits.\n"));
    }
    vault
}

#[test]
fn no_text_is_embedded_twice() {
    let (cache, model, first) = (Cache::new(), Counter::new(), vault());
    let check = |what: &str, vault: &TestVault, expected: (usize, usize)| {
        assert_eq!(fill(vault, Some(&cache), &model), expected, "{what}");
    };
    check("the first clone embeds everything", &first, (NOTES, 0));
    check("nothing is missing", &first, (0, 0));
    let second = TestVault::copy_of(first.root());
    check("the second clone embeds nothing", &second, (0, NOTES));
    assert_eq!(index_log(second.root(), DIMENSIONS), index_log(first.root(), DIMENSIONS));
    fs::remove_dir_all(first.root().join(".sidenote/index")).unwrap();
    check("a deleted index is made again without embedding", &first, (0, NOTES));
    let other = TestVault::copy_of(first.root());
    other.rename("Area 0/Note 0.md", "Elsewhere/Note 0.md");
    other.write("Area 1/Note 1.md", "The otter swims.\n");
    other.write("New.md", "A badger digs.\n");
    check("only what is new is embedded", &other, (2, NOTES - 1));
    second.write("New.md", "A badger digs.\n");
    check("what another vault embedded since is reused", &second, (0, 1));
    assert_eq!(model.embedded.load(Ordering::SeqCst), NOTES + 2);
}

#[test]
fn without_sharing_every_clone_embeds() {
    let model = Counter::new();
    let first = vault();
    assert_eq!(fill(&first, None, &model), (NOTES, 0));
    assert_eq!(fill(&TestVault::copy_of(first.root()), None, &model), (NOTES, 0));
}

#[test]
fn models_that_differ_share_nothing() {
    let cache = Cache::new();
    let models = [
        Counter::of("counter/a", DIMENSIONS, "1", 256),
        // The name of a folder has neither a slash nor every character of a name.
        Counter::of("counter-a", DIMENSIONS, "1", 256),
        Counter::of("counter/b", DIMENSIONS, "1", 256),
        Counter::of("counter/a", DIMENSIONS, "2", 256),
        Counter::of("counter/a", DIMENSIONS, "1 ", 256),
        Counter::of("counter/a", DIMENSIONS + 8, "1", 256),
        Counter::of("counter/a", DIMENSIONS, "1", 255),
        Counter::of("../counter", DIMENSIONS, "1", 256),
    ];
    assert_eq!(models.len(), 8);
    let mut folders = HashSet::new();
    for model in &models {
        assert_eq!(fill(&vault(), Some(&cache), model), (NOTES, 0), "{}", model.model.key());
        assert_eq!(fill(&vault(), Some(&cache), model), (0, NOTES), "{}", model.model.key());
        let shared = SharedVectors::new(&cache.root(), &**model, SharedVectorLimits::default());
        assert_eq!(shared.folder().parent().unwrap(), cache.root());
        folders.insert(shared.folder().to_owned());
    }
    assert_eq!(folders.len(), models.len());
    assert_eq!(SharedVectorHealth::examine(&cache.root()).models, models.len());
}

#[test]
fn a_search_that_embeds_recent_notes_asks_for_shared_vectors_first() {
    let (cache, model, first) = (Cache::new(), Counter::new(), vault());
    fill(&first, Some(&cache), &model);
    let second = TestVault::copy_of(first.root());
    let index = open(&second, Some(&cache), &model);
    let files = index.recent_without_vectors().unwrap();
    assert_eq!(files.len(), NOTES);
    assert_eq!(index.embed_within(files, Duration::ZERO).unwrap(), NOTES);
    assert_eq!(model.embedded.load(Ordering::SeqCst), NOTES);
    assert_eq!(index.snapshot().unwrap().pending, 0);
}

/// The vectors in an index may have come with a vault from elsewhere, so they are not passed on.
#[test]
fn vectors_that_were_not_computed_here_are_not_shared() {
    let (cache, model) = (Cache::new(), Counter::new());
    let downloaded = vault();
    assert_eq!(fill(&downloaded, None, &model), (NOTES, 0));
    downloaded.write("New.md", "A badger digs.\n");
    assert_eq!(fill(&downloaded, Some(&cache), &model), (1, 0));
    assert_eq!(log(&cache.segment(), DIMENSIONS).len(), 1);
    assert_eq!(fill(&vault(), Some(&cache), &model), (NOTES, 0));
}

/// Runs the program on a vault, with a home folder elsewhere and the model in the program.
fn sidenote(root: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    clean_env(&mut command, home).env("SIDENOTE_EMBED_PROVIDER", "e5");
    command.env("SIDENOTE_NOW", "2026-11-21").arg("--vault").arg(root).args(args);
    command
}

/// Builds the index by the program; gives how many texts were embedded, and how many vectors were reused.
#[track_caller]
fn index(root: &Path, home: &Path) -> (u64, u64) {
    let done = sidenote(root, home, &["--json", "index"]).output().unwrap();
    let said = stderr(&done);
    assert!(done.status.success() && !said.contains("warning"), "{said}");
    let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
    assert_eq!(reply["pending"], 0);
    (reply["embedded"].as_u64().unwrap(), reply["reused"].as_u64().unwrap())
}

#[test]
fn a_worktree_and_a_clone_embed_nothing() {
    let (outer, home) = (TestVault::new(&[]), tempfile::tempdir().unwrap());
    let main = TestVault::example();
    main.write(".gitignore", ".home/\n.sidenote/\n");
    init(&main);
    let (count, reused) = index(main.root(), home.path());
    assert!(count > 10 && reused == 0);
    let (worktree, clone) = (outer.root().join("worktree"), outer.root().join("clone"));
    git(main.root(), &["worktree", "add", "-q", worktree.to_str().unwrap()]);
    git(outer.root(), &["clone", "-q", main.root().to_str().unwrap(), clone.to_str().unwrap()]);
    assert_eq!(index(&worktree, home.path()), (0, count));
    assert_eq!(index(&clone, home.path()), (0, count));
    fs::remove_dir_all(main.root().join(".sidenote")).unwrap();
    assert_eq!(index(main.root(), home.path()), (0, count));
    // A commit is searched by words, so that its index needs no vector.
    let at = sidenote(main.root(), home.path(), &["search", "--at", "HEAD", "note"]).output().unwrap();
    assert!(at.status.success(), "{}", stderr(&at));
    let trees = home.path().join(".cache/sidenote/trees");
    assert!(!trees.is_dir() || !has_name(&trees, "vectors"));
    let person = sidenote(&clone, home.path(), &["index", "--rebuild"]).output().unwrap();
    assert!(!stdout(&person).contains("reused"), "{}", stdout(&person));
    fs::remove_dir_all(clone.join(".sidenote")).unwrap();
    let person = sidenote(&clone, home.path(), &["index"]).output().unwrap();
    assert!(
        stdout(&person).contains(&format!("reused {count} vectors from your cache")),
        "{}",
        stdout(&person)
    );
}

/// Says whether anything below a folder has a name.
fn has_name(folder: &Path, name: &str) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        path.file_name().unwrap() == name || path.is_dir() && !path.is_symlink() && has_name(&path, name)
    })
}

#[test]
fn only_the_user_decides_whether_vectors_are_shared() {
    let (vault, home) = (vault(), tempfile::tempdir().unwrap());
    let run = |share: Option<&str>| {
        let mut command = sidenote(vault.root(), home.path(), &["--json", "index"]);
        command.envs(share.map(|share| ("SIDENOTE_EMBED_SHARE", share)));
        command.output().unwrap()
    };
    let done = run(Some("false"));
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(!has_name(home.path(), "vectors"));
    for share in ["true", "false"] {
        vault.write(".sidenote/config.toml", format!("[embed]\nshare = {share}\n"));
        let refused = run(None);
        assert!(!refused.status.success());
        assert!(
            stderr(&refused).contains("sets embed.share, which only your own settings can do"),
            "{}",
            stderr(&refused)
        );
    }
    assert!(!has_name(home.path(), "vectors"));
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_folder() {
    let (cache, model) = (Cache::new(), Counter::new());
    fill(&vault(), Some(&cache), &model);
    let (root, segment) = (cache.root(), cache.segment());
    let folders = [root.parent().unwrap(), &root, segment.parent().unwrap(), &segment];
    for folder in folders {
        assert_eq!(mode_of(folder), 0o700, "{}", folder.display());
    }
    for file in [root.join("lock"), segment.join("keys"), segment.join("vectors")] {
        assert_eq!(mode_of(&file), 0o600, "{}", file.display());
    }
    // A folder with other permissions gets these, and what other users could have written is not read.
    set_mode(&root, 0o755);
    let more = vault();
    more.write("New.md", "A badger digs.\n");
    assert_eq!(fill(&more, Some(&cache), &model), (1, NOTES));
    assert_eq!(mode_of(&root), 0o700);
    set_mode(&root, 0o777);
    assert_eq!(fill(&vault(), Some(&cache), &model), (NOTES, 0));
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_not_followed() {
    // What is replaced by a link, and whether what is behind the others is still found.
    let places = ["", "MODEL", "MODEL/00000000", "MODEL/00000000/keys", "MODEL/00000000/vectors", "lock"];
    for place in places {
        let (cache, model, elsewhere) = (Cache::new(), Counter::new(), tempfile::tempdir().unwrap());
        fill(&vault(), Some(&cache), &model);
        let folder = cache.segment().parent().unwrap().to_owned();
        let name = folder.file_name().unwrap().to_str().unwrap();
        // A path that ends with a slash would not name the link.
        let path = match place {
            "" => cache.root(),
            place => cache.root().join(place.replace("MODEL", name)),
        };
        let target = elsewhere.path().join("target");
        fs::rename(&path, &target).unwrap();
        symlink(&target, &path);
        let before = snapshot(&target);
        let more = vault();
        more.write("New.md", "A badger digs.\n");
        let expected = if place == "lock" { (1, NOTES) } else { (NOTES + 1, 0) };
        assert_eq!(fill(&more, Some(&cache), &model), expected, "{place:?}");
        assert_eq!(snapshot(&target), before, "{place:?}: something was written behind the link");
    }
    assert_eq!(places.len(), 6);
}

/// Every file below a path with its bytes.
#[cfg(unix)]
fn snapshot(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if !path.is_dir() {
        return BTreeMap::from([(path.to_owned(), fs::read(path).unwrap())]);
    }
    fs::read_dir(path).unwrap().flat_map(|entry| snapshot(&entry.unwrap().path())).collect()
}

#[test]
fn a_process_that_cannot_take_the_lock_goes_on() {
    let (cache, model) = (Cache::new(), Counter::new());
    fill(&vault(), Some(&cache), &model);
    let lock = fs::File::options().write(true).open(cache.root().join("lock")).unwrap();
    assert!(platform::try_lock(&lock).unwrap());
    let more = vault();
    more.write("New.md", "A badger digs.\n");
    let index = open(&more, Some(&cache), &model);
    assert_eq!(index.embed_all(silent()).unwrap(), EmbedReport { embedded: 1, reused: NOTES });
    assert_eq!(log(&cache.segment(), DIMENSIONS).len(), NOTES);
    platform::unlock(&lock).unwrap();
    // What could not be appended is appended when the index is closed, or with the next vectors.
    drop(index);
    assert_eq!(log(&cache.segment(), DIMENSIONS).len(), NOTES + 1);
}

#[cfg(unix)]
#[test]
fn a_cache_that_cannot_be_written_is_read() {
    without_root_privileges(|| {
        let (cache, model) = (Cache::new(), Counter::new());
        fill(&vault(), Some(&cache), &model);
        let folder = cache.segment().parent().unwrap().to_owned();
        let all = [cache.segment().join("keys"), cache.segment().join("vectors"), cache.segment()];
        let all = all.into_iter().chain([folder, cache.root().join("lock"), cache.root()]);
        let modes: Vec<(PathBuf, u32)> = all.map(|path| (path.clone(), mode_of(&path))).collect();
        modes.iter().for_each(|(path, mode)| set_mode(path, mode & 0o500));
        let more = vault();
        more.write("New.md", "A badger digs.\n");
        assert_eq!(fill(&more, Some(&cache), &model), (1, NOTES));
        let problem = SharedVectorHealth::examine(&cache.root()).problem.unwrap();
        assert!(problem.starts_with("you may not write in "), "{problem}");
        modes.iter().rev().for_each(|(path, mode)| set_mode(path, *mode));
    });
}

#[cfg(unix)]
#[test]
fn doctor_says_where_vectors_are_shared_and_why_not() {
    let (vault, home, away) = (vault(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let found = |share: &str| {
        let mut command = sidenote(vault.root(), home.path(), &["--json", "doctor"]);
        let done = command.env("SIDENOTE_EMBED_SHARE", share).output().unwrap();
        let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
        let findings = reply["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["check"] == "shared vectors").unwrap();
        let state = finding["state"].as_str().unwrap().replace(home.path().to_str().unwrap(), "~");
        format!("{}: {state}", finding["level"].as_str().unwrap())
    };
    let root = home.path().join(".cache/sidenote/vectors");
    assert_eq!(found("false"), "ok: none: the setting embed.share is false");
    assert_eq!(found("true"), "ok: none yet in ~/.cache/sidenote/vectors");
    assert!(!root.exists());
    index(vault.root(), home.path());
    assert_eq!(
        found("true"),
        "ok: 0.0 MB of 1 model in ~/.cache/sidenote/vectors; the folder can be deleted at any time"
    );
    fs::rename(&root, away.path().join("vectors")).unwrap();
    symlink(away.path().join("vectors"), &root);
    assert_eq!(
        found("true"),
        "warning: ~/.cache/sidenote/vectors is not used: it is a symbolic link (symlink), which is not followed here"
    );
    fs::remove_file(&root).unwrap();
    fs::create_dir(&root).unwrap();
    set_mode(&root, 0o777);
    assert_eq!(
        found("true"),
        "warning: ~/.cache/sidenote/vectors is not used: other users own it or may write in it"
    );
}

/// The vector of a key, by which every vector that is read can be verified.
fn record(key: i64) -> VectorRecord {
    let vector: Vec<f32> =
        (0..DIMENSIONS as i64).map(|at| ((key * 31 + at * 17) % 101) as f32 - 50.3).collect();
    VectorRecord::new(key, &vector)
}

fn records(keys: impl IntoIterator<Item = i64>) -> Vec<VectorRecord> {
    keys.into_iter().map(record).collect()
}

/// Takes the vectors of these keys; fails if one of them is wrong. Gives the keys that were found.
#[track_caller]
fn take(shared: &mut SharedVectors, keys: impl IntoIterator<Item = i64>, scope: LookupScope) -> HashSet<i64> {
    let asked: HashSet<i64> = keys.into_iter().collect();
    let (mut wanted, mut found) = (asked.clone(), HashSet::new());
    let count = shared
        .take(&mut wanted, scope, &mut |records| {
            for given in records {
                assert_eq!(*given, record(given.key()), "a wrong vector was given");
                assert!(found.insert(given.key()), "a vector was given twice");
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(count, found.len());
    assert!(wanted.is_disjoint(&found) && wanted.len() + found.len() == asked.len());
    found
}

const SMALL: SharedVectorLimits = SharedVectorLimits { total: 10_000, segment: 1000 };

#[test]
fn a_lookup_for_news_finds_what_others_appended_since() {
    let cache = Cache::new();
    let (mut ours, mut theirs) = (cache.vectors(SMALL), cache.vectors(SMALL));
    theirs.append(&records(0..50));
    assert_eq!(take(&mut ours, 0..10, LookupScope::Everything), (0..10).collect());
    theirs.append(&records(50..120));
    assert_eq!(take(&mut ours, 40..130, LookupScope::News), (50..120).collect());
    // The own vectors are not in the way.
    ours.append(&records(120..130));
    theirs.append(&records(125..140));
    assert_eq!(take(&mut ours, 130..150, LookupScope::News), (130..140).collect());
    assert_eq!(take(&mut theirs, 0..150, LookupScope::Everything), (0..140).collect());
    // Nothing was appended twice.
    let all: usize = segments(&cache).iter().map(|path| log_length(path)).sum();
    assert_eq!(all, 140);
}

/// The segments of the only model, oldest first.
fn segments(cache: &Cache) -> Vec<PathBuf> {
    let folder = cache.vectors(SMALL).folder().to_owned();
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn log_length(segment: &Path) -> usize {
    (fs::metadata(segment.join("keys")).unwrap().len() as usize - 16) / 16
}

#[test]
fn a_torn_log_is_cut_and_appended_to() {
    let cache = Cache::new();
    cache.vectors(SMALL).append(&records(0..4));
    let segment = cache.segment();
    let whole = ["keys", "vectors"].map(|name| fs::read(segment.join(name)).unwrap());
    let mut checked = 0;
    for keys in 0..=whole[0].len() {
        for vectors in [0, 1, 15, 16, 17, 27, 28, 29, 51, 63, 64] {
            fs::write(segment.join("keys"), &whole[0][..keys]).unwrap();
            fs::write(segment.join("vectors"), &whole[1][..vectors]).unwrap();
            let complete = (keys.saturating_sub(16) / 16).min(vectors.saturating_sub(16) / 12) as i64;
            let complete = if keys < 16 { 0 } else { complete };
            assert_eq!(
                take(&mut cache.vectors(SMALL), 0..9, LookupScope::Everything),
                (0..complete).collect()
            );
            cache.vectors(SMALL).append(&records(3..9));
            let expected = (0..complete).chain(3..9).collect();
            assert_eq!(
                take(&mut cache.vectors(SMALL), 0..9, LookupScope::Everything),
                expected,
                "{keys} {vectors}"
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 81 * 11);
    // A process that was killed while it removed a segment.
    for name in ["keys", "vectors"] {
        fs::remove_file(segment.join(name)).unwrap();
        assert_eq!(take(&mut cache.vectors(SMALL), 0..9, LookupScope::Everything), HashSet::new(), "{name}");
        cache.vectors(SMALL).append(&records(0..9));
        assert_eq!(
            take(&mut cache.vectors(SMALL), 0..9, LookupScope::Everything),
            (0..9).collect(),
            "{name}"
        );
    }
}

#[test]
fn a_damaged_vector_is_noticed_and_replaced() {
    let cache = Cache::new();
    cache.vectors(SMALL).append(&records(0..4));
    let segment = cache.segment();
    for name in ["keys", "vectors"] {
        let whole = fs::read(segment.join(name)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(segment.join(name), &bytes).unwrap();
            let mut shared = cache.vectors(SMALL);
            let found = take(&mut shared, 0..4, LookupScope::Everything);
            assert!(found.len() == if at < 16 { 0 } else { 3 }, "{name} {at}: {found:?}");
            shared.append(&records((0..4).filter(|key| !found.contains(key))));
            assert_eq!(take(&mut shared, 0..4, LookupScope::Everything), (0..4).collect(), "{name} {at}");
            fs::remove_dir_all(&segment).unwrap();
            cache.vectors(SMALL).append(&records(0..4));
        }
    }
}

#[test]
fn damage_costs_an_embedding_and_no_more() {
    let (cache, model) = (Cache::new(), Counter::new());
    fill(&vault(), Some(&cache), &model);
    let path = cache.segment().join("vectors");
    let mut bytes = fs::read(&path).unwrap();
    bytes[16 + 12 * 3 + 5] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(fill(&vault(), Some(&cache), &model), (1, NOTES - 1));
    assert_eq!(fill(&vault(), Some(&cache), &model), (0, NOTES));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever the files hold, a vector that is given is the one that was appended, and the log can be appended to.
    #[test]
    fn arbitrary_bytes_never_give_a_wrong_vector(
        keys in bytes_or_header(),
        vectors in bytes_or_header(),
        edits in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 0..6),
        is_log in any::<bool>(),
    ) {
        let cache = Cache::new();
        cache.vectors(SMALL).append(&records(0..20));
        let segment = cache.segment();
        let mut files = if is_log {
            ["keys", "vectors"].map(|name| fs::read(segment.join(name)).unwrap())
        } else {
            [keys, vectors]
        };
        for (is_key, at, byte) in edits {
            let file = &mut files[usize::from(!is_key)];
            if !file.is_empty() {
                let at = at.index(file.len());
                if byte == 0 { file.truncate(at) } else { file[at] ^= byte }
            }
        }
        fs::write(segment.join("keys"), &files[0]).unwrap();
        fs::write(segment.join("vectors"), &files[1]).unwrap();
        let mut shared = cache.vectors(SMALL);
        let found = take(&mut shared, 0..30, LookupScope::Everything);
        prop_assert!(found.iter().all(|key| (0..20).contains(key)));
        shared.append(&records((0..30).filter(|key| !found.contains(key))));
        prop_assert!(take(&mut cache.vectors(SMALL), 0..30, LookupScope::Everything) == (0..30).collect());
    }
}

/// Gives bytes, with the header of a log in front of them or not.
fn bytes_or_header() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    let header = [b"SNVEC001".as_slice(), &(DIMENSIONS as u64).to_le_bytes()].concat();
    let head = prop_oneof![Just(Vec::new()), Just(header)];
    (head, prop::collection::vec(any::<u8>(), 0..400)).prop_map(|(head, bytes)| [head, bytes].concat())
}

fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { size_of(&path) } else { fs::metadata(path).unwrap().len() }).sum()
}

#[test]
fn the_oldest_vectors_of_all_models_make_room() {
    let cache = Cache::new();
    let other = Counter::of("counter/old", DIMENSIONS, "1", 256);
    let mut other = SharedVectors::new(&cache.root(), &*other, SMALL);
    other.append(&records(0..100));
    assert_eq!(take(&mut other, 0..100, LookupScope::Everything).len(), 100);
    let mut shared = cache.vectors(SMALL);
    let mut written: HashMap<PathBuf, (u64, u64)> = HashMap::new();
    for at in 0..200 {
        shared.append(&records(at * 10..at * 10 + 10));
        assert!(size_of(&cache.root()) <= SMALL.total, "{at}");
        // No segment is ever written anew: what is there is either removed or appended to.
        for segment in segments(&cache) {
            let id = platform::metadata(&segment.join("vectors")).unwrap().id();
            assert_eq!(*written.entry(segment.clone()).or_insert(id), id, "{}", segment.display());
        }
    }
    assert_eq!(take(&mut other, 0..100, LookupScope::Everything), HashSet::new(), "the oldest are gone");
    let kept = take(&mut cache.vectors(SMALL), 0..2000, LookupScope::Everything);
    let oldest = 2000 - kept.len() as i64;
    assert_eq!(kept, (oldest..2000).collect(), "the newest are kept");
    // Half of the limit is used at least, although room is made by segments.
    assert!(size_of(&cache.root()) > SMALL.total / 2);
    // A limit below a segment leaves the newest.
    let mut tiny = cache.vectors(SharedVectorLimits { total: 10, segment: 10 });
    tiny.append(&records(3000..3002));
    assert_eq!(take(&mut tiny, 2000..4000, LookupScope::Everything), HashSet::from([3001]));
}

#[test]
fn a_folder_that_is_deleted_meanwhile_is_made_again() {
    let cache = Cache::new();
    let mut shared = cache.vectors(SMALL);
    shared.append(&records(0..30));
    fs::remove_dir_all(cache.root()).unwrap();
    assert_eq!(take(&mut shared, 0..30, LookupScope::News), HashSet::new());
    shared.append(&records(30..40));
    assert_eq!(take(&mut shared, 0..50, LookupScope::Everything), (30..40).collect());
}

/// The folder of shared vectors that [`appender`] appends to.
const APPEND_TO: &str = "SIDENOTE_TEST_APPEND_TO";

/// Appends vectors without end, with limits that make it remove old ones all the time.
#[test]
#[ignore = "it is the child process of another test"]
fn appender() {
    let root = env_path(APPEND_TO);
    let mut shared = SharedVectors::new(&root, &*Counter::new(), SMALL);
    for at in 0.. {
        shared.append(&records(at * 7 % 3000..at * 7 % 3000 + 7));
    }
}

fn start_appender(root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "shared_vectors::appender"])
        .env(APPEND_TO, root)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills processes while they append and remove. After each kill every vector is right, and others append.
fn check_kills(runs: usize) {
    let cache = Cache::new();
    fs::create_dir_all(cache.root()).unwrap();
    let folder = cache.vectors(SMALL).folder().to_owned();
    let newest = || {
        let names = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse::<usize>().ok()).max().unwrap_or(0)
    };
    let (mut found, mut torn) = (0, 0);
    for run in 0..runs {
        let mut children = [start_appender(&cache.root()), start_appender(&cache.root())];
        let before = newest();
        until("the processes append and remove", || newest() > before + run % 17);
        for _ in 0..run % 23 * 5000 {
            std::hint::spin_loop();
        }
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        torn += segments(&cache).iter().filter(|path| is_torn(path)).count();
        let mut shared = cache.vectors(SMALL);
        let keys = take(&mut shared, 0..3010, LookupScope::Everything);
        found += keys.len();
        shared.append(&records(4000..4003));
        assert_eq!(
            take(&mut cache.vectors(SMALL), 4000..4003, LookupScope::Everything),
            (4000..4003).collect()
        );
        let size = size_of(&cache.root());
        assert!(size <= SMALL.total + SMALL.segment, "run {run}: {size} bytes");
    }
    assert!(found > runs * 20, "{found} vectors in {runs} runs");
    say(&format!("{runs} kills of two processes: {found} vectors found, {torn} logs torn, none wrong"));
}

/// Says whether the files of a segment do not end with the same record.
fn is_torn(segment: &Path) -> bool {
    let length = |name: &str| fs::metadata(segment.join(name)).map_or(0, |found| found.len() as usize);
    let (keys, vectors) = (length("keys"), length("vectors"));
    keys < 16 || vectors < 16 || (keys - 16) % 16 != 0 || (keys - 16) / 16 * 12 != vectors - 16
}

#[test]
fn a_kill_at_some_moments_leaves_right_vectors() {
    check_kills(6);
}

#[test]
#[ignore = "it takes a minute: `just kill-shared-vectors`"]
fn two_hundred_kills_leave_right_vectors() {
    check_kills(env_number("SIDENOTE_TEST_KILLS", 200));
}

/// Two processes index two clones at once, and each is killed and started again. No text has a wrong vector.
#[test]
fn clones_that_are_indexed_at_once_share_and_survive_kills() {
    let home = tempfile::tempdir().unwrap();
    let reference = vault();
    let (count, _) = {
        let done = sidenote(reference.root(), home.path(), &["--json", "index"])
            .env("SIDENOTE_EMBED_SHARE", "false")
            .output()
            .unwrap();
        let reply: Value = serde_json::from_str(&stdout(&done)).unwrap();
        (reply["embedded"].as_u64().unwrap(), reply)
    };
    assert_eq!(count, NOTES as u64);
    let right = index_log(reference.root(), 384);
    let clones = [vault(), vault()];
    let start = |vault: &TestVault| {
        let mut command = sidenote(vault.root(), home.path(), &["index"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut running: Vec<Child> = clones.iter().map(start).collect();
    // Where the cache is depends on the system.
    until("something is shared", || has_vectors(home.path()));
    for child in &mut running {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut running: Vec<Child> = clones.iter().map(start).collect();
    for child in &mut running {
        assert!(child.wait().unwrap().success());
    }
    for clone in &clones {
        assert_eq!(index_log(clone.root(), 384), right);
    }
    assert_eq!(index(vault().root(), home.path()), (0, count));
}

/// Says whether a file of keys below a folder has one.
fn has_vectors(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            has_vectors(&path)
        } else {
            path.file_name().is_some_and(|name| name == "keys")
                && fs::metadata(&path).is_ok_and(|found| found.len() > 16)
        }
    })
}

/// A store that a test opens in its own process would share vectors with the user who runs the tests.
#[test]
fn no_test_and_no_bench_touches_the_cache_of_the_user() {
    let mut opened = 0;
    for folder in ["tests/it", "tests/bench"] {
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "rs") || path.ends_with("shared_vectors.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for (at, _) in text.match_indices("Store::open(") {
                let before = &text[text[..at].rfind("\n}").unwrap_or(0)..at];
                let after = &text[at..];
                let body = &after[..after.find("\n}").unwrap_or(after.len())];
                let is_apart = ["\"embed.share\"", "(\"embed.provider\", \"none\""]
                    .iter()
                    .any(|setting| before.contains(setting) || body.contains(setting))
                    || body.contains("unwrap_err()");
                assert!(is_apart, "{}: a store is opened that shares vectors", path.display());
                opened += 1;
            }
        }
    }
    assert!(opened >= 10, "{opened} stores are opened");
    assert!(!TestVault::new(&[]).open("e5").config().embed.share);
}
