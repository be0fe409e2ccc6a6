//! Inputs that the decisions of all records share.

use crate::by::By;
use crate::id::Nonce;
use crate::limits::Limits;
use crate::time::Timestamp;

/// The inputs of a decision besides the record and the command.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time, read once for this decision.
    pub now: Timestamp,
    /// Random. It marks the decision's writes.
    pub nonce: Nonce,
    /// The limits in force.
    pub limits: &'a Limits,
    /// Whose call it is, if it is an operator's.
    pub by: Option<&'a By>,
}

/// Whether a process runs other attempts beside one attempt. If such a process dies, several attempts may be the
/// cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// No others, or none that may have stopped a process before: if the process dies, this attempt may well be the cause.
    Alone,
    /// Other attempts run now or soon.
    Shared,
}

impl Isolation {
    /// Whether the process runs other attempts.
    pub const fn is_shared(self) -> bool {
        match self {
            Self::Alone => false,
            Self::Shared => true,
        }
    }
}
