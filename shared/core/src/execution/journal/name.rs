//! What the names in a journal say: whose code used them, and for what.

use crate::id::{EventName, StepName};

/// The prefix of the names of steps that undo others after a run's code has failed: `undo:refund`.
pub const UNDO_PREFIX: &str = "undo:";

/// The prefix of the names that the code after a failure uses.
pub const ON_FAILURE_PREFIX: &str = "on_failure";
/// The prefix of the names that the code after a cancellation uses.
pub const ON_CANCEL_PREFIX: &str = "on_cancel";
/// The prefix of the names of waits for an event: `event:shipped`, or `event:shipped[2]` for a later one.
pub const EVENT_PREFIX: &str = "event:";
/// The prefix of the names of answers to requests: `answer:` and the id of the event that is the request.
pub const ANSWER_PREFIX: &str = "answer:";
/// The prefix of the names of the instants at which callbacks were asked for.
pub const CALLBACK_PREFIX: &str = "callback:";
/// The prefix of the names of children: `child:` and the execution's id, or its name.
pub const CHILD_PREFIX: &str = "child:";
/// The prefix before [`CHILD_PREFIX`] of the name under which only the child's start is awaited. People know it by the
/// child's name, so no view shows it.
pub const START_PREFIX: &str = "start:";

/// The prefix after [`CHILD_PREFIX`] of the names of a paged map's pages.
pub const PAGE_PREFIX: &str = "map:";
/// The prefix of the names of steps with which paged maps that have failed end their open pages: `end:items`.
pub const END_PREFIX: &str = "end:";
/// The workflow of a paged map's pages.
pub const PAGE_WORKFLOW: &str = "tickover.map";

/// A name without the prefix of the names of a handler of failures or cancellations.
pub fn own_part(name: &StepName) -> &str {
    let name = name.as_str();
    // Its second run has the prefix `on_failure.1:`.
    let rest = name.strip_prefix(ON_FAILURE_PREFIX).or_else(|| name.strip_prefix(ON_CANCEL_PREFIX));
    let rest = rest.filter(|rest| rest.starts_with([':', '.']));
    rest.and_then(|rest| rest.split_once(':')).map_or(name, |(_, rest)| rest)
}

/// The prefix of the names of the handler that a name is of. Those of the workflow's own code have none.
pub fn handler_of(name: &StepName) -> &str {
    name.as_str().strip_suffix(own_part(name)).unwrap_or_default()
}

/// Whether a name is that of a handler of failures or cancellations.
pub fn is_of_handler(name: &StepName) -> bool {
    !handler_of(name).is_empty()
}

/// Whether a name is that of code that ran after a failure or a cancellation, or that undid a step.
pub fn is_after_failure(name: &StepName) -> bool {
    name.as_str().starts_with(UNDO_PREFIX) || is_of_handler(name)
}

/// The event that is awaited under this name.
pub fn awaited_event(name: &StepName) -> Option<EventName> {
    let event = own_part(name).strip_prefix(EVENT_PREFIX)?;
    EventName::parse(event.split_once('[').map_or(event, |(event, _)| event)).ok()
}

/// The id of the event that is answered under this name.
pub fn answered_event(name: &StepName) -> Option<&str> {
    own_part(name).strip_prefix(ANSWER_PREFIX)
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

/// The name under which the start of the child of this name is awaited.
pub fn start_of_child(name: &StepName) -> Option<StepName> {
    let own = own_part(name);
    let handler = name.as_str().strip_suffix(own)?;
    is_own_child(name).then(|| StepName::parse(format!("{handler}{START_PREFIX}{own}")).ok())?
}

/// Whether a wait is for this event. The SDK names a wait after its event, and numbers the further ones: `event:name`,
/// `event:name[1]`.
pub fn is_wait_for(wait: &StepName, event: &EventName) -> bool {
    awaited_event(wait).as_ref() == Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_code_used_it() {
        let name = |text: &str| StepName::parse(text).unwrap();
        for (text, own) in [
            ("charge", "charge"),
            ("on_failure:charge", "charge"),
            ("on_failure.2:child:a", "child:a"),
            ("on_cancel:charge", "charge"),
            ("on_cancel.1:undo:a", "undo:a"),
            ("on_failures:charge", "on_failures:charge"),
            ("on_failure", "on_failure"),
        ] {
            assert_eq!(own_part(&name(text)), own);
            assert_eq!(is_after_failure(&name(text)), own != text, "{text}");
        }
        assert!(is_after_failure(&name("undo:charge")));
        for text in ["event:shipped", "event:shipped[2]", "on_failure.1:event:shipped"] {
            assert_eq!(awaited_event(&name(text)), EventName::parse("shipped").ok());
        }
        assert_eq!(awaited_event(&name("shipped")), None);
        assert_eq!(answered_event(&name("on_failure:answer:add-7")), Some("add-7"));
        assert_eq!(answered_event(&name("add-7")), None);
        assert_eq!(child_of_start(&name("on_failure:start:child:a")), Some("child:a"));
        assert_eq!(start_of_child(&name("on_failure:child:a")), Some(name("on_failure:start:child:a")));
        assert_eq!(start_of_child(&name("child:a")), Some(name("start:child:a")));
        assert_eq!(start_of_child(&name("a")), None);
        assert!(is_page(&name("child:map:items[0]")) && !is_page(&name("child:a")));
        assert!(is_own_child(&name("on_failure:child:a")) && !is_own_child(&name("execution:child:a")));
    }
}
