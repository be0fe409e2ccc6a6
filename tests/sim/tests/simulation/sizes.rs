//! Executions that are larger than others.

use tickover_core::execution::ExecutionOutcome;
use tickover_sim::plan::{Plan, sizes};
use tickover_sim::script::CHILDREN;
use tickover_sim::{Run, checks, run_plan};

fn has_completed(run: &Run, id: &str) -> bool {
    let changes = run.events.iter().rev().filter_map(|event| event.what.execution_change());
    let last = changes.map(|change| &change.after).find(|after| after.id.as_str() == id);
    let outcome = last.and_then(|last| last.closed()).map(|closed| &closed.outcome);
    matches!(outcome, Some(ExecutionOutcome::Completed { .. }))
}

#[test]
fn an_execution_with_very_many_children_and_one_with_very_many_events_end_like_others() {
    let run = run_plan(1, Plan::large(1), None);
    assert_eq!(checks::check(&run), []);
    assert!(has_completed(&run, "wide") && has_completed(&run, "eventful"));
    let changes = run.events.iter().filter_map(|event| event.what.execution_change());
    let children = changes.clone().filter(|change| change.before.is_none() && change.after.parent.is_some());
    assert_eq!(children.count(), CHILDREN);
    let most = changes.map(|change| change.after.pending_events).max().unwrap_or(0);
    assert!(u64::from(most) > sizes::SENT / 2, "{most} events waited at once");
}
