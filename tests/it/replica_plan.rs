//! What a synchronisation decides about each file: the cases, and that no plan loses a text.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sidenote::links::conflict_copy::{conflict_mark, conflict_names, marked_path};
use sidenote::markdown::edit::{ContentHash, FileLocation};
use sidenote::markdown::path::{NotePath, SettingsPath, check_shared_name};
use sidenote::share::replica::plan::{FileStates, LocalFile, Plan, Rules, Step, decide, loses_most, plan};
use sidenote::vault::copy::SharedPath;

use crate::apply::at;

/// Gives the hash of a text, or `None` for `-`, which is no file.
fn hash(name: &str) -> Option<ContentHash> {
    (name != "-").then(|| ContentHash::of(name.as_bytes()))
}

fn path(text: &str) -> SharedPath {
    SharedPath::parse(text).unwrap()
}

fn local_file(hash: Option<ContentHash>) -> LocalFile {
    hash.map_or(LocalFile::Absent, LocalFile::Present)
}

fn name(hash: ContentHash) -> &'static str {
    ["a", "b", "c"].into_iter().find(|name| ContentHash::of(name.as_bytes()) == hash).unwrap()
}

/// Writes a step as the table of cases has it.
fn shown(step: Option<Step>) -> String {
    let over = |over: Option<ContentHash>| over.map_or("-", name);
    match step {
        None => "nothing".to_owned(),
        Some(Step::Agree) => "agree".to_owned(),
        Some(Step::Fetch { over: old, hash }) => format!("fetch {} over {}", name(hash), over(old)),
        Some(Step::RemoveHere(hash)) => format!("remove {} here", name(hash)),
        Some(Step::Send { over: old, hash }) => format!("send {} over {}", name(hash), over(old)),
        Some(Step::RemoveThere(hash)) => format!("remove {} there", name(hash)),
        Some(Step::SetAside { mine, theirs, copy }) => {
            format!("{} to {copy}, fetch {}", name(mine), over(theirs))
        }
        Some(Step::LeaveOut(why)) => format!("leave out: {why}"),
    }
}

#[test]
fn a_file_is_compared_with_its_base_on_both_sides() {
    // The base, the folder, the vault; the letters are contents. These are all cases up to the names of contents.
    let cases = [
        ("-", "-", "-", "nothing"),
        ("-", "a", "-", "send a over -"),
        ("-", "-", "a", "fetch a over -"),
        ("-", "a", "a", "agree"),
        ("-", "a", "b", "a to copy, fetch b"),
        ("a", "a", "a", "nothing"),
        ("a", "-", "-", "agree"),
        ("a", "-", "a", "remove a there"),
        ("a", "a", "-", "remove a here"),
        ("a", "b", "a", "send b over a"),
        ("a", "a", "b", "fetch b over a"),
        ("a", "b", "b", "agree"),
        ("a", "b", "-", "send b over -"),
        ("a", "-", "b", "fetch b over -"),
        ("a", "b", "c", "b to copy, fetch c"),
    ];
    assert_eq!(cases.len(), 15);
    for (base, local, remote, expected) in cases {
        let states = FileStates { base: hash(base), local: local_file(hash(local)), remote: hash(remote) };
        let step = decide(&states, || "copy".to_owned());
        assert_eq!(shown(step), expected, "base {base}, folder {local}, vault {remote}");
        let left_out = FileStates { local: LocalFile::LeftOut("why".to_owned()), ..states };
        assert_eq!(shown(decide(&left_out, || "copy".to_owned())), "leave out: why");
    }
}

fn rules(tells_case_apart: bool) -> Rules {
    Rules {
        mark: "conflict 2026-11-23 14.05 Anna".to_owned(),
        tells_case_apart,
        is_possible_name: |name| !name.contains('?'),
    }
}

