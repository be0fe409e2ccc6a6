//! Rules about the text of Rust files.

use std::collections::BTreeMap;
use std::path::Path;

use super::Violation;
use super::lexer::{line_of, word_positions};
use super::source::Source;

/// Beyond this, a file is more than one room.
const LINES_MAX: usize = 500;

/// Spelt in two parts: this file is checked as well.
const UNFINISHED: &str = concat!("FIX", "ME");

pub(super) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut violations: Vec<_> = sources.iter().flat_map(check_file).collect();
    violations.extend(undocumented_modules(sources));
    violations
}

fn check_file(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let lines = source.text.lines().count();
    if lines > LINES_MAX {
        found.push(Violation::new(
            &source.path,
            1,
            format!("{lines} lines, at most {LINES_MAX}: split the file"),
        ));
    }
    let mut at_code = |position: usize, message: &str| {
        found.push(Violation::new(&source.path, source.line(position), message));
    };
    for position in attributes(&source.code, "ignore") {
        at_code(position, "an ignored test is no test: mend it or remove it");
    }
    for (position, _) in source.code.match_indices("todo!") {
        at_code(position, "unfinished code");
    }
    for position in sleeps(&source.code).filter(|position| source.is_test(*position)) {
        at_code(position, "a test waits for what it needs, with a bound; it never sleeps");
    }
    for (position, _) in source.text.match_indices(UNFINISHED) {
        let line = line_of(&source.text, position);
        found.push(Violation::new(&source.path, line, "unfinished work belongs in an issue"));
    }
    found
}

/// Where an attribute of this name begins.
fn attributes<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    word_positions(code, name).filter(|at| code[..*at].trim_end().ends_with("#["))
}

/// Calls of a function that sleeps. A method may belong to a clock that only pretends to.
fn sleeps(code: &str) -> impl Iterator<Item = usize> + '_ {
    ["sleep", "sleep_ms", "sleep_until"].into_iter().flat_map(move |word| {
        word_positions(code, word).filter(move |at| {
            let before = code[..*at].trim_end();
            let is_called = code[at + word.len()..].trim_start().starts_with('(');
            is_called
                && !before.ends_with('.')
                && word_positions(before, "fn").all(|at| at + 2 != before.len())
        })
    })
}

/// A public module says at its top what it owns.
fn undocumented_modules(sources: &[Source]) -> Vec<Violation> {
    let by_path: BTreeMap<&Path, &Source> = sources.iter().map(|source| (&*source.path, source)).collect();
    let mut found = Vec::new();
    for source in sources {
        let public = source.file_modules().filter(|(at, _)| source.code[..*at].trim_end().ends_with("pub"));
        for module in public.flat_map(|(_, places)| places).filter_map(|place| by_path.get(&*place).copied())
        {
            if !module.text.trim_start().starts_with("//!") {
                found.push(Violation::new(
                    &module.path,
                    1,
                    "a public module begins with `//!`: what it owns",
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(PathBuf::from(path), text.to_owned());
        check(&[source]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sleeping_is_refused_in_tests_only_and_a_clock_may_pretend() {
        let call = "fn sleep() {}\nasync fn f() {\n clock.sleep(x).await;\n tokio::time::sleep(x).await;\n}";
        assert_eq!(messages("shared/a/src/b.rs", call), [""; 0]);
        let found = messages("tests/tests/b.rs", call);
        assert_eq!(
            found,
            ["tests/tests/b.rs:4: a test waits for what it needs, with a bound; it never sleeps"]
        );
    }

    #[test]
    fn what_stands_in_literals_and_comments_is_no_code() {
        let text = "// #[ignore] and todo!() and sleep(1)\nconst A: &str = \"#[ignore] todo!() sleep(1)\";";
        assert_eq!(messages("tests/tests/a.rs", text), [""; 0]);
    }

    #[test]
    fn ignored_tests_and_unfinished_code_are_found_with_their_lines() {
        let text = format!("#[test]\n#[ignore = \"slow\"]\nfn a() {{ todo!() }}\n// {UNFINISHED}");
        let lines: Vec<_> = messages("shared/a/src/b.rs", &text)
            .iter()
            .map(|message| message.split(':').nth(1).unwrap_or_default().to_owned())
            .collect();
        assert_eq!(lines, ["2", "3", "4"]);
    }

    #[test]
    fn a_public_module_without_documentation_is_found() {
        let sources = [
            Source::new(PathBuf::from("s/src/lib.rs"), "pub mod a;\npub mod b;\nmod c;".to_owned()),
            Source::new(PathBuf::from("s/src/a.rs"), "//! A.\n".to_owned()),
            Source::new(PathBuf::from("s/src/b.rs"), "fn b() {}\n".to_owned()),
            Source::new(PathBuf::from("s/src/c.rs"), "fn c() {}\n".to_owned()),
        ];
        let found = check(&sources);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, PathBuf::from("s/src/b.rs"));
    }
}
