//! Tests what the command line offers a person: list formats, relative dates, tasks, outlines, settings, completion and
//! terminal output.

use std::process::{Command, Output};

use sidenote::base::clock::Timestamp;

use crate::support::{SETTINGS, TestVault, json, program, run, stderr, stdout, text_of};

const NOW: &str = "2026-11-21T15:00:00Z";

fn vault() -> TestVault {
    TestVault::new(&[
        (
            "d/a b.md",
            "---\ntags: [red]\ncreated: 2026-11-20\n---\n# One\n\n- [ ] call\n- [x] write\n\n## Two\n[[c]]\n",
        ),
        ("c.md", "---\ntags: [red, blue]\ncreated: 2026-11-01\n---\n# Sea\n\n- [/] half\n- [ ] call back\n"),
    ])
}

#[track_caller]
fn check(args: &[&str], expect: &str) {
    assert_eq!(run(&vault(), NOW, args), expect, "{args:?}");
}

#[track_caller]
fn check_fails(args: &[&str], code: i32, says: &str) {
    let output = vault().run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
}

#[test]
fn lists_are_printed_in_the_requested_format() {
    check(&["list", "--format", r"{path}\t{title}"], "c.md\tSea\nd/a b.md\tOne\n");
    check(&["list", "--format", "{{{tags}}} {tags.0}{type}"], "{blue, red} blue\n{red} red\n");
    check(&["list", "--format", "{title}{tags.7}"], "Sea\nOne\n");
    check(&["list", "-0"], "c.md\0d/a b.md\0");
    check(&["list", "--format", r"{path}\0"], "c.md\0d/a b.md\0");
    check(&["backlinks", "c", "--format", "{path}:{line}: {text}"], "d/a b.md:11: [[c]]\n");
    check(&["tags", "--format", "{tag}={notes}"], "red=2\nblue=1\n");
    check(&["search", "sea", "-0"], "c.md\0");
    check(&["tasks", "-0"], "c.md\0d/a b.md\0");
    check(&["outline", "d/a b.md", "--format", "{line} {level} {text}"], "5 1 One\n10 2 Two\n");
    check_fails(&["list", "--format", "{pat}"], 2, "fields are");
    check_fails(&["list", "--format", "{pat.0}"], 2, "fields are");
    let help = stdout(&vault().run(&["list", "--help"]));
    assert!(help.contains(r"--updated-after yesterday --format '{path}\t{title}'"), "{help}");
    check_fails(&["list", "--format", "{path"], 2, "a { has no matching }");
    check_fails(&["list", "--format", "{}"], 2, "{} has no field name");
    check_fails(&["list", "--format", "}"], 2, "a } has no matching {");
    check_fails(&["tags", "-0"], 2, "no paths");
    check_fails(&["list", "-0", "--json"], 2, "--json cannot be combined with --format or -0");
    check_fails(&["list", "-0", "--format", "x"], 2, "cannot be used with");
}

#[test]
fn memory_messages_name_flags_of_the_command_line() {
    let vault = vault();
    let explained = run(&vault, NOW, &["memory", "explain", "c"]);
    assert!(explained.contains("used 0 times on 0 days, last never"), "{explained}");
    vault.run(&["memory", "save", "The heron left"]);
    let again = stderr(&vault.run(&["memory", "save", "The heron left"]));
    assert!(again.contains("or allow the duplicate (--allow-duplicate)"), "{again}");
}

