//! Links a parent's reference to its execution.

use crate::execution::Execution;
use crate::execution::journal::is_of_handler;
use crate::id::StepName;
use crate::parent::{Parent, ParentClosePolicy};

impl Parent {
    /// The reference to an execution in its current run. The parent is notified of each end separately.
    pub fn of(execution: &Execution) -> Self {
        Self {
            execution: execution.id.clone(),
            incarnation: execution.incarnation,
            run: execution.run,
            again: 0,
            slot: None,
            step: None,
            work: None,
            on_close: ParentClosePolicy::default(),
        }
    }

    /// Whether the record found under the parent's id is the parent and still open in the same run. Otherwise no code
    /// waits for the parent's steps and children.
    pub fn is_open_in(&self, found: Option<&Execution>) -> bool {
        found.is_some_and(|execution| self.is(execution) && execution.closed().is_none())
    }

    /// Whether this execution, in its current run or an earlier one, is the parent.
    pub fn is_or_was(&self, execution: &Execution) -> bool {
        self.execution == execution.id
            && self.incarnation == execution.incarnation
            && self.run <= execution.run
    }

    /// Whether this reference is from later than another of the same parent: from a later run, or from after an operator
    /// has had the child run again.
    pub fn is_later_than(&self, other: &Self) -> bool {
        (self.run, self.again) > (other.run, other.again)
    }

    /// Whether this execution, in its current run, is the parent.
    pub fn is(&self, execution: &Execution) -> bool {
        self.execution == execution.id
            && self.incarnation == execution.incarnation
            && self.run == execution.run
    }
}

impl Execution {
    /// The earlier run whose work this run repeats under that name. A handler does its work for each failure.
    pub fn repeats_as(&self, name: &StepName) -> Option<u32> {
        self.repeats.filter(|_| !is_of_handler(name))
    }
}
