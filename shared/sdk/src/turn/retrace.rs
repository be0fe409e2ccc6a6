//! A replay without a turn: today's code against the journal of another system. It writes nothing and starts nothing.

use std::collections::HashSet;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{DRIFT, Entry, Happened};
use tickover_core::execution::{Execution, ExecutionState, Ready};
use tickover_core::id::{LeaseId, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::executions::StartedTurn;

use super::TurnSettings;
use super::body::Progress;
use super::drive::{Driver, Halt, yield_once};
use super::need::Need;
use super::state::Verdict;
use crate::backend::Backend;
use crate::error::Error;
use crate::registry::Registry;

/// How often the code may wake itself before it counts as hanging.
const ROUNDS_MAX: usize = 100_000;
/// How often other tasks of the test run before code that waits for none of its context's futures counts as hanging.
const FOREIGN_ROUNDS_MAX: usize = 1_000;

/// How a replay ended.
#[derive(Debug)]
pub(crate) enum Retraced {
    /// The code has received all that the journal has, and waits for these names.
    Waits(Vec<StepName>),
    /// The code has ended.
    Ended(Result<Option<Json>, Error>),
    /// The code has continued in a new run.
    ContinuedAsNew,
    /// A stored result doesn't fit the code, the one of this name, or the input doesn't.
    Misfit(task::Failure, Option<String>),
    /// The code doesn't ask for these stored names, and asks for the others, which aren't stored.
    Diverged { stored: Vec<StepName>, asked: Vec<StepName> },
    /// After this outcome, the code waits for a future that isn't of its context.
    Foreign(Option<StepName>),
    /// The code has panicked, or can't go on for a reason that isn't the journal's.
    Broken(String),
    /// The code isn't there.
    Unknown,
}

/// Runs the code of a run until it has received all that the journal has. Returns what it has asked for too, in order.
pub(crate) async fn retrace(
    service: &Service,
    registry: &Registry,
    execution: Execution,
    journal: Vec<Entry>,
) -> (Retraced, Vec<String>) {
    let input = match &execution.input {
        Some(Payload::Inline(input)) => Some(input.clone()),
        Some(Payload::Blob(_)) | None => None,
    };
    let noted = journal.iter().filter_map(|entry| match &entry.what {
        Happened::Note { kind, name: Some(name), .. } if kind == DRIFT => Some(name.clone()),
        _ => None,
    });
    let noted: HashSet<StepName> = noted.collect();
    // No instant has passed: what the journal doesn't have hasn't happened.
    let execution = Execution {
        state: ExecutionState::Pending(Ready { available_at: Timestamp::EPOCH, hint_later: false }),
        cancel_requested: false,
        ..execution
    };
    let lease = LeaseId::from_bytes([0; 16]);
    let (since, receipt, brought) = (None, None, None);
    let taken = StartedTurn { execution, journal, since, input, lease, receipt, brought };
    let settings = TurnSettings { heartbeat: Some(Millis::ZERO), ..TurnSettings::default() };
    match Driver::new(&Backend::from(service.clone()), registry, taken, &settings) {
        Ok(driver) => driver.retrace(&noted).await,
        Err(_unknown) => (Retraced::Unknown, vec![]),
    }
}

/// The name that an entry is about, if it is of the code.
pub(crate) const fn name_of(what: &Happened) -> Option<&StepName> {
    match what {
        Happened::Attempt { name, .. }
        | Happened::Remote { name }
        | Happened::Child { name, .. }
        | Happened::Step { name, .. }
        | Happened::Captured { name, .. }
        | Happened::Until { name, .. }
        | Happened::Fired { name }
        | Happened::Waited { name, .. } => Some(name),
        Happened::Reopened { .. }
        | Happened::Event { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}

impl Driver {
    /// `noted` has the names of which the run is known not to ask any more.
    async fn retrace(mut self, noted: &HashSet<StepName>) -> (Retraced, Vec<String>) {
        self.shared.lock().asked = Some(vec![]);
        let retraced = self.retrace_all().await;
        let stored: Vec<StepName> = self.unused().into_iter().filter(|name| !noted.contains(name)).collect();
        let mut state = self.shared.lock();
        state.is_over = true;
        let retraced = match retraced {
            Retraced::Waits(_) | Retraced::Ended(_) | Retraced::ContinuedAsNew if !stored.is_empty() => {
                let new = state.replay.unwritten().filter_map(|entry| name_of(&entry.what).cloned());
                let open =
                    state.open().map(Need::name).filter(|name| state.replay.name_state(name).is_fresh());
                let asked = new.chain(open.cloned()).collect();
                Retraced::Diverged { stored, asked }
            }
            retraced => retraced,
        };
        (retraced, state.asked.take().unwrap_or_default())
    }

    async fn retrace_all(&mut self) -> Retraced {
        let (now, mut foreign_rounds) = (Timestamp::EPOCH, 0);
        for _ in 0..ROUNDS_MAX {
            match self.poll_body() {
                Ok(()) => {}
                Err(Halt::Panicked(message)) => {
                    return Retraced::Broken(format!("the code panicked: {message}"));
                }
                Err(Halt::Stuck(failure)) => return Retraced::Broken(failure.message),
                Err(Halt::Limit(reject)) => return Retraced::Broken(reject.to_string()),
                Err(Halt::Broken(error) | Halt::HalfStarted(error)) => {
                    return Retraced::Broken(error.to_string());
                }
                Err(Halt::Lost | Halt::Overtaken) => return Retraced::Broken("the turn was lost".to_owned()),
            }
            let verdict = self.shared.lock().verdict.take();
            match verdict {
                None => {}
                // What it doesn't ask for is found at the end.
                Some(Verdict::Unreadable(failure, None)) if failure.code == DRIFT => {}
                Some(Verdict::Unreadable(failure, name)) => return Retraced::Misfit(failure, name),
                Some(Verdict::Stuck(failure)) => return Retraced::Broken(failure.message),
                Some(Verdict::Broken(error)) => return Retraced::Broken(error.to_string()),
                Some(Verdict::Failed(error)) => return Retraced::Ended(Err(error)),
                Some(Verdict::ContinueAsNew(_)) => return Retraced::ContinuedAsNew,
            }
            if let Some(answer) = self.answer.take() {
                return Retraced::Ended(answer);
            }
            let is_idle = matches!(self.progress(now), Progress::Idle);
            if is_idle && self.is_replayed && !self.wake_flag.is_woken() {
                let state = self.shared.lock();
                let names: Vec<StepName> = state.open().map(|need| need.name().clone()).collect();
                if !names.is_empty() {
                    return Retraced::Waits(names);
                }
                if foreign_rounds == FOREIGN_ROUNDS_MAX {
                    return Retraced::Foreign(state.last_delivered().cloned());
                }
                foreign_rounds += 1;
            }
            yield_once().await;
        }
        Retraced::Foreign(self.shared.lock().last_delivered().cloned())
    }
}
