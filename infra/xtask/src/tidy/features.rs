//! `tests/features.toml` names, for each feature by its id, the tests that show it:
//! `Z6 = ["a_test", "another_test"]`. The tests must exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Violation;
use super::source::Source;

const FILE: &str = "tests/features.toml";

/// The letters that feature ids begin with; a number follows.
const ID_LETTERS: &[char] = &['Z', 'F', 'S', 'D', 'N'];

/// One feature and its tests.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    id: String,
    tests: Vec<String>,
}

pub(super) fn check(root: &Path, sources: &[Source]) -> Vec<Violation> {
    let known: BTreeSet<&str> = sources.iter().flat_map(Source::test_names).collect();
    match fs::read_to_string(root.join(FILE)) {
        Ok(text) => check_text(&text, &known),
        Err(error) => vec![Violation::new(Path::new(FILE), 1, error.to_string())],
    }
}

fn check_text(text: &str, known: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    let mut at = |line, message: String| violations.push(Violation::new(Path::new(FILE), line, message));
    for row in rows(text) {
        let Row { line, id, tests } = match row {
            Ok(row) => row,
            Err(line) => {
                at(line, "not understood: a row reads ID = [\"a_test\", …]".to_owned());
                continue;
            }
        };
        if !is_id(&id) {
            at(line, format!("`{id}` is no feature id: one of {ID_LETTERS:?} and a number"));
        }
        if tests.is_empty() {
            at(line, format!("{id} names no test"));
        }
        for test in tests.iter().filter(|test| !known.contains(test.as_str())) {
            at(line, format!("{id} names `{test}`, which is no test in this workspace"));
        }
        if !seen.insert(id.clone()) {
            at(line, format!("{id} has a row already"));
        }
    }
    violations
}

fn is_id(id: &str) -> bool {
    id.strip_prefix(ID_LETTERS)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Each row, or the line of something that isn't one. A list may run over several lines.
fn rows(text: &str) -> Vec<Result<Row, usize>> {
    let mut rows = Vec::new();
    let mut lines = text.lines().map(without_comment).enumerate().map(|(index, text)| (index + 1, text));
    while let Some((line, text)) = lines.next() {
        let is_header = text.starts_with('[') && text.ends_with(']');
        if text.is_empty() || is_header {
            continue;
        }
        let mut row = text.to_owned();
        while row.contains('[') && !row.contains(']') {
            let Some((_, more)) = lines.next() else { break };
            row.push_str(more);
        }
        rows.push(parse_row(line, &row).ok_or(line));
    }
    rows
}

fn parse_row(line: usize, text: &str) -> Option<Row> {
    let (id, list) = text.split_once('=')?;
    let list = list.trim().strip_prefix('[')?.strip_suffix(']')?;
    let tests = list.split(',').map(str::trim).filter(|test| !test.is_empty());
    let tests = tests.map(|test| Some(test.strip_prefix('"')?.strip_suffix('"')?.to_owned()));
    Some(Row { line, id: id.trim().to_owned(), tests: tests.collect::<Option<_>>()? })
}

/// Test names hold no `#`, so the first one begins a comment.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_run_over_lines_and_carry_comments() {
        let text = "# ids\nZ6 = [\"a\"] # why\n\n[more]\nN13 = [\n  \"b\",\n  \"c\", # and\n]\n";
        let row = |line, id: &str, tests: &[&str]| {
            let tests = tests.iter().map(|test| (*test).to_owned()).collect();
            Ok(Row { line, id: id.to_owned(), tests })
        };
        assert_eq!(rows(text), [row(2, "Z6", &["a"]), row(5, "N13", &["b", "c"])]);
    }

    #[test]
    fn every_kind_of_slip_is_told_with_its_line() {
        let text = "Z1 = [\"a\"]\nX1 = [\"a\"]\nZ2 = []\nZ3 = [\"gone\"]\nZ1 = [\"a\"]\nZ4: a\nZ = [\"a\"]";
        let found = check_text(text, &BTreeSet::from(["a"]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
    }
}
