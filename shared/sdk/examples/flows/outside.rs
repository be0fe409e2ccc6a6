//! The outside world of the examples. It remembers how often each step has asked something of it, which is what a
//! bank or a printer would see.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Ready, ready};

use tickover::step_info;

thread_local! {
    static CALLS: RefCell<BTreeMap<Call, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// What a step is known by outside: its name, and the key that is the same for all its attempts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) step: String,
    pub(crate) key: String,
}

/// The step that is running asks something of the outside, which answers at once. Which of its attempts it is.
pub(crate) fn call() -> Ready<u32> {
    let Some(info) = step_info() else { return ready(0) };
    let call = Call { step: info.name, key: info.idempotency_key };
    CALLS.with_borrow_mut(|calls| *calls.entry(call).or_default() += 1);
    ready(info.attempt)
}

/// How often each step has asked since this was last called.
pub(crate) fn take() -> BTreeMap<Call, u32> {
    CALLS.with_borrow_mut(std::mem::take)
}
