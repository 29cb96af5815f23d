//! Tests which file a link means: the conformance cases, the rules of docs/spec/obsidian.md 3, and a direct
//! implementation of them over random vaults.

use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};
use serde_json::Value;
use sidenote::links::resolve::{FileNames, Resolved, name_keys};
use sidenote::markdown::path::{NotePath, clean, fold_case_in_place, key, lowercase_chars, to_nfc};
use unicode_normalization::UnicodeNormalization as _;

fn path(text: &str) -> NotePath {
    NotePath::from_disk(text).unwrap()
}

fn names(files: &[&str]) -> FileNames {
    let mut names = FileNames::default();
    files.iter().for_each(|file| names.insert(&path(file)));
    names
}

/// Resolves `link` in `source` among `files`, the source included; `?` marks an ambiguous and `!` an unstable result.
fn check(files: &[&str], source: &str, link: &str, expect: &str) {
    let names = names(files);
    let source = path(source);
    assert_eq!(show(names.resolve(link, &source)), expect, "[[{link}]] in {source} among {files:?}");
}

fn show(found: Option<Resolved<'_>>) -> String {
    let mark = |found: &Resolved<'_>| match (found.ambiguous, found.unstable) {
        (_, true) => "!",
        (true, false) => "?",
        (false, false) => "",
    };
    found.map_or_else(|| "-".to_owned(), |found| format!("{}{}", found.path, mark(&found)))
}