/// Plans for files of which each is written as `path base folder vault`, and gives the steps.
#[track_caller]
fn check_plan(files: &[&str], tells_case_apart: bool, expected: &[&str]) {
    let files = files.iter().map(|file| {
        let mut words = file.rsplitn(4, ' ');
        let (remote, local, base) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let states = FileStates { base: hash(base), local: local_file(hash(local)), remote: hash(remote) };
        (path(words.next().unwrap()), states)
    });
    let found = plan(&files.collect(), &rules(tells_case_apart)).steps;
    let found: Vec<String> =
        found.into_iter().map(|(path, step)| format!("{}: {}", path.as_str(), shown(Some(step)))).collect();
    assert_eq!(found, expected);
}

#[test]
fn conflict_copies_get_free_names() {
    check_plan(
        &["Plan.md - a b"],
        true,
        &["Plan.md: a to Plan (conflict 2026-11-23 14.05 Anna).md, fetch b"],
    );
    // The name is taken, here in another spelling.
    check_plan(
        &["d/Plan.md a b c", "d/plan (conflict 2026-11-23 14.05 anna).md a a a"],
        true,
        &["d/Plan.md: b to d/Plan (conflict 2026-11-23 14.05 Anna 2).md, fetch c"],
    );
    check_plan(
        &[".obsidian/app.json a b c"],
        true,
        &[".obsidian/app.json: b to .obsidian/app (conflict 2026-11-23 14.05 Anna).json, fetch c"],
    );
}

#[test]
fn a_file_and_a_folder_of_one_name_are_both_kept() {
    check_plan(
        &["a - a -", "a/b.md - - b"],
        true,
        &["a: a to a (conflict 2026-11-23 14.05 Anna), fetch -", "a/b.md: fetch b over -"],
    );
    check_plan(
        &["a - - a", "a/b.md - b -"],
        true,
        &["a: fetch a over -", "a/b.md: b to a (conflict 2026-11-23 14.05 Anna)/b.md, fetch -"],
    );
    // A folder that takes the place of a file that was removed is no conflict.
    check_plan(&["a a - a", "a/b.md - b -"], true, &["a: remove a there", "a/b.md: send b over -"]);
    check_plan(&["a a a -", "a/b.md - - b"], true, &["a: remove a here", "a/b.md: fetch b over -"]);
}

#[test]
fn names_that_the_folder_cannot_have_stay_in_the_vault() {
    check_plan(
        &["Why?.md - - a"],
        true,
        &["Why?.md: leave out: this system cannot have a file of this name"],
    );
    let said = "leave out: the folder has a file whose name differs only in case or accents";
    check_plan(&["A.md - - a", "a.md b b b"], false, &[&format!("A.md: {said}")]);
    check_plan(&["A.md - - a", "a.md - - b"], false, &["A.md: fetch a over -", &format!("a.md: {said}")]);
    check_plan(&["\u{dc}.md - - a", "U\u{308}.md b b b"], false, &[&format!("\u{dc}.md: {said}")]);
    // A change of case is a removal and a new file.
    check_plan(&["A.md - - a", "a.md a a -"], false, &["A.md: fetch a over -", "a.md: remove a here"]);
    check_plan(&["A.md - - a", "a.md b b b"], true, &["A.md: fetch a over -"]);
}

#[test]
fn the_names_of_conflict_copies_are_recognised() {
    let time = at(1_795_442_700_000);
    let mark = conflict_mark(time, "An/na*");
    assert!(mark.starts_with("conflict 20") && mark.ends_with(" Anna"), "{mark}");
    let cases = [
        ("Plan.md", "Plan (MARK).md"),
        ("a/b/Plan", "a/b/Plan (MARK)"),
        ("a.b/.x", "a.b/.x (MARK)"),
        ("Plan.tar.gz", "Plan.tar (MARK).gz"),
    ];
    for (path, expected) in cases {
        assert_eq!(marked_path(path, None, &mark), expected.replace("MARK", &mark));
    }
    assert_eq!(marked_path("a/b/c.md", Some(2), "m"), "a/b (m)/c.md");
    let long = marked_path(&format!("{}\u{e9}.md", "x".repeat(251)), None, &mark);
    assert!(long.len() <= 255 && long.ends_with(&format!(" ({mark}).md")), "{long}");
    let copy = NotePath::parse(&marked_path("d/Plan.md", None, &mark)).unwrap();
    let found = conflict_names(&copy);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].program.to_string().as_str(), found[0].original.as_str()),
        ("sidenote sync", "d/Plan.md")
    );
    for no_copy in
        ["Plan (conflict).md", "Plan (conflict 2026-11-23 Anna).md", "(conflict 2026-11-23 14.05 A).md"]
    {
        let named = conflict_names(&NotePath::parse(no_copy).unwrap());
        assert!(named.iter().all(|name| name.program.to_string() != "sidenote sync"), "{no_copy}");
    }
}

