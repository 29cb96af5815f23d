//! What strangers, thieves of tokens and races try at the authorization server, and what stays true then.

use std::net::IpAddr;

use sidenote::authorization::Scopes;

use super::{Bench, FORM, ISSUER, MINUTE, PASSPHRASE, encoded, json_of, pairs, text};

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
        bench.address = IpAddr::from((0xC633_6400 + at).to_be_bytes());
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
    bench.pass(61 * MINUTE);
    bench.decide(&bench.consent(&client, &[]), &deny);
    let last = bench.logins.audit(1).unwrap();
    assert_eq!(last[0].reason.as_deref(), Some("1402 entries before this one were left out"));
}

#[test]
fn a_new_passphrase_and_taking_access_back_end_what_is_under_way() {
    let bench = Bench::new();
    let (client, _) = bench.log_in();
    let now = bench.server.now();
    let id = bench.logins.list(now).unwrap()[0].id.clone();
    let changes: [(&str, &dyn Fn()); 4] = [
        ("passphrase", &|| assert!(bench.logins.set_passphrase(PASSPHRASE, now).unwrap())),
        ("revoke", &|| drop(bench.logins.revoke(Some(&id), now, false).unwrap())),
        ("revoke --all", &|| drop(bench.logins.revoke(None, now, false).unwrap())),
        // Also where nobody has access.
        ("again", &|| assert!(bench.logins.revoke(None, now, false).unwrap().applied)),
    ];
    for (name, change) in changes {
        let client = if name == "passphrase" { client.clone() } else { bench.client() };
        let (consent, code) = (bench.consent(&client, &[]), bench.code(&client, &[]));
        change();
        assert_eq!(bench.decide(&consent, &[]).status, 403, "{name}");
        assert_eq!(bench.redeem(&client, &code, &[]).status, 400, "{name}");
        assert_eq!(bench.redeem(&client, &bench.code(&client, &[]), &[]).status, 200, "{name}");
    }
}

#[test]
fn a_refresh_token_is_known_however_old_it_is() {
    let bench = Bench::new();
    let (client, first) = bench.log_in();
    let mut tokens = first.clone();
    for _ in 0..310 {
        bench.pass(5 * MINUTE);
        tokens = json_of(&bench.refresh(&client, text(&tokens["refresh_token"]), &[]));
        assert!(bench.counts(text(&tokens["access_token"])), "{tokens}");
    }
    // One line an hour.
    let events = bench.events();
    let lines = events.iter().filter(|event| *event == "refreshed").count();
    assert!((25..=27).contains(&lines), "{lines}");
    assert_eq!(bench.refresh(&client, text(&first["refresh_token"]), &[]).status, 400);
    assert!(!bench.counts(text(&tokens["access_token"])));
    assert_eq!(bench.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 400);
}

#[test]
fn a_grant_is_refreshed_at_a_plausible_rate() {
    let bench = Bench::new();
    let (client, mut tokens) = bench.log_in();
    for _ in 0..60 {
        tokens = json_of(&bench.refresh(&client, text(&tokens["refresh_token"]), &[]));
    }
    let refused = bench.refresh(&client, text(&tokens["refresh_token"]), &[]);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("3600")));
    bench.pass(60 * MINUTE);
    assert_eq!(bench.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 200);
}

#[test]
fn a_lost_reply_to_a_refresh_does_no_harm() {
    let bench = Bench::new();
    let (client, first) = bench.log_in();
    let lost = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
    bench.pass(59_999);
    let second = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
    let third = json_of(&bench.refresh(&client, text(&second["refresh_token"]), &[]));
    assert!(bench.counts(text(&third["access_token"])));
    // The token that was lost counts no more: whoever has it is somebody else.
    assert_eq!(bench.refresh(&client, text(&lost["refresh_token"]), &[]).status, 400);
    assert!(!bench.counts(text(&third["access_token"])));

    // After the grace, or once the successor was used, a repetition ends the grant.
    for is_late in [true, false] {
        let (client, first) = bench.log_in();
        let second = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
        if is_late {
            bench.pass(MINUTE);
        } else {
            assert_eq!(bench.refresh(&client, text(&second["refresh_token"]), &[]).status, 200);
        }
        assert_eq!(bench.refresh(&client, text(&first["refresh_token"]), &[]).status, 400);
        assert!(!bench.counts(text(&second["access_token"])));
    }
}

