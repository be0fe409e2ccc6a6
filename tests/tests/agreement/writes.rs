//! Random writes, decided on current records and on old ones.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tickover_core::command::Isolation;
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::id::{BlobId, Fingerprint, Incarnation, LeaseId, TaskKind};
use tickover_core::payload::Json;
use tickover_core::queue::QueueView;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Failure;
use tickover_core::task::command::{
    Claim, Command, Complete, Fail, Heartbeat, Key, Schedule, SignOfLife, Start,
};
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_tests::scene::{queue_name, task_id};

use crate::executions::{OfExecution, of_execution};

/// Two tasks, and two executions with the same ids: enough to confuse one with another.
pub(crate) const IDS: [&str; 2] = ["a", "b"];
/// Two keys, for the same reason.
pub(crate) const KEYS: [u8; 2] = [0, 1];

/// A write, or two together.
#[derive(Clone, Debug)]
pub(crate) struct RandomWrite {
    pub(crate) what: What,
    /// How many records ago the one was stored that it is decided on.
    pub(crate) ago: usize,
    /// When, in milliseconds from the first instant.
    pub(crate) at: u64,
    /// Whether it names another incarnation of that record.
    pub(crate) other_incarnation: bool,
}

/// The purpose of a write.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A decision of the rules.
    Decided(Ask),
    /// A new task, perhaps with a key.
    Schedule(New),
    /// An update whose condition asks for a due slot no later than this many milliseconds from the first instant.
    WithDueCondition { latest: i64 },
    /// To that many milliseconds from the first instant.
    Rearm { to: i64, kind: DueKind },
    /// Of an execution.
    Execution(OfExecution),
    /// An earlier write again, with the same nonce.
    Again(Index),
    /// The queue's record, so many versions after the stored one; the first is 1.
    Queue { ahead: u64 },
    /// An operation's record, so many versions after the stored one; the first is 1.
    Operation { ahead: u64, does: ToOperation },
    /// A gate's record: over the stored one, or as if there were none. A task enters or leaves with it.
    Gate { over_stored: bool, enters: Option<bool> },
    /// The ticks' record, so many versions after the stored one; the first is 1.
    Tick { ahead: u64 },
    /// The expiry of a key is extended.
    ExtendKey(u8),
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToOperation {
    /// It starts, or starts anew.
    Start,
    /// A page is done, with so long a cursor.
    Page {
        cursor: Option<usize>,
    },
    Stop,
}

/// A command for an existing task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Claim,
    Heartbeat,
    Complete { bytes: usize },
    Fail,
    Release,
    Cancel { force: bool },
    Retry,
    Due { looks_empty: bool },
}

/// A new task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) id: &'static str,
    /// In seconds.
    pub(crate) deadline: Option<u64>,
    pub(crate) key: Option<u8>,
    /// How many records of its key ago the one was stored that it replaces.
    pub(crate) replaces: Option<usize>,
}

