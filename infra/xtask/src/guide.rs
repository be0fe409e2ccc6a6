//! The commands in the guides, read from the guides themselves.

use std::fs;

use anyhow::{Context, Result};

use crate::cargo::root;

/// The guide to emulators.
pub(crate) const LOCAL: &str = "localstack/README.md";
/// The first block of commands that contains this text, unchanged.
pub(crate) fn block(guide: &str, having: &str) -> Result<String> {
    let found = blocks_of(&read(guide)?).into_iter().find(|block| block.contains(having));
    found.with_context(|| format!("{guide} has no commands with `{having}`"))
}

/// The first file of JSON in a guide that contains this text.
pub(crate) fn file(guide: &str, having: &str) -> Result<String> {
    let found = fenced(&read(guide)?, "json\n").into_iter().find(|file| file.contains(having));
    found.with_context(|| format!("{guide} has no JSON with `{having}`"))
}

fn read(guide: &str) -> Result<String> {
    fs::read_to_string(root().join(guide)).with_context(|| format!("could not read {guide}"))
}

fn blocks_of(text: &str) -> Vec<String> {
    fenced(text, "sh\n")
}

/// The blocks of a language, which is the rest of a block's first line.
fn fenced(text: &str, language: &str) -> Vec<String> {
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(language)).map(str::to_owned).collect()
}
