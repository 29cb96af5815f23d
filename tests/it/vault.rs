//! Tests the vault: the scan, reading single files, and Obsidian's settings (docs/spec/obsidian.md 1).

use std::convert::Infallible;
use std::fs;
use std::path::Path;

use sidenote::base::error::ErrorKind;
use sidenote::base::platform::canonicalize;
use sidenote::links::resolve::LinkFormat;
use sidenote::markdown::frontmatter::PropertyType;
use sidenote::markdown::path::NotePath;
use sidenote::vault::Vault;
use sidenote::vault::location::{Location, LocationReason};
use sidenote::vault::obsidian::{DailyNotes, FolderSetting, Settings, Templates};
use sidenote::vault::scan::{DirListing, Scan, ScanOptions, scan, scan_each, stat};
use tempfile::TempDir;

use crate::support::symlink;

fn path(text: &str) -> NotePath {
    NotePath::from_disk(text).unwrap()
}

/// Makes a folder of files; each holds its own path.
fn vault(files: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), files);
    root
}

/// Scans a vault with the user's leave to follow links out of it.
fn scan_outside(root: &Path) -> Scan {
    scan(root, &ScanOptions { follow_outside: true, ..ScanOptions::default() })
}

fn write(root: &Path, files: &[&str]) {
    for file in files {
        let disk = root.join(file);
        fs::create_dir_all(disk.parent().unwrap()).unwrap();
        fs::write(disk, file).unwrap();
    }
}

#[cfg(unix)]
fn make_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn listed(scan: &Scan) -> Vec<&str> {
    scan.files.iter().map(|file| file.path.as_str()).collect()
}

fn unseen(scan: &Scan) -> Vec<&str> {
    scan.gaps.unreadable.keys().map(String::as_str).collect()
}

fn scan_all(root: &Path) -> Scan {
    scan(root, &ScanOptions::default())
}

#[test]
fn only_dot_entries_are_hidden() {
    let root = vault(&[
        "b.md",
        "a/B.MD",
        "a/x.png",
        ".hidden.md",
        ".obsidian/app.json",
        "a/.trash/t.md",
        ".git/HEAD",
        "node_modules/n.md",
        "_private/p.md",
        "~tmp/t.md",
        "@eaDir/e.md",
        "a/.gitignore",
        "no extension",
    ]);
    fs::write(root.path().join(".gitignore"), "*").unwrap();
    fs::create_dir(root.path().join("empty")).unwrap();
    for threads in [1, 4] {
        let scan = scan(root.path(), &ScanOptions { threads, ..ScanOptions::default() });
        let expect = [
            "@eaDir/e.md",
            "_private/p.md",
            "a/B.MD",
            "a/x.png",
            "b.md",
            "no extension",
            "node_modules/n.md",
            "~tmp/t.md",
        ];
        assert_eq!(listed(&scan), expect);
        assert!(scan.gaps.warnings.is_empty() && scan.gaps.unreadable.is_empty());
    }
}

#[test]
fn a_file_is_described() {
    let root = vault(&["a/n.md"]);
    let found = &scan_all(root.path()).files[0];
    assert_eq!((found.size, found.symlink), (6, false));
    assert!(found.mtime_ns > 1_600_000_000_000_000_000);
    let vault = Vault::open(root.path()).unwrap();
    assert_eq!(stat(&vault, &path("a/n.md")).unwrap().as_ref(), Some(found));
    for gone in ["a", "b.md", "a/n.md/x", "x/y/z.md"] {
        assert_eq!(stat(&vault, &path(gone)).unwrap(), None, "{gone}");
    }
}

#[test]
fn a_folder_is_listed_with_or_without_subfolders() {
    let root = vault(&["n.md", "a/n.md", "a/b/n.md", "ab/n.md"]);
    let below = |folder: &str, recursive| {
        let options = ScanOptions { below: folder.to_owned(), recursive, ..ScanOptions::default() };
        listed(&scan(root.path(), &options)).join(" ")
    };
    assert_eq!(below("a", true), "a/b/n.md a/n.md");
    assert_eq!(below("a", false), "a/n.md");
    assert_eq!(below("", false), "n.md");
    write(root.path(), &[".h/n.md"]);
    symlink("a", root.path().join("twin"));
    assert_eq!([below(".h", true), below("../x", true), below("twin", true), below("a/", true)], [""; 4]);
}

