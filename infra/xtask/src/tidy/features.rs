//! `tests/features.toml` lists the tests of each feature: `Z6 = ["a_test", "another_test"]`. The tests must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};

use super::Source;
use crate::cargo::root;

const FILE: &str = "tests/features.toml";

/// The first letters of feature ids. A number follows.
const ID_LETTERS: &[char] = &['Z', 'F', 'S', 'D', 'N', 'A', 'C'];

pub(super) fn check(sources: &[Source]) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("could not read {FILE}"))?;
    let known = sources.iter().flat_map(|source| test_names(&source.text)).collect();
    check_text(&text, &known).with_context(|| format!("{FILE} can't be parsed"))
}

fn check_text(text: &str, known: &BTreeSet<&str>) -> Result<Vec<String>> {
    let features: BTreeMap<String, Vec<String>> = toml::from_str(text)?;
    let mut violations = Vec::new();
    for (id, tests) in features {
        if !is_id(&id) {
            violations.push(format!("{FILE}: `{id}` is no feature id: one of {ID_LETTERS:?} and a number"));
        }
        if tests.is_empty() {
            violations.push(format!("{FILE}: {id} names no test"));
        }
        for test in tests.iter().filter(|test| !known.contains(test.as_str())) {
            violations.push(format!("{FILE}: {id} names `{test}`, which is no test in this workspace"));
        }
    }
    Ok(violations)
}

fn is_id(id: &str) -> bool {
    let number = id.strip_prefix(ID_LETTERS);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The names of the functions with `#[test]` or `#[tokio::test(…)]`. Other attributes and comments may be between.
/// rustfmt puts each of these on its own line.
fn test_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if let Some(attribute) = line.strip_prefix("#[") {
            let path = attribute.split(['(', ']']).next().unwrap_or_default();
            is_test |= path.rsplit("::").next() == Some("test");
        } else if let Some(name) = function_name(line) {
            names.extend(is_test.then_some(name));
            is_test = false;
        }
    }
    names
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_functions_are_found_by_their_attribute() {
        let text = "#[test]\nfn a() {}\n#[tokio::test(start_paused = true)]\n#[should_panic]\n// Why.\nasync fn b() {}\nfn c() {}";
        assert_eq!(test_names(text), ["a", "b"]);
    }

    #[test]
    fn every_kind_of_mistake_is_reported() {
        let text =
            "Z1 = [\"a\"] # why\nN13 = [\n  \"a\",\n]\nX1 = [\"a\"]\nZ2 = []\nZ3 = [\"gone\"]\nZ = [\"a\"]";
        let found = check_text(text, &BTreeSet::from(["a"])).unwrap();
        assert_eq!(found.len(), 4, "{found:#?}");
        for id in ["`X1`", "Z2", "Z3", "`Z`"] {
            assert!(found.iter().any(|violation| violation.contains(&format!(" {id} "))), "{id}: {found:#?}");
        }
    }

    #[test]
    fn a_second_row_for_a_feature_is_refused() {
        check_text("Z1 = [\"a\"]\nZ1 = [\"a\"]", &BTreeSet::from(["a"])).unwrap_err();
    }
}
