//! The commands that the guides tell people to type, read from the guides themselves.

use std::fs;

use anyhow::{Context, Result};

use crate::cargo::root;

/// The guide to emulators on this machine.
pub(crate) const LOCAL: &str = "localstack/README.md";
/// Every guide with commands in it.
pub(crate) const ALL: [&str; 4] = ["README.md", "CONTRIBUTING.md", "infra/README.md", LOCAL];

/// The one block that has this in it, as it stands.
pub(crate) fn block(guide: &str, having: &str) -> Result<String> {
    let found = blocks_of(&read(guide)?).into_iter().find(|block| block.contains(having));
    found.with_context(|| format!("{guide} has no commands with `{having}`"))
}

/// The commands of a guide: the lines of its blocks, and what is quoted in its sentences.
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
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix("sh\n")).map(str::to_owned).collect()
}
