//! Tests of the confinement, in a process of its own.

use std::io::Write as _;
use std::process::Command;

use super::*;

/// The name of the test below.
const CONFINED: &str = "platform::confinement::tests::a_process_that_another_test_starts";

#[test]
#[ignore = "another test starts it in a process of its own, which stays confined"]
fn a_process_that_another_test_starts() {
    Confinement { memory: 500_000_000, seconds: 60 }.enter().unwrap();
    #[expect(clippy::disallowed_methods, reason = "what must fail")]
    let attempts = [
        ("read", std::fs::read("/etc/hostname").map(drop)),
        ("write", std::fs::write("/tmp/sidenote-confined", "x")),
        ("connect", std::net::TcpStream::connect("127.0.0.1:9").map(drop)),
        ("run", Command::new("/bin/true").status().map(drop)),
    ];
    let mut out = std::io::stdout();
    for (name, attempt) in attempts {
        let ended = attempt.map_err(|error| error.kind());
        writeln!(out, "{name} {ended:?}").unwrap();
    }
    let has_memory = |bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    writeln!(out, "memory {} {}", has_memory(100_000_000), has_memory(1_000_000_000)).unwrap();
}

#[test]
fn a_confined_process_reaches_nothing_outside() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CONFINED, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "read Err(PermissionDenied)",
        "write Err(PermissionDenied)",
        "connect Err(PermissionDenied)",
        "run Err(PermissionDenied)",
        "memory true false",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
