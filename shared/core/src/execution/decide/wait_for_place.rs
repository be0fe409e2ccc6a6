//! `wait_for_place`: it waits for a place, and the places that were taken for this version are to be given up.

use crate::command::Context;
use crate::execution::Execution;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::update;

pub(super) fn decide(execution: &Execution, seen_version: u64, context: &Context<'_>) -> Decision {
    let changed = execution.version == seen_version && execution.closed().is_none();
    let reply = Ok(Reply::Changed { changed });
    if !changed {
        return Decision::unchanged(execution, reply);
    }
    update(execution, execution.clone(), context, reply)
}
