//! What the templates in `infra` must say beside what cfn-lint knows, and what the code, the emulators' files and the guides
//! must say as they do.

mod account;
mod emulators;
mod global;
mod guides;
mod metrics;
mod parts;
mod recorded;
mod routes;
mod stuck;
mod template;
mod watched;

use std::fs;

use anyhow::{Context, Result};

/// The text of a file, by its path from the root of the repository.
fn read(path: &str) -> Result<String> {
    fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).context(path.to_owned())
}
