//! What must hold of published values: they are those that the code has published last, over all runs, and no version of a name
//! comes again.

use tickover_core::execution::Execution;
use tickover_core::execution::command::Command;
use tickover_core::execution::values::Values;
use tickover_core::payload::{Json, Payload};

use super::events::text_of;
use super::found;
use super::story::{Step, Stories};
use crate::Run;
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let pairs = stories.executions().flat_map(|steps| steps.windows(2));
    pairs.filter_map(|pair| only_the_code_publishes(&pair[0], &pair[1], run)).collect()
}

fn only_the_code_publishes(before: &Step<'_>, after: &Step<'_>, run: &Run) -> Option<Violation> {
    let document = |execution: &Execution| text_of(execution.values.as_ref(), run);
    let (was, is) = (document(before.after), document(after.after));
    let ruling = after.ruling.filter(|ruling| ruling.outcome.is_ok());
    let brought = ruling.and_then(|ruling| brought(&ruling.command)).and_then(|one| text_of(Some(one), run));
    let expected = brought.or_else(|| was.clone());
    // While a turn goes on, its values may come with a later write.
    let is_over = before.after.turn().is_some() && after.after.turn().is_none();
    if is != expected && (is != was || is_over) {
        return Some(found(
            Invariant::Journal,
            after,
            format!("it publishes {is:?} instead of {expected:?}"),
        ));
    }
    let values = |text: Option<String>| text.and_then(Json::parse).and_then(|one| Values::parse(&one));
    let (was, is) = (values(was).unwrap_or_default(), values(is).unwrap_or_default());
    let again = is.iter().find(|(name, value)| {
        let before = was.value(name);
        before.is_some_and(|before| before.value != value.value && before.version >= value.version)
    });
    again.map(|(name, _)| found(Invariant::Journal, after, format!("a version of {name} comes again")))
}

/// The values that a turn brings.
const fn brought(command: &Command) -> Option<&Payload> {
    match command {
        Command::Suspend(suspend) => suspend.values.as_ref(),
        Command::Close(close) => close.values.as_ref(),
        Command::Record(record) => record.values.as_ref(),
        _ => None,
    }
}
