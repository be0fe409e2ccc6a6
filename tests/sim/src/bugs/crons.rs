//! Bugs of the rules of crons.

use tickover_core::command::Context;
use tickover_core::cron::run::RunState;
use tickover_core::cron::{Command, Cron, Decision, decide};
use tickover_core::decision::{Effect, Write};
use tickover_core::id::RecordId;
use tickover_core::record::Record;

use super::Bug;

/// As the core's, with the bug of this run.
pub fn decide_cron(
    bug: Option<Bug>,
    cron: Option<&Cron>,
    command: &Command,
    context: &Context<'_>,
) -> Decision {
    match (bug, cron, command) {
        (Some(Bug::OpenRunsForgotten), Some(cron), Command::Due { .. }) => {
            let ended = cron.open_runs().collect();
            decide(Some(cron), &Command::Due { ended }, context)
        }
        (Some(Bug::RunTakenForStarted), Some(cron), Command::Due { .. }) => {
            let mut known = cron.clone();
            for run in known.runs.iter_mut().filter(|run| run.state == RunState::Starting) {
                run.state = RunState::Open;
            }
            let mut decision = decide(Some(&known), command, context);
            for write in &mut decision.writes {
                if let Write::Put { before, after: Record::Cron(_), .. } = write {
                    *before = Some(cron.clone().into());
                }
            }
            decision
        }
        _ => decide(cron, command, context),
    }
}

/// Forgets to tell crons of an end, with the bug.
pub fn untold(bug: Option<Bug>, effects: &mut Vec<Effect>) {
    if bug == Some(Bug::EndOfRunNotTold) {
        effects.retain(
            |effect| !matches!(effect, Effect::Timer(timer) if matches!(timer.record, RecordId::Cron(_))),
        );
    }
}
