//! Reads the sources as text and fails on what the compiler cannot see: imports against the layer order,
//! files that grew too long or say nothing about themselves, marks named twice, docs that name paths that
//! are gone.
#![allow(
    clippy::disallowed_methods,
    reason = "a test that reads this repository's own files, never part of the product"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Hard limit on a file's lines.
const FILE_LINES_MAX: usize = 800;

/// Modules in layer order, lowest first. Those on one line are siblings: neither may name the other.
const LAYERS: &[&[&str]] = &[
    &["invariant"],
    &["domain"],
    &["telemetry"],
    &["runtime"],
    &["rpc"],
    &["bookie", "metadata"],
    &["ledger"],
    &["broker"],
    &["frontend"],
    &["client"],
    &["node"],
    &["simulator"],
    &["cli"],
];

/// Names that say nothing about what a file owns.
const EMPTY_NAMES: &[&str] =
    &["utils", "util", "helpers", "helper", "common", "impls", "misc", "core"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
}

fn rust_files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["src", "sim-tests", "proptests", "proto"] {
        files(&root().join(folder), "rs", &mut found);
    }
    assert!(found.len() > 50, "only {} source files found", found.len());
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_owned(), text)
        })
        .collect()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Every module named after `crate::` in a line, outside comments.
fn modules_named(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    code.split("crate::")
        .skip(1)
        .filter_map(|rest| {
            let name: String = rest
                .chars()
                .take_while(|character| character.is_ascii_alphanumeric() || *character == '_')
                .collect();
            (!name.is_empty()).then_some(name)
        })
        .collect()
}

#[test]
fn imports_point_down() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (path, text) in rust_files() {
        let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy());
        let (Some(top), Some(own)) = (parts.next(), parts.next()) else { continue };
        if top != "src" {
            continue;
        }
        let own = own.trim_end_matches(".rs").to_owned();
        let Some(own_layer) = layer_of(&own) else { continue };
        // Unit tests may set up the world they need; only product code is layered.
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in product.lines() {
            for named in modules_named(line) {
                let Some(named_layer) = layer_of(&named) else { continue };
                compared += 1;
                let is_sibling = named_layer == own_layer && named != own;
                if named_layer > own_layer || is_sibling {
                    wrong.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
            assert!(
                !line.contains("super::super"),
                "{}: super::super hides where an import comes from",
                path.display()
            );
        }
    }
    assert!(compared > 100, "only {compared} imports compared");
    // A file of tests is a module under cfg(test) in its parent, so its own text does not say so.
    wrong.retain(|line| !line.contains("/tests.rs") && !line.contains("/testing/"));
    assert!(wrong.is_empty(), "imports against the layer order:\n{}", wrong.join("\n"));
}

#[test]
fn files_are_small_and_say_what_they_own() {
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        assert!(lines <= FILE_LINES_MAX, "{} has {lines} lines", path.display());
        assert!(text.starts_with("//!"), "{} does not begin with //!", path.display());
        let name = path.file_stem().unwrap().to_string_lossy();
        assert!(!EMPTY_NAMES.contains(&name.as_ref()), "{} is named after nothing", path.display());
    }
}

#[test]
fn marks_are_named_once_and_listed() {
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in rust_files() {
        if path.starts_with("src/invariant") || path.ends_with("tidy.rs") {
            continue;
        }
        for rest in text.split("reached!(\"").skip(1) {
            let name = rest.split('"').next().unwrap_or_default().to_owned();
            if let Some(other) = seen.insert(name.clone(), path.clone()) {
                panic!("mark {name:?} is in {} and in {}", other.display(), path.display());
            }
        }
    }
    seen.remove("…");
    let named: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    let listed: Vec<&str> =
        crate::simulator::mark_list::MARKS.iter().map(|mark| mark.name).collect();
    assert!(listed.is_sorted(), "the list is in the order of names");
    let listed: BTreeSet<&str> = listed.into_iter().collect();
    let unlisted: Vec<_> = named.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not in src/simulator/mark_list.rs: {unlisted:#?}");
    let gone: Vec<_> = listed.difference(&named).collect();
    assert!(gone.is_empty(), "in src/simulator/mark_list.rs and nowhere else: {gone:#?}");
}

#[test]
fn docs_name_paths_that_exist() {
    let mut documents = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut documents);
    let tops: BTreeSet<&str> = ["src", "sim-tests", "proptests", "proto", "docs", ".ci"].into();
    let mut checked = 0;
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for quoted in text.split('`').skip(1).step_by(2) {
            let path = quoted.trim_end_matches('/');
            let top = path.split('/').next().unwrap_or_default();
            let plain = path
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "/_-.".contains(character));
            if !plain || !path.contains('/') || !tops.contains(top) {
                continue;
            }
            checked += 1;
            assert!(root().join(path).exists(), "{}: no {path}", document.display());
        }
    }
    assert!(checked > 20, "only {checked} paths checked");
}

#[test]
fn planted_bugs_are_listed() {
    let listed: BTreeSet<String> = crate::simulator::mutant_list::MUTANTS
        .iter()
        .map(|mutant| mutant.name.to_owned())
        .collect();
    let mut planted = BTreeSet::new();
    for (path, text) in rust_files() {
        if path.starts_with("src/invariant") || path.ends_with("tidy.rs") {
            continue;
        }
        for rest in text.split("mutant!(\"").skip(1) {
            planted.insert(rest.split('"').next().unwrap_or_default().to_owned());
        }
    }
    planted.remove("…");
    assert_eq!(planted, listed, "planted in the code (left) and listed in mutant_list.rs (right)");
}

#[test]
fn rows_that_cannot_exist_are_explained() {
    use crate::simulator::bug_catalogue::{Standing, rows};

    let text = fs::read_to_string(root().join("docs/internals/mutants.md")).unwrap_or_default();
    let (_, table) = text.split_once("Rows that cannot exist here").unwrap_or_default();
    let explained: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .map(|(id, _)| id)
        .filter(|id| !["row", "---"].contains(id))
        .collect();
    let listed: BTreeSet<&str> =
        rows().filter(|row| row.standing == Standing::CannotExist).map(|row| row.id).collect();
    assert_eq!(explained, listed, "explained (left) and listed in bug_catalogue.rs (right)");
}
