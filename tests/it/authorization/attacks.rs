//! What strangers, thieves of tokens and races try at the authorization server, and what stays true then.

use super::Bench;

#[test]
fn strangers_cannot_push_lines_out_of_the_audit_log() {
    let mut bench = Bench::new();
    let (client, _) = bench.log_in();
    let deny = [("decision", Some("deny")), ("passphrase", None)];
    let consent = bench.consent(&client, &[]);
    assert_eq!(bench.decide(&consent, &deny).status, 303);
    // A ticket that was decided is used up, for either decision.
    assert_eq!(bench.decide(&consent, &deny).status, 403);
    assert_eq!(bench.decide(&consent, &[]).status, 403);
    let allowed = bench.consent(&client, &[]);
    assert_eq!(bench.decide(&allowed, &[]).status, 303);
    assert_eq!(bench.decide(&allowed, &[]).status, 403);
    for at in 0..2_000_u32 {
        bench.address = std::net::IpAddr::from((0xC633_6400 + at).to_be_bytes());
        assert_eq!(bench.decide(&bench.consent(&client, &[]), &deny).status, 303);
    }
    let events = bench.events();
    let count = |event: &str| events.iter().filter(|known| *known == event).count();
    // 600 in an hour from strangers, the registration among them.
    assert_eq!((count("denied"), count("registered")), (599, 1));
    assert_eq!((count("passphrase-set"), count("consented"), count("granted")), (1, 2, 1));
    let own = std::fs::read_to_string(bench.logins.folder().join("audit.jsonl")).unwrap();
    assert_eq!(own.lines().count(), 4);
    // The next line says how many are missing.
    bench.pass(61 * super::MINUTE);
    bench.decide(&bench.consent(&client, &[]), &deny);
    let last = bench.logins.audit(1).unwrap();
    assert_eq!(last[0].reason.as_deref(), Some("1402 entries before this one were left out"));
}