#[test]
fn relative_dates_are_accepted_wherever_dates_are() {
    let cases: &[(&[&str], &str)] = &[
        (&["list", "--created-after", "yesterday", "-0"], "d/a b.md\0"),
        (&["list", "--created-before", "2w", "-0"], "c.md\0"),
        (&["list", "--created-after", "30 days ago", "-0"], "c.md\0d/a b.md\0"),
        (&["list", "--created-after", "today", "-0"], ""),
        (&["search", "created:yesterday", "-0"], "d/a b.md\0"),
        (&["search", "created:>=3mo path:c.md", "-0"], "c.md\0"),
        (&["search", "created:2w..today", "-0"], "d/a b.md\0"),
        (&["search", "[created:<yesterday]", "-0"], "c.md\0"),
        (&["tasks", "--created-after", "48h", "--todo", "--format", "{text}"], "call\n"),
    ];
    for (args, expect) in cases {
        check(args, expect);
    }
    assert_eq!(cases.len(), 9);
    check_fails(&["list", "--created-after", "soon"], 2, "write 2026-11-21, 2026-11-21T10:30:00, today");
    check_fails(&["search", "created:soonish"], 2, "is not a date");
    let now = Timestamp::parse(NOW).unwrap();
    let day = |text: &str| Timestamp::relative(text, now).map(|(start, _)| start.rfc3339());
    let spans = [
        ("1y", "2025-11-21T00:00:00Z"),
        ("3mo", "2026-08-21T00:00:00Z"),
        ("2 weeks", "2026-11-07T00:00:00Z"),
        ("tomorrow", "2026-11-22T00:00:00Z"),
        ("90min", "2026-11-21T13:30:00Z"),
    ];
    for (text, expect) in spans {
        assert_eq!(day(text).as_deref(), Some(expect), "{text}");
    }
    for text in ["", "d", "7", "7x", "-7d", "99999999999999999999d", "9999999y", "7d x", "2026"] {
        assert_eq!(day(text), None, "{text}");
    }
}

#[test]
fn tasks_are_listed_and_one_is_checked_off() {
    check(
        &["tasks"],
        "c.md\n    7  [/] half\n    8  [ ] call back\nd/a b.md\n    7  [ ] call\n    8  [x] write\n",
    );
    check(&["tasks", "c", "--todo"], "c.md\n    8  [ ] call back\n");
    check(&["tasks", "--done", "--folder", "d", "--format", "{line}{status}"], "8x\n");
    let cases: &[(&[&str], &str, &str)] = &[
        (&["task", "c", "call"], "c.md", "- [x] call back\n"),
        (&["task", "c", "half"], "c.md", "- [ ] half\n"),
        (&["task", "c", "7", "--done"], "c.md", "- [x] half\n"),
        (&["task", "c", "7", "--status", ">"], "c.md", "- [>] half\n"),
        (&["task", "a b", "WRITE"], "d/a b.md", "- [ ] write\n"),
        (&["task", "a b", "8", "--todo"], "d/a b.md", "- [ ] write\n"),
    ];
    for (args, path, expect) in cases {
        let vault = vault();
        let before = text_of(&vault, path);
        run(&vault, NOW, &[*args, &["--dry-run"]].concat());
        assert_eq!(text_of(&vault, path), before, "{args:?}");
        run(&vault, NOW, args);
        let after = text_of(&vault, path);
        assert!(after.contains(expect), "{args:?}: {after}");
        // One character changed and no other.
        let changed = before.chars().zip(after.chars()).filter(|(old, new)| old != new).count();
        assert_eq!((changed, before.len()), (1, after.len()), "{args:?}");
        run(&vault, NOW, &["undo"]);
        assert_eq!(text_of(&vault, path), before, "{args:?}");
    }
    assert_eq!(cases.len(), 6);
    check_fails(&["task", "c", "l"], 4, "give the line of one: 7: half / 8: call back");
    check_fails(&["task", "c", "nothing"], 3, "7: half");
    check_fails(&["task", "c", "1"], 3, "has no task");
    check_fails(&["task", "c", "7", "--status", "]"], 2, "is not a status of a task");
    check_fails(&["task", "c", "7", "--done", "--todo"], 2, "cannot be used with");
}

