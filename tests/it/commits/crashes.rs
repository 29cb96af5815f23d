//! Kills of a process at random moments of an operation and its commit, alone and with the git that it runs.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::index_states::Random;
use super::{commit_all, git, hook};
use crate::support::{TestVault, env_number, say, stderr, stdout, until};

/// Lists the processes below one, the process itself left out.
fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(process) = open.pop() {
        let threads = fs::read_dir(format!("/proc/{process}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
            found.extend(&children);
            open.extend(children);
        }
    }
    found
}

fn kill(process: u32) {
    let pid = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    let killed = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    // It may have ended by itself.
    assert!(matches!(killed, Ok(()) | Err(rustix::io::Errno::SRCH)), "{killed:?}");
}

/// Says whether a process still runs. One that ended and is not collected does not.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

fn append(vault: &TestVault, at: usize) -> std::process::Command {
    let mut command = vault.command(&["append", &format!("n{at}"), "A whole line."]);
    command.env("SIDENOTE_GIT_COMMIT", "operation").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn check_kills(seed: u64, kills: usize) {
    let vault = TestVault::new(&[("user.md", "Mine.\n")]);
    for at in 0..=kills {
        vault.write(&format!("n{at}.md"), format!("Note {at}.\n"));
    }
    commit_all(&vault, vault.root());
    hook(&vault, "pre-commit", "git diff --cached --quiet -- user.md; exit 0");
    vault.write("user.md", "Staged.\n");
    git(vault.root(), &["add", "user.md"]);
    vault.write("user.md", "Staged, and changed.\n");
    let of_user = || {
        git(vault.root(), &["ls-files", "--stage", "--", "user.md"])
            + &git(vault.root(), &["diff", "--cached", "--raw", "--", "user.md"])
    };
    let before = of_user();
    let begin = Instant::now();
    let first = append(&vault, kills).output().unwrap();
    assert!(stdout(&first).contains("committed as"), "{}", stderr(&first));
    let mut longest = begin.elapsed();
    let mut random = Random(seed);
    let (mut unwritten, mut uncommitted, mut committed, mut locks) = (0, 0, 0, 0);
    for at in 0..kills {
        let begin = Instant::now();
        let mut child = append(&vault, at).spawn().unwrap();
        let delay = longest * u32::try_from(random.below(1000)).unwrap() / 1000;
        while begin.elapsed() < delay && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let below = descendants(child.id());
        kill(child.id());
        if at % 2 == 0 {
            below.iter().copied().for_each(kill);
        }
        let ended = child.wait().unwrap();
        if ended.success() {
            longest = longest.min(begin.elapsed()).max(Duration::from_millis(20));
        }
        until("git has ended", || !below.iter().any(|process| runs(*process)));
        // The file is whole, and so are the repository and the index.
        let text = vault.read(&format!("n{at}.md"));
        let is_written = text == format!("Note {at}.\n\nA whole line.\n")
            || text == format!("Note {at}.\nA whole line.\n");
        assert!(is_written || text == format!("Note {at}.\n"), "kill {at}: {text:?}");
        git(vault.root(), &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(of_user(), before, "kill {at}");
        let left = locks_of_git(vault.root());
        if let Some(first) = left.first() {
            locks += left.len();
            let next = append(&vault, kills).output().unwrap();
            assert!(next.status.success(), "kill {at}: {}", stderr(&next));
            assert!(stderr(&next).contains(first.as_str()), "{left:?}: {}", stderr(&next));
            left.iter().for_each(|lock| fs::remove_file(vault.root().join(lock)).unwrap());
            git(vault.root(), &["commit", "-q", "--only", "-m", "user", &format!("n{kills}.md")]);
        }
        // The next operation on the same note says what is the case.
        let next = append(&vault, at).output().unwrap();
        assert!(next.status.success(), "kill {at}: {}", stderr(&next));
        let said = stderr(&next);
        let is_left_for = |reason: &str| said.contains(&format!("n{at}.md ({reason})"));
        // Git that was killed between its new commit and the index leaves the lock, and an index that is behind.
        let is_behind = !left.is_empty() && is_left_for("it was staged before");
        let is_left = is_behind || is_left_for("it was changed before and not committed");
        assert!(is_left != stdout(&next).contains("committed as"), "kill {at}: {said}");
        match (is_written, is_left) {
            (false, _) => unwritten += 1,
            (true, true) => uncommitted += 1,
            (true, false) => committed += 1,
        }
        if is_left {
            git(vault.root(), &["commit", "-q", "--only", "-m", "user", &format!("n{at}.md")]);
        }
        assert_eq!(of_user(), before, "after kill {at}");
    }
    say(&format!(
        "{kills} kills: {unwritten} before the write, {uncommitted} before the commit, {committed} after it, {locks} locks of git left behind"
    ));
    assert_eq!(unwritten + uncommitted + committed, kills);
}

/// Lists the locks that git leaves behind when it is killed: that of the index first, if it is there.
fn locks_of_git(root: &Path) -> Vec<String> {
    let folder = root.join(".git/refs/heads");
    let of_branches =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all = [".git/index.lock", ".git/HEAD.lock"].map(str::to_owned).into_iter();
    all.chain(
        of_branches.filter(|name| name.ends_with(".lock")).map(|name| format!(".git/refs/heads/{name}")),
    )
    .filter(|lock| root.join(lock).exists())
    .collect()
}

#[test]
fn twenty_kills_in_an_operation_and_its_commit_lose_nothing() {
    check_kills(1, 20);
}

#[test]
#[ignore = "it takes minutes: `just commits`"]
fn two_hundred_kills_in_an_operation_and_its_commit_lose_nothing() {
    check_kills(2, env_number("SIDENOTE_TEST_KILLS", 200));
}
