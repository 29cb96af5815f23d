//! Tests the vectors that the servers of a vault share: a text is embedded once in the whole service.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sidenote::embed::Embed;
use sidenote::index::{EmbedReport, Index, Options, SyncScope, silent};
use sidenote::share::Database;
use sidenote::share::authority::{SharedVault, VaultLimits};
use sidenote::share::quota::Quotas;
use sidenote::vault::Vault;
use sidenote::vault::authority::with_authority;

use super::cluster::Cluster;
use super::create;
use crate::shared_vectors::Counter;
use crate::support::TestVault;

/// Opens the index of the copy of a new server, and embeds what no server has embedded.
fn fill(database: &Arc<Database>, cache: &Path, model: &Arc<Counter>) -> (usize, usize) {
    let limits = VaultLimits {
        lock_time: Duration::from_secs(5),
        max_file: 1_000_000,
        stale_time: Duration::ZERO,
        quotas: Quotas::default(),
    };
    let shared = SharedVault::open(database, "v", cache, limits).unwrap();
    let vault = with_authority(Vault::open(shared.root()).unwrap(), Arc::new(shared));
    let embedder: Arc<dyn Embed> = Arc::<Counter>::clone(model);
    let options = Options { embedder: Some(embedder), ..Options::default() };
    let index = Index::open(Arc::new(vault), options).unwrap();
    index.sync(SyncScope::All, silent()).unwrap();
    let before = model.embedded.load(Ordering::SeqCst);
    let EmbedReport { embedded, reused } = index.embed_all(silent()).unwrap();
    assert_eq!(model.embedded.load(Ordering::SeqCst) - before, embedded);
    assert_eq!(index.snapshot().unwrap().pending, 0);
    (embedded, reused)
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn a_text_is_embedded_once_in_the_whole_service() {
    let cluster = Cluster::new();
    let notes: Vec<(String, String)> =
        (0..12).map(|at| (format!("Note {at}.md"), format!("The heron of note {at} waits.\n"))).collect();
    let files: Vec<(&str, &str)> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    create(&cluster, Some(TestVault::new(&files).root()));
    let database = Arc::new(Database::new(&cluster.app()).unwrap());
    let caches = [0; 5].map(|_| tempfile::tempdir().unwrap());
    let model = Counter::new();
    assert_eq!(fill(&database, caches[0].path(), &model), (12, 0));
    assert_eq!(fill(&database, caches[1].path(), &model), (0, 12));
    // Vectors of a model that cuts texts elsewhere are others.
    let other = Counter::of("counter/a", 8, "1", 32);
    assert_eq!(fill(&database, caches[2].path(), &other), (12, 0));
    // What is damaged does not count.
    let mut client = postgres::Client::connect(&cluster.owner(), postgres::NoTls).unwrap();
    client.batch_execute("update sidenote.vector set bytes = bytes || '\\x00'").unwrap();
    assert_eq!(fill(&database, caches[3].path(), &model), (12, 0));
    // Without the database, a server that has the copy makes its vectors itself.
    client.batch_execute("revoke select, insert on sidenote.vector from sidenote_app").unwrap();
    assert_eq!(fill(&database, caches[4].path(), &model), (12, 0));
}
