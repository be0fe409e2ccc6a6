//! Questions to the rules, and their answers, in the model's terms.

use tickover_core::command::Isolation;
use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::id::{BlobId, Incarnation, LeaseId};
use tickover_core::payload::Json;
use tickover_core::queue::QueueView;
use tickover_core::task::command::{Claim, Command, Complete, Fail, Heartbeat, HintedRecord, SignOfLife};
use tickover_core::task::decision::{ClaimReply, Decision, Reply};
use tickover_core::task::{Failure, State as TaskState, Task};
use tickover_core::time::Timestamp;

use super::record::Record;
use super::state::Body;
use super::table::Change;

/// A command for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ask {
    /// A claim; the version is the hint's.
    Claim {
        version: u64,
    },
    Complete,
    Fail,
    Heartbeat,
    /// The tick's command; it says whether the queue looked empty.
    Due {
        looks_empty: bool,
    },
    /// The command of a timer.
    Timer {
        due_at: Timestamp,
    },
}

/// All that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) record: Option<Record>,
    pub(super) task: u8,
    pub(super) ask: Ask,
    pub(super) lease: u8,
    pub(super) number: u8,
    pub(super) clock: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Without keys and payloads there is at most one write.
    pub(super) change: Option<Change>,
    /// The messages to send, and when each arrives.
    pub(super) parcels: Vec<(Body, Timestamp)>,
    pub(super) then: Then,
}

/// What an actor does after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Then {
    /// Runs the task.
    Work,
    /// Continues its work, with a new visibility timeout of its message.
    GoOn,
    /// Deletes its message.
    Delete,
    /// Leaves its message, which becomes visible again when the holder's lease ends.
    Leave { until: Timestamp },
    /// Makes its message visible at a later time.
    Later { at: Timestamp },
    /// Does nothing more.
    Forget,
}

impl Answer {
    /// The answer from this decision on this record. It reuses the record's `Record` where it can.
    pub(super) fn of(decision: &Decision, task: u8, record: Option<&Record>) -> Self {
        let change = decision.writes.iter().find_map(|write| Change::of(write, record));
        let known = |hinted: &Task| {
            let records = [change.as_ref().map(Change::after), record];
            records.into_iter().flatten().find(|known| ***known == *hinted).cloned()
        };
        let parcels = decision.effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch { hint, at } => {
                let record = known(&hint.task).unwrap_or_else(|| Record::new(hint.task.clone()));
                Some((Body::Hint(record), *at))
            }
            Effect::Timer(timer) => Some((Body::Timer { task, due_at: timer.due_at }, timer.at)),
            // There are no executions here.
            Effect::Turn { .. }
            | Effect::NotifyParent(_)
            | Effect::FreePlaces(_)
            | Effect::CameToLine { .. } => None,
        });
        let parcels = parcels.collect();
        Self { change, parcels, then: then(decision) }
    }
}

impl Ask {
    pub(super) fn command(self, task: u8, lease: u8, length: Millis) -> Command {
        let fence = LeaseId::from_bytes([lease; 16]);
        let blob_id = BlobId::from_bytes([0; 16]);
        match self {
            Self::Claim { version } => {
                let incarnation = Incarnation::from_bytes([task; 8]);
                let hint = Some(HintedRecord { incarnation, version, again: false });
                let isolation = Isolation::Alone;
                Command::Claim(Claim {
                    lease: fence,
                    worker: None,
                    length,
                    hint,
                    isolation,
                    inside: false,
                    paused: false,
                    held: false,
                    places: None,
                    start: None,
                    start_of: None,
                })
            }
            // The output names the worker's lease.
            Self::Complete => {
                let output = Some(Json::string(&lease.to_string()));
                Command::Complete(Complete { lease: fence, output, blob_id })
            }
            Self::Fail => {
                Command::Fail(Fail { lease: fence, error: Failure::new("e", ""), retryable: true, blob_id })
            }
            Self::Heartbeat => Command::Heartbeat(Heartbeat {
                lease: fence,
                sign_of: SignOfLife::Both,
                progress: None,
                details: None,
                blob_id,
                places: None,
            }),
            Self::Due { looks_empty } => Command::Due(QueueView { looks_empty, ..QueueView::default() }),
            Self::Timer { due_at } => Command::Timer { due_at, again: false },
        }
    }
}

/// What the service does after each answer.
fn then(decision: &Decision) -> Then {
    let state = decision.record().map(|task| &task.state);
    match (decision.reply(), state) {
        (Ok(Reply::Claim(ClaimReply::Claimed)), _) => Then::Work,
        (Ok(Reply::Claim(ClaimReply::Leased)), Some(TaskState::Running(running))) => {
            Then::Leave { until: running.lease_expires_at }
        }
        (Ok(Reply::Claim(ClaimReply::Early { available_at })), _) => Then::Later { at: *available_at },
        (
            Ok(
                Reply::Claim(
                    ClaimReply::Stale | ClaimReply::Parked | ClaimReply::NeedsPlaces | ClaimReply::NeedsStart,
                )
                | Reply::Closed { .. },
            )
            | Err(Reject::NotFound),
            _,
        ) => Then::Delete,
        (Ok(Reply::Extended), _) => Then::GoOn,
        (
            Ok(
                Reply::Claim(ClaimReply::Leased | ClaimReply::Suspect)
                | Reply::Unparked { .. }
                | Reply::Scheduled { .. }
                | Reply::Bounced { .. }
                | Reply::Cancel { .. }
                | Reply::Revived
                | Reply::Due(_),
            )
            | Err(_),
            _,
        ) => Then::Forget,
    }
}
