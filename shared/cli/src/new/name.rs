//! The name of a new project: it becomes a crate, a queue and a part of the names of resources on AWS.

/// Longest name. The queue of the worker's stack has it, and the names of its resources have further parts.
const CHARS_MAX: usize = 32;

/// The words of Rust, those that are only reserved included.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Crates that every project sees or this one depends on, names that cargo keeps for its folders, and the steps of the
/// project's own code. They are compared with the name as Rust code writes it.
const TAKEN: &[&str] = &[
    "alloc",
    "build",
    "charge",
    "core",
    "deps",
    "examples",
    "fulfil",
    "incremental",
    "print_label",
    "proc_macro",
    "refund",
    "serde",
    "std",
    "test",
    "tickover",
    "tokio",
];

/// A valid name: words of lower-case letters and digits, between which there is one `-` or `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProjectName(String);

impl ProjectName {
    /// Reads a name. An error says what to write instead.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > CHARS_MAX {
            return Err(format!(
                "a name has at most {CHARS_MAX} characters, because queues are named after it"
            ));
        }
        if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err("a name begins with a letter, such as `orders`".to_owned());
        }
        if text.contains(|c: char| c.is_ascii_uppercase()) {
            return Err(format!(
                "a crate's name has no capital letters: write `{}`",
                text.to_ascii_lowercase()
            ));
        }
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
        if !text.split(['-', '_']).all(is_word) {
            return Err(
                "a name has letters and digits, and single `-` or `_` between them, such as `new-orders`"
                    .to_owned(),
            );
        }
        let name = Self(text.to_owned());
        let identifier = name.identifier();
        if KEYWORDS.contains(&identifier.as_str()) {
            return Err(format!("`{text}` is a word of Rust: choose another name, such as `my-{text}`"));
        }
        if TAKEN.contains(&identifier.as_str()) {
            return Err(format!(
                "`{text}` has a meaning in the project: choose another name, such as `my-{text}`"
            ));
        }
        Ok(name)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The crate's name as Rust code writes it.
    pub(super) fn identifier(&self) -> String {
        self.0.replace('-', "_")
    }

    /// The beginning of stacks' names, which can't have a `_`.
    pub(super) fn stack(&self) -> String {
        self.0.replace('_', "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_crates_and_stacks_need_it() {
        let name = ProjectName::parse("new_orders-2").unwrap();
        assert_eq!(name.as_str(), "new_orders-2");
        assert_eq!(name.identifier(), "new_orders_2");
        assert_eq!(name.stack(), "new-orders-2");
        ProjectName::parse(&"a".repeat(CHARS_MAX)).unwrap();
    }

    #[test]
    fn a_name_that_is_no_crates_is_refused_with_what_to_write() {
        for (wrong, remedy) in [
            ("", "begins with a letter"),
            ("7days", "begins with a letter"),
            ("-orders", "begins with a letter"),
            ("größe", "letters and digits"),
            ("a b", "letters and digits"),
            ("../orders", "begins with a letter"),
            ("a/b", "letters and digits"),
            ("a--b", "single `-`"),
            ("a-", "single `-`"),
            ("Orders", "write `orders`"),
            ("async", "such as `my-async`"),
            ("proc-macro", "such as `my-proc-macro`"),
            ("tickover", "such as `my-tickover`"),
            (&"a".repeat(CHARS_MAX + 1), "at most 32 characters"),
        ] {
            let problem = ProjectName::parse(wrong).unwrap_err();
            assert!(problem.contains(remedy), "{wrong:?}: {problem}");
        }
    }
}