#[test]
fn outline_backlinks_and_random_answer() {
    check(&["outline", "a b"], "    5  One\n   10    Two\n");
    assert_eq!(json(&vault(), NOW, &["outline", "c"])[0]["text"], "Sea");
    assert!(run(&vault(), NOW, &["backlinks", "c"]).starts_with("d/a b.md:11  "));
    assert_eq!(json(&vault(), NOW, &["backlinks", "c"])[0]["line"], 11);
    let one = run(&vault(), NOW, &["random", "--seed", "7", "-0"]);
    assert_eq!(one, run(&vault(), NOW, &["random", "--seed", "7", "-0"]), "a seed decides");
    check(&["random", "--tag", "blue", "-0"], "c.md\0");
    let both = run(&vault(), NOW, &["random", "-n", "9", "--format", "{path}"]);
    assert_eq!(both.lines().count(), 2);
    let seeds: Vec<String> = (0..20).map(|seed| seed.to_string()).collect();
    let vault = vault();
    let picked: std::collections::BTreeSet<String> =
        seeds.iter().map(|seed| run(&vault, NOW, &["random", "--seed", seed, "-0"])).collect();
    assert_eq!(picked.len(), 2, "every note comes");
}

#[test]
fn open_prints_the_file_and_runs_the_configured_program() {
    let vault = vault();
    let system = run(&vault, NOW, &["open", "a b", "--dry-run"]);
    assert!(system.starts_with("would open /") && system.ends_with("/d/a b.md\n"), "{system}");
    vault.write(".obsidian/app.json", "{}");
    let address = run(&vault, NOW, &["open", "a b", "--dry-run"]);
    assert!(address.starts_with("would open obsidian://open?path=%2F"), "{address}");
    assert!(address.ends_with("%2Fd%2Fa%20b.md\n"), "{address}");
    vault.write(".opener", "#!/bin/sh\necho \"$1\" > \"$(dirname \"$0\")/.opened\"\n");
    let mut command = vault.command(&["open", "c", "--with", "system"]);
    command
        .env("SIDENOTE_OPENER", format!("sh {}", vault.root().join(".opener").display()))
        .env("PATH", std::env::var_os("PATH").unwrap());
    assert!(stdout(&command.output().unwrap()).starts_with("opened /"));
    assert!(text_of(&vault, ".opened").ends_with("/c.md\n"));
    assert_eq!(vault.run(&["open", "nothing"]).status.code(), Some(3));
    let mut command = vault.command(&["open", "c", "--with", "system"]);
    let refused = command.env("SIDENOTE_OPENER", "false").env("PATH", std::env::var_os("PATH").unwrap());
    assert_eq!(
        refused.output().unwrap().status.code(),
        Some(6),
        "a program that fails is no mistake of usage"
    );
    let mut command = vault.command(&["open", "c", "--with", "system"]);
    let failed = command.env("SIDENOTE_OPENER", "/no/such/opener").output().unwrap();
    assert!(stderr(&failed).contains("hint: set $SIDENOTE_OPENER to another program"), "{}", stderr(&failed));
}