#[test]
fn links_to_folders_are_followed_unless_they_form_a_cycle() {
    let outside = vault(&["o.md", "deep/p.md", ".h/q.md"]);
    let root = vault(&["a/n.md"]);
    let link = |target: &Path, name: &str| symlink(target, root.path().join(name));
    link(outside.path(), "out");
    link(root.path(), "a/self");
    link(Path::new("."), "a/dot");
    link(&root.path().join("a"), "twin");
    link(root.path().parent().unwrap(), "above");
    link(Path::new("/"), "top");
    // The second link to one target, and one into it, are left out.
    link(outside.path(), "out2");
    link(&outside.path().join("deep"), "out3");
    // A loop that starts outside.
    symlink(root.path(), outside.path().join("back"));
    symlink(outside.path(), outside.path().join("deep/loop"));
    let scan = scan_outside(root.path());
    assert_eq!(listed(&scan), ["a/n.md", "out/deep/p.md", "out/o.md"]);
    let left_out: Vec<_> =
        scan.gaps.warnings.iter().filter_map(|warning| warning.split(' ').next()).collect();
    assert_eq!(left_out, ["above", "out/deep/loop", "out2", "out3", "top"]);
    assert!(scan.gaps.unreadable.is_empty());
    let vault = Vault::open(root.path()).unwrap();
    let following = vault.clone().with_follow_outside(true);
    assert!(stat(&following, &path("out/deep/p.md")).unwrap().is_some());
    assert!(stat(&following, &path("twin/n.md")).unwrap().is_none());
    // Without `follow_outside`, nothing outside is listed, and each link that leads out is named.
    let scan = scan_all(root.path());
    assert_eq!(listed(&scan), ["a/n.md"]);
    assert_eq!(scan.gaps.warnings.len(), 5, "{:?}", scan.gaps.warnings);
    assert!(stat(&vault, &path("out/deep/p.md")).unwrap().is_none());
    let ways_out = ["above", "out", "out2", "out3", "top"];
    for way in ways_out {
        let says = format!(
            "{way} is not followed: it leads outside the vault; to allow it, set in the user's own settings vault.follow_outside"
        );
        assert!(
            scan.gaps.warnings.iter().any(|warning| warning.starts_with(&says)),
            "{:?}",
            scan.gaps.warnings
        );
    }
}

#[test]
fn a_folder_is_listed_once_and_before_its_subfolders() {
    let outside = vault(&["o.md", "deep/p.md"]);
    let root = vault(&["b.md", "a.md", "b/c.md", "b/.h/d.md", "b/e/f.md", "g/h.md", "hidden/i.md"]);
    symlink("a.md", root.path().join("in.md"));
    symlink(outside.path(), root.path().join("b/out"));
    for threads in [1, 4] {
        let hidden = "hidden".to_owned();
        let options = ScanOptions { threads, hidden, follow_outside: true, ..ScanOptions::default() };
        let mut listings: Vec<DirListing> = Vec::new();
        let Ok(gaps) = scan_each(root.path(), &options, None, |listing| {
            let (above, _) = listing.path.rsplit_once('/').unwrap_or_default();
            assert!(listing.path.is_empty() || listings.iter().any(|other| other.path == above));
            listings.push(listing);
            Ok::<_, Infallible>(())
        });
        assert!(gaps.unreadable.is_empty() && gaps.warnings.is_empty());
        let said = |listing: &DirListing| {
            let files: Vec<&str> = listing.files.iter().map(|file| file.path.name()).collect();
            format!("{}: {} | {}", listing.path, files.join(" "), listing.folders.join(" "))
        };
        let mut said: Vec<String> = listings.iter().map(said).collect();
        said.sort();
        let expect = [
            ": a.md b.md in.md | b g",
            "b/e: f.md | ",
            "b/out/deep: p.md | ",
            "b/out: o.md | b/out/deep",
            "b: c.md | b/e",
            "g: h.md | ",
        ];
        assert_eq!(said, expect);
    }
}