#[test]
fn conformance_cases() {
    for case in &crate::support::cases_of("resolve", 20) {
        let files: Vec<&str> = case["files"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let names = names(&files);
        let source = path(case["source"].as_str().unwrap());
        let found = names.resolve(case["link"].as_str().unwrap(), &source);
        assert_eq!(found.map(|found| found.path.as_str()), case["expect"].as_str(), "{case}");
    }
}

#[test]
fn an_empty_linkpath_is_the_source_itself() {
    check(&[], "s.md", "", "s.md");
    check(&[], "s.md", " \u{A0} ", "s.md");
}

#[test]
fn a_dot_tries_the_literal_name_first_then_md() {
    check(&["v1.0", "v1.0.md"], "s.md", "v1.0", "v1.0");
    check(&["v1.0.md"], "s.md", "v1.0", "v1.0.md");
    check(&["x.md.md"], "s.md", "x.md", "x.md.md");
    check(&["Figure 1.png"], "s.md", "Figure 1", "-");
    check(&["v1.0/n.md"], "s.md", "v1.0/n", "v1.0/n.md");
    // A literal name that is found at another path ends the search: `.md` is not tried.
    check(&["a/v1.0", "b/v1.0.md"], "s.md", "b/v1.0", "-");
}

#[test]
fn case_composition_and_spaces_do_not_matter() {
    check(&["Cafe\u{301}.md"], "s.md", "CAFÉ", "Cafe\u{301}.md");
    check(&["a b.md"], "s.md", "A\u{A0}B ", "a b.md");
    check(&["a\u{A0}b.md"], "s.md", "a b", "a\u{A0}b.md");
    check(&["ΟΔΟΣ.md"], "s.md", "οδοσ", "ΟΔΟΣ.md");
    check(&["ΟΔΟΣ.md"], "s.md", "ΟΔΟΣ.MD", "ΟΔΟΣ.md");
    check(&["ΟΔΟΣ/x.md"], "s.md", "οδος/x", "ΟΔΟΣ/x.md");
}

#[test]
fn files_that_share_a_key_are_ambiguous() {
    check(&["A.md", "a.md"], "s.md", "a", "a.md?");
    check(&["d/A.md", "d/a.md"], "s.md", "d/a", "d/a.md?");
    check(&["d/A.md", "d/a.md"], "d/s.md", "./a", "d/a.md?");
    check(&["d/AB.md", "d/Ab.md"], "d/s.md", "./aB", "d/AB.md?");
    check(&["AB.md", "Ab.md"], "s.md", "ab", "Ab.md?");
    check(&["ABc.md", "Abc.md"], "s.md", "aBC", "ABc.md!");
}

#[test]
fn relative_links_have_no_fallback() {
    let files = ["a/b/n.md", "a/n.md", "n.md", "c/n.md"];
    check(&files, "a/b/s.md", "./n", "a/b/n.md");
    check(&files, "a/b/s.md", "../n", "a/n.md");
    check(&files, "a/b/s.md", "../../n", "n.md");
    check(&files, "a/b/s.md", "../../../n", "-");
    check(&files, "a/b/s.md", "../../c/./n", "c/n.md");
    check(&files, "a/b/s.md", "../x/../n", "a/n.md");
    check(&files, "x/s.md", "./n", "-");
    check(&files, "s.md", "./n", "n.md");
    check(&files, "s.md", "../n", "-");
    check(&files, "A/B/s.md", "./N.MD", "a/b/n.md");
}

#[test]
fn a_leading_slash_means_the_root() {
    check(&["a/n.md", "n.md"], "a/s.md", "/n", "n.md");
    check(&["a/n.md", "n.md"], "s.md", "/a/n", "a/n.md");
    check(&["a/n.md"], "a/s.md", "/n", "-");
}

#[test]
fn own_folder_then_the_shortest_path() {
    check(&["Note.md", "a/Note.md"], "a/s.md", "Note", "Note.md");
    check(&["b/Note.md", "a/x/Note.md"], "a/s.md", "Note", "a/x/Note.md");
    check(&["b/Note.md", "a/x/Note.md"], "a/y/s.md", "Note", "b/Note.md?");
    check(&["a/Note.md", "a/x/Note.md"], "a/s.md", "Note", "a/Note.md?");
    check(&["zzzz/Note.md", "a/b/Note.md"], "s.md", "Note", "a/b/Note.md?");
    check(&["b/Note.md", "a/Note.md"], "s.md", "Note", "a/Note.md!");
    // Length counts UTF-16 units: an emoji has two, `ä` has one.
    check(&["🙂/Note.md", "äb/Note.md"], "s.md", "Note", "äb/Note.md!");
    check(&["🙂b/Note.md", "äb/Note.md"], "s.md", "Note", "äb/Note.md?");
    // A folder whose name only starts like the own one is another folder.
    check(&["ab/Note.md", "c/Note.md"], "a/s.md", "Note", "c/Note.md?");
}

#[test]
fn a_partial_path_matches_whole_folders() {
    check(&["x/b/Note.md", "b/c/Note.md"], "s.md", "b/Note", "x/b/Note.md");
    check(&["ab/Note.md"], "s.md", "b/Note", "-");
    check(&["b/Note.md", "x/b/Note.md"], "x/s.md", "b/Note", "b/Note.md");
    check(&["y/b/Note.md", "xx/b/Note.md"], "xx/s.md", "b/Note", "xx/b/Note.md");
    check(&["a/Note.md"], "s.md", "wrong/Note", "-");
}

#[test]
fn canvas_files_are_exact() {
    let names = names(&["a/n.md", "n.png"]);
    assert_eq!(show(names.resolve_exact("A/N.md")), "a/n.md");
    for path in ["n.md", "a/n", "/a/n.md", "./a/n.md", ""] {
        assert_eq!(show(names.resolve_exact(path)), "-", "{path}");
    }
}

#[test]
fn keys_of_every_lookup() {
    let check = |link: &str, expect: &[&str]| assert_eq!(name_keys(link), expect, "{link}");
    check("", &[]);
    check("Note", &["note.md"]);
    check("A/Note.md", &["note.md", "note.md.md"]);
    check("v1.0/Note", &["note.md"]);
    check("../x.PNG", &["x.png", "x.png.md"]);
    check("ΟΔΟΣ", &["οδοσ.md"]);
}

#[test]
fn removed_files_do_not_resolve() {
    let mut names = names(&["a/n.md", "b/n.md", "N.md", "n.md"]);
    let source = path("s.md");
    names.insert(&path("a/n.md"));
    for (gone, left) in
        [("N.md", "n.md"), ("n.md", "a/n.md!"), ("a/n.md", "b/n.md"), ("b/n.md", "-"), ("b/n.md", "-")]
    {
        names.remove(&path(gone));
        assert_eq!(show(names.resolve("n", &source)), left, "without {gone}");
    }
    names.insert(&path("c/n.md"));
    assert_eq!(show(names.resolve("n", &source)), "c/n.md");
}

/// Reads docs/spec/obsidian.md 3.3 step by step over the plain list of files. Of files that differ by case alone, the
/// one whose path and the link have the longest common ending is meant, where there is one such.
fn naive<'a>(files: &'a [NotePath], linkpath: &str, source: &'a NotePath) -> Option<(&'a str, bool)> {
    let (found, ambiguous) = naive_by_key(files, linkpath, source)?;
    let link = clean(linkpath);
    let extension = |text: &str| {
        let name = text.rsplit('/').next().unwrap_or("");
        name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase())
    };
    let common_ending = |path: &str| {
        let is_whole = extension(path) == extension(&link);
        let path = if is_whole { path } else { path.trim_end_matches(".md") };
        (0..=path.len().min(link.len()))
            .rev()
            .find(|len| path.as_bytes().ends_with(&link.as_bytes()[link.len() - len..]))
            .unwrap_or(0)
    };
    if !ambiguous {
        return Some((found, ambiguous));
    }
    let twins = files.iter().filter(|file| file.key() == key(found)).map(NotePath::as_str);
    let mut rated: Vec<(usize, &str)> = twins.map(|twin| (common_ending(twin), twin)).collect();
    rated.sort();
    match rated.as_slice() {
        [.., (second, _), (first, twin)] if first > second => Some((twin, true)),
        _ => Some((found, true)),
    }
}

