//! `tests/promises.toml` has a row for each promise that the documents of other systems make about features taken from
//! them. A row names the tests that show it, or says what Tickover does instead. The tests must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use toml::Value;

use super::named_tests::Tests;
use crate::cargo::root;

const FILE: &str = "tests/promises.toml";

/// The systems, as the tables of the file are named.
const SYSTEMS: &[&str] = &["zart", "flovyn", "steep", "durable_workflow"];

/// The texts that each row has, and the one that it may have.
const TEXTS: &[&str] = &["promise", "where"];
const DIFFERS: &str = "differs";

type Row = BTreeMap<String, Value>;

pub(super) fn check(known: &Tests) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("could not read {FILE}"))?;
    check_text(&text, known).with_context(|| format!("{FILE} can't be parsed"))
}

fn check_text(text: &str, known: &Tests) -> Result<Vec<String>> {
    let systems: BTreeMap<String, Vec<Row>> = toml::from_str(text)?;
    let mut violations = Vec::new();
    for (system, rows) in &systems {
        if !SYSTEMS.contains(&system.as_str()) {
            violations.push(format!("{FILE}: `{system}` is none of the systems {SYSTEMS:?}"));
        }
        let mut seen = BTreeSet::new();
        for (index, row) in rows.iter().enumerate() {
            let promise = text_of(row, "promise").unwrap_or_default();
            let place = format!("{system}'s row {} (\"{promise}\")", index + 1);
            violations.extend(check_row(row).into_iter().map(|problem| format!("{FILE}: {place} {problem}")));
            violations.extend(known.missing(FILE, &place, &tests_of(row).unwrap_or_default()));
            if !seen.insert(promise) {
                violations.push(format!("{FILE}: {place} is there twice"));
            }
        }
    }
    Ok(violations)
}

/// What is wrong with a row, whichever tests exist.
fn check_row(row: &Row) -> Vec<String> {
    let mut problems = Vec::new();
    for name in TEXTS.iter().filter(|name| text_of(row, name).is_none()) {
        problems.push(format!("has no text `{name}`"));
    }
    let differs = text_of(row, DIFFERS);
    if row.contains_key(DIFFERS) && differs.is_none() {
        problems.push(format!("has no text `{DIFFERS}`"));
    }
    match tests_of(row) {
        None => problems.push("has no list of names `tests`".to_owned()),
        Some(tests) if tests.is_empty() && differs.is_none() => {
            problems.push(format!("names no test and has no `{DIFFERS}`"));
        }
        Some(_) => {}
    }
    let known = |name: &str| name == "tests" || name == DIFFERS || TEXTS.contains(&name);
    for name in row.keys().filter(|name| !known(name)) {
        problems.push(format!("has the unknown field `{name}`"));
    }
    problems
}

/// The text of this field, if it has one that isn't empty.
fn text_of<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    row.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

fn tests_of(row: &Row) -> Option<Vec<String>> {
    let names = row.get("tests")?.as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[zart]]\npromise = \"It ends.\"\nwhere = \"Timeouts\"\ntests = [\"a\"]\n";

    fn problems(text: &str) -> Vec<String> {
        check_text(text, &Tests::from_iter(["a"])).unwrap()
    }

    #[test]
    fn a_row_has_a_test_or_says_what_is_different() {
        let differs = GOOD.replace("[\"a\"]", "[]\ndiffers = \"It goes on.\"").replace("zart", "steep");
        let both = GOOD.replace("[\"a\"]", "[\"a\"]\ndiffers = \"It goes on.\"").replace("zart", "flovyn");
        assert_eq!(problems(&format!("{GOOD}{differs}{both}")), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_mistake_is_reported() {
        for (text, problem) in [
            (GOOD.replace("zart", "nobody"), "`nobody` is none of the systems"),
            (GOOD.replace("\"It ends.\"", "\" \""), "has no text `promise`"),
            (GOOD.replace("where = \"Timeouts\"\n", ""), "has no text `where`"),
            (GOOD.replace("tests = [\"a\"]\n", ""), "has no list of names `tests`"),
            (GOOD.replace("[\"a\"]", "\"a\""), "has no list of names `tests`"),
            (GOOD.replace("[\"a\"]", "[1]"), "has no list of names `tests`"),
            (GOOD.replace("[\"a\"]", "[]"), "names no test and has no `differs`"),
            (GOOD.replace("[\"a\"]", "[\"a\"]\ndiffers = \"\""), "has no text `differs`"),
            (GOOD.replace("[\"a\"]", "[\"a\", \"gone\"]"), "(\"It ends.\") names `gone`, which is no test"),
            (GOOD.replace("where", "when"), "has the unknown field `when`"),
            (format!("{GOOD}{GOOD}"), "zart's row 2 (\"It ends.\") is there twice"),
        ] {
            let found = problems(&text);
            assert!(found.iter().any(|violation| violation.contains(problem)), "{problem}: {found:#?}");
        }
    }

    #[test]
    fn two_systems_may_promise_the_same() {
        assert_eq!(problems(&format!("{GOOD}{}", GOOD.replace("zart", "steep"))), Vec::<String>::new());
    }
}