#[test]
fn config_set_writes_only_the_users_file() {
    let vault = vault();
    let file = format!("{SETTINGS}/sidenote/config.toml");
    let file = file.as_str();
    vault.write(file, "# mine\n[search]\nlimit = 5 # few\n");
    let set = |args: &[&str]| vault.run(&[&["config"], args].concat());
    assert!(stdout(&set(&["set", "search.limit", "20", "--dry-run"])).contains("would change in"));
    assert_eq!(text_of(&vault, file), "# mine\n[search]\nlimit = 5 # few\n");
    assert!(stdout(&set(&["set", "search.limit", "20"])).starts_with("search.limit: 5 -> 20\n"));
    assert_eq!(text_of(&vault, file), "# mine\n[search]\nlimit = 20 # few\n");
    set(&["set", "memory.folder", "Brain"]);
    set(&["set", "backup.auto", "true"]);
    set(&["set", "types.idea", "{ half_life_days = 5, floor = 2 }"]);
    let shown = json(&vault, NOW, &["config", "show"]);
    let value = |key: &str| {
        let setting = shown.as_array().unwrap().iter().find(|setting| setting["key"] == key);
        setting.map(|setting| setting["value"].as_str().unwrap().to_owned())
    };
    assert_eq!(value("memory.folder").as_deref(), Some("\"Brain\""));
    assert_eq!(value("backup.auto").as_deref(), Some("true"));
    assert!(value("types.idea").is_some());
    assert_eq!(stdout(&set(&["unset", "memory.folder"])).lines().count(), 2);
    assert!(!text_of(&vault, file).contains("Brain"));
    let before = text_of(&vault, file);
    let wrong: &[&[&str]] = &[
        &["set", "search.limits", "3"],
        &["set", "search.limit", "many"],
        &["set", "backup.auto", "perhaps"],
        &["set", "links.style", "loud"],
        &["set", "types.idea", "{ half_life_days = 0, floor = 2 }"],
        &["set", "search.mode", "words"],
        &["set", "search.fusion", "both"],
        &["set", "embed.provider", "minilmm"],
        &["unset", "search.limits"],
    ];
    for args in wrong {
        assert_eq!(set(args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!((wrong.len(), text_of(&vault, file)), (9, before));
    assert!(stderr(&set(&["unset", "search.limits"])).starts_with("error: search.limits is no setting\n"));
    for (key, value) in [
        ("search.mode", "bm25"),
        ("search.fusion", "rrf"),
        ("embed.provider", "auto"),
        ("embed.provider", "none"),
    ] {
        assert_eq!(set(&["set", key, value]).status.code(), Some(0), "{key}");
        assert_eq!(vault.run(&["search", "sea", "-0"]).status.code(), Some(0), "{key}");
    }
}

#[test]
fn config_show_fits_a_hundred_columns() {
    let shown = stdout(&TestVault::new(&[]).run(&["config", "show"]));
    let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
    assert!((40..=100).contains(&widest), "{widest} columns");
    assert!(shown.contains("bugfix") && shown.contains("observation"));
}

/// Asks for the completions of a word, as the script of a shell does.
fn complete(vault: &TestVault, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = vault.command(&[]);
    let index = (words.len() - 1).to_string();
    let mut plain = Command::new(command.get_program());
    plain.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command = plain;
    command
        .env("COMPLETE", shell)
        .env("_CLAP_COMPLETE_INDEX", &index)
        .env("_CLAP_IFS", "\n")
        .env("_SIDENOTE_TYPED", words.last().unwrap())
        .arg("--")
        .args(words);
    let output: Output = command.output().unwrap();
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn shells_complete_commands_notes_tags_headings_folders_and_properties() {
    let vault = vault();
    let native = vault.root().to_str().unwrap();
    // In these shells a backslash escapes what follows.
    let root = native.replace('\\', "/");
    let root = root.as_str();
    let none = complete(&vault, "fish", &["sidenote", "--vault", root, "read", "c"]);
    assert!(none.is_empty(), "there is no index yet: {none:?}");
    assert!(!vault.root().join(".sidenote").exists(), "and none is made");
    run(&vault, NOW, &["index", "--no-embed"]);
    let cases: &[(&[&str], &str)] = &[
        (&["outl"], "outline"),
        (&["read", "d/"], "d/a b.md"),
        (&["read", "se"], "Sea"),
        (&["read", "d/a b.md", "--section", "Tw"], "Two"),
        (&["list", "--tag", "bl"], "blue"),
        (&["list", "--folder", "d"], "d/"),
        (&["list", "--property", "cr"], "created"),
        (&["rename-tag", "re"], "red"),
        (&["rename-heading", "c", "S"], "Sea"),
        (&["tag", "c", "+bl"], "+blue"),
        (&["memory", "pin", "c."], "c.md"),
        (&["check", "--only", "broken-l"], "broken-link"),
    ];
    for (words, expect) in cases {
        let line = [&["sidenote", "--vault", root], *words].concat();
        for shell in ["zsh", "fish", "bash"] {
            let found = complete(&vault, shell, &line);
            let expect = if shell == "bash" { expect.replace(' ', r"\ ") } else { (*expect).to_owned() };
            // Some shells get the meaning of a candidate after a separator.
            let names: Vec<&str> = found.iter().map(|line| line.split(['\t', ':']).next().unwrap()).collect();
            assert!(names.contains(&expect.as_str()), "{shell} {words:?}: {found:?}");
        }
    }
    assert_eq!(cases.len(), 12);
    let quoted = complete(&vault, "bash", &["sidenote", "--vault", root, "read", "d/a\\ "]);
    assert_eq!(quoted, [r"d/a\ b.md"]);
    let plain = complete(&vault, "powershell", &["sidenote", "--vault", native, "read", "d/"]);
    assert!(plain.iter().any(|line| line.contains("d/a b.md")), "{plain:?}");
    // There a backslash is no escape, as in paths of Windows.
    if cfg!(unix) {
        let odd = vault.root().join(r"odd\name");
        std::fs::create_dir(&odd).unwrap();
        let inner = TestVault::new_in(&odd, &[("inner.md", "x\n")]);
        run(&inner, NOW, &["index", "--no-embed"]);
        let root = inner.root().to_str().unwrap();
        for shell in ["powershell", "elvish"] {
            let plain = complete(&vault, shell, &["sidenote", "--vault", root, "read", "in"]);
            assert!(plain.iter().any(|line| line.contains("inner")), "{shell}: {plain:?}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&vault.run(&["completions", shell])).contains("COMPLETE"), "{shell}");
    }
}

/// Runs the program on a terminal of its own, which script(1) of util-linux makes.
fn on_terminal(vault: &TestVault, args: &str, rows: usize, pager: &str) -> String {
    let program = program();
    let line = format!(
        "stty rows {rows} cols 40; {} --vault '{}' {args}",
        program.display(),
        vault.root().display()
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", vault.root().join(".home"))
        .env("SIDENOTE_NOW", "2026-11-21")
        .env("SIDENOTE_EMBED_PROVIDER", "none")
        .env("TERM", "xterm")
        .env("SIDENOTE_PAGER", pager)
        .stdin(std::process::Stdio::null());
    let output = command.output().expect("script(1) of util-linux is installed");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    stdout(&output).replace('\r', "")
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs script(1) of util-linux")]
fn a_terminal_gets_a_pager_wrapping_and_colours() {
    let long = format!("# Long\n\n{}\n", "several words that go on ".repeat(20));
    let vault = TestVault::new(&[("long.md", &long), ("b.md", "x\n")]);
    (0..60).for_each(|n| vault.write(&format!("n{n:02}.md"), "y\n"));
    run(&vault, NOW, &["index", "--no-embed"]);
    let pager = "sed s/^/PAGED:/";
    let shown = on_terminal(&vault, "list", 20, pager);
    assert!(shown.contains("PAGED:") && shown.lines().all(|line| line.starts_with("PAGED:")), "{shown}");
    for args in ["list -n 3", "list --no-pager", "list --json"] {
        let shown = on_terminal(&vault, args, 20, pager);
        assert!(!shown.contains("PAGED:"), "{args}: {shown}");
    }
    assert!(!on_terminal(&vault, "list", 20, "").contains("PAGED:"));
    assert!(on_terminal(&vault, "list", 20, "no-such-pager-anywhere").contains("n59.md"));
    let found = on_terminal(&vault, "--color never --no-pager search several words", 50, "");
    // Standard error goes to the same terminal.
    let answer = || found.lines().filter(|line| !line.starts_with("note: "));
    assert!(answer().all(|line| line.chars().count() <= 40) && answer().count() > 5, "{found}");
    assert!(!found.contains('\x1b'), "{found}");
    assert!(on_terminal(&vault, "search several", 50, "").contains("\x1b["));
}

#[test]
fn colours_follow_the_flag_and_the_environment() {
    let vault = vault();
    assert!(!run(&vault, NOW, &["search", "sea"]).contains('\x1b'));
    assert!(run(&vault, NOW, &["search", "sea", "--color", "always"]).contains("\x1b["));
    assert!(!run(&vault, NOW, &["search", "sea", "--color=never"]).contains('\x1b'));
    let output = vault.run(&["search", "sea", "--color", "sometimes"]);
    assert_eq!(output.status.code(), Some(2));
}
