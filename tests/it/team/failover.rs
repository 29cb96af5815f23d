//! Tests the failover to a standby that lagged: what it lacks is lost, and every copy notices it.

use super::cluster::Cluster;
use super::{Server, check_whole, create, dump, host, note, paths, settings};
use crate::support::{say, tree, until};

/// The position of a database in its log, by a function of PostgreSQL.
fn position(cluster: &Cluster, function: &str) -> u64 {
    let mut client = postgres::Client::connect(&cluster.owner(), postgres::NoTls).unwrap();
    let query = format!("select ({function}() - '0/0'::pg_lsn)::bigint");
    let found = client.query_one(&query, &[]).unwrap().get::<_, Option<i64>>(0);
    found.unwrap_or_default().unsigned_abs()
}

#[test]
#[ignore = "needs PostgreSQL 15 or newer: SIDENOTE_TEST_POSTGRES, or initdb on the PATH"]
fn copies_notice_a_standby_that_was_promoted_five_changes_behind() {
    let primary = Cluster::new();
    create(&primary, None);
    let standby = primary.standby();
    let address = Cluster::app_of_any(&[&primary, &standby]);
    let caches = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let hosts = [0, 1].map(|at| host(settings(&address, caches[at].path())));
    let [a, b] = [0, 1].map(|at: usize| hosts[at].store("v").unwrap());
    for at in 0..10 {
        note(if at % 2 == 0 { &a } else { &b }, &format!("Kept {at}"), "alpha");
    }
    let written = position(&primary, "pg_current_wal_lsn");
    until("the standby has all", || position(&standby, "pg_last_wal_replay_lsn") >= written);
    standby.stop();
    for at in 0..5 {
        note(if at % 2 == 0 { &a } else { &b }, &format!("Lost {at}"), "omega");
    }
    assert_eq!((paths(&a, "omega").len(), paths(&b, "omega").len()), (5, 5));
    primary.stop();
    standby.start();
    standby.promote();
    // The same servers go on, by the same address.
    let fresh = Server::of_address(&standby.app());
    for store in [&a, &b, &fresh.store()] {
        assert_eq!((paths(store, "alpha").len(), paths(store, "omega")), (10, vec![]));
    }
    note(&a, "After", "gamma");
    note(&b, "After that", "gamma");
    assert_eq!((paths(&a, "gamma").len(), paths(&b, "gamma").len()), (2, 2));
    let expected = dump(&fresh.store());
    assert_eq!((dump(&a), dump(&b)), (expected.clone(), expected));
    for cache in &caches {
        assert_eq!(tree(&super::files_of(cache.path())), tree(&fresh.files()));
    }
    check_whole(&standby);
    say("5 of 15 answered changes were lost with the primary; both copies were made anew and go on");
}
