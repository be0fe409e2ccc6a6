//! What must hold of a history. Each check is one function, named after its demand. No check calls the rules to find
//! out what is right.

mod answers;
mod aws;
mod batches;
mod busy;
mod carriers;
mod crons;
mod deadlines;
mod endings;
mod engine;
pub(crate) mod execution;
mod expiry;
mod flood;
mod handover;
mod hints;
mod isolation;
mod limits;
mod lines;
pub(super) mod operations;
mod rates;
mod records;
mod results;
mod single;
mod story;
mod timeliness;
mod timers;
mod unanswered;

pub use flood::check_flood;

use super::Run;
use super::violation::Violation;
use story::Stories;

/// All violations, earliest first.
pub fn check(run: &Run) -> Vec<Violation> {
    check_with(run, carriers::of_run(run))
}

/// The violations of a run whose records begin without messages, earliest first.
pub fn check_but_carriers(run: &Run) -> Vec<Violation> {
    check_with(run, vec![])
}

fn check_with(run: &Run, of_carriers: Vec<Violation>) -> Vec<Violation> {
    let stories = Stories::of(run);
    let mut found = Vec::new();
    for step in stories.steps() {
        found.extend(records::of_step(step, run));
        found.extend(deadlines::of_step(step));
        found.extend(results::of_step(step, run));
    }
    found.extend(results::one_each(&stories));
    found.extend(results::the_holders_result_counts(run));
    found.extend(answers::are_true(&stories, run));
    found.extend(hints::of_run(&stories, run));
    found.extend(timers::of_run(run));
    found.extend(handover::of_run(run));
    found.extend(timeliness::of_run(&stories, run));
    let executions = execution::Stories::of(run);
    found.extend(execution::of_run(&executions, run));
    found.extend(engine::of_run(&stories, &executions, run));
    found.extend(expiry::of_run(run));
    found.extend(aws::of_run(run));
    found.extend(isolation::of_run(run));
    found.extend(busy::of_run(&stories, &executions, run));
    found.extend(operations::of_run(run));
    found.extend(limits::of_run(run));
    found.extend(of_carriers);
    found.extend(lines::of_run(run));
    found.extend(single::of_run(&stories, run));
    found.extend(rates::of_run(run));
    found.extend(crons::of_run(run));
    found.extend(batches::of_run(&stories, run));
    found.extend(endings::everything_ends(run));
    found.sort_by_key(|violation| violation.at);
    found
}