/// A random write.
pub(crate) fn random_write() -> impl Strategy<Value = RandomWrite> {
    let at = prop_oneof![
        8 => select(vec![0_u64, 1_000, 61_000, 600_000, 700_000, 1_400_000]),
        // Past the retention.
        1 => Just(30_000_000),
    ];
    // Mostly on the newest record: with old ones there are only conflicts.
    let ago = prop_oneof![6 => Just(0_usize), 2 => Just(1), 2 => 2_usize..10];
    let what = prop_oneof![
        10 => ask().prop_map(What::Decided),
        3 => new().prop_map(What::Schedule),
        8 => other(),
        8 => of_execution().prop_map(What::Execution),
    ];
    (what, ago, at, prop::bool::weighted(0.05)).prop_map(|(what, ago, at, other_incarnation)| RandomWrite {
        what,
        ago,
        at,
        other_incarnation,
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        6 => Just(Ask::Claim),
        3 => Just(Ask::Heartbeat),
        2 => select(vec![1_usize, 700]).prop_map(|bytes| Ask::Complete { bytes }),
        3 => Just(Ask::Fail),
        2 => Just(Ask::Release),
        1 => any::<bool>().prop_map(|force| Ask::Cancel { force }),
        2 => Just(Ask::Retry),
        5 => any::<bool>().prop_map(|looks_empty| Ask::Due { looks_empty }),
    ]
}

fn new() -> impl Strategy<Value = New> {
    let deadline = prop::option::of(select(vec![1_u64, 100, 700, 9_000]));
    let key = prop::option::weighted(0.4, select(KEYS.to_vec()));
    (select(IDS.to_vec()), deadline, key, prop::option::weighted(0.7, 0_usize..2))
        .prop_map(|(id, deadline, key, replaces)| New { id, deadline, key, replaces })
}

fn other() -> impl Strategy<Value = What> {
    let place = || select(vec![-1_000_i64, 0, 60_000, 600_000, 660_000, 3_000_000]);
    let kinds = [
        DueKind::Instant,
        DueKind::Armed,
        DueKind::Start,
        DueKind::Asleep,
        DueKind::Backstop,
        DueKind::Recheck,
    ];
    prop_oneof![
        3 => place().prop_map(|latest| What::WithDueCondition { latest }),
        4 => (place(), select(kinds.to_vec())).prop_map(|(to, kind)| What::Rearm { to, kind }),
        5 => any::<Index>().prop_map(What::Again),
        1 => (0_u64..3).prop_map(|ahead| What::Queue { ahead }),
        4 => (0_u64..3, to_operation()).prop_map(|(ahead, does)| What::Operation { ahead, does }),
        4 => (prop::bool::weighted(0.8), any::<Option<bool>>())
            .prop_map(|(over_stored, enters)| What::Gate { over_stored, enters }),
        1 => (0_u64..3).prop_map(|ahead| What::Tick { ahead }),
        1 => select(KEYS.to_vec()).prop_map(What::ExtendKey),
    ]
}

fn to_operation() -> impl Strategy<Value = ToOperation> {
    prop_oneof![
        2 => Just(ToOperation::Start),
        4 => prop::option::of(0_usize..400).prop_map(|cursor| ToOperation::Page { cursor }),
        1 => Just(ToOperation::Stop),
    ]
}

impl Ask {
    /// The command, with the task's own lease if it has one.
    pub(crate) fn command(self, own: Option<LeaseId>, new: LeaseId) -> Command {
        let (lease, blob_id) = (own.unwrap_or(new), BlobId::from_bytes([7; 16]));
        match self {
            Self::Claim => Command::Claim(Claim {
                lease: new,
                worker: None,
                length: Millis::from_secs(60),
                hint: None,
                isolation: Isolation::Alone,
                inside: false,
                paused: false,
                held: false,
                places: None,
                start: None,
                start_of: None,
            }),
            Self::Heartbeat => Command::Heartbeat(Heartbeat {
                lease,
                sign_of: SignOfLife::Both,
                progress: Some(0.25),
                details: None,
                blob_id,
                places: None,
            }),
            Self::Complete { bytes } => {
                let output = Some(Json::string(&"o".repeat(bytes)));
                Command::Complete(Complete { lease, output, blob_id })
            }
            Self::Fail => {
                Command::Fail(Fail { lease, error: Failure::new("broken", "m"), retryable: true, blob_id })
            }
            Self::Release => Command::Release { lease },
            Self::Cancel { force } => Command::Cancel { force },
            Self::Retry => Command::Retry(None),
            Self::Due { looks_empty } => Command::Due(QueueView { looks_empty, ..QueueView::default() }),
        }
    }
}

impl New {
    pub(crate) fn command(self, incarnation: Incarnation, key: Option<Key>) -> Command {
        let whole =
            self.deadline.map(|after| LifeTimeout { after: Millis::from_secs(after), is_error: true });
        let attempt = AttemptTimeout { after: Millis::from_secs(650), on_timeout: OnTimeout::Retry };
        Command::Schedule(Box::new(Schedule {
            id: task_id(self.id),
            incarnation,
            queue: queue_name("q"),
            kind: TaskKind::parse("k").unwrap(),
            input: None,
            labels: None,
            retry: RetryPolicy::fixed(9, Millis::ZERO),
            flow: tickover_core::flow::Flow::default(),
            timeouts: Timeouts {
                schedule_to_close: whole,
                start_to_close: Some(attempt),
                ..Timeouts::default()
            },
            start: Start::After(Millis::ZERO),
            in_line: false,
            fingerprint: Fingerprint::from_bytes([1; 16]),
            key,
            parent: None,
            trace: None,
            blob_ids: [BlobId::from_bytes([8; 16]); 2],
        }))
    }
}

pub(crate) fn digest(key: u8) -> Fingerprint {
    Fingerprint::from_bytes([key; 16])
}