#[test]
fn a_visitor_ends_the_scan() {
    let files: Vec<String> = (0..300).map(|n| format!("f{n}/g/n.md")).collect();
    let root = vault(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let mut seen = 0;
    let ended = scan_each(root.path(), &ScanOptions::default(), None, |listing| {
        seen += 1;
        if listing.path.is_empty() { Ok(()) } else { Err(listing.path) }
    });
    assert!(ended.is_err_and(|path| path.starts_with('f')) && seen == 2);
}

#[test]
fn links_to_files_are_read() {
    let outside = vault(&["o.md"]);
    let root = vault(&["n.md"]);
    symlink(outside.path().join("o.md"), root.path().join("out.md"));
    symlink("n.md", root.path().join("in.md"));
    symlink("nowhere", root.path().join("dangling.md"));
    let scan = scan_outside(root.path());
    let links: Vec<_> = scan.files.iter().map(|file| (file.path.as_str(), file.symlink)).collect();
    assert_eq!(links, [("in.md", true), ("n.md", false), ("out.md", true)]);
    // What a dangling link meant may be away for the moment only.
    let covered =
        ["dangling.md", "dangling.md/x.md", "dangling.md2", "in.md"].map(|path| scan.gaps.cover(path));
    assert_eq!(covered, [true, true, false, false]);
    let vault = Vault::open(root.path()).unwrap();
    let following = vault.clone().with_follow_outside(true);
    assert!(stat(&following, &path("out.md")).unwrap().unwrap().symlink);
    assert!(stat(&following, &path("dangling.md")).is_err());
    assert_eq!(following.read(&path("out.md")).unwrap(), b"o.md");
    assert_eq!(vault.read(&path("in.md")).unwrap(), b"n.md");
    // Without the user's leave, a link out of the vault is no way to a note.
    let scan = scan_all(root.path());
    assert_eq!(listed(&scan), ["in.md", "n.md"]);
    assert!(scan.gaps.warnings[0].starts_with("out.md is not read: it leads outside the vault"));
    assert_eq!(stat(&vault, &path("out.md")).unwrap(), None);
    let error = vault.read(&path("out.md")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("leads outside the vault"), "{error}");
}

#[test]
fn links_to_hidden_folders_are_not_read() {
    let root = vault(&["n.md", ".git/config", ".sidenote/records/x.jsonl", ".store/notes/a.md"]);
    symlink(".git/config", root.path().join("config.md"));
    symlink(root.path().join(".sidenote/records/x.jsonl"), root.path().join("x.md"));
    symlink(".store/notes", root.path().join("notes"));
    for follow in [false, true] {
        let vault = Vault::open(root.path()).unwrap().with_follow_outside(follow);
        let scan = scan(root.path(), &vault.scan_options());
        assert_eq!(listed(&scan), ["n.md"]);
        assert_eq!(scan.gaps.warnings.len(), 3, "{:?}", scan.gaps.warnings);
        for name in ["config.md", "x.md", "notes/a.md"] {
            assert_eq!(stat(&vault, &path(name)).unwrap(), None, "{name}");
            let error = vault.read(&path(name)).unwrap_err();
            assert!(error.to_string().contains("hidden folder"), "{error}");
        }
    }
}

#[test]
fn a_file_in_a_linked_folder_has_one_canonical_path() {
    let outside = vault(&["o.md", "deep/p.md"]);
    let root = vault(&["a/b/n.md"]);
    symlink("a", root.path().join("twin"));
    symlink(root.path().join("a/b"), root.path().join("short"));
    symlink(outside.path(), root.path().join("out"));
    symlink(outside.path().join("deep"), root.path().join("z"));
    let closed = Vault::open(root.path()).unwrap();
    let open = closed.clone().with_follow_outside(true);
    let settled = |vault: &Vault, name: &str| {
        vault.canonical_path(&path(name)).map_or_else(|error| error.to_string(), |path| path.to_string())
    };
    let cases = [
        ("n.md", "n.md"),
        ("a/b/n.md", "a/b/n.md"),
        ("twin/b/n.md", "a/b/n.md"),
        ("twin/new/x.md", "a/new/x.md"),
        ("short/n.md", "a/b/n.md"),
        ("fresh/x.md", "fresh/x.md"),
        ("n.md/x.md", "n.md/x.md"),
    ];
    for (name, expect) in cases {
        assert_eq!((settled(&closed, name), settled(&open, name)), (expect.to_owned(), expect.to_owned()));
    }
    assert!(settled(&closed, "out/x.md").contains("outside the vault (symlink)"));
    assert_eq!(settled(&open, "out/deep/x.md"), "out/deep/x.md");
}

#[cfg(unix)]
#[test]
fn special_files_and_odd_names() {
    let root = vault(&["line\nbreak.md", "n.md"]);
    make_fifo(&root.path().join("fifo.md"));
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket.md")).unwrap();
    symlink("/dev/zero", root.path().join("zero.md"));
    symlink(root.path().join("fifo.md"), root.path().join("fifo-link.md"));
    fs::write(
        root.path().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"caf\xE9.md")),
        "x",
    )
    .unwrap();
    let long = format!("{}.md", "x".repeat(252));
    fs::write(root.path().join(&long), "x").unwrap();
    let scan = scan_all(root.path());
    assert_eq!(listed(&scan), ["line\nbreak.md", "n.md", &long]);
    assert_eq!(scan.gaps.warnings.len(), 5, "{:?}", scan.gaps.warnings);
    for name in ["fifo.md", "socket.md", "zero.md", "fifo-link.md"] {
        assert!(
            scan.gaps.warnings.iter().any(|warning| warning.starts_with(name)),
            "{name}: {:?}",
            scan.gaps.warnings
        );
        assert_eq!(stat(&Vault::open(root.path()).unwrap(), &path(name)).unwrap(), None);
        let error = Vault::open(root.path()).unwrap().read(&path(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn an_unreadable_folder_is_reported() {
    let root = vault(&["n.md"]);
    let gone = root.path().join("gone");
    let missing = scan_all(&gone);
    assert_eq!((unseen(&missing), missing.gaps.cover("any/n.md")), (vec![""], true));
    let part = scan(root.path(), &ScanOptions { below: "gone".to_owned(), ..ScanOptions::default() });
    assert_eq!(unseen(&part), ["gone"]);
    assert!(part.gaps.cover("gone/n.md") && !part.gaps.cover("gone2/n.md"));
    assert!(part.files.is_empty());
}

#[test]
fn reading_needs_a_file_within_the_size_limit() {
    let root = vault(&["a/n.md"]);
    let vault = Vault::open(root.path()).unwrap();
    assert_eq!(vault.read(&path("a/n.md")).unwrap(), b"a/n.md");
    assert_eq!(vault.disk_path(&path("a/n.md")), vault.root().join("a/n.md"));
    let kind = |name: &str| vault.read(&path(name)).unwrap_err().kind();
    assert_eq!([kind("gone.md"), kind("a")], [ErrorKind::NotFound, ErrorKind::Invalid]);
    let small = vault.clone().with_max_file_size(6);
    assert_eq!(small.read(&path("a/n.md")).unwrap().len(), 6);
    let error = small.with_max_file_size(5).read(&path("a/n.md")).unwrap_err();
    assert_eq!(error.to_string(), "a/n.md is not read: it has more than 5 bytes");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn opening_needs_a_folder_and_a_valid_config_folder() {
    let root = vault(&["n.md"]);
    assert_eq!(Vault::open(root.path().join("gone")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(Vault::open(root.path().join("n.md")).unwrap_err().kind(), ErrorKind::Invalid);
    for name in ["obsidian", "..", ".", ".a/b", ""] {
        assert!(Vault::open(root.path()).unwrap().with_config_dir(name).is_err(), "{name}");
    }
}

#[test]
fn the_vault_is_the_nearest_folder_with_a_marker() {
    use LocationReason::{Above, Indexed, Marked, Unmarked};
    let root = vault(&[
        "home/n.md",
        "home/.obsidian/app.json",
        "home/.sidenote/local/clone",
        "home/docs/n.md",
        "home/a/b/n.md",
        "home/a/.obsidian/app.json",
        "home/c/d/n.md",
        "home/c/.sidenote/config.toml",
        "home/e/f/n.md",
        "home/e/.sidenote/index/lock",
        "home/g/h/n.md",
        "home/g/.sidenote/index/lock",
        "home/g/.sidenote/local/clone",
    ]);
    let real = canonicalize(root.path()).unwrap();
    fs::create_dir_all(real.join("home/i/.sidenote")).unwrap();
    let cases = [
        ("home/a", "home/a", Marked),
        ("home/a/b", "home/a", Above),
        ("home/c/d", "home/c", Above),
        ("home/e", "home/e", Indexed),
        ("home/g/h", "home/g", Above),
        ("home/i", "home/i", Marked),
        // The home folder is passed over, whatever it holds.
        ("home/docs", "home/docs", Unmarked),
    ];
    for (start, expect, reason) in cases {
        let found = Location::from(&real.join(start), Some(&real.join("home"))).unwrap();
        assert_eq!(found, Location { root: real.join(expect), reason }, "{start}");
    }
    assert_eq!(cases.len(), 7);
    // An index alone is no marker, but what is below it may be a part of the user's vault.
    let below = Location::from(&real.join("home/e/f"), Some(&real.join("home"))).unwrap_err();
    assert_eq!(below.kind(), ErrorKind::NotFound);
    assert!(below.to_string().contains("has an index, but no marker of a vault"), "{below}");
    assert!(below.hint().unwrap().contains("--vault FOLDER"), "{below}");
    for (start, home, what) in
        [(real.join("home"), real.join("home"), "home folder"), ("/".into(), real, "root")]
    {
        let refused = Location::from(&start, Some(&home)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains(what), "{refused}");
        assert!(refused.hint().unwrap().contains("--vault FOLDER"), "{refused}");
    }
}

/// Reads settings from files of the given names and texts.
fn settings(files: &[(&str, &str)]) -> Settings {
    let root = vault(&[".obsidian/graph.json"]);
    for (name, text) in files {
        fs::write(root.path().join(".obsidian").join(name), text).unwrap();
    }
    Vault::open(root.path()).unwrap().settings()
}

#[test]
fn settings_default_to_obsidians() {
    for (name, text) in
        [("app.json", "{}"), ("app.json", ""), ("app.json", "\u{FEFF}{\"newLinkFormat\":null}")]
    {
        let found = settings(&[(name, text)]);
        assert_eq!(found.link_format, LinkFormat::Shortest);
        assert_eq!((found.use_markdown_links, found.always_update_links), (false, false));
        assert_eq!((found.attachments, found.new_files), (FolderSetting::Root, FolderSetting::Root));
        assert_eq!((found.daily_notes, found.templates), (DailyNotes::default(), Templates::default()));
        assert_eq!(found.warnings, Vec::<String>::new());
    }
}

#[test]
fn settings_are_read() {
    let found = settings(&[
        (
            "app.json",
            r#"{"newLinkFormat":"relative","useMarkdownLinks":true,"alwaysUpdateLinks":true,"trashOption":"local",
                "attachmentFolderPath":"./att/","newFileLocation":"folder","newFileFolderPath":"/In//box/","plugin":[1]}"#,
        ),
        ("types.json", r#"{"types":{"Due":"date","up":"multitext","odd":"dataview-thing"}}"#),
        (
            "daily-notes.json",
            r#"{"folder":"Daily/","format":"YYYY/MM/DD","template":"T/day","autorun":true}"#,
        ),
        ("templates.json", r#"{"folder":"T","dateFormat":"DD.MM.","timeFormat":""}"#),
    ]);
    assert_eq!(found.link_format, LinkFormat::Relative);
    assert!(found.use_markdown_links && found.always_update_links);
    assert_eq!(found.attachments, FolderSetting::BelowNote("att".to_owned()));
    assert_eq!(found.new_files, FolderSetting::Folder("In/box".to_owned()));
    assert_eq!(found.declared_type("DUE"), Some(PropertyType::Date));
    assert_eq!(found.declared_type("up"), Some(PropertyType::List));
    assert_eq!(found.declared_type("odd"), None);
    assert_eq!(
        (found.daily_notes.folder.as_str(), found.daily_notes.format.as_str()),
        ("Daily", "YYYY/MM/DD")
    );
    assert_eq!((found.daily_notes.template.as_str(), found.daily_notes.autorun), ("T/day", true));
    assert_eq!(
        (found.templates.date_format.as_str(), found.templates.time_format.as_str()),
        ("DD.MM.", "HH:mm")
    );
    assert_eq!(found.warnings, Vec::<String>::new());
}

#[test]
fn attachment_folders_follow_obsidians_settings() {
    let check = |text: &str, expect: FolderSetting| {
        let app = format!("{{\"attachmentFolderPath\":{text:?}}}");
        assert_eq!(settings(&[("app.json", &app)]).attachments, expect, "{text}");
    };
    check("/", FolderSetting::Root);
    check("./", FolderSetting::Beside);
    check("./sub", FolderSetting::BelowNote("sub".to_owned()));
    check("name", FolderSetting::Folder("name".to_owned()));
    check("a/b", FolderSetting::Folder("a/b".to_owned()));
}

#[cfg(unix)]
#[test]
fn malformed_settings_give_a_warning() {
    let found = settings(&[
        (
            "app.json",
            r#"{"newLinkFormat":"fancy","useMarkdownLinks":"yes","userIgnoreFilters":["/(/",3,"x/"]}"#,
        ),
        ("types.json", "{"),
        ("daily-notes.json", "[]"),
        ("templates.json", r#"{"folder":7}"#),
    ]);
    assert_eq!((found.link_format, found.use_markdown_links), (LinkFormat::Shortest, false));
    assert!(found.is_excluded(&path("x/n.md")));
    let starts: Vec<_> = found
        .warnings
        .iter()
        .map(|warning| warning.split(' ').take(4).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        starts,
        [
            "app.json has an unknown",
            "app.json has an unknown",
            "app.json excludes nothing by",
            "app.json has an excluded",
            "types.json is not valid",
            "daily-notes.json is not a",
            "templates.json has an unknown"
        ]
    );
    let root = vault(&[]);
    fs::create_dir_all(root.path().join(".obsidian/app.json")).unwrap();
    make_fifo(&root.path().join(".obsidian/types.json"));
    assert_eq!(Vault::open(root.path()).unwrap().settings().warnings.len(), 2);
}

#[test]
fn excluded_files_match_folders_and_patterns() {
    let check = |filter: &str, file: &str, expect: bool| {
        let app = serde_json::json!({"userIgnoreFilters": [filter]}).to_string();
        assert_eq!(settings(&[("app.json", &app)]).is_excluded(&path(file)), expect, "{filter} {file}");
    };
    check("temp", "temporary/x.md", true);
    check("temp/", "temporary/x.md", false);
    check("TEMP/", "temp/x.md", true);
    check("temp", "a/temp/x.md", false);
    check("café/", "CAFE\u{301}/x.md", true);
    check("/x\\.MD$/", "a/X.md", true);
    check("/^b/", "a/b.md", false);
    check("/\\/b\\//", "a/b/n.md", true);
    check("/^(?!keep)/", "keep/n.md", false);
    check("/^(?!keep)/", "drop/n.md", true);
    check("", "n.md", false);
    assert!(!settings(&[("app.json", r#"{"userIgnoreFilters":null}"#)]).is_excluded(&path("n.md")));
}

#[test]
fn a_configuration_folder_of_another_name() {
    let root = vault(&[]);
    fs::create_dir(root.path().join(".phone")).unwrap();
    fs::write(root.path().join(".phone/app.json"), r#"{"useMarkdownLinks":true}"#).unwrap();
    let vault = Vault::open(root.path()).unwrap();
    assert!(!vault.settings().use_markdown_links);
    assert!(vault.with_config_dir(".phone").unwrap().settings().use_markdown_links);
}
