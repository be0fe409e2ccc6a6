//! Which execution is a parent's.

use crate::execution::Execution;
use crate::parent::{Parent, ParentClosePolicy};

impl Parent {
    /// An execution, in the run that it is in now, as a parent that is told of each end by itself.
    pub fn of(execution: &Execution) -> Self {
        Self {
            execution: execution.id.clone(),
            incarnation: execution.incarnation,
            run: execution.run,
            slot: None,
            on_close: ParentClosePolicy::default(),
        }
    }

    /// Whether the record that was found under the parent's id is the parent, and still open in the same run: only
    /// then does anybody wait for what belongs to it.
    pub fn is_open_in(&self, found: Option<&Execution>) -> bool {
        found.is_some_and(|execution| self.is(execution) && execution.closed().is_none())
    }

    /// Whether this execution, in the run that it is in now, is the parent.
    pub fn is(&self, execution: &Execution) -> bool {
        self.execution == execution.id
            && self.incarnation == execution.incarnation
            && self.run == execution.run
    }
}
