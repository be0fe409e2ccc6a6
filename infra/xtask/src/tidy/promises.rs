//! `tests/promises.toml` has a row for each promise that the documents of other systems make about features taken from
//! them. A row names the tests that show it, or says what Tickover does instead. The tests must exist. Its rows `guide`
//! do the same for the tables of our own guide.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};
use toml::Value;

use super::guide;
use super::named_tests::Tests;
use crate::cargo::root;

pub(super) const FILE: &str = "tests/promises.toml";

/// The systems, as the tables of the file are named.
const SYSTEMS: &[&str] = &["zart", "flovyn", "steep", "durable_workflow"];

/// The texts that each row has, and the one that it may have.
const TEXTS: &[&str] = &["promise", "where"];
const DIFFERS: &str = "differs";

pub(super) type Row = BTreeMap<String, Value>;

pub(super) fn check(known: &Tests) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("could not read {FILE}"))?;
    let (mut violations, entries) =
        check_text(&text, known).with_context(|| format!("{FILE} can't be parsed"))?;
    violations.extend(guide::check(&entries)?);
    Ok(violations)
}

/// The violations, and the entries for the guide's tables, of which only the names of tests are checked here.
fn check_text(text: &str, known: &Tests) -> Result<(Vec<String>, Vec<Row>)> {
    let mut systems: BTreeMap<String, Vec<Row>> = toml::from_str(text)?;
    let entries = systems.remove("guide").unwrap_or_default();
    let mut violations = Vec::new();
    for entry in &entries {
        let row = format!("guide's entry ({})", text_of(entry, "row").unwrap_or_default());
        violations.extend(known.missing(FILE, &row, &tests_of(entry).unwrap_or_default()));
    }
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
    Ok((violations, entries))
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
pub(super) fn text_of<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    row.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

pub(super) fn tests_of(row: &Row) -> Option<Vec<String>> {
    let names = row.get("tests")?.as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[zart]]\npromise = \"It ends.\"\nwhere = \"Timeouts\"\ntests = [\"a\"]\n";

    fn problems(text: &str) -> Vec<String> {
        check_text(text, &Tests::from_iter(["a"])).unwrap().0
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
            ("[[guide]]\nrow = \"r\"\ntests = [\"gone\"]".to_owned(), "guide's entry (r) names `gone`"),
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
