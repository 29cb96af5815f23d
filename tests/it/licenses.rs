//! Tests that THIRD-PARTY.md names every crate in the binary, and no other.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use serde_json::Value;

use crate::support::repository;

/// Gives the rows of the table of crates, each a name with its version.
fn named() -> BTreeSet<String> {
    let text = std::fs::read_to_string(repository().join("THIRD-PARTY.md")).unwrap();
    let table = text.split("## Crates").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    rows.filter(|row| !matches!(*row, "Crate" | "---")).map(str::to_owned).collect()
}

/// Runs a program of the toolchain in the repository, and gives what it prints.
fn printed(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).current_dir(repository()).output().unwrap();
    assert!(done.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Lists the crates that this system's program is linked from, each with its version.
fn linked() -> BTreeSet<String> {
    let version = printed("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let args = ["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host];
    let data: Value = serde_json::from_str(&printed(&cargo, &args)).unwrap();
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let packages = list(&data["packages"]);
    let names: HashMap<String, String> = packages
        .iter()
        .map(|package| (id(&package["id"]), format!("{} {}", id(&package["name"]), id(&package["version"]))))
        .collect();
    let nodes: HashMap<String, Vec<Value>> =
        list(&data["resolve"]["nodes"]).iter().map(|node| (id(&node["id"]), list(&node["deps"]))).collect();
    let root = id(&data["resolve"]["root"]);
    let (mut seen, mut waiting) = (BTreeSet::from([root.clone()]), vec![root.clone()]);
    while let Some(package) = waiting.pop() {
        for dependency in &nodes[&package] {
            // What builds and tests need does not go into the program.
            let is_normal = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            if is_normal && seen.insert(id(&dependency["pkg"])) {
                waiting.push(id(&dependency["pkg"]));
            }
        }
    }
    let own: BTreeSet<String> = list(&data["workspace_members"]).iter().map(id).collect();
    seen.difference(&own).map(|package| names[package].clone()).collect()
}

#[test]
fn every_crate_of_the_binary_is_named_with_its_license() {
    let (named, linked) = (named(), linked());
    assert!(linked.len() > 200, "{} crates", linked.len());
    let missing: Vec<&String> = linked.difference(&named).collect();
    assert!(missing.is_empty(), "run `just licenses`: THIRD-PARTY.md does not name {missing:?}");
    // Crates that are named and no longer in Cargo.lock are stale.
    let lock: toml::Value =
        toml::from_str(&std::fs::read_to_string(repository().join("Cargo.lock")).unwrap()).unwrap();
    let locked: BTreeSet<String> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap())
        })
        .collect();
    let stale: Vec<&String> = named.difference(&locked).collect();
    assert!(stale.is_empty(), "run `just licenses`: THIRD-PARTY.md names {stale:?}");
}

#[test]
fn every_package_carries_the_licenses() {
    let packaging = repository().join("packaging");
    let read = |name: &str| std::fs::read_to_string(packaging.join(name)).unwrap();
    assert!(read("project.py").contains(r#"LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.md")"#));
    for recipe in ["dist.py", "mcpb/bundle.py", "npm/npm.py", "wheel/wheel.py"] {
        assert!(read(recipe).contains("project.LICENCES"), "{recipe}");
    }
    for recipe in ["aur/PKGBUILD", "deb/deb.py", "oci/Dockerfile", "rpm/sidenote.spec"] {
        assert!(read(recipe).contains("THIRD-PARTY.md"), "{recipe}");
    }
}
