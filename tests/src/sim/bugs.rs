//! Bugs that aren't in the product: each can be switched on around it, to see whether the simulation notices.
//!
//! None of this touches production code. A bug is wrapped around the rules (`rules`), or around what a process
//! says to the table and hears from it (`table`).

mod execution;
mod rules;
mod table;

pub use execution::decide_execution;
pub use rules::decide;
pub use table::{commit, first_expiry, list_key, marked, note_beforehand, unseen};

use tickover_service::memory::Mortality;

use super::hardship::Hardship;
use super::history::Actor;
use super::violation::Invariant;

/// One line a bug: what is wrong, what it is called, and which invariant must catch it.
macro_rules! bugs {
    ($($(#[doc = $line:literal])+ $bug:ident, $name:literal, $invariant:ident;)+) => {
        /// Something deliberately wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $line])+ $bug,)+
        }

        impl Bug {
            pub const ALL: &[Self] = &[$(Self::$bug),+];

            /// Its name, as `--bug` takes it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name),+ }
            }

            /// What is wrong.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$bug => concat!($($line),+)),+ }
            }

            /// The invariant that it breaks.
            pub const fn breaks(self) -> Invariant {
                match self { $(Self::$bug => Invariant::$invariant),+ }
            }
        }
    };
}

bugs! {
    /// A write is applied whatever version of the record it was decided on.
    NoVersionCondition, "no-version-condition", I2;
    /// A report is taken from any lease, not only from the one that holds the task.
    FenceNotCompared, "fence-not-compared", I7;
    /// A task that waits for its retry has no place in the due index.
    RetryWithoutDue, "retry-without-due", I3;
    /// An instant has passed only after it, not at it: `>` where `>=` belongs.
    AfterInsteadOfAt, "after-instead-of-at", I5;
    /// The hint is sent before the write that it tells of.
    HintBeforeCommit, "hint-before-commit", I1;
    /// A deadline that passes ends a task even if it has ended already.
    ExpiryIgnoresStatus, "expiry-ignores-status", I6;
    /// A heartbeat renews the deadline along with the lease.
    HeartbeatMovesDeadline, "heartbeat-moves-deadline", I5;
    /// The tick sends a hint whenever it looks at a waiting task.
    HintAtEveryLook, "hint-at-every-look", I9;
    /// A claim leaves the record where it lies in the due index, although a timeout comes earlier.
    ClaimKeepsItsPlace, "claim-keeps-its-place", I4;
    /// A write that is found applied already is taken for somebody else's.
    NoNonce, "no-nonce", I10;
    /// A hint is good for whatever task has its id now.
    HintWithoutIncarnation, "hint-without-incarnation", I1;
    /// A result is put into the record, however large it is.
    ResultInRecord, "result-in-record", I8;
    /// Of two results that the same attempt reports, the later one stands.
    LaterResultStands, "later-result-stands", I6;
    /// The deadline starts anew with each attempt.
    DeadlinePerAttempt, "deadline-per-attempt", I5;
    /// The tick moves a record later in the index although somebody changed it meanwhile.
    RearmWithoutCondition, "rearm-without-condition", I4;
    /// Whoever writes an instant that comes soon sends no timer for it.
    TimerNotSent, "timer-not-sent", Timeliness;
    /// A timer whose instant has moved away isn't sent on to the new one.
    TimerNotSentOn, "timer-not-sent-on", Timeliness;
    /// A timer looks at its task as it will be a second later.
    TimerTooEarly, "timer-too-early", I5;
    /// The tick doesn't note which instants it has handed to timers.
    SlotsNotNoted, "slots-not-noted", I9;
    /// The tick notes more instants as handed to timers than it has looked at.
    SlotsNotedTooFar, "slots-noted-too-far", Timeliness;
    /// A write whose condition failed is taken for done.
    ConflictTakenForSuccess, "conflict-taken-for-success", I10;
    /// A turn goes to sleep on what it has been told of and hasn't seen.
    SuspendIgnoresWakes, "suspend-ignores-wakes", Wakes;
    /// Whoever marks the last place of a join takes it for the last but one.
    JoinNeverFull, "join-never-full", Wakes;
    /// An execution that ends doesn't tell its parent.
    ParentNotTold, "parent-not-told", Wakes;
    /// A turn's results are taken from any lease.
    RecordNotFenced, "record-not-fenced", I7;
    /// A run is ended by any lease.
    CloseNotFenced, "close-not-fenced", I7;
    /// The execution's deadline starts anew with each run.
    DeadlinePerRun, "deadline-per-run", I5;
    /// A turn that goes to sleep leaves the record where it lies in the due index, although its wait ends earlier.
    SuspendKeepsItsPlace, "suspend-keeps-its-place", I4;
    /// A deadline passes by an execution that sleeps.
    SleepersNeverLate, "sleepers-never-late", Liveness;
    /// A wait's end doesn't say that it took its event.
    EventNotTaken, "event-not-taken", Journal;
    /// An event that comes again with the same id is another one.
    EventIdsForgotten, "event-ids-forgotten", Journal;
    /// A run that continues as new leaves its events behind.
    EventsLeftBehind, "events-left-behind", Journal;
    /// An execution that closes ends nothing of what it left open.
    ClosesAtOnce, "closes-at-once", Policies;
    /// A turn is taken although an operator holds the execution.
    PauseForgotten, "pause-forgotten", Policies;
    /// A deadline that passes ends an execution even if it has ended already.
    LateAfterTheEnd, "late-after-the-end", I6;
    /// A journal that outgrows its record stays in it.
    JournalNeverSealed, "journal-never-sealed", I8;
    /// What is written is kept for a minute, however long somebody may need it.
    NeverKeptLonger, "never-kept-longer", Expiry;
    /// What is written stays for good.
    PartsKeptForGood, "parts-kept-for-good", Expiry;
    /// A tick deals with no record while it can't hear of its queue.
    TickNeedsQueues, "tick-needs-queues", Timeliness;
    /// A tick doesn't know that later turns of a queue have been taken already.
    TurnsLeaveNoMark, "turns-leave-no-mark", Timeliness;
    /// Functions that are called by each other's messages aren't allowed to be.
    LoopsNotAllowed, "loops-not-allowed", Messages;
    /// A message that is dealt with isn't deleted.
    NothingDeleted, "nothing-deleted", Messages;
    /// A write whose key is throttled is taken for done.
    ThrottledTakenForDone, "throttled-taken-for-done", I10;
    /// A tick looks only at what is due since the last one.
    SweepsFromTheLast, "sweeps-from-the-last", Liveness;
    /// A worker goes by the clock of its machine, which is half a minute ahead.
    ClockNotCorrected, "clock-not-corrected", I5;
    /// An older build takes what a newer one has written for its own.
    OlderBuildReadsOn, "older-build-reads-on", Format;
    /// A claim says of its process that it does nothing else, whatever it does.
    LossesShared, "losses-shared", Isolation;
    /// Whoever takes a turn says that it does nothing else, whatever it does.
    TurnLossesShared, "turn-losses-shared", Isolation;
    /// What an execution leaves open is noted as ended before it is.
    ClosedBeforehand, "closed-beforehand", Policies;
    /// A tick notes what it hands to timers before it does so.
    SlotsNotedFirst, "slots-noted-first", Timeliness;
    /// A message that comes for the fourth time is a dead letter, whether or not a function was ever called with it.
    ReceivesTooFew, "receives-too-few", Messages;
    /// Whoever sweeps a shard takes a full page for all that there is.
    SweepStopsAtAPage, "sweep-stops-at-a-page", Timeliness;
    /// A list lies under one key of its index, and not under many.
    ListOnOneKey, "list-on-one-key", Timeliness;
    /// A worker that runs workflows doesn't see the last result in the sealed part of a journal.
    SealedResultUnseen, "sealed-result-unseen", Engine;
}

/// How messages die in a run, as the bug would have it.
pub fn mortality(bug: Option<Bug>, hardship: Hardship) -> Mortality {
    let mortality = hardship.mortality.unwrap_or_default();
    // Where functions are always called, most messages need to come only once.
    let too_few = bug == Some(Bug::ReceivesTooFew) && hardship.concurrency.is_some();
    if too_few { Mortality { receives_max: Some(3), ..mortality } } else { mortality }
}

/// How far a process's clock is ahead, as the bug would have it.
pub fn ahead(bug: Option<Bug>, actor: Actor) -> Option<i64> {
    (bug == Some(Bug::ClockNotCorrected) && matches!(actor, Actor::Worker(1))).then_some(30_000)
}

impl Bug {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }
}
