//! What must hold of work that dies together with its process: only the work that killed it counts a loss, and it then
//! runs alone until it ends as poisoned.

use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::payload::{Json, Payload};
use tickover_core::task::{Outcome, Task};

use crate::Run;
use crate::history::Event;
use crate::plan::{DEADLY, HARMLESS};
use crate::script::{Kind, Script};
use crate::trace::{self, brief};
use crate::violation::{Invariant, Violation};

/// The code of the failure of work that lost worker after worker.
const POISONED: &str = "poisoned";

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    if !run.plan.hardship.kills {
        return vec![];
    }
    run.events.iter().filter_map(of_event).collect()
}

fn of_event(event: &Event) -> Option<Violation> {
    let of_task = || {
        let after = &event.what.task_change()?.after;
        Some(format!("{}: {}", brief(after), of_task(after)?))
    };
    let of_execution = || {
        let after = &event.what.execution_change()?.after;
        Some(format!("{}: {}", trace::execution::brief(after), of_execution(after)?))
    };
    let what = of_task().or_else(of_execution)?;
    Some(Violation::new(Invariant::Isolation, event.at, what))
}

fn of_task(task: &Task) -> Option<&'static str> {
    let is = |text| matches!(&task.input, Some(Payload::Inline(input)) if *input == Json::string(text));
    let outcome = task.ended().map(|ended| &ended.outcome);
    let is_poisoned = matches!(outcome, Some(Outcome::Failed { error, .. }) if error.code == POISONED);
    match (is(DEADLY), is_poisoned) {
        (true, false) if matches!(outcome, Some(Outcome::Completed { .. } | Outcome::Failed { .. })) => {
            Some("it kills each worker, and it didn't end as poisoned")
        }
        (true, _) => None,
        (false, true) => Some("it ended as poisoned, and it is harmless"),
        (false, false) => (is(HARMLESS) && task.losses > 0).then_some("it counts another one's loss"),
    }
}

/// A turn counts one until it records progress. Two mean that a lost turn counts.
const UNDER_WAY: u32 = 1;

fn of_execution(execution: &Execution) -> Option<&'static str> {
    let Some(Payload::Inline(input)) = &execution.input else { return None };
    let kind = Script::parse(input)?.kind;
    let outcome = execution.closed().map(|closed| &closed.outcome);
    let is_poisoned =
        matches!(outcome, Some(ExecutionOutcome::Failed { error, .. }) if error.code == POISONED);
    match kind {
        Kind::Deadly => matches!(outcome, Some(ExecutionOutcome::Completed { .. }))
            .then_some("it kills each worker, and it has completed"),
        Kind::Short if is_poisoned => Some("it ended as poisoned, and it is harmless"),
        Kind::Short => (execution.idle_turns > UNDER_WAY).then_some("it counts another one's loss"),
        Kind::Own | Kind::Child | Kind::Wide | Kind::Eventful => None,
    }
}
