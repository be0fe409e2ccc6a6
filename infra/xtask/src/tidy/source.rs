//! Every Rust file of the workspace, with what the rules ask of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::lexer::{code_only, leading_name, line_of, word_positions};

/// The folders that hold Rust.
const FOLDERS: &[&str] = &["functions", "shared", "infra", "tests"];

/// One Rust file.
pub(super) struct Source {
    /// From the root of the workspace.
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// The text without comments and literals, see [`code_only`].
    pub(super) code: String,
    /// The positions in `code`, in bytes, that only tests compile.
    test_ranges: Vec<(usize, usize)>,
}

impl Source {
    pub(super) fn new(path: PathBuf, text: String) -> Self {
        let code = code_only(&text);
        let is_test_file = path.components().any(|part| part.as_os_str() == "tests");
        let test_ranges = if is_test_file { vec![(0, code.len())] } else { test_items(&code) };
        Self { path, text, code, test_ranges }
    }

    /// Is this position in `code` compiled for tests only?
    pub(super) fn is_test(&self, position: usize) -> bool {
        self.test_ranges.iter().any(|(begin, end)| (*begin..*end).contains(&position))
    }

    /// The 1-based line of a position in `code`.
    pub(super) fn line(&self, position: usize) -> usize {
        line_of(&self.code, position)
    }

    /// Each `mod NAME;` that stands in a file of its own: its position and the two places for that file.
    pub(super) fn file_modules(&self) -> impl Iterator<Item = (usize, [PathBuf; 2])> {
        word_positions(&self.code, "mod").filter_map(|at| {
            let rest = self.code[at + "mod".len()..].trim_start();
            let name = leading_name(rest);
            let is_declared_only = rest[name.len()..].trim_start().starts_with(';');
            let folder = self.module_folder();
            let places = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
            is_declared_only.then_some((at, places))
        })
    }

    /// The names of its test functions, whatever the attribute is called in full (`tokio::test`).
    pub(super) fn test_names(&self) -> impl Iterator<Item = &str> {
        self.code.match_indices("#[").filter_map(|(at, _)| {
            let attribute = &self.code[at + 2..];
            let path = &attribute[..attribute.find(['(', ']'])?];
            let is_test = path.trim().rsplit("::").next() == Some("test");
            let function = word_positions(attribute, "fn").next()?;
            is_test.then(|| leading_name(&attribute[function + "fn".len()..]))
        })
    }

    fn module_folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        match self.path.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") | None => folder.to_owned(),
            Some(stem) => folder.join(stem),
        }
    }
}

/// Reads all files, sorted by path.
pub(super) fn all(root: &Path) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut paths)?;
    }
    paths.sort();
    let mut sources = Vec::with_capacity(paths.len());
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        sources.push(Source::new(path.strip_prefix(root)?.to_owned(), text));
    }
    mark_test_files(&mut sources);
    Ok(sources)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(&path, paths)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// A module declared as `#[cfg(test)] mod NAME;` is test code though its own file doesn't say so.
fn mark_test_files(sources: &mut [Source]) {
    let declared: BTreeSet<PathBuf> = sources
        .iter()
        .flat_map(|source| source.file_modules().filter(|(at, _)| source.is_test(*at)))
        .flat_map(|(_, places)| places)
        .collect();
    for source in sources.iter_mut().filter(|source| declared.contains(&source.path)) {
        source.test_ranges = vec![(0, source.code.len())];
    }
}

/// The items under a `#[cfg(test)]`, each with its attribute.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let begins = code.match_indices("#[cfg(").map(|(at, _)| at);
    begins.filter_map(|begin| item_end(&code[begin..]).map(|length| (begin, begin + length))).collect()
}

/// The length of the item after this `cfg`, if the `cfg` asks for tests.
fn item_end(code: &str) -> Option<usize> {
    let attribute_end = code.find(']')?;
    let condition = &code[..attribute_end];
    let asks_for_tests = word_positions(condition, "test").next().is_some();
    if !asks_for_tests || condition.contains("not(") {
        return None;
    }
    let body = attribute_end + code[attribute_end..].find(['{', ';'])?;
    if code.as_bytes()[body] == b';' {
        return Some(body + 1);
    }
    let mut depth = 0_usize;
    for (at, letter) in code[body..].char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(body + at + 1);
        }
    }
    Some(code.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_told_from_the_code_around_them() {
        let code =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n#[cfg(not(test))]\nfn d() {}";
        let source = Source::new(PathBuf::from("shared/core/src/lib.rs"), code.to_owned());
        let in_tests = |name: &str| code.find(name).map(|at| source.is_test(at));
        assert_eq!(in_tests("fn a"), Some(false));
        assert_eq!(in_tests("fn b"), Some(true));
        assert_eq!(in_tests("fn c"), Some(false));
        assert_eq!(in_tests("fn d"), Some(false));
    }

    #[test]
    fn test_functions_are_found_by_their_attribute() {
        let code = "#[test]\nfn a() {}\n#[tokio::test(start_paused = true)]\n#[should_panic]\nasync fn b() {}\nfn c() {}";
        let source = Source::new(PathBuf::from("x.rs"), code.to_owned());
        assert_eq!(source.test_names().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_file_declared_as_a_test_module_is_test_code() {
        let parent = "pub mod a;\n#[cfg(test)]\nmod b;".to_owned();
        let mut sources = vec![
            Source::new(PathBuf::from("s/src/x.rs"), parent),
            Source::new(PathBuf::from("s/src/x/a.rs"), "fn a() {}".to_owned()),
            Source::new(PathBuf::from("s/src/x/b.rs"), "fn b() {}".to_owned()),
        ];
        mark_test_files(&mut sources);
        assert!(!sources[1].is_test(0));
        assert!(sources[2].is_test(0));
    }
}
