//! `tests/features.toml` lists the tests of each feature: `Z6 = ["a_test", "another_test"]`. The tests must exist.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::named_tests::Tests;
use crate::cargo::root;

const FILE: &str = "tests/features.toml";

/// The first letters of feature ids. A number follows.
const ID_LETTERS: &[char] = &['Z', 'F', 'S', 'D', 'N', 'A', 'C', 'W', 'T'];

pub(super) fn check(known: &Tests) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("could not read {FILE}"))?;
    check_text(&text, known).with_context(|| format!("{FILE} can't be parsed"))
}

fn check_text(text: &str, known: &Tests) -> Result<Vec<String>> {
    let features: BTreeMap<String, Vec<String>> = toml::from_str(text)?;
    let mut violations = Vec::new();
    for (id, tests) in features {
        if !is_id(&id) {
            violations.push(format!("{FILE}: `{id}` is no feature id: one of {ID_LETTERS:?} and a number"));
        }
        if tests.is_empty() {
            violations.push(format!("{FILE}: {id} names no test"));
        }
        violations.extend(known.missing(FILE, &id, &tests));
    }
    Ok(violations)
}

fn is_id(id: &str) -> bool {
    let number = id.strip_prefix(ID_LETTERS);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_mistake_is_reported() {
        let text =
            "Z1 = [\"a\"] # why\nN13 = [\n  \"a\",\n]\nX1 = [\"a\"]\nZ2 = []\nZ3 = [\"gone\"]\nZ = [\"a\"]";
        let found = check_text(text, &Tests::from_iter(["a"])).unwrap();
        assert_eq!(found.len(), 4, "{found:#?}");
        for id in ["`X1`", "Z2", "Z3", "`Z`"] {
            assert!(found.iter().any(|violation| violation.contains(&format!(" {id} "))), "{id}: {found:#?}");
        }
    }

    #[test]
    fn a_second_row_for_a_feature_is_refused() {
        check_text("Z1 = [\"a\"]\nZ1 = [\"a\"]", &Tests::from_iter(["a"])).unwrap_err();
    }
}
