//! The guide's tables on time, retries and ends. `[[guide]]` in `tests/promises.toml` has an entry for each of their rows,
//! with the tests that show what the row says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result};

use super::promises::{FILE, Row, tests_of, text_of};
use crate::cargo::root;

const FOLDER: &str = "shared/sdk/src/guide";

/// The tables by their page and their header. Each row of them needs an entry.
const TABLES: &[(&str, &str)] = &[
    ("deadlines.md", "what | where you set it | measured from"),
    ("steps.md", "policy | waits"),
    ("steps.md", "option | limits | what follows"),
    ("tasks.md", "field for time or retries | meaning"),
    ("tasks.md", "status | meaning"),
    ("errors.md", "variant | code | reason"),
    ("errors.md", "variant | reason"),
];

/// The fields of an entry: the table as `page: header`, the first cell of the row, and the names of tests.
const FIELDS: &[&str] = &["table", "row", "tests"];

pub(super) fn check(entries: &[Row]) -> Result<Vec<String>> {
    let pages: BTreeSet<_> = TABLES.iter().map(|(page, _)| *page).collect();
    let read = |page| {
        let path = root().join(FOLDER).join(page);
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        Ok((page, text))
    };
    Ok(check_pages(entries, &pages.into_iter().map(read).collect::<Result<_>>()?))
}

fn check_pages(entries: &[Row], pages: &BTreeMap<&str, String>) -> Vec<String> {
    let mut violations = Vec::new();
    let mut rows = BTreeSet::new();
    for (page, header) in TABLES {
        let table = format!("{page}: {header}");
        let cells = pages.get(page).map(|text| first_cells(text, header)).unwrap_or_default();
        if cells.is_empty() {
            violations.push(format!("{FOLDER}/{page} has no table `{header}`"));
        }
        rows.extend(cells.into_iter().map(|cell| (table.clone(), cell)));
    }
    for (index, entry) in entries.iter().enumerate() {
        violations.extend(check_entry(entry, &mut rows).into_iter().map(|problem| {
            let row = text_of(entry, "row").unwrap_or_default();
            format!("{FILE}: guide's entry {} ({row}) {problem}", index + 1)
        }));
    }
    violations
        .extend(rows.iter().map(|(table, row)| format!("{FILE}: no entry for the row {row} of `{table}`")));
    violations
}

/// What is wrong with an entry, whichever tests exist. Takes its row from those that have no entry yet.
fn check_entry(entry: &Row, rows: &mut BTreeSet<(String, String)>) -> Vec<String> {
    let mut problems = Vec::new();
    let text = |name| text_of(entry, name).unwrap_or_default().to_owned();
    if !rows.remove(&(text("table"), text("row"))) {
        problems.push("is for no row of the guide, or for one that has an entry".to_owned());
    }
    if tests_of(entry).is_none_or(|tests| tests.is_empty()) {
        problems.push("names no test".to_owned());
    }
    for name in entry.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
        problems.push(format!("has the unknown field `{name}`"));
    }
    problems
}

/// The first cell of each row of the table with this header.
fn first_cells(page: &str, header: &str) -> Vec<String> {
    let header = format!("| {header} |");
    let table = page.lines().skip_while(|line| *line != header).take_while(|line| line.starts_with('|'));
    // The header and the line below it are no rows.
    let cells = table.skip(2).filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages on which each table has the rows `a` and `b`.
    fn pages() -> BTreeMap<&'static str, String> {
        let mut pages = BTreeMap::<_, String>::new();
        for (page, header) in TABLES {
            let table = format!("Text.\n\n| {header} |\n|---|---|\n| `a` | x |\n| b | x |\n\n");
            pages.entry(*page).or_default().push_str(&table);
        }
        pages
    }

    fn entry(table: &str, row: &str) -> String {
        format!("[[guide]]\ntable = \"{table}\"\nrow = \"{row}\"\ntests = [\"t\"]\n")
    }

    /// An entry for each row of these pages.
    fn entries() -> String {
        let rows = TABLES.iter().flat_map(|table| ["`a`", "b"].map(|row| (table, row)));
        rows.map(|((page, header), row)| entry(&format!("{page}: {header}"), row)).collect()
    }

    fn problems(entries: &str, pages: &BTreeMap<&str, String>) -> Vec<String> {
        let parsed: BTreeMap<String, Vec<Row>> = toml::from_str(entries).unwrap();
        check_pages(&parsed["guide"], pages)
    }

    #[test]
    fn each_row_of_the_guides_tables_needs_an_entry_and_no_other_table_does() {
        let mut pages = pages();
        pages.entry("steps.md").or_default().push_str("| call | HTTP |\n|---|---|\n| c | x |\n");
        assert_eq!(problems(&entries(), &pages), Vec::<String>::new());
        pages.entry("steps.md").and_modify(|text| *text = text.replace("| b | x |", "| b | x |\n| c | x |"));
        assert_eq!(
            problems(&entries(), &pages),
            [
                "tests/promises.toml: no entry for the row c of `steps.md: option | limits | what follows`",
                "tests/promises.toml: no entry for the row c of `steps.md: policy | waits`",
            ]
        );
    }

    #[test]
    fn an_entry_needs_its_row_and_a_row_has_one_entry() {
        for (more, problem) in [
            (entry("steps.md: policy | waits", "c"), "(c) is for no row of the guide"),
            (entry("steps.md: call | HTTP", "b"), "(b) is for no row of the guide"),
            (
                entry("steps.md: policy | waits", "b"),
                "15 (b) is for no row of the guide, or for one that has an entry",
            ),
            (entry("steps.md: policy | waits", "b").replace("\"t\"", ""), "names no test"),
            (entry("steps.md: policy | waits", "b").replace("tests", "test"), "has the unknown field `test`"),
        ] {
            let found = problems(&format!("{}{more}", entries()), &pages());
            assert!(found.iter().any(|violation| violation.contains(problem)), "{problem}: {found:#?}");
        }
    }

    #[test]
    fn a_table_that_is_gone_is_reported() {
        let pages = pages().into_iter().map(|(page, text)| (page, text.replace("| policy |", "| plan |")));
        let found = problems(&entries(), &pages.collect());
        assert!(found[0].ends_with("steps.md has no table `policy | waits`"), "{found:#?}");
    }
}
