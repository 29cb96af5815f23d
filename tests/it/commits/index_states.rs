//! Operations on repositories whose index is in a random state: what others staged stays as it is, byte for byte.

use sidenote::store::{DeleteRequest, EditRequest, MoveRequest, NewRequest, NoteEdit, Operation, Store};

use super::{commit_all, git, hook};
use crate::support::{TestVault, env_number, say};

/// The number of notes of the user, and of notes that operations change.
const NOTES: usize = 12;

/// A small generator of random numbers (SplitMix64), so that a seed gives one sequence.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }
}

/// Changes the working tree and the index of a note of the user in some way.
fn disturb(vault: &TestVault, random: &mut Random) {
    let at = random.below(NOTES);
    let note = format!("user/u{at}.md");
    let run = |args: &[&str]| drop(git(vault.root(), args));
    let is_there = vault.root().join(&note).exists();
    let text = format!("Text {}.\n", random.below(1000));
    match random.below(9) {
        0 => vault.write(&note, text),
        1 | 2 => {
            vault.write(&note, text);
            run(&["add", "--", &note]);
        }
        3 => {
            vault.write(&note, &text);
            run(&["add", "--", &note]);
            vault.write(&note, format!("{text}And more.\n"));
        }
        4 => run(&["rm", "-qf", "--cached", "--ignore-unmatch", "--", &note]),
        5 => run(&["rm", "-q", "-f", "--ignore-unmatch", "--", &note]),
        6 if is_there => run(&["update-index", "--add", "--chmod=+x", "--", &note]),
        7 => {
            let new = format!("user/n{}.md", random.below(1000));
            vault.write(&new, text);
            run(&["add", if random.below(2) == 0 { "--intent-to-add" } else { "--verbose" }, "--", &new]);
        }
        8 => {
            // A conflict: three versions, and none that is merged.
            let blob = git(vault.root(), &["rev-parse", "HEAD:.gitignore"]);
            let line = |stage: usize| format!("100644 {} {stage}\tuser/conflict.md\n", blob.trim());
            let lines: String = (1..4).map(line).collect();
            let mut child = std::process::Command::new("git")
                .current_dir(vault.root())
                .args(["update-index", "--index-info"])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let lines = if random.below(4) == 0 { lines } else { String::new() };
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success());
        }
        _ => {}
    }
}

/// Chooses an operation on the notes that operations change.
fn operation(vault: &TestVault, random: &mut Random, run: usize) -> Operation {
    let is_there = |note: &String| vault.root().join(note).exists();
    let there: Vec<String> = (0..NOTES * 2).map(|at| format!("mine/m{at}.md")).filter(is_there).collect();
    let note = there[random.below(there.len())].clone();
    let free = (0..).map(|at| format!("mine/m{at}.md")).find(|note| !is_there(note)).unwrap();
    match random.below(5) {
        0 => Operation::Move(MoveRequest { from: note, to: free, ..MoveRequest::default() }),
        1 if there.len() > NOTES / 2 => {
            Operation::Delete(DeleteRequest { note, permanent: true, ..DeleteRequest::default() })
        }
        2 => Operation::New(NewRequest {
            title: free.trim_start_matches("mine/").trim_end_matches(".md").to_owned(),
            content: format!("New {run}.\n"),
            folder: Some("mine".to_owned()),
            ..NewRequest::default()
        }),
        _ => Operation::Edit(EditRequest {
            note,
            edit: NoteEdit::Append(format!("Line {run}."), None),
            expect: None,
        }),
    }
}

/// What the index has of the notes of the user, and how it differs from HEAD.
fn of_user(vault: &TestVault) -> [String; 3] {
    let git = |args: &[&str]| git(vault.root(), args);
    [
        git(&["ls-files", "--stage", "-v", "-z", "--", "user"]),
        git(&["diff", "--cached", "--raw", "--binary", "--no-renames", "--", "user"]),
        git(&["diff", "--raw", "--binary", "--no-renames", "--", "user"]),
    ]
}

fn check_states(seed: u64, runs: usize) {
    let vault = TestVault::new(&[]);
    for at in 0..NOTES {
        vault.write(&format!("user/u{at}.md"), format!("User {at}.\n"));
        vault.write(&format!("mine/m{at}.md"), format!("Mine {at}, see [[m{}]].\n", (at + 1) % NOTES));
    }
    commit_all(&vault, vault.root());
    let store: Store = vault.open_set(&[("embed.provider", "none"), ("git.commit", "operation")]);
    let mut random = Random(seed);
    let (mut committed, mut refused) = (0, 0);
    for run in 0..runs {
        for _ in 0..random.below(6) {
            disturb(&vault, &mut random);
        }
        let is_refused = random.below(5) == 0;
        let script = if is_refused { "exit 1" } else { "exit 0" };
        hook(&vault, "pre-commit", script);
        let whole = git(vault.root(), &["ls-files", "--stage", "-v", "-z"]);
        let before = of_user(&vault);
        let operation = operation(&vault, &mut random, run);
        let reply = store.changes().change(&operation, false).unwrap();
        let commit = reply.commit.unwrap_or_else(|| panic!("run {run}: {operation:?}"));
        assert_eq!(of_user(&vault), before, "run {run}: {operation:?}: {commit:?}");
        assert_eq!(commit.id.is_none(), is_refused, "run {run}: {operation:?}: {commit:?}");
        if commit.id.is_some() {
            committed += 1;
            let files = git(vault.root(), &["show", "--format=", "--name-only", "HEAD"]);
            assert!(
                !files.is_empty() && files.lines().all(|file| file.starts_with("mine/")),
                "run {run}: {files}"
            );
        } else {
            refused += 1;
            assert_eq!(git(vault.root(), &["ls-files", "--stage", "-v", "-z"]), whole, "run {run}");
            git(vault.root(), &["restore", "--source=HEAD", "--worktree", "--", "mine"]);
            git(vault.root(), &["clean", "-fdq", "--", "mine"]);
        }
        // The next state has no conflict, and now and then the user commits everything.
        git(vault.root(), &["update-index", "--force-remove", "user/conflict.md"]);
        if random.below(8) == 0 {
            git(vault.root(), &["add", "--all", "--", "user"]);
            git(vault.root(), &["commit", "-qm", "user", "--no-verify", "--allow-empty"]);
        }
        assert_eq!(git(vault.root(), &["status", "--porcelain", "--", "mine"]), "", "run {run}");
    }
    say(&format!("{runs} index states: {committed} commits, {refused} refusals"));
    assert!(committed > runs / 2 && refused > 0);
}

#[cfg(unix)]
#[test]
fn what_others_staged_stays_staged_in_fifty_states() {
    check_states(1, 50);
}

#[cfg(unix)]
#[test]
#[ignore = "it takes minutes: `just commits`"]
fn what_others_staged_stays_staged_in_five_hundred_states() {
    check_states(2, env_number("SIDENOTE_TEST_STATES", 500));
}