/// As [`naive`], where case decides nothing.
fn naive_by_key<'a>(files: &'a [NotePath], linkpath: &str, source: &'a NotePath) -> Option<(&'a str, bool)> {
    let l = clean(linkpath);
    if l.is_empty() {
        return Some((source.as_str(), false));
    }
    let by_name = |want: &str| -> Vec<&'a NotePath> {
        let last = want.rsplit('/').next().unwrap();
        files.iter().filter(|file| key(file.name()) == last).collect()
    };
    let mut want = key(&l);
    let mut c = if l.rsplit('/').next().unwrap().contains('.') { by_name(&want) } else { Vec::new() };
    if c.is_empty() {
        want = key(&format!("{l}.md"));
        c = by_name(&want);
    }
    let best = |mut group: Vec<&'a NotePath>| {
        group.sort_by_key(|file| (file.as_str().encode_utf16().count(), file.as_str()));
        Some((group.first()?.as_str(), group.len() > 1))
    };
    let exact = |path: &str| best(c.iter().copied().filter(|file| file.key() == path).collect());
    if !want.contains('/') && c.len() == 1 {
        return best(c);
    }
    let folder = key(source.folder());
    if want.starts_with("./") || want.starts_with("../") {
        let mut parts: Vec<&str> = if folder.is_empty() { Vec::new() } else { folder.split('/').collect() };
        for part in want.split('/') {
            match part {
                ".." => _ = parts.pop()?,
                "." | "" => {}
                name => parts.push(name),
            }
        }
        return exact(&parts.join("/"));
    }
    if let Some(path) = want.strip_prefix('/') {
        return exact(path);
    }
    if let Some(found) = exact(&want) {
        return Some(found);
    }
    let m: Vec<_> = c.into_iter().filter(|file| file.key().ends_with(&format!("/{want}"))).collect();
    let below = |file: &&NotePath| !folder.is_empty() && file.key().starts_with(&format!("{folder}/"));
    let own: Vec<_> = m.iter().copied().filter(below).collect();
    if own.is_empty() { best(m) } else { best(own) }
}

fn random_path() -> impl Strategy<Value = String> {
    let folder = prop::sample::select(vec!["a", "A", "b", "ab", "é", "e\u{301}", "c.d"]);
    let name = prop::sample::select(vec!["n.md", "N.md", "n", "n.md.md", "n.png", "ΟΣ.md", "οσ.md"]);
    (prop::collection::vec(folder, 0..4), name).prop_map(|(mut parts, name)| {
        parts.push(name);
        parts.join("/")
    })
}

