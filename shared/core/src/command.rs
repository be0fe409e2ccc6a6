//! What all commands have in common.

use crate::id::Nonce;
use crate::limits::Limits;
use crate::time::Timestamp;

/// What a decision depends on besides the record and the command.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time, read once for this decision.
    pub now: Timestamp,
    /// Random: marks the decision's writes.
    pub nonce: Nonce,
    /// The limits in force.
    pub limits: &'a Limits,
}

/// What a process has under way beside an attempt. If the process dies, nobody knows which of several attempts was
/// the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing: if the process dies, this attempt may well be the cause.
    Alone,
    /// Other attempts, now or soon.
    Shared,
}

impl Isolation {
    /// Whether other attempts run beside.
    pub const fn is_shared(self) -> bool {
        match self {
            Self::Alone => false,
            Self::Shared => true,
        }
    }
}
