//! The tests of this workspace, by which a table shows what it says.

use std::collections::BTreeSet;

use super::Source;

/// The names of all tests.
pub(super) struct Tests<'a>(BTreeSet<&'a str>);

impl<'a> Tests<'a> {
    pub(super) fn of(sources: &'a [Source]) -> Self {
        sources.iter().flat_map(|source| names(&source.text)).collect()
    }

    /// The violation for each test that a row of this file names and that doesn't exist.
    pub(super) fn missing(&self, file: &str, row: &str, tests: &[String]) -> Vec<String> {
        let missing = tests.iter().filter(|test| !self.0.contains(test.as_str()));
        missing
            .map(|test| format!("{file}: {row} names `{test}`, which is no test in this workspace"))
            .collect()
    }
}

impl<'a> FromIterator<&'a str> for Tests<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

/// The names of the functions with `#[test]` or `#[tokio::test(…)]`. Other attributes and comments may be between.
/// rustfmt puts each of these on its own line.
fn names(text: &str) -> Vec<&str> {
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
        assert_eq!(names(text), ["a", "b"]);
    }
}