/// Does something in eight threads at once, and gives the statuses.
fn at_once(action: impl Fn() -> u16 + Sync) -> Vec<u16> {
    let barrier = std::sync::Barrier::new(8);
    let run = || {
        barrier.wait();
        action()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_code_that_is_redeemed_by_two_at_once_ends_the_grant() {
    let bench = Bench::new();
    let client = bench.client();
    for _ in 0..5 {
        let code = bench.code(&client, &[]);
        let statuses = at_once(|| bench.redeem(&client, &code, &[]).status);
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(bench.logins.list(bench.server.now()).unwrap(), []);
    }
}

#[test]
fn a_refresh_token_that_is_used_by_several_at_once_gives_one_line_of_tokens() {
    let bench = Bench::new();
    let (client, first) = bench.log_in();
    let issued = std::sync::Mutex::new(Vec::new());
    let statuses = at_once(|| {
        let reply = bench.refresh(&client, text(&first["refresh_token"]), &[]);
        issued.lock().unwrap().push(text(&json_of(&reply)["refresh_token"]).to_owned());
        reply.status
    });
    // Within the grace each gets tokens, of which the last refresh token alone counts.
    assert_eq!(statuses, [200; 8]);
    let issued = issued.into_inner().unwrap();
    let used: Vec<u16> = issued.iter().map(|token| bench.refresh(&client, token, &[]).status).collect();
    assert!(used.iter().filter(|status| **status == 200).count() <= 1, "{used:?}");
    assert_eq!(bench.logins.list(bench.server.now()).unwrap(), []);
    // Where the token is an older one, all are refused.
    let (client, first) = bench.log_in();
    let second = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
    bench.refresh(&client, text(&second["refresh_token"]), &[]);
    assert_eq!(at_once(|| bench.refresh(&client, text(&first["refresh_token"]), &[]).status), [400; 8]);
    assert_eq!(bench.logins.list(bench.server.now()).unwrap(), []);
}

#[test]
fn a_used_refresh_token_ends_its_grant_at_the_revocation_endpoint() {
    let bench = Bench::new();
    let (client, first) = bench.log_in();
    let second = json_of(&bench.refresh(&client, text(&first["refresh_token"]), &[]));
    let form = encoded(&pairs(&[("client_id", &client), ("token", text(&first["refresh_token"]))], &[]));
    assert_eq!(bench.send("POST", "/revoke", FORM, &form).status, 200);
    assert!(!bench.counts(text(&second["access_token"])));
}

#[test]
fn a_token_opens_no_other_vault_at_the_same_address() {
    let bench = Bench::new();
    let (client, tokens) = bench.log_in();
    let other = Bench::with_vaults(&bench._data, ISSUER, Scopes::Write, "/elsewhere");
    assert!(!other.counts(text(&tokens["access_token"])));
    let reply = other.refresh(&client, text(&tokens["refresh_token"]), &[]);
    assert_eq!(json_of(&reply)["error"], "invalid_grant");
    // The same vault is known again.
    let again = Bench::of(&bench._data, ISSUER, Scopes::Write);
    assert!(again.counts(text(&tokens["access_token"])));
    assert_eq!(again.refresh(&client, text(&tokens["refresh_token"]), &[]).status, 200);
}

#[test]
fn the_owner_gets_in_while_others_try_passphrases() {
    let mut bench = Bench::new();
    let client = bench.client();
    let wrong = [("passphrase", Some("wrong wrong wrong"))];
    let mut looked_at = 0;
    // An hour in which forty addresses try once a second.
    for second in 0..3_600_u32 {
        bench.pass(1000);
        bench.address = IpAddr::from((0xC633_6400 + second % 40).to_be_bytes());
        let consent = bench.consent(&client, &[]);
        looked_at += u32::from(bench.decide(&consent, &wrong).status == 403);
        if second % 600 == 599 {
            // An address without a wrong one is not kept waiting by that, and is let in once more after its success.
            bench.address = [192, 0, 2, 1].into();
            assert_eq!(bench.decide(&consent, &[]).status, 303, "{second}");
        }
    }
    // They themselves are slowed down as before.
    assert!(looked_at <= 20 + 40 + 360, "{looked_at}");
    // A network of IPv6 is one address.
    for (at, expected) in [(1_u16, 403), (2, 429), (3, 429)] {
        bench.address = IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, at]);
        assert_eq!(bench.decide(&bench.consent(&client, &[]), &wrong).status, expected);
    }
}

#[test]
fn a_passphrase_is_more_than_one_key_and_the_same_from_all_keyboards() {
    let bench = Bench::new();
    let now = bench.server.now();
    for refused in [" ".repeat(20), "aaaaaaaaaaaaaaaa".to_owned(), "ab cd ab cd ab cd".to_owned()] {
        let error = bench.logins.set_passphrase(&refused, now).unwrap_err();
        assert!(error.to_string().contains("different characters"), "{error}");
    }
    bench.logins.set_passphrase("\u{FEFF}vier W\u{F6}rter einer Liste", now).unwrap();
    let client = bench.client();
    for given in ["vier W\u{F6}rter einer Liste", "vier Wo\u{308}rter einer Liste"] {
        let consent = bench.consent(&client, &[]);
        assert_eq!(bench.decide(&consent, &[("passphrase", Some(given))]).status, 303, "{given:?}");
    }
}

#[test]
fn what_a_crash_left_is_replaced() {
    let bench = Bench::new();
    let left = bench.logins.folder().join("state.tmp");
    std::fs::write(&left, "{").unwrap();
    bench.client();
    assert!(!left.exists());
    let state = std::fs::read_to_string(bench.logins.folder().join("state.json")).unwrap();
    assert!(state.contains("Test <b>client</b>"), "{state}");
}

#[test]
fn programs_of_this_machine_register_while_strangers_use_up_the_rest() {
    let mut bench = Bench::new();
    for at in 0..100_u32 {
        bench.address = IpAddr::from((0xC633_6400 + at).to_be_bytes());
        bench.client();
        bench.pass(-1000);
    }
    let registered = serde_json::json!({ "redirect_uris": [super::REDIRECT] });
    bench.address = [192, 0, 2, 1].into();
    assert_eq!(bench.register(&registered).status, 429);
    bench.address = [127, 0, 0, 1].into();
    assert_eq!(bench.register(&registered).status, 201);
}
