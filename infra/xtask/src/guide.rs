//! The commands in the guides, read from the guides themselves.

use std::fs;

use anyhow::{Context, Result};

use crate::cargo::root;

/// The guide to emulators.
pub(crate) const LOCAL: &str = "localstack/README.md";
/// All guides that contain commands.
pub(crate) const ALL: [&str; 19] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/limits.md",
    "docs/messages.md",
    "docs/one-machine.md",
    "docs/operators.md",
    "docs/programs.md",
    "docs/steps-and-children.md",
    "docs/table.md",
    "docs/tests.md",
    "docs/time.md",
    "docs/workflows.md",
    "infra/COST.md",
    "infra/DEPLOY.md",
    "infra/OPERATE.md",
    "infra/PRODUCTION.md",
    "infra/README.md",
    LOCAL,
];

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

/// The commands of a guide: the lines of its code blocks, and code within its sentences.
pub(crate) fn commands(guide: &str) -> Result<Vec<String>> {
    let text = read(guide)?;
    let mut found: Vec<String> = vec![];
    for block in blocks_of(&text) {
        let joined = block.replace("\\\n", " ");
        let lines = joined.lines().flat_map(|line| line.split(" && ")).flat_map(|line| line.split(" | "));
        found.extend(lines.map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned()));
    }
    let prose: String = text.split("```").step_by(2).collect();
    let quoted = prose.split('`').skip(1).step_by(2).flat_map(|quoted| quoted.split(" && "));
    found.extend(quoted.map(|quoted| quoted.split_whitespace().collect::<Vec<_>>().join(" ")));
    Ok(found)
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