proptest! {
    /// Long runs of ASCII are passed over in blocks; the reference looks at every character.
    #[test]
    fn case_and_composition_are_those_of_each_character(text in "([a-zA-Z .]{0,150}|[a-eéÉİßΣς\u{301}\u{307}K日]{0,5}){0,6}") {
        let low = |c: char| c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c });
        let expected: String = text.chars().flat_map(low).collect();
        prop_assert_eq!(&lowercase_chars(&text), &expected);
        let nfc: String = text.nfc().collect();
        prop_assert_eq!(&to_nfc(&text), &nfc);
        if let Some(in_place) = fold_case_in_place(&text) {
            prop_assert_eq!(&in_place, &expected);
            prop_assert_eq!(in_place.char_indices().map(|(at, _)| at).collect::<Vec<_>>(), text.char_indices().map(|(at, _)| at).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_table_agrees_with_a_direct_implementation(
        files in prop::collection::btree_set(random_path(), 1..12),
        source in random_path(),
        lead in prop::sample::select(vec!["", "", "/", "./", "../", "../../", "../b/"]),
        link in random_path(),
        bare in any::<bool>(),
    ) {
        let files: Vec<NotePath> = files.iter().map(|file| path(file)).collect();
        let mut names = FileNames::default();
        files.iter().for_each(|file| names.insert(file));
        // Taking the first file away and adding it again must not change anything.
        names.remove(&files[0]);
        names.insert(&files[0]);
        let link = format!("{lead}{}", if bare { link.trim_end_matches(".md") } else { &link });
        let source = path(&source);
        let found = names.resolve(&link, &source).map(|found| (found.path.as_str(), found.ambiguous));
        prop_assert_eq!(found, naive(&files, &link, &source), "[[{}]] in {}", link, source);
        let keys = name_keys(&link);
        if let Some((path, _)) = found {
            assert!(keys.contains(&key(path.rsplit('/').next().unwrap())), "{keys:?} {path}");
        }
    }

    #[test]
    fn no_linkpath_panics(link in any::<String>(), source in random_path()) {
        let files = ["a/n.md", "b/n.md", "n.md"];
        let names = names(&files);
        for found in [names.resolve(&link, &path(&source)), names.resolve_exact(&link)].into_iter().flatten() {
            // A link with nothing before its subpath means its own file.
            prop_assert!(files.contains(&found.path.as_str()) || found.path.as_str() == source, "{found:?}");
        }
        prop_assert!(name_keys(&link).iter().all(|key| !key.contains('/')));
    }
}

#[test]
fn a_name_is_found_by_its_key_in_any_folder() {
    for (file, link) in [
        ("d/ n .md", "n .md"),
        ("d/\u{A0}n.md", "n"),
        ("\u{391}\u{3A3}/\u{39F}\u{394}\u{39F}\u{3A3}.md", "\u{3BF}\u{3B4}\u{3BF}\u{3C3}"),
        ("E\u{301}/e\u{301}.md", "\u{C9}"),
        ("a.b/A.B.md", "a.b"),
    ] {
        check(&[file], "s.md", link, file);
        let names = names(&[file]);
        assert!(names.contains(&path(file)) && names.has_unique_name(&path(file)), "{file:?}");
    }
}

#[test]
fn names_are_shared_and_freed_as_files_come_and_go() {
    let files = ["a/n.md", "b/N.md", "c/n.md", "m.md"].map(path);
    let mut names = FileNames::default();
    for round in 0..3 {
        files.iter().for_each(|file| names.insert(file));
        files.iter().for_each(|file| names.insert(file));
        let same: Vec<_> = names.with_name_of(&files[0]).cloned().collect();
        assert_eq!(same, files[..3], "{round}");
        assert!(names.has_unique_name(&files[3]) && !names.has_unique_name(&files[1]));
        names.remove(&files[1]);
        names.remove(&files[1]);
        assert_eq!(show(names.resolve("c/n", &files[3])), "c/n.md");
        names.remove(&files[2]);
        assert!(names.has_unique_name(&files[0]), "{round}");
        assert_eq!(show(names.resolve("n", &files[3])), "a/n.md");
        names.remove(&files[0]);
        assert_eq!(show(names.resolve("n", &files[3])), "-");
        assert_eq!(show(names.resolve("m", &files[3])), "m.md");
    }
}

#[test]
fn each_of_many_files_of_one_name_resolves_to_itself() {
    let files: Vec<NotePath> = (0..20_000).map(|n| path(&format!("d{}/e{n}/Index.md", n % 50))).collect();
    let mut names = FileNames::default();
    files.iter().for_each(|file| names.insert(file));
    for file in &files {
        let found = names.resolve("index", file).unwrap();
        assert_eq!((found.path, found.ambiguous), (file, false));
    }
}

#[test]
fn exact_spelling_wins_among_files_that_differ_only_in_case() {
    for (files, source, link, expect) in [
        (&["n.md", "N.md"][..], "s.md", "n", "n.md?"),
        (&["n.md", "N.md"], "s.md", "N", "N.md?"),
        (&["n.md", "N.md"], "s.md", "n.md", "n.md?"),
        (&["n.md", "N.md"], "s.md", "N.md", "N.md?"),
        (&["n.md", "N.md"], "d/s.md", "/n", "n.md?"),
        (&["n.md", "N.md"], "d/s.md", "../n", "n.md?"),
        (&["n.md", "N.md"], "s.md", "./N", "N.md?"),
        (&["d/note.md", "d/Note.md", "D/note.md"], "s.md", "d/note", "d/note.md?"),
        (&["d/note.md", "d/Note.md", "D/note.md"], "s.md", "d/Note", "d/Note.md?"),
        (&["d/note.md", "d/Note.md", "D/note.md"], "s.md", "D/note", "D/note.md?"),
        (&["d/note.md", "d/Note.md"], "d/s.md", "note", "d/note.md?"),
        (&["a.png", "A.png", "A.PNG"], "s.md", "A.png", "A.png?"),
        (&["a.png", "A.png", "A.PNG"], "s.md", "A.PNG", "A.PNG?"),
        // No file is spelled like the link, so the order of bytes decides.
        (&["nOTE.md", "Note.md"], "s.md", "NOTE", "nOTE.md?"),
        (&["n.md"], "s.md", "N", "n.md"),
    ] {
        check(files, source, link, expect);
    }
    let names = names(&["n.md", "N.md"]);
    assert_eq!(names.resolve_exact("n.md").unwrap().path.as_str(), "n.md");
    assert_eq!(names.resolve_exact("N.md").unwrap().path.as_str(), "N.md");
}
