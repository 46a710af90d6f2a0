//! Holds `docs/internals/scenarios.md` against the code: every word, every scenario with what it protects, every promise
//! and invariant is there, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::promises::ALL;

const DOCUMENT: &str = "docs/internals/scenarios.md";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn document() -> String {
    fs::read_to_string(root().join(DOCUMENT)).unwrap()
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path.strip_prefix(root().join("sim-tests")).unwrap().to_owned(), text));
        }
    }
    found
}

/// `| path::of::the::test | P1, I2 |` of every scenario that is told as a story.
fn told() -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    for (path, text) in sources(&root().join("sim-tests")) {
        if path.starts_with("story") {
            continue;
        }
        let module = path.with_extension("").to_string_lossy().replace('/', "::");
        let module = module.trim_end_matches("::mod");
        let mut test = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("fn ") {
                test = rest.split('(').next().unwrap_or_default();
            }
            if let Some((_, rest)) = line.split_once("story!(") {
                let protects = rest.split(')').next().unwrap_or_default();
                told.insert(format!("| `{module}::{test}` | {protects} |"));
            }
        }
    }
    told
}

#[test]
fn every_scenario_is_in_the_document_with_what_it_protects() {
    let document = document();
    let named = document.lines().filter(|line| line.starts_with("| `") && line.contains("::"));
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    let told = told();
    assert!(told.len() >= 40, "only {} scenarios found", told.len());
    let missing: Vec<_> = told.difference(&named).collect();
    let gone: Vec<_> = named.difference(&told).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "{DOCUMENT} lacks:\n{missing:#?}\nand has, without a scenario:\n{gone:#?}"
    );
}

#[test]
fn every_word_is_in_the_document() {
    let document = document();
    let mut words = BTreeSet::new();
    for (_, text) in sources(&root().join("sim-tests/story")) {
        let mut in_story = false;
        for line in text.lines() {
            if line.starts_with("impl ") {
                in_story = line.starts_with("impl Story ");
            }
            if in_story && let Some(rest) = line.strip_prefix("    pub fn ") {
                words.insert(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
            }
        }
    }
    words.remove("new");
    assert!(words.len() > 50, "only {} words found", words.len());
    let missing: Vec<_> =
        words.iter().filter(|word| !document.contains(&format!("`{word}("))).collect();
    assert!(missing.is_empty(), "{DOCUMENT} does not explain {missing:?}");
}

#[test]
fn every_promise_is_in_the_document() {
    let document = document();
    for protected in ALL {
        let line = format!("| {} | {} |", protected.id, protected.says);
        assert!(document.contains(&line), "{DOCUMENT} lacks: {line}");
    }
}
