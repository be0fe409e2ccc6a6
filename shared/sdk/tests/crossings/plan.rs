//! Random programs: what a workflow does, who repairs it, and what an operator does meanwhile.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tickover::ParentClosePolicy;

/// What a workflow does at one place of its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Piece {
    /// A step in place.
    Near,
    /// The same, which fails twice before it succeeds.
    Flaky,
    Far(Far),
    /// A step with what undoes it, in place or far away.
    Undone {
        far: bool,
    },
    /// A child that is awaited. At most one of them runs at once if it is limited.
    Child {
        limited: bool,
        pieces: Vec<Piece>,
    },
    /// A child that is started only, and sleeps for this many minutes.
    Left {
        policy: Policy,
        minutes: u64,
    },
    Sleep {
        minutes: u64,
    },
    /// An event that is sent twice with one id.
    Event,
    Callback,
    /// Steps of which at most two are in flight, or two on a page.
    Map {
        items: u64,
        far: bool,
        paged: bool,
    },
    /// All at once.
    Join(Vec<Piece>),
    /// The rest is done by the next run.
    NextRun,
}

/// How a remote step is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Far {
    Free,
    /// It fails twice before it succeeds.
    Flaky,
    /// One of its kind at once.
    Alone,
    /// One start in ten seconds.
    Paced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Policy {
    Abandon,
    Cancel,
    Terminate,
}

impl From<Policy> for ParentClosePolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Abandon => Self::Abandon,
            Policy::Cancel => Self::RequestCancel,
            Policy::Terminate => Self::Terminate,
        }
    }
}

/// What happens after the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    Returns,
    /// It fails: what was done is undone.
    Fails,
    /// Its last step fails until it is mended; then it is repaired.
    Mended(Repair),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Repair {
    Rerun,
    RetryStep,
    BulkRetry,
    Restart,
}

/// What an operator does, at the minute that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// For five minutes.
    Pause,
    PauseQueue,
    Cancel,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) ending: Ending,
    /// How many executions of it run, and whether only one of them at once.
    pub(crate) count: usize,
    pub(crate) alone: bool,
    pub(crate) deed: Option<(u64, Deed)>,
    /// Chooses the writes after which the process dies.
    pub(crate) death: u64,
}

fn far() -> impl Strategy<Value = Far> {
    prop_oneof![Just(Far::Free), Just(Far::Flaky), Just(Far::Alone), Just(Far::Paced)]
}

fn simple() -> impl Strategy<Value = Piece> {
    prop_oneof![
        2 => Just(Piece::Near),
        1 => Just(Piece::Flaky),
        3 => far().prop_map(Piece::Far),
        3 => any::<bool>().prop_map(|far| Piece::Undone { far }),
        2 => (1..8_u64).prop_map(|minutes| Piece::Sleep { minutes }),
        2 => (1..5_u64, any::<bool>(), any::<bool>())
            .prop_map(|(items, far, paged)| Piece::Map { items, far, paged }),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![Just(Policy::Abandon), Just(Policy::Cancel), Just(Policy::Terminate)]
}

fn child() -> impl Strategy<Value = Piece> {
    let pieces = proptest::collection::vec(simple(), 0..4);
    (any::<bool>(), pieces).prop_map(|(limited, pieces)| Piece::Child { limited, pieces })
}

fn piece() -> impl Strategy<Value = Piece> {
    let several = prop_oneof![3 => simple(), 1 => Just(Piece::Event), 1 => child()];
    prop_oneof![
        8 => simple(),
        2 => Just(Piece::Event),
        2 => Just(Piece::Callback),
        3 => child(),
        2 => (policy(), 20..90_u64).prop_map(|(policy, minutes)| Piece::Left { policy, minutes }),
        2 => proptest::collection::vec(several, 2..4).prop_map(Piece::Join),
        2 => Just(Piece::NextRun),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    let repair = prop_oneof![
        Just(Repair::Rerun),
        Just(Repair::RetryStep),
        Just(Repair::BulkRetry),
        Just(Repair::Restart)
    ];
    prop_oneof![2 => Just(Ending::Returns), 2 => Just(Ending::Fails), 4 => repair.prop_map(Ending::Mended)]
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let deed = prop_oneof![2 => Just(Deed::Pause), 1 => Just(Deed::PauseQueue), 2 => Just(Deed::Cancel)];
    let deed = proptest::option::weighted(0.4, (0..12_u64, deed));
    let pieces = proptest::collection::vec(piece(), 1..6);
    (pieces, ending(), 1..3_usize, any::<bool>(), deed, any::<u64>()).prop_map(
        |(pieces, ending, count, alone, deed, death)| Plan { pieces, ending, count, alone, deed, death },
    )
}
