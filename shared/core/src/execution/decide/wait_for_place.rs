//! `wait_for_place`: it waits for a place, and the places that were taken for this version are to be given up.

use crate::command::Context;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, update};
use crate::execution::{Execution, closing};

pub(super) fn decide(execution: &Execution, seen_version: u64, context: &Context<'_>) -> Decision {
    let expired = closing::expire(execution, context);
    let changed = execution.version == seen_version && execution.closed().is_none() && expired.is_none();
    let reply = Ok(Reply::Changed { changed });
    if !changed {
        return expired_or_unchanged(execution, expired, context, reply);
    }
    update(execution, execution.clone(), context, reply)
}