#[test]
fn settings_are_a_closed_list_with_their_conflict_copies() {
    let cases = [
        (".obsidian/app.json", true),
        (".sidenote/config.toml", true),
        (".obsidian/app (conflict 2026-11-23 14.05 Anna).json", true),
        (".obsidian/app (conflict ../../x).json", false),
        (".obsidian/workspace.json", false),
        (".obsidian/plugins/app.json", false),
        (".obsidian/workspace (conflict 2026-11-23 14.05 Anna).json", false),
        (".sidenote/records/config.toml", false),
        ("app.json", false),
    ];
    assert_eq!(cases.len(), 9);
    for (text, is_settings) in cases {
        assert_eq!(SettingsPath::parse(text).is_some(), is_settings, "{text}");
    }
    // Only the settings themselves are shared.
    assert!(SharedPath::parse(cases[2].0).is_none() && FileLocation::parse(cases[2].0).is_some());
    assert_eq!(FileLocation::parse(".git/config"), None);
    for (name, is_fine) in [
        ("a/What?.md", true),
        ("a\\b.md", false),
        ("a:b.md", false),
        ("x/con.txt", false),
        ("\u{202e}.md", false),
    ] {
        assert_eq!(check_shared_name(name).is_ok(), is_fine, "{name}");
    }
}

/// The files of one side, by path.
type Side = BTreeMap<String, String>;

/// Both sides, and what they had at the last synchronisation.
#[derive(Debug, Clone, Default)]
struct Model {
    base: Side,
    local: Side,
    remote: Side,
}

impl Model {
    fn plan(&self, tells_case_apart: bool) -> Plan {
        let hash = |side: &Side, path: &str| side.get(path).map(|text| ContentHash::of(text.as_bytes()));
        let paths = self.base.keys().chain(self.local.keys()).chain(self.remote.keys());
        let files = paths.filter_map(|name| {
            let states = FileStates {
                base: hash(&self.base, name),
                local: local_file(hash(&self.local, name)),
                remote: hash(&self.remote, name),
            };
            Some((SharedPath::parse(name)?, states))
        });
        plan(&files.collect(), &rules(tells_case_apart))
    }

    /// Carries out a plan as the client does, with the checks of both sides.
    fn carry_out(&mut self, plan: &Plan) {
        let hash = |side: &Side, path: &str| side.get(path).map(|text| ContentHash::of(text.as_bytes()));
        for (path, step) in &plan.steps {
            let path = path.as_str().to_owned();
            match step {
                Step::LeaveOut(_) => {}
                Step::Agree => match self.local.get(&path) {
                    Some(text) => drop(self.base.insert(path, text.clone())),
                    None => drop(self.base.remove(&path)),
                },
                Step::Fetch { over, .. } => {
                    assert_eq!(hash(&self.local, &path), *over);
                    let text = self.remote[&path].clone();
                    self.local.insert(path.clone(), text.clone());
                    self.base.insert(path, text);
                }
                Step::RemoveHere(before) => {
                    assert_eq!(hash(&self.local, &path), Some(*before));
                    self.local.remove(&path);
                    self.base.remove(&path);
                }
                Step::Send { over, .. } => {
                    assert_eq!(hash(&self.remote, &path), *over);
                    let text = self.local[&path].clone();
                    self.remote.insert(path.clone(), text.clone());
                    self.base.insert(path, text);
                }
                Step::RemoveThere(before) => {
                    assert_eq!(hash(&self.remote, &path), Some(*before));
                    self.remote.remove(&path);
                    self.base.remove(&path);
                }
                Step::SetAside { theirs, copy, .. } => {
                    let mine = self.local.remove(&path).unwrap();
                    assert_eq!(self.local.insert(copy.clone(), mine), None);
                    if theirs.is_some() {
                        let text = self.remote[&path].clone();
                        self.local.insert(path.clone(), text.clone());
                        self.base.insert(path, text);
                    }
                }
            }
        }
    }
}

