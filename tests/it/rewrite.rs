//! Tests what a move rewrites: the conformance cases, refusals, and every link of random vaults resolved before and
//! after.

use std::collections::BTreeMap;

use proptest::prelude::{
    Just, ProptestConfig, Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use serde_json::Value;
use sidenote::links::resolve::FileNames;
use sidenote::links::rewrite::parse;
use sidenote::markdown::decode::decode;
use sidenote::markdown::edit::{ChangeSet, Content, FileLocation, apply};
use sidenote::markdown::link::Link;
use sidenote::markdown::note::Note;
use sidenote::markdown::path::NotePath;
use sidenote::markdown::subpath::{SubpathTable, SubpathTarget};
use sidenote::markdown::unlinked_reference::UnlinkedReferenceKind;
use sidenote::store::{MoveRequest, Operation, PartKind, PartRequest};

use crate::support::TestVault;

type Tree = BTreeMap<String, Vec<u8>>;

/// Carries a plan out on a tree in memory.
fn carry_out(plan: &ChangeSet, tree: &Tree) -> Tree {
    let mut after = tree.clone();
    let mut made = Vec::new();
    for change in &plan.files {
        let old =
            change.from.as_ref().map(|from| after.remove(&from.to_string()).unwrap()).unwrap_or_default();
        let new = match &change.content {
            Content::Keep => old,
            Content::Edits(edits) => apply(&old, edits).unwrap(),
            Content::Whole(bytes) => bytes.clone(),
        };
        made.extend(change.to.iter().map(|to| (to.to_string(), new.clone())));
    }
    for folder in &plan.folders {
        let inside = format!("{}/", folder.from);
        let moving: Vec<String> = after.keys().filter(|path| path.starts_with(&inside)).cloned().collect();
        for path in moving {
            let bytes = after.remove(&path).unwrap();
            after.insert(format!("{}/{}", folder.to, &path[inside.len()..]), bytes);
        }
    }
    after.extend(made);
    after
}

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

fn moving(from: &str, to: &str) -> Operation {
    Operation::Move(MoveRequest { from: from.to_owned(), to: to.to_owned(), ..MoveRequest::default() })
}

/// Plans an operation on a vault with these settings, and gives the tree that it leads to and its remarks.
fn planned(settings: &str, files: &[(&str, &str)], operation: &Operation) -> (Tree, Vec<String>) {
    let vault = TestVault::new(files);
    vault.write(".obsidian/app.json", settings);
    let plan = vault.store().changes().plan(operation).unwrap();
    let remarks = plan.remarks.iter().map(ToString::to_string).collect();
    (carry_out(&plan, &tree(files)), remarks)
}

/// Moves `from` to `to`, and compares the files that are not as they were, each as `path: text`.
fn check(files: &[(&str, &str)], from: &str, to: &str, expect: &[(&str, &str)]) {
    check_with("{}", files, &moving(from, to), expect);
}

fn check_with(settings: &str, files: &[(&str, &str)], operation: &Operation, expect: &[(&str, &str)]) {
    let before = tree(files);
    let (after, remarks) = planned(settings, files, operation);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let changed: BTreeMap<&str, String> = after
        .iter()
        .filter(|(path, bytes)| before.get(*path) != Some(bytes) && !bytes.is_empty())
        .map(|(path, bytes)| (path.as_str(), text(bytes)))
        .collect();
    let expect: BTreeMap<&str, String> =
        expect.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
    assert_eq!(changed, expect, "{operation:?} on {files:?}: {remarks:?}");
}

#[test]
fn conformance_cases() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/obsidian/cases.json"));
    let cases: Vec<Value> = serde_json::from_str(&text.unwrap()).unwrap();
    let mut count = 0;
    for case in cases.iter().filter(|case| case["kind"] == "rewrite") {
        count += 1;
        let files: Vec<(&str, &str)> = case["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str().unwrap()))
            .collect();
        let op = &case["op"];
        let said = |name: &str| op[name].as_str().unwrap_or_default().to_owned();
        let operation = match op["op"].as_str().unwrap() {
            kind @ ("rename-heading" | "rename-block") => Operation::RenamePart(PartRequest {
                note: said("file"),
                kind: if kind == "rename-heading" { PartKind::Heading } else { PartKind::Block },
                old: said("from"),
                new: said("to"),
                force: false,
            }),
            _ => Operation::Move(MoveRequest {
                from: said("from"),
                to: said("to"),
                relaxed: true,
                ..MoveRequest::default()
            }),
        };
        let (after, remarks) = planned(&case["settings"].to_string(), &files, &operation);
        let before = tree(&files);
        let expect = case["expect"].as_object().unwrap();
        for (path, bytes) in &after {
            let old = before.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let wanted = expect.get(path).and_then(Value::as_str).map(str::to_owned).or(old);
            let found = String::from_utf8_lossy(bytes).into_owned();
            if let Some(wanted) = wanted {
                assert_eq!(found, wanted, "{path} of {} ({remarks:?})", case["id"]);
            }
        }
        assert!(expect.keys().all(|path| after.contains_key(path)), "{}", case["id"]);
    }
    assert!(count >= 24, "{count} cases");
}

#[test]
fn every_link_form_is_rewritten() {
    let note = "---\nid: 007 # comment\nup: \"[[Old]]\"\n---\n[[Old]] [[Old|alias]] [[Old#Head]] ![[Old]] [t](Old.md) \
                [t](<Old.md>) [r]\n\n| a |\n|---|\n| [[Old\\|x]] |\n\n> [!note] see [[Old]]\n\n```\n[[Old]]\n```\n\
                `[[Old]]`\n\n[r]: Old.md\n";
    let expect =
        note.replace("Old", "New").replace("```\n[[New]]", "```\n[[Old]]").replace("`[[New]]`", "`[[Old]]`");
    check(
        &[("Old.md", "# Head\n"), ("s.md", note)],
        "Old",
        "New.md",
        &[("New.md", "# Head\n"), ("s.md", &expect)],
    );
}

#[test]
fn special_characters_are_encoded_for_the_link_form() {
    let files = [("Old.md", "x"), ("s.md", "[a](Old.md) [b](<Old.md>) [[Old]]\n")];
    check(
        &files,
        "Old",
        "A (b.md",
        &[("A (b.md", "x"), ("s.md", "[a](A%20%28b.md) [b](<A (b.md>) [[A (b]]\n")],
    );
    check(
        &files,
        "Old",
        "50%25 off.md",
        &[("50%25 off.md", "x"), ("s.md", "[a](50%2525%20off.md) [b](<50%2525 off.md>) [[50%25 off]]\n")],
    );
    check(
        &files,
        "Old",
        "R&amp;D.md",
        &[("R&amp;D.md", "x"), ("s.md", "[a](R%26amp%3BD.md) [b](<R%26amp%3BD.md>) [[R&amp;D]]\n")],
    );
}

#[test]
fn a_move_into_a_folder_keeps_the_name_and_bare_links() {
    let files = [("Old.md", "x"), ("d/n.md", ""), ("s.md", "[[Old]] [p](Old.md)\n")];
    let after = [("d/Old.md", "x"), ("s.md", "[[Old]] [p](d/Old.md)\n")];
    check(&files, "Old", "d/", &after);
    check(&files, "Old", "d", &after);
}

#[test]
fn relative_links_of_a_moved_note_are_rewritten() {
    let settings = r#"{"newLinkFormat": "relative"}"#;
    let files = [("a/s.md", "[[../b/x]] [[y]]\n"), ("b/x.md", ""), ("a/y.md", "")];
    check_with(settings, &files, &moving("a/s.md", "s.md"), &[("s.md", "[[b/x]] [[y]]\n")]);
}

#[test]
fn refused_links_are_reported_with_their_position() {
    let files = [("Old.md", ""), ("a#b.png", "x"), ("s.md", "one\n[x](Old%23.md) [[Old]]\n")];
    let (_, remarks) = planned("{}", &files, &moving("Old", "New"));
    assert!(remarks.is_empty(), "a link to nothing is not refused: {remarks:?}");
    let vault = TestVault::new(&[("Old.md", ""), ("Taken.md", "")]);
    vault.write("s.md", b"[[Old]] \xFF\n");
    let plan = vault.store().changes().plan(&moving("Old", "New")).unwrap();
    assert_eq!(plan.remarks[0].code, "invalid-utf8");
    assert_eq!(plan.files.len(), 1, "the note moves, and the file that is no UTF-8 is left alone");
    for (to, code) in [("Taken", "target-exists"), ("taken", "case-collision"), ("A#b", "name-not-linkable")]
    {
        let error = vault.store().changes().plan(&moving("Old", to)).unwrap_err();
        assert!(error.to_string().contains(code), "{error}");
    }
    for to in ["../x", "/x", ".x", "a\\b", "CON", "q?"] {
        assert!(vault.store().changes().plan(&moving("Old", to)).is_err(), "{to}");
    }
}

#[test]
fn links_to_renamed_headings_and_blocks_are_rewritten() {
    let rename = |kind, old: &str, new: &str| {
        Operation::RenamePart(PartRequest {
            note: "n".to_owned(),
            kind,
            old: old.to_owned(),
            new: new.to_owned(),
            force: false,
        })
    };
    let files = [
        ("n.md", "# Top\n## Same\n## Same\n"),
        ("s.md", "[[n#Top#Same]] [[n#Top]] [a](n.md#Top) [[n#Other]] `[[n#Top]]`\n"),
    ];
    check_with(
        "{}",
        &files,
        &rename(PartKind::Heading, "Top", "New top"),
        &[
            ("n.md", "# New top\n## Same\n## Same\n"),
            ("s.md", "[[n#New top#Same]] [[n#New top]] [a](n.md#New%20top) [[n#Other]] `[[n#Top]]`\n"),
        ],
    );
    let vault = TestVault::new(&files);
    let error = vault.store().changes().plan(&rename(PartKind::Heading, "Top", "same")).unwrap_err();
    assert!(error.to_string().contains("another heading"), "{error}");
    assert!(vault.store().changes().plan(&rename(PartKind::Block, "none", "x")).is_err());
}

fn name() -> impl Strategy<Value = String> {
    let stem = prop_oneof![
        Just("Note"),
        Just("note 2"),
        Just("é"),
        Just("A (b"),
        Just("v1.0"),
        Just("c&d"),
        Just("it's"),
        Just("線")
    ];
    let folder = prop_oneof![Just(""), Just("a/"), Just("b/"), Just("a/b/"), Just("Sp ace/")];
    let kind = prop_oneof![4 => Just("md"), 1 => Just("png")];
    (folder, stem, kind).prop_map(|(folder, stem, kind)| format!("{folder}{stem}.{kind}"))
}

/// Writes a link to `path` in one of many ways; not each of them finds it.
fn link() -> impl Strategy<Value = (usize, usize)> {
    (0usize..40, 0usize..16)
}

fn written(path: &str, way: usize) -> String {
    let bare = path.strip_suffix(".md").unwrap_or(path);
    let last = bare.rsplit('/').next().unwrap();
    let coded = path.replace(' ', "%20").replace('(', "%28");
    match way {
        0 => format!("[[{bare}]]"),
        1 => format!("[[{last}]]"),
        2 => format!("[[{last}|{last}]]"),
        3 => format!("![[{path}#H|x]]"),
        4 => format!("[t]({coded})"),
        5 => format!("[t](<{path}>)"),
        6 => format!("| [[{last}\\|y]] |"),
        7 => format!("[[{}]]", last.to_uppercase()),
        8 => format!("[[/{bare}]]"),
        9 => format!("[![[{last}]]]({coded})"),
        10 => format!("<img src=\"{coded}\"> <a href='./{coded}#H'>x</a>"),
        11 => format!("## About [[{bare}]]"),
        12 => format!("[[{last}#About {bare}]]"),
        13 => format!("[t](./{coded}#About%20{coded})"),
        14 => format!("[[{last}#About {bare}#H|t]]"),
        _ => format!("%% [[{bare}#^id]] %%"),
    }
}

/// What a link means: the file that it leads to, and the number of the heading that it names, where it names one.
type Meaning = Option<(String, Option<usize>)>;

/// Lists what every link of a tree and every file name in HTML means, by the file that it is in.
fn meanings(tree: &Tree) -> Vec<(String, Vec<Meaning>)> {
    let mut names = FileNames::default();
    tree.keys().for_each(|path| names.insert(&NotePath::from_disk(path).unwrap()));
    let notes: BTreeMap<NotePath, Note> = tree
        .iter()
        .filter(|(path, _)| path.ends_with(".md"))
        .map(|(path, bytes)| {
            let source = NotePath::from_disk(path).unwrap();
            let note = parse(&source, std::str::from_utf8(bytes).unwrap());
            (source, note)
        })
        .collect();
    let parts: BTreeMap<&NotePath, SubpathTable<'_>> =
        notes.iter().map(|(path, note)| (path, SubpathTable::new(note))).collect();
    let of_note = |(source, note): (&NotePath, &Note)| {
        let lead = |link: &Link| {
            let target = names.resolve(&link.path, source)?.path.clone();
            let heading = match parts.get(&target).and_then(|parts| parts.find(&link.subpath)) {
                Some(SubpathTarget::Heading(at)) => Some(at),
                _ => None,
            };
            Some((target.as_str().to_owned(), heading))
        };
        let in_html = note.mentions.iter().filter(|found| found.kind == UnlinkedReferenceKind::HtmlAttribute);
        let links = note.links.iter().chain(in_html.map(|found| &found.link));
        (source.as_str().to_owned(), links.map(lead).collect())
    };
    notes.iter().map(of_note).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_link_resolves_to_the_same_file_after_a_move(
        paths in prop::collection::btree_set(name(), 2..9),
        links in prop::collection::vec(prop::collection::vec(link(), 0..7), 9),
        pick in 0usize..9,
        to in name(),
        format in prop_oneof![Just("shortest"), Just("relative"), Just("absolute")],
    ) {
        let paths: Vec<String> = paths.into_iter().collect();
        let from = paths[pick % paths.len()].clone();
        let kind = |path: &str| path.rsplit('.').next().unwrap().to_owned();
        let to = to.replace(".md", &format!(".{}", kind(&from))).replace(".png", &format!(".{}", kind(&from)));
        let vault = TestVault::new(&[]);
        vault.write(".obsidian/app.json", format!(r#"{{"newLinkFormat": "{format}"}}"#));
        let mut before = Tree::new();
        for (at, path) in paths.iter().enumerate() {
            let mut text = String::from("# H\n\nblock ^id\n\n");
            for (target, way) in &links[at] {
                text.push_str(&written(&paths[target % paths.len()], *way));
                text.push_str("\n\n");
            }
            let bytes = if path.ends_with(".md") { text.into_bytes() } else { b"png".to_vec() };
            vault.write(path, &bytes);
            before.insert(path.clone(), bytes);
        }
        let store = vault.store();
        let moved = Operation::Move(MoveRequest { from: from.clone(), to: to.clone(), relaxed: true, ..MoveRequest::default() });
        let plan = match store.changes().plan(&moved) {
            Ok(plan) => plan,
            Err(error) => {
                prop_assert!(paths.iter().any(|path| path.to_lowercase() == to.to_lowercase()), "{error}");
                return Ok(());
            }
        };
        let after = carry_out(&plan, &before);
        let follow = |path: &str| if path == from { to.clone() } else { path.to_owned() };
        let refused = plan.remarks.iter().any(|remark| !["same-name", "heading-changed"].contains(&remark.code.as_str()));
        prop_assert!(!refused, "{:?}", plan.remarks);
        let misled: Vec<&str> = plan.remarks.iter().filter(|remark| remark.code == "heading-changed").map(|remark| remark.path.as_str()).collect();
        let found: BTreeMap<_, _> = meanings(&after).into_iter().collect();
        for (path, targets) in meanings(&before) {
            let now = &found[&follow(&path)];
            prop_assert_eq!(targets.len(), now.len());
            for (old, new) in targets.iter().zip(now) {
                if let Some((target, heading)) = old {
                    let new = new.clone().map(|(target, at)| (target, at.filter(|_| heading.is_some() && !misled.contains(&path.as_str()))));
                    let heading = heading.filter(|_| !misled.contains(&path.as_str()));
                    prop_assert_eq!(Some((follow(target), heading)), new, "{} -> {} in {}", &from, &to, path);
                }
            }
        }
        let untouched = |path: &String| plan.files.iter().all(|change| change.from.as_ref() != Some(&FileLocation::Vault(NotePath::from_disk(path).unwrap())));
        for path in before.keys().filter(|path| untouched(path)) {
            prop_assert_eq!(&before[path], &after[path]);
        }
    }
}

/// Reads every visible file of a folder.
fn read_tree(root: &std::path::Path) -> Tree {
    let vault = sidenote::vault::Vault::open(root).unwrap();
    let scan = sidenote::vault::scan::scan(vault.root(), &sidenote::vault::scan::ScanOptions::default());
    let read = |file: sidenote::vault::scan::FileStat| {
        (file.path.as_str().to_owned(), std::fs::read(vault.disk_path(&file.path)).unwrap())
    };
    scan.files.into_iter().filter(|file| !file.symlink).map(read).collect()
}

/// Moves notes, attachments and folders of a real vault to other names, one after the other: every link still means
/// its file, the dry run tells what is done, and the way back restores every byte.
fn check_real_vault(corpus: &std::path::Path, moves: usize) {
    let vault = TestVault::copy_of(corpus);
    let store = vault.store();
    let first = read_tree(vault.root());
    let known = lossy_meanings(&first);
    let files: Vec<&String> = first.keys().collect();
    let (mut moved, mut links) = (0, 0);
    for number in 0..moves {
        let path = files[number * 7919 % files.len()];
        let folder = path.rsplit_once('/').map(|(folder, _)| folder);
        let (from, to) = match (number % 4, folder) {
            (3, Some(folder)) => {
                (folder.to_owned(), format!("Moved ö {number}/{}", folder.replace('/', " ")))
            }
            (2, _) => (path.clone(), format!("New (place)/{number}/{}", path.rsplit('/').next().unwrap())),
            _ => {
                let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
                let name = format!("Renamed é & co {number}.{extension}");
                let folder = folder.map_or_else(String::new, |folder| format!("{folder}/"));
                (path.clone(), format!("{folder}{name}"))
            }
        };
        let there = moving(&from, &to);
        let planned = match store.changes().plan(&there) {
            Ok(plan) => plan,
            // A name that is none of ours stays where it is, as do parts that only Windows forbids.
            Err(error) => {
                assert_eq!(error.kind(), sidenote::base::error::ErrorKind::Invalid, "{from}: {error}");
                continue;
            }
        };
        let expected = carry_out(&planned, &first);
        let done = store.changes().change(&there, false).unwrap();
        assert_eq!(planned, done.plan, "{from}");
        let after = read_tree(vault.root());
        assert!(after == expected, "{from} -> {to}: the plan tells what is done");
        let follow = |path: &str| match path.strip_prefix(&from) {
            Some("") => to.clone(),
            Some(rest) if rest.starts_with('/') => format!("{to}{rest}"),
            _ => path.to_owned(),
        };
        let refused: std::collections::BTreeSet<String> =
            planned.remarks.iter().map(|remark| remark.path.as_str().to_owned()).collect();
        let now: BTreeMap<_, _> = lossy_meanings(&after).into_iter().collect();
        for (path, targets) in &known {
            let found = &now[&follow(path)];
            assert_eq!(targets.len(), found.len(), "{path}");
            if refused.contains(path) {
                continue;
            }
            for (old, new) in targets.iter().zip(found) {
                if let Some((target, heading)) = old {
                    links += 1;
                    let new = new.clone().map(|(target, at)| (target, at.filter(|_| heading.is_some())));
                    assert_eq!(Some((follow(target), *heading)), new, "a link in {path}, {from} -> {to}");
                }
            }
        }
        store.changes().undo(1, false).unwrap();
        assert!(read_tree(vault.root()) == first, "{from}: undo brings every byte back");
        moved += 1;
    }
    assert!(moved * 2 > moves && links > 0, "{moved} of {moves} moves were checked, with {links} links");
}

fn lossy_meanings(tree: &Tree) -> Vec<(String, Vec<Meaning>)> {
    let readable = tree.iter().map(|(path, bytes)| {
        let text = decode(bytes).text.into_owned();
        (path.clone(), text.into_bytes())
    });
    meanings(&readable.collect())
}

#[test]
fn every_link_of_the_example_vault_is_rewritten() {
    check_real_vault(&crate::support::repository().join("example-vault"), 24);
}

#[test]
#[ignore = "it needs SIDENOTE_CORPORA, a folder of vaults"]
fn every_link_of_real_vaults_is_rewritten() {
    let corpora = crate::support::env_path("SIDENOTE_CORPORA");
    let moves = std::env::var("SIDENOTE_CORPORA_MOVES").map_or(12, |text| text.parse().unwrap());
    for name in ["kepano-vault", "rust-book", "eips", "oi-wiki", "powershell-docs"] {
        crate::support::say(name);
        check_real_vault(&corpora.join(name), moves);
    }
}

#[test]
fn a_canvas_is_rewritten_on_a_case_only_rename() {
    let canvas = |file: &str| {
        format!(
            "{{\"nodes\":[{{\"id\":\"1\",\"type\":\"file\",\"file\":\"{file}\"}},{{\"id\":\"2\",\"type\":\"group\",\"background\":\"{file}\"}},{{\"id\":\"3\",\"type\":\"text\",\"text\":\"[[plan]]\"}}]}}"
        )
    };
    let files = [
        ("d/plan.md", "p"),
        ("c.canvas", &*canvas("d/plan.md")),
        ("n.md", "[[plan]] [[d/plan]] [x](d/plan.md)"),
    ];
    let note = |file: &str| format!("[[plan]] [[d/plan]] [x]({file})");
    let check_all = |from: &str, to: &str, file: &str| {
        check(&files, from, to, &[("c.canvas", &canvas(file)), (file, "p"), ("n.md", &note(file))]);
    };
    check_all("d/plan.md", "d/Plan.md", "d/Plan.md");
    check_all("d", "D", "D/plan.md");
    // A canvas that spells the path in another way is none of this rename's where its file stays.
    let files = [("d/plan.md", "p"), ("e.md", "e"), ("c.canvas", &*canvas("D/PLAN.md"))];
    check(&files, "e.md", "E.md", &[("E.md", "e")]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the file system takes both names for one")]
fn a_rename_leaves_the_links_of_a_file_that_differs_by_case() {
    let text = "[[n]] [[N]] [[n.md]] [x](N.md) [y](./n.md) [[n|N]]";
    let files = [("n.md", "lower"), ("N.md", "upper"), ("s.md", text)];
    check(
        &files,
        "n.md",
        "z.md",
        &[("s.md", "[[z]] [[N]] [[z]] [x](N.md) [y](./z.md) [[z|N]]"), ("z.md", "lower")],
    );
    check(
        &files,
        "N.md",
        "z.md",
        &[("s.md", "[[n]] [[z]] [[n.md]] [x](z.md) [y](./n.md) [[n|N]]"), ("z.md", "upper")],
    );
}
