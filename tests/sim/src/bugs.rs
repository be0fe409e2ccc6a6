//! Deliberate bugs: each can be switched on around the product, to check that the simulation notices it.
//!
//! Production code isn't changed. A bug wraps the rules (`rules`), or the calls between a process and the table
//! (`table`).

mod crons;
mod crossings;
mod execution;
mod gates;
mod hints;
mod operation;
mod rules;
mod single;
mod sleeps;
mod table;

pub use crons::{decide_cron, untold};
pub use crossings::is_continued;
pub use execution::decide_execution;
pub use gates::{
    clear_places, free_place, is_lost_with_its_worker, offer_places, reserve_start, take_place,
    withdraw_place,
};
pub use hints::{forgets, gives_up};
pub use operation::read_operation;
pub use rules::{batch_key, decide};
pub use sleeps::{is_for_a_sleep, seen_asleep};
pub use table::{commit, first_expiry, list_key, marked, record_timers_first, unseen};

use tickover_service::memory::MessageLimits;

use super::hardship::Hardship;
use super::history::Actor;
use super::violation::Invariant;

/// For each bug: a sentence that says what is wrong, its name, and the invariant that must catch it.
macro_rules! bugs {
    ($($(#[doc = $line:literal])+ $bug:ident, $name:literal, $invariant:ident;)+) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $line])+ $bug,)+
        }

        impl Bug {
            pub const ALL: &[Self] = &[$(Self::$bug),+];

            /// Its name, as `--bug` accepts it.
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
    /// A report is accepted with any lease, not only with the holder's.
    FenceNotCompared, "fence-not-compared", I7;
    /// A task that waits for its retry has no due slot.
    RetryWithoutDue, "retry-without-due", I3;
    /// An instant has passed only after it, not at it: `>` instead of `>=`.
    AfterInsteadOfAt, "after-instead-of-at", I5;
    /// The hint is sent before the write that it belongs to.
    HintBeforeCommit, "hint-before-commit", I1;
    /// A deadline that passes ends a task even if it has already ended.
    ExpiryIgnoresStatus, "expiry-ignores-status", I6;
    /// A heartbeat moves the deadline along with the lease.
    HeartbeatMovesDeadline, "heartbeat-moves-deadline", I5;
    /// A heartbeat of the worker alone restarts the heartbeat timeout of its work.
    WorkerSpeaksForWork, "worker-speaks-for-work", I5;
    /// The tick sends a hint at each probe of a waiting task.
    HintAtEveryProbe, "hint-at-every-look", I9;
    /// A claim keeps the record's due slot, although a timeout comes earlier.
    ClaimKeepsItsSlot, "claim-keeps-its-place", I4;
    /// A write that had already been applied is treated as another process's write.
    NoNonce, "no-nonce", I10;
    /// A hint is valid for whatever task has its id now.
    HintWithoutIncarnation, "hint-without-incarnation", I1;
    /// A result is put into the record, however large it is.
    ResultInRecord, "result-in-record", I8;
    /// Of two results that the same attempt reports, the later one is kept.
    LaterResultReplaces, "later-result-stands", I6;
    /// Each attempt restarts the deadline.
    DeadlinePerAttempt, "deadline-per-attempt", I5;
    /// The tick moves a record to a later due slot although another process has changed the record.
    RearmWithoutCondition, "rearm-without-condition", I4;
    /// A write that sets an instant in the near future sends no timer for it.
    TimerNotSent, "timer-not-sent", Timeliness;
    /// A timer whose instant has moved isn't sent again for the new instant.
    TimerNotSentAgain, "timer-not-sent-on", Timeliness;
    /// A timer decides on its task as of one second later.
    TimerTooEarly, "timer-too-early", I5;
    /// The tick doesn't record up to which instant it has sent timers.
    SlotsNotRecorded, "slots-not-noted", I9;
    /// The tick records that it has sent timers for later instants than it has read.
    SlotsRecordedTooFar, "slots-noted-too-far", Timeliness;
    /// A write whose condition failed counts as done.
    ConflictTakenForSuccess, "conflict-taken-for-success", I10;
    /// A turn suspends although it hasn't seen the latest wakes.
    SuspendIgnoresWakes, "suspend-ignores-wakes", Wakes;
    /// The mark of the last place of a join counts as that of the last but one.
    JoinNeverFull, "join-never-full", Wakes;
    /// An execution that ends doesn't notify its parent.
    ParentNotNotified, "parent-not-told", Wakes;
    /// A turn's results are accepted with any lease.
    RecordNotFenced, "record-not-fenced", I7;
    /// A run is ended with any lease.
    CloseNotFenced, "close-not-fenced", I7;
    /// Each run restarts the execution's deadline.
    DeadlinePerRun, "deadline-per-run", I5;
    /// A turn that suspends keeps the record's due slot, although its wait ends earlier.
    SuspendKeepsItsSlot, "suspend-keeps-its-place", I4;
    /// The deadline of an execution that waits isn't enforced.
    WaitingNeverTimesOut, "sleepers-never-late", Liveness;
    /// A wait's end doesn't record that it took its event.
    EventNotTaken, "event-not-taken", Journal;
    /// An event that is sent again with the same id counts as another event.
    EventIdsForgotten, "event-ids-forgotten", Journal;
    /// A run that continues as new loses its events.
    EventsLeftBehind, "events-left-behind", Journal;
    /// An execution that closes leaves its open steps and children running.
    ClosesAtOnce, "closes-at-once", Policies;
    /// A turn is started although an operator has paused the execution.
    PauseIgnored, "pause-forgotten", Policies;
    /// A cancellation ends an execution at once although its code has something to undo.
    CancelUndoesNothing, "cancel-undoes-nothing", Policies;
    /// A step of a paused execution ends by its own timeout while it waits for a worker.
    TimeoutsInPauses, "timeouts-in-pauses", Policies;
    /// A deadline that passes ends an execution even if it has already ended.
    ExpiryAfterTheEnd, "late-after-the-end", I6;
    /// A journal that is too large for its record stays in it.
    JournalNeverSealed, "journal-never-sealed", I8;
    /// Payloads and segments are kept for only a minute, however long a record needs them.
    NeverKeptLonger, "never-kept-longer", Expiry;
    /// Payloads and segments are never deleted.
    ItemsKeptForEver, "parts-kept-for-good", Expiry;
    /// A tick processes no record while it can't read the depth of its queue.
    TickNeedsQueues, "tick-needs-queues", Timeliness;
    /// A tick doesn't know that younger turns of a queue have already been claimed.
    ClaimedTurnsNotRecorded, "turns-leave-no-mark", Timeliness;
    /// Lambda stops functions that invoke each other by messages: the permission for such loops is missing.
    LoopsNotAllowed, "loops-not-allowed", Messages;
    /// A message that is processed isn't deleted.
    MessagesNotDeleted, "nothing-deleted", Messages;
    /// A write whose key is throttled counts as done.
    ThrottledTakenForDone, "throttled-taken-for-done", I10;
    /// A tick reads only what has become due since the last one.
    SweepsFromTheLast, "sweeps-from-the-last", Liveness;
    /// A worker uses the clock of its machine, which is half a minute ahead.
    ClockNotCorrected, "clock-not-corrected", I5;
    /// An older build accepts a newer build's records as its own.
    OlderBuildReadsOn, "older-build-reads-on", Format;
    /// A claim says that its process does nothing else, although it may.
    LossesShared, "losses-shared", Isolation;
    /// A start of a turn says that its process does nothing else, although it may.
    TurnLossesShared, "turn-losses-shared", Isolation;
    /// The children and steps that an execution leaves open are recorded as ended before they are.
    ClosedBeforehand, "closed-beforehand", Policies;
    /// A tick records that it has sent timers before it sends them.
    SlotsRecordedFirst, "slots-noted-first", Timeliness;
    /// A message that is received for the fourth time is a dead letter, even if no function was ever invoked with it.
    ReceivesTooFew, "receives-too-few", Messages;
    /// A sweep of a shard ends after its first full page.
    SweepStopsAtAPage, "sweep-stops-at-a-page", Timeliness;
    /// A list is stored under one key of its index instead of many.
    ListOnOneKey, "list-on-one-key", Timeliness;
    /// A worker that runs workflows doesn't see the last result in the sealed segments of a journal.
    SealedResultUnseen, "sealed-result-unseen", Engine;
    /// A page of an operation is recorded as carried out before it is.
    PageNotedFirst, "page-noted-first", Operations;
    /// An operation retries also what has ended after it was recorded.
    EndedLaterRetried, "ended-later-retried", Operations;
    /// An operation has no due slot: if its message is lost, no tick continues it.
    OperationNotDue, "operation-not-due", Operations;
    /// A process goes on with an operation that was stopped.
    StopIgnored, "stop-ignored", Operations;
    /// A task takes a place at its gate although all are taken.
    TakenUnchecked, "taken-unchecked", Limits;
    /// The end of an attempt frees every place of its gate.
    PlacesFreedTwice, "places-freed-twice", Limits;
    /// An execution starts its first turn with places that were taken for an earlier version of its record.
    PlacesOfAnyVersion, "places-of-any-version", Limits;
    /// An execution starts its first turn without a place.
    BegunWithoutPlace, "begun-without-place", Limits;
    /// Who frees a place calls two for it.
    TwoCalledForOne, "two-called-for-one", Limits;
    /// A place that has ended isn't cleared.
    PlacesNotCleared, "places-not-cleared", Limits;
    /// Who frees a place calls nobody.
    NobodyCalled, "nobody-called", Limits;
    /// Who waits in a line for one key keeps its place at the other.
    HeldWhileWaiting, "held-while-waiting", Keys;
    /// A record comes to a line, and its item isn't written.
    ItemNotWritten, "item-not-written", Carriers;
    /// Those that wait for a full key in the line of another have no stand-in there.
    StandInNotWritten, "stand-in-not-written", Limits;
    /// The message of a task that waits again after an attempt isn't sent.
    TaskNotHinted, "task-not-hinted", Carriers;
    /// The message of an execution that waits for its first turn isn't sent.
    StartNotHinted, "start-not-hinted", Carriers;
    /// A key is taken whoever has it.
    KeyTakenUnchecked, "key-taken-unchecked", Single;
    /// Who takes a key whose task is late lets that task be written all the same.
    LateTaskNotFenced, "late-task-not-fenced", Single;
    /// Who takes a key whose execution is late lets that execution be started all the same.
    LateExecutionNotFenced, "late-execution-not-fenced", Single;
    /// The first start of a burst of executions runs instead of the last.
    FirstStartOfBurstRuns, "first-start-of-burst-runs", Single;
    /// The first request of a burst runs instead of the last.
    FirstOfBurstRuns, "first-of-burst-runs", Single;
    /// A burst never runs while requests come, however long it lasts.
    BurstUnbounded, "burst-unbounded", Single;
    /// A start is reserved as if no other one had been.
    StartsForgotten, "starts-forgotten", Rates;
    /// A tick that holds the hints of sleeps until whole seconds remain forgets them.
    HeldHintForgotten, "held-hint-forgotten", Timeliness;
    /// A tick never looks again at a sleep whose hint it has sent.
    SleepNeverProbed, "sleep-never-probed", Liveness;
    /// The hint of a sleep names an earlier execution of its id.
    SleeperOfAnother, "sleeper-of-another", Timeliness;
    /// A reserved start is written whatever others have reserved meanwhile.
    StartWithoutCondition, "start-without-condition", Rates;
    /// A start that was reserved counts for ever, however late its task is claimed.
    LateStartCounts, "late-start-counts", Rates;
    /// A cron takes its open runs for ended.
    OpenRunsForgotten, "open-runs-forgotten", Crons;
    /// A cron isn't told that the run has ended that its next one waits for.
    EndOfRunNotTold, "end-of-run-not-told", Crons;
    /// A cron goes on although it doesn't know whether its run was started.
    RunTakenForStarted, "run-taken-for-started", Crons;
    /// A claim of tasks that belong together takes those of any tenant.
    BatchOfAnyTenant, "batch-of-any-tenant", Batches;
    /// A report with a token counts although its wait has ended meanwhile.
    LateReportCounts, "late-report-counts", Callbacks;
    /// A call stops where it is when its caller leaves.
    CallsCut, "calls-cut", Timeliness;
    /// A rerun of the same work forgets what was reported with tokens.
    ReportsNotKept, "reports-not-kept", Journal;
    /// An execution ends because a deployment has other code than it began with.
    DriftEnds, "drift-ends", Drift;
    /// A step that an operator has run again keeps its old outcome.
    OldOutcomeCounts, "old-outcome-counts", Again;
    /// A step that an operator has run again runs without those that ended with the execution.
    SiblingsLeftEnded, "siblings-left-ended", Again;
    /// A rerun of the same work makes its calls to the outside under new keys.
    NewKeyForSameWork, "new-key-for-same-work", Again;
    /// The id of an event counts once in each run.
    EventIdsPerRun, "event-ids-per-run", Journal;
    /// A run that continues as new forgets the children that end with it.
    ChildrenLeftBehind, "children-left-behind", Journal;
    /// A result is refused after the end of its lease, though nobody has taken the work over.
    LateResultRefused, "late-result-refused", I7;
    /// A run goes on from a worker's memory though another worker has written to it since.
    OthersTurnUnseen, "others-turn-unseen", Journal;
    /// Where hints of low priority wait apart from the others, no worker asks for them.
    LowNeverAsked, "low-never-asked", Liveness;
    /// A place that has ended by itself is offered to nobody.
    EndedPlaceNotOffered, "ended-place-not-offered", Limits;
    /// A task that came from a line and was lost together with its message doesn't wait there again.
    LostNotCalled, "lost-not-called", Limits;
    /// A task whose start was put off waits behind those of its own priority.
    PutOffInNormalLane, "put-off-in-normal-lane", Rates;
    /// The message of code that handles a failure or a cancellation isn't sent.
    HandlerNotHinted, "handler-not-hinted", Carriers;
    /// An execution that is started with an event begins without it.
    FirstEventForgotten, "first-event-forgotten", Journal;
    /// A turn that suspends doesn't publish what its code has published.
    ValuesNotWritten, "values-not-written", Journal;
    /// A step that an operator runs again with another input runs with the old one.
    OldInputRuns, "old-input-runs", Again;
    /// A process that was frozen while its queue refused a message gives the message up.
    GivenUpAfterFreeze, "given-up-after-freeze", Carriers;
}

/// How messages become dead letters in a run, with the bug or without.
pub fn mortality(bug: Option<Bug>, hardship: Hardship) -> MessageLimits {
    let mortality = hardship.mortality.unwrap_or_default();
    // Where functions are always invoked, most messages need to be received only once.
    let too_few = bug == Some(Bug::ReceivesTooFew) && hardship.concurrency.is_some();
    if too_few { MessageLimits { receives_max: Some(3), ..mortality } } else { mortality }
}

/// How far a process's clock is ahead, if the bug fixes that.
pub fn ahead(bug: Option<Bug>, actor: Actor) -> Option<i64> {
    (bug == Some(Bug::ClockNotCorrected) && matches!(actor, Actor::Worker(1))).then_some(30_000)
}

impl Bug {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }
}