/// Says whether no file has the name of a folder.
fn is_tree(side: &Side) -> bool {
    side.keys().all(|path| path.match_indices('/').all(|(at, _)| !side.contains_key(&path[..at])))
}

fn any_side() -> impl Strategy<Value = Side> {
    let paths = ["a", "a/b.md", "A.md", "a.md", "f/n.md", ".trash/n.md", ".obsidian/app.json"];
    let path = prop::sample::select(paths.to_vec()).prop_map(str::to_owned);
    let text = prop::sample::select(vec!["x", "y", "z", "w"]).prop_map(str::to_owned);
    prop::collection::btree_map(path, text, 0..6).prop_map(|mut side| {
        if side.contains_key("a") {
            side.remove("a/b.md");
        }
        side
    })
}

#[test]
fn a_plan_that_loses_most_files_of_a_side_or_all_of_several_needs_consent() {
    // How many notes both sides had, how many of them one side has no more, and whether a person is asked.
    let cases = [
        (1, 1, false),
        (2, 1, false),
        (2, 2, true),
        (10, 9, false),
        (10, 10, true),
        (12, 11, true),
        (41, 10, false),
        (41, 20, false),
        (41, 21, true),
    ];
    assert_eq!(cases.len(), 9);
    let rules = Rules { mark: "conflict".to_owned(), tells_case_apart: true, is_possible_name: |_| true };
    for (all, lost, expected) in cases {
        for is_lost_here in [true, false] {
            // Settings stay where a vault was emptied by hand.
            let mut files = BTreeMap::from([(
                path(".obsidian/app.json"),
                FileStates { base: hash("{}"), local: local_file(hash("{}")), remote: hash("{}") },
            )]);
            for at in 0..all {
                let present = hash(&format!("text {at}"));
                let gone = if at < lost { None } else { present };
                let (local, remote) = if is_lost_here { (gone, present) } else { (present, gone) };
                let states = FileStates { base: present, local: local_file(local), remote };
                files.insert(path(&format!("Note {at}.md")), states);
            }
            let plan = plan(&files, &rules);
            assert_eq!(loses_most(&plan, &files), expected, "{lost} of {all}, here: {is_lost_here}");
        }
    }
}

proptest! {
    #[test]
    fn no_plan_loses_a_text_and_all_lead_to_equal_sides(
        base in any_side(), local in any_side(), remote in any_side(), tells_case_apart in any::<bool>(),
    ) {
        let before = Model { base, local, remote };
        let mut model = before.clone();
        let mut rounds = 0;
        loop {
            let plan = model.plan(tells_case_apart);
            if plan.steps.values().all(|step| matches!(step, Step::LeaveOut(_))) {
                break;
            }
            model.carry_out(&plan);
            rounds += 1;
            prop_assert!(rounds < 4, "no end: {model:?}");
        }
        prop_assert!(is_tree(&model.local) && is_tree(&model.remote), "{model:?}");
        // What one side wrote since the base is there afterwards, on both sides.
        let everything = || model.local.iter().chain(&model.remote);
        for side in [&before.local, &before.remote] {
            for (path, text) in side.iter().filter(|(path, text)| before.base.get(*path) != Some(*text)) {
                let is_there = everything().any(|(_, now)| now == text);
                prop_assert!(is_there, "{text} of {path} is lost: {before:?} became {model:?}");
            }
        }
        let left_out = model.plan(tells_case_apart).counts().left_out;
        let shared = |side: &Side| -> Side {
            side.iter().filter(|(path, _)| SharedPath::parse(path).is_some()).map(|(path, text)| (path.clone(), text.clone())).collect()
        };
        if left_out == 0 {
            prop_assert_eq!(shared(&model.local), shared(&model.remote));
        }
        prop_assert!(left_out == 0 || !tells_case_apart);
    }
}
