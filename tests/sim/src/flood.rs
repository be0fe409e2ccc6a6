//! Ten thousand records that are due in one second: without other faults; with their timers lost, so that the tick has
//! to find them; and with a tick that dies during that. Pages, shards and rates are those of AWS.

use std::collections::BTreeMap;

use tickover_core::command::Context;
use tickover_core::duration::Millis;
use tickover_core::id::{BlobId, Fingerprint, Incarnation, Nonce, QueueName, TaskId};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::{Command, Schedule, Start};
use tickover_core::time::Timestamp;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_service::ports::Ids as _;

use super::bugs::Bug;
use super::checks;
use super::dice::Dice;
use super::fault_plan::{FaultPlan, LAG};
use super::hardship::{Hardship, Span};
use super::history::{Actor, Decided, What};
use super::plan::{GREEN, Plan, START, kind};
use super::violation::Violation;
use super::world::{World, queue};

/// How many records there are.
pub const RECORDS: usize = 10_000;
/// Enough records to find a bug.
const FEWER: usize = 4_000;
/// When all of them are due: a second after a tick, so that the next tick is almost a minute later.
pub const DUE_AT: Timestamp = Timestamp::from_millis(START.as_millis() + (9 * 60 + 1) * 1_000);
/// How many writes a key of the table or of an index accepts in a second.
const KEY_RATE: u32 = 1_000;
/// As many entries as the service asks for.
const PAGE: usize = 1_000;
/// From one tick to the next.
const MINUTE: Millis = Millis::from_secs(60);
/// How long the processing of all records takes at most: a third of an invocation's time limit.
const WORK: Millis = Millis::from_secs(20);

/// The fault of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// None: timers are sent for all records.
    Fair,
    /// The queues are unreachable when the tick sends the timers: the tick finds the records when they are due.
    TimersLost,
    /// The same, and the tick that finds them dies a second later.
    TickKilled,
}

impl Flood {
    /// When all of them are processed.
    pub fn ends_by(self) -> Timestamp {
        match self {
            Self::Fair => DUE_AT.plus(WORK),
            Self::TimersLost => DUE_AT.plus(MINUTE).plus(WORK),
            // It is restarted within a minute, and then up to a minute may pass until the next tick.
            Self::TickKilled => DUE_AT.plus(MINUTE).plus(MINUTE).plus(MINUTE).plus(WORK),
        }
    }

    /// Runs it; returns the violations.
    pub fn check(self, bug: Option<Bug>) -> Vec<Violation> {
        let run = super::run_plan(1, self.plan(if bug.is_some() { FEWER } else { RECORDS }), bug);
        // No worker reads their queue, and they begin without messages.
        let mut found = checks::check_but_carriers(&run);
        found.extend(checks::check_flood(&run, self));
        found
    }

    fn plan(self, records: usize) -> Plan {
        let is_fair = self == Self::Fair;
        let until = DUE_AT.plus(Millis::from_secs(30));
        let away = Span { from: DUE_AT.minus(Millis::from_secs(270)), until };
        let tick_at = DUE_AT.plus(MINUTE);
        let hardship = Hardship {
            key_rate: Some(KEY_RATE),
            queues_away: (!is_fair).then_some(away),
            apply_and_compare: (self == Self::TickKilled).then_some((Actor::Ticker(1), tick_at)),
            ..Hardship::default()
        };
        // With a few shards, each has several pages; with the default number, no key is overloaded.
        let due_shards = if is_fair { Limits::default().due_shards } else { 4 };
        Plan {
            faults: FaultPlan { latency_ms: 20, lag_ms: LAG.as_u64(), ..FaultPlan::default() },
            hardship,
            faults_until: START,
            limits: Limits { due_shards, ..Limits::default() },
            workers: 1,
            jobs: vec![],
            page: PAGE,
            flood: records,
            stories: BTreeMap::new(),
            has_operations: false,
            has_classes: false,
            has_sqlite: false,
        }
    }
}

/// Makes this many records at once: most with a deadline, some with a timeout after which they wait again.
pub(super) fn create_records(world: &World, count: usize) {
    let dice = Dice::new(world.seed, "flood");
    for number in 0..count {
        let now = world.now();
        let mut nonce = [0; Nonce::LEN];
        dice.fill(&mut nonce);
        let nonce = Nonce::from_bytes(nonce);
        let context = Context { now, nonce, limits: &world.limits, by: None };
        let command = Command::Schedule(Box::new(task(&dice, number, now)));
        let decision = tickover_core::task::decide(None, &command, &context);
        let decided = Decided {
            call: world.next_call(),
            now,
            nonce,
            seen: None,
            command,
            outcome: decision.reply().cloned().map_err(Clone::clone),
            effects: decision.effects,
        };
        world.note(Actor::Client(1), What::Decided(Box::new(decided)));
        let made = world.ledger.commit(Actor::Client(1), &decision.writes, LAG.as_u64());
        debug_assert!(made.is_ok(), "all ids are different");
    }
}

fn task(dice: &Dice, number: usize, now: Timestamp) -> Schedule {
    let after = DUE_AT.since(now);
    let timeouts = if number.is_multiple_of(10) {
        let again = AttemptTimeout { after, on_timeout: OnTimeout::Retry };
        Timeouts { schedule_to_start: Some(again), ..Timeouts::default() }
    } else {
        Timeouts { schedule_to_close: Some(LifeTimeout { after, is_error: true }), ..Timeouts::default() }
    };
    let mut bytes = [0; Incarnation::LEN];
    dice.fill(&mut bytes);
    Schedule {
        id: id(number),
        incarnation: Incarnation::from_bytes(bytes),
        queue: unread_queue(),
        kind: kind(),
        input: None,
        labels: None,
        retry: RetryPolicy::fixed(1, Millis::ZERO),
        flow: tickover_core::flow::Flow::default(),
        timeouts,
        start: Start::After(Millis::ZERO),
        in_line: false,
        fingerprint: Fingerprint::from_bytes([0; Fingerprint::LEN]),
        key: None,
        parent: None,
        trace: None,
        blob_ids: [BlobId::from_bytes([0; BlobId::LEN]); 2],
    }
}

/// A queue that no worker reads.
fn unread_queue() -> QueueName {
    queue(GREEN)
}

#[expect(clippy::expect_used, reason = "the name contains only letters and digits")]
fn id(number: usize) -> TaskId {
    TaskId::parse(format!("f-{number}")).expect("an id")
}
