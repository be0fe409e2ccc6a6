//! The outside world of the examples, such as a bank or a printer. It counts the calls of each step.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Ready, ready};

use tickover::step_info;

thread_local! {
    static CALLS: RefCell<BTreeMap<Call, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// Identifies a step to the outside: its name, and the key that is the same for all its attempts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) step: String,
    pub(crate) key: String,
}

/// Counts a call of the running step. Answers at once with the number of the attempt.
pub(crate) fn call() -> Ready<u32> {
    let Some(info) = step_info() else { return ready(0) };
    let call = Call { step: info.name, key: info.idempotency_key };
    CALLS.with_borrow_mut(|calls| *calls.entry(call).or_default() += 1);
    ready(info.attempt)
}

/// The number of calls of each step since the last call of this function.
pub(crate) fn take() -> BTreeMap<Call, u32> {
    CALLS.with_borrow_mut(std::mem::take)
}
