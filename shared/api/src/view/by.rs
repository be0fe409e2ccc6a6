//! The view of who has changed a record.

use tickover_core::by::By;
use tickover_wire::answer::ByView;

pub(crate) fn by(by: &By) -> ByView {
    ByView {
        caller: by.caller.as_ref().map(ToString::to_string),
        operation: by.page.as_ref().map(|page| page.operation.clone()),
        reason: by.reason.as_deref().map(str::to_owned),
    }
}
