//! Tests the forms in which `check` prints problems for other programs: JSON, SARIF, annotations of GitHub, JUnit.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use sidenote::markdown::edit::{Edit, apply};
use sidenote::markdown::line_column::Locator;
use sidenote::markdown::span::Span;
use sidenote::store::PROBLEM_CODES;

use crate::git::init;
use crate::support::{TestVault, stderr, stdout, text_of};

/// A vault with a problem of each severity, names that every form escapes, and text beyond ASCII.
fn vault() -> TestVault {
    TestVault::new(&[
        (".sidenote/config.toml", "[links]\ndialect = \"github\"\n"),
        ("a, b: 100%.md", "\u{FEFF}ä 𝄞 [x](gone.md) [b](B.md)\r\n"),
        ("b.md", "[one](a,%20b:%20100%25.md)\n\n<!-- sidenote-ignore nonsense -->\n\ntext\n"),
        ("lone <&\">.md", "alone\n"),
    ])
}

fn print(vault: &TestVault, format: &str) -> String {
    let done = vault.run(&["check", "--format", format]);
    assert!(done.status.success() && stderr(&done).is_empty(), "{}", stderr(&done));
    stdout(&done)
}

#[test]
fn people_read_a_line_for_each_problem() {
    insta::assert_snapshot!(print(&vault(), "human"), @r#"
    a, b: 100%.md:1:5  error  broken-link  no such file: [x](gone.md)
    a, b: 100%.md:1:18  error  broken-link  no such file: [b](B.md)
      -> Spell the path as the file is named: b.md
    b.md:3:22  warning  invalid-ignore  there is no code nonsense
    lone <&">.md  info  orphan  links to no note, and no note links to it
    3 notes: 2 broken-link, 1 invalid-ignore, 1 orphan
    "#);
}

#[test]
fn json_has_columns_targets_fingerprints_and_fixes() {
    let vault = vault();
    assert_eq!(print(&vault, "json"), stdout(&vault.run(&["check", "--json"])));
    let reply: Value = serde_json::from_str(&print(&vault, "json")).unwrap();
    insta::assert_json_snapshot!(reply["problems"][1], @r#"
    {
      "path": "a, b: 100%.md",
      "line": 1,
      "column": 18,
      "end_line": 1,
      "end_column": 27,
      "code": "broken-link",
      "severity": "error",
      "message": "no such file: [b](B.md)",
      "target": "B.md",
      "fingerprint": "ac2e756d5ff04bb464ee026b6c6ce4a9",
      "fixes": [
        {
          "description": "Spell the path as the file is named: b.md",
          "edits": [
            {
              "span": [
                28,
                32
              ],
              "line": 1,
              "column": 22,
              "end_line": 1,
              "end_column": 26,
              "text": "b.md"
            }
          ]
        }
      ]
    }
    "#);
    // An error is JSON, too.
    let failed = vault.run(&["check", "--format", "json", "nowhere"]);
    let error: Value = serde_json::from_str(&stderr(&failed)).unwrap();
    assert_eq!(error["error"]["kind"], "not-found");
    let both = vault.run(&["check", "--json", "--format", "sarif"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn github_annotates_the_worst_first() {
    insta::assert_snapshot!(print(&vault(), "github"), @r#"
    ::error file=a%2C b%3A 100%25.md,line=1,endLine=1,col=5,endColumn=16,title=broken-link::no such file: [x](gone.md)
    ::error file=a%2C b%3A 100%25.md,line=1,endLine=1,col=18,endColumn=26,title=broken-link::no such file: [b](B.md)%0ASpell the path as the file is named: b.md
    ::warning file=b.md,line=3,endLine=3,col=22,endColumn=29,title=invalid-ignore::there is no code nonsense
    ::notice file=lone <&">.md,title=orphan::links to no note, and no note links to it
    "#);
    let vault = TestVault::new(&[("a.md", "[[b]]\n"), ("b.md", "")]);
    assert_eq!(print(&vault, "github"), "");
    // What a note says controls no terminal, and begins no command.
    vault.write("c.md", "[[\u{1B}cgone::error::\u{9B}31m]]\n");
    let told = print(&vault, "github");
    assert!(told.contains("cgone") && !told.contains(['\u{1B}', '\u{9B}']), "{told:?}");
    vault.remove("c.md");
    // A problem of the index has no file.
    vault.run(&["index", "--no-embed"]);
    vault.write("a.md", "[[b]] more\n");
    let told = print(&vault, "github");
    assert!(told.starts_with("::notice title=index-behind::"), "{told}");
}

#[test]
fn junit_has_a_suite_for_each_file() {
    insta::assert_snapshot!(print(&vault(), "junit"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="sidenote check" tests="4" failures="3" errors="0" skipped="1">
      <testsuite name="a, b: 100%.md" tests="2" failures="2" errors="0" skipped="0">
        <testcase name="broken-link at 1:5" classname="a, b: 100%.md" file="a, b: 100%.md" line="1">
          <failure type="broken-link" message="no such file: [x](gone.md)">error: no such file: [x](gone.md)</failure>
        </testcase>
        <testcase name="broken-link at 1:18" classname="a, b: 100%.md" file="a, b: 100%.md" line="1">
          <failure type="broken-link" message="no such file: [b](B.md)">error: no such file: [b](B.md)</failure>
        </testcase>
      </testsuite>
      <testsuite name="b.md" tests="1" failures="1" errors="0" skipped="0">
        <testcase name="invalid-ignore at 3:22" classname="b.md" file="b.md" line="3">
          <failure type="invalid-ignore" message="there is no code nonsense">warning: there is no code nonsense</failure>
        </testcase>
      </testsuite>
      <testsuite name="lone &lt;&amp;&quot;&gt;.md" tests="1" failures="0" errors="0" skipped="1">
        <testcase name="orphan" classname="lone &lt;&amp;&quot;&gt;.md" file="lone &lt;&amp;&quot;&gt;.md">
          <skipped message="links to no note, and no note links to it"/>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
    let clean = TestVault::new(&[("a.md", "[[b]]\n"), ("b.md", "")]);
    insta::assert_snapshot!(print(&clean, "junit"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="sidenote check" tests="1" failures="0" errors="0" skipped="0">
      <testsuite name="sidenote check" tests="1" failures="0" errors="0" skipped="0">
        <testcase name="no problems" classname="sidenote check"/>
      </testsuite>
    </testsuites>
    "#);
    let control = TestVault::new(&[("a.md", "[x](a\u{1}\u{8}b.md) [[tab\tand \u{FFFE}]]\n")]);
    let text = print(&control, "junit");
    let is_allowed = |c: char| matches!(c, '\n' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..);
    assert!(text.chars().all(is_allowed), "{text:?}");
    assert!(text.contains("\u{FFFD}"), "{text:?}");
}

/// Checks the structure of a SARIF log against the parts of the schema that it uses, and that every index and region is
/// valid.
#[track_caller]
fn check_sarif(log: &Value) {
    assert_eq!(keys(log), ["$schema", "runs", "version"]);
    assert_eq!((log["version"].as_str(), log["runs"].as_array().unwrap().len()), (Some("2.1.0"), 1));
    let run = &log["runs"][0];
    assert_eq!(keys(run), ["columnKind", "invocations", "originalUriBaseIds", "results", "tool"]);
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let driver = &run["tool"]["driver"];
    let rules: Vec<&str> =
        driver["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let codes: Vec<&str> = PROBLEM_CODES.iter().map(|known| known.code).collect();
    assert_eq!((driver["name"].as_str(), rules), (Some("sidenote"), codes));
    let levels = ["error", "warning", "note"];
    for result in run["results"].as_array().unwrap() {
        let allowed =
            ["fixes", "level", "locations", "message", "partialFingerprints", "ruleId", "ruleIndex"];
        assert!(keys(result).iter().all(|key| allowed.contains(key)), "{result}");
        let rule = &driver["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(levels.contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        check_location(&place["artifactLocation"]);
        if !place["region"].is_null() {
            check_region(&place["region"]);
        }
        for fix in result["fixes"].as_array().into_iter().flatten() {
            assert_eq!(keys(fix), ["artifactChanges", "description"]);
            check_location(&fix["artifactChanges"][0]["artifactLocation"]);
            for replacement in fix["artifactChanges"][0]["replacements"].as_array().unwrap() {
                assert_eq!(keys(replacement), ["deletedRegion", "insertedContent"]);
                check_region(&replacement["deletedRegion"]);
            }
        }
    }
    for notification in run["invocations"][0]["toolExecutionNotifications"].as_array().unwrap() {
        assert!(levels.contains(&notification["level"].as_str().unwrap()));
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let keys: BTreeSet<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.into_iter().collect()
}

#[track_caller]
fn check_location(location: &Value) {
    let uri = location["uri"].as_str().unwrap();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%".contains(c);
    assert!(!uri.starts_with('/') && uri.chars().all(is_plain), "{uri}");
    assert_eq!(location["uriBaseId"], "%SRCROOT%");
}

#[track_caller]
fn check_region(region: &Value) {
    let number = |key: &str| region[key].as_u64().unwrap();
    let start = (number("startLine"), number("startColumn"));
    assert!(start.0 >= 1 && start.1 >= 1 && start <= (number("endLine"), number("endColumn")), "{region}");
}

#[test]
fn sarif_has_a_rule_for_each_code_and_relative_uris() {
    let log: Value = serde_json::from_str(&print(&vault(), "sarif")).unwrap();
    check_sarif(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let places: Vec<(&str, &str)> = results
        .iter()
        .map(|result| {
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            (result["ruleId"].as_str().unwrap(), uri.as_str().unwrap())
        })
        .collect();
    let first = "a%2C%20b%3A%20100%25.md";
    assert_eq!(
        places,
        [
            ("broken-link", first),
            ("broken-link", first),
            ("invalid-ignore", "b.md"),
            ("orphan", "lone%20%3C%26%22%3E.md"),
        ]
    );
    insta::assert_json_snapshot!(results[1], @r#"
    {
      "ruleId": "broken-link",
      "ruleIndex": 0,
      "level": "error",
      "message": {
        "text": "no such file: \\[b\\](B.md)"
      },
      "locations": [
        {
          "physicalLocation": {
            "artifactLocation": {
              "uri": "a%2C%20b%3A%20100%25.md",
              "uriBaseId": "%SRCROOT%"
            },
            "region": {
              "startLine": 1,
              "startColumn": 18,
              "endLine": 1,
              "endColumn": 27
            }
          }
        }
      ],
      "partialFingerprints": {
        "problem/v1": "ac2e756d5ff04bb464ee026b6c6ce4a9",
        "primaryLocationLineHash": "ac2e756d5ff04bb464ee026b6c6ce4a9:1"
      },
      "fixes": [
        {
          "description": {
            "text": "Spell the path as the file is named: b.md"
          },
          "artifactChanges": [
            {
              "artifactLocation": {
                "uri": "a%2C%20b%3A%20100%25.md",
                "uriBaseId": "%SRCROOT%"
              },
              "replacements": [
                {
                  "deletedRegion": {
                    "startLine": 1,
                    "startColumn": 22,
                    "endLine": 1,
                    "endColumn": 26
                  },
                  "insertedContent": {
                    "text": "b.md"
                  }
                }
              ]
            }
          ]
        }
      ]
    }
    "#);
    let example: Value = serde_json::from_str(&print(&TestVault::example(), "sarif")).unwrap();
    check_sarif(&example);
    assert!(example["runs"][0]["results"].as_array().unwrap().len() > 5);
}

#[test]
fn links_and_placeholders_in_a_message_of_sarif_are_plain_text() {
    let vault = TestVault::new(&[("a.md", "[a]({0}.md) [[{1}]] [[{x}]]\n")]);
    let log: Value = serde_json::from_str(&print(&vault, "sarif")).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let messages: Vec<&str> =
        results.iter().map(|result| result["message"]["text"].as_str().unwrap()).collect();
    assert_eq!(
        messages,
        [
            "no such file: \\[a\\]({{0}}.md)",
            "links to no note, and no note links to it",
            "no such note yet: [[{{1}}]]",
            "no such note yet: [[{x}]]",
        ]
    );
}

#[test]
fn equal_problems_of_a_file_have_numbered_fingerprints() {
    let vault = TestVault::new(&[
        ("a.md", "[x](x.md)\n\n[x](x.md)\n\n[a](a.md)\n"),
        ("b.md", "[x](x.md) [a](a.md)\n"),
    ]);
    let fingerprints = |vault: &TestVault| -> Vec<Value> {
        let log: Value = serde_json::from_str(&print(vault, "sarif")).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap().clone();
        results.into_iter().map(|result| result["partialFingerprints"].clone()).collect()
    };
    let before = fingerprints(&vault);
    assert_eq!(before.len(), 3);
    let ends =
        |at: usize| before[at]["primaryLocationLineHash"].as_str().unwrap().split(':').next_back().unwrap();
    assert_eq!((ends(0), ends(1), ends(2)), ("1", "2", "1"));
    assert_eq!(before[0]["problem/v1"], before[1]["problem/v1"]);
    assert_ne!(before[0]["problem/v1"], before[2]["problem/v1"]);
    // Lines that move keep them.
    vault.write("a.md", "# New\n\nText\n\n- [x](x.md)\n".replace("- ", "  ") + "\n[x](x.md)\n\n[a](a.md)\n");
    assert_eq!(fingerprints(&vault), before);
}

#[test]
fn a_report_with_too_many_results_says_what_is_cut() {
    let links = "[x](x.md)\n\n".repeat(26_000);
    let vault = TestVault::new(&[("a.md", &links), ("b.md", "alone\n")]);
    let done = vault.run(&["check", "--format", "sarif"]);
    let log: Value = serde_json::from_slice(&done.stdout).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["results"].as_array().unwrap().len(), 25_000);
    assert_eq!(
        run["invocations"][0]["toolExecutionNotifications"],
        json!([{ "level": "warning", "message": { "text": "1002 of 26002 problems are left out" } }])
    );
    assert!(stderr(&done).contains("only the 25000 worst of 26002 problems"), "{}", stderr(&done));
}

#[test]
fn paths_are_those_of_the_repository() {
    // The vault is a folder of a repository, or of the current folder.
    let outer = TestVault::new(&[
        ("docs/.obsidian/app.json", "{}"),
        ("docs/a.md", "[x](x.md) [[a]]\n"),
        ("b.md", ""),
    ]);
    let run = |here: &std::path::Path| {
        let mut command = outer.command(&["check", "--format", "github", "--vault"]);
        stdout(&command.arg(outer.root().join("docs")).current_dir(here).output().unwrap())
    };
    let file = |told: &str| told.split(',').next().unwrap().to_owned();
    assert_eq!(file(&run(outer.root())), "::error file=docs/a.md");
    assert_eq!(file(&run(&outer.root().join("docs"))), "::error file=a.md");
    init(&outer);
    assert_eq!(file(&run(outer.root())), "::error file=docs/a.md");
    assert_eq!(file(&run(&outer.root().join("docs"))), "::error file=docs/a.md");
}

/// Checks the fix of the only problem with one in a note: the note after its edits.
#[track_caller]
fn check_fix(files: &[(&str, &str)], expect: Option<&str>) {
    let repository = (".git/HEAD", "ref: refs/heads/main\n");
    let vault = TestVault::new(&[files, &[repository]].concat());
    let reply = vault.store().upkeep().check(false).unwrap();
    let fixes: Vec<_> = reply.problems.iter().flat_map(|problem| &problem.fixes).collect();
    let Some(expect) = expect else {
        assert_eq!(fixes, Vec::<&sidenote::store::Fix>::new(), "{files:?}");
        return;
    };
    let [fix] = fixes[..] else { panic!("{files:?}: {fixes:?}") };
    let (path, text) = files[0];
    let edits: Vec<Edit> = fix.edits.iter().map(|edit| Edit::replace(edit.span, edit.text.clone())).collect();
    let fixed = String::from_utf8(apply(text.as_bytes(), &edits).unwrap()).unwrap();
    assert_eq!(fixed, expect, "{files:?}");
    // The region is that of the bytes, and the fix leaves no problem.
    let locator = Locator::new(text);
    assert!(fix.edits.iter().all(|edit| locator.region(edit.span) == edit.region));
    vault.write(path, &fixed);
    let left = vault.store().upkeep().check(false).unwrap().problems;
    assert!(left.iter().all(|problem| problem.path != path || problem.code == "orphan"), "{left:?}");
    assert_eq!(text_of(&vault, path), fixed);
}

#[test]
fn what_is_certain_has_a_fix() {
    let readme = ("docs/README.md", "# Set Up\n\n## Ünï Code\n");
    // The case of a path counts on GitHub.
    check_fix(&[("a.md", "ä [x](Docs/readme.md#set-up)\n"), readme], Some("ä [x](docs/README.md#set-up)\n"));
    check_fix(&[("docs/a.md", "[x](../Docs/./Readme.md)\n"), readme], None);
    check_fix(&[("docs/a.md", "[x](./Readme.md)\n"), readme], Some("[x](./README.md)\n"));
    check_fix(&[("a.md", "[x](/docs/README.MD)\n"), readme], Some("[x](/docs/README.md)\n"));
    check_fix(&[("a.md", "[x]: docs/readme.md\n\n[x]\n"), readme], Some("[x]: docs/README.md\n\n[x]\n"));
    // A heading is named by its slug.
    check_fix(&[("a.md", "[x](docs/README.md#Set%20Up)\n"), readme], Some("[x](docs/README.md#set-up)\n"));
    check_fix(
        &[("a.md", "[x](<docs/README.md#Ünï Code>)\n"), readme],
        Some("[x](<docs/README.md#ünï-code>)\n"),
    );
    // What could be meant in two ways, or is encoded, has none.
    check_fix(&[("a.md", "[x](docs/gone.md)\n"), readme], None);
    check_fix(&[("a.md", "[x](docs/read%6De.md)\n"), readme], None);
    check_fix(&[("a.md", "[x](docs/README.md#nowhere)\n"), readme], None);
    check_fix(&[("a.md", "[[docs/README#nowhere]]\n"), readme], None);
}

proptest! {
    #[test]
    fn a_region_is_where_an_editor_counts_it(text in "[aä𝄞\n\r\t ]{0,40}", start in 0..60usize, len in 0..20usize) {
        let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let (start, end) = (boundary(start), boundary(start + len).max(boundary(start)));
        let position = |at: usize| {
            let before = &text[..at];
            let line = before.rsplit('\n').next().unwrap();
            (1 + before.matches('\n').count(), 1 + line.chars().count())
        };
        let region = Locator::new(&text).region(Span::new(start, end));
        prop_assert_eq!((region.line, region.column), position(start));
        prop_assert_eq!((region.end_line, region.end_column), position(end));
    }
}
