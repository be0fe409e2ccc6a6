//! What the names in a journal say: whose code used them, and for what.

use crate::id::StepName;

/// The prefix of the names of steps that undo others after a run's code has failed: `undo:refund`.
pub const UNDO_PREFIX: &str = "undo:";

/// The prefix of the names that the code after a failure uses.
pub const ON_FAILURE_PREFIX: &str = "on_failure";
/// The prefix of the names of children: `child:` and the execution's id, or its name.
pub const CHILD_PREFIX: &str = "child:";
/// The prefix before [`CHILD_PREFIX`] of the name under which only the child's start is awaited. People know it by the
/// child's name, so no view shows it.
pub const START_PREFIX: &str = "start:";

/// The prefix after [`CHILD_PREFIX`] of the names of a paged map's pages.
pub const PAGE_PREFIX: &str = "map:";
/// The workflow of a paged map's pages.
pub const PAGE_WORKFLOW: &str = "tickover.map";

/// A name without the prefix of the failure handler's names.
pub fn own_part(name: &StepName) -> &str {
    let name = name.as_str();
    let of_handler = name.strip_prefix(ON_FAILURE_PREFIX).and_then(|rest| rest.split_once(':'));
    of_handler.map_or(name, |(_, rest)| rest)
}

/// Whether a name is that of code that ran after a failure, or that undid a step.
pub fn is_after_failure(name: &StepName) -> bool {
    name.as_str().starts_with(UNDO_PREFIX) || own_part(name) != name.as_str()
}

/// Whether a name is that of a child.
pub fn is_own_child(name: &StepName) -> bool {
    own_part(name).starts_with(CHILD_PREFIX)
}

/// Whether a name is that of a page of a map.
pub fn is_page(name: &StepName) -> bool {
    own_part(name).strip_prefix(CHILD_PREFIX).is_some_and(|page| page.starts_with(PAGE_PREFIX))
}

/// Whether a name is that of a wait for a child's start.
pub fn is_start_of_child(name: &StepName) -> bool {
    child_of_start(name).is_some()
}

/// The name of the child, without the failure handler's prefix, whose start is awaited under this name.
pub fn child_of_start(name: &StepName) -> Option<&str> {
    own_part(name).strip_prefix(START_PREFIX).filter(|child| child.starts_with(CHILD_PREFIX))
}
