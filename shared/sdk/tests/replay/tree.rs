//! Random bodies: a small language for what a workflow's code does with its context and with futures.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    /// One after the other.
    Seq(Vec<Node>),
    /// All at once, until all have ended.
    Join(Vec<Node>),
    /// All at once, until one has ended. The others are dropped.
    Race(Racing, Vec<Node>),
    /// Both at once. When one has ended, the other is awaited by itself.
    Both(Box<Node>, Box<Node>),
    /// In a `FuturesUnordered`. So many are awaited before another piece, and the rest after it.
    Unordered {
        nodes: Vec<Node>,
        before: usize,
        then: Box<Node>,
    },
    /// As a stream that keeps this many in flight.
    Buffered {
        at_once: usize,
        in_order: bool,
        nodes: Vec<Node>,
    },
    /// With a timeout of this many seconds.
    Timeout(u64, Box<Node>),
    /// All at once. When one ends, another piece runs while the others aren't polled. Which of them is polled first
    /// afterwards is random.
    Handled(Vec<Node>, Box<Node>),
    /// Polled once and dropped.
    PolledOnce(Box<Node>),
    /// Polled this many times, with this many seconds between polls, while the others aren't polled.
    PolledSometimes {
        at: Box<Node>,
        aside: Vec<Node>,
        seconds: u64,
        times: u32,
    },
    /// Polled once, left unpolled while another piece is awaited, and then awaited.
    Aside(Box<Node>, Box<Node>),
    /// Awaited with a reminder after this many seconds, at most this many times. Another piece runs after each
    /// reminder.
    Reminded {
        awaited: Box<Node>,
        seconds: u64,
        times: u32,
        reminder_first: bool,
        each: Box<Node>,
    },
    /// Awaited by two tasks at once.
    Shared(Box<Node>),
    /// The second starts when the first sends a message through a channel.
    Channel(Box<Node>, Box<Node>),
}

/// Which function or macro runs a race.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Racing {
    /// `tokio::select! { biased; … }` of the first two.
    Tokio,
    /// `futures::future::select` of the first two.
    Select,
    /// `futures::future::select_all`.
    SelectAll,
    /// As `tokio::select!` without `biased`: which future is polled first is random.
    Chance,
}

/// A call of the context.
#[derive(Clone, Debug)]
pub(crate) enum Leaf {
    Step(Spec),
    Sleep(u64),
    Event {
        event: &'static str,
        within: Option<u64>,
    },
    Ask(Question, &'static str),
    Capture {
        bytes: usize,
    },
    /// `ctx.join_all`, `ctx.select`, `ctx.select_ok` or `ctx.map`.
    Steps(Goal, Vec<Spec>),
    /// A child that takes this many seconds.
    Child(u64),
}

/// A question about the buffered events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    Peek,
    Count,
    ClearEvents,
}

/// How many steps are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    All,
    First {
        cancelling: bool,
    },
    FirstGood,
    /// A `ctx.map`: so many in flight at once, and the number of failures that it tolerates.
    Mapped {
        at_once: usize,
        tolerated: usize,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) seconds: u64,
    /// How many attempts fail.
    pub(crate) fails: u32,
    pub(crate) bytes: usize,
    /// How long the wait after a failure is.
    pub(crate) pause: u64,
    pub(crate) timeout: Option<u64>,
    pub(crate) place: Place,
}

/// Where a step runs, and whether its start is recorded before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inline,
    AtMostOnce,
    Watched,
    Remote,
}

/// An event from outside, sent this many seconds after the one before it.
#[derive(Clone, Debug)]
pub(crate) struct SentEvent {
    pub(crate) after: u64,
    pub(crate) event: &'static str,
    pub(crate) bytes: usize,
}

/// What happens after the body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Result,
    /// The execution fails and is rerun with its kept results.
    Again,
    /// The execution fails, and its `on_failure` code runs the same tree under other names.
    Afterwards,
}

/// A body, with its events and its ending.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tree: Node,
    pub(crate) offers: Vec<SentEvent>,
    pub(crate) ending: Ending,
    /// Chooses the writes after which the system dies, where there are too many to try all of them.
    pub(crate) write_choice: u64,
}

/// The names of the events.
pub(crate) const EVENTS: [&str; 2] = ["a", "b"];

/// Seconds, from few different values, so that many futures end at the same instant.
fn seconds() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 1, 2, 2, 3, 5, 7, 10, 20, 30, 60, 90])
}

fn long() -> impl Strategy<Value = u64> {
    prop_oneof![3 => seconds(), 1 => prop::sample::select(vec![120, 600, 3_600, 86_400])]
}

/// Most are small. The larger ones don't fit into the journal.
fn bytes() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 1, 10, 150, 150, 300, 5_000])
}

fn event() -> impl Strategy<Value = &'static str> {
    prop::sample::select(EVENTS.to_vec())
}

fn spec() -> impl Strategy<Value = Spec> {
    let fails = prop::sample::select(vec![0, 0, 0, 0, 1, 2, 3]);
    let pause = prop::sample::select(vec![3, 7]);
    let timeout = prop::option::weighted(0.2, prop::sample::select(vec![2, 5, 60]));
    let place = prop_oneof![
        5 => Just(Place::Inline),
        1 => Just(Place::AtMostOnce),
        1 => Just(Place::Watched),
        3 => Just(Place::Remote),
    ];
    (seconds(), fails, bytes(), pause, timeout, place).prop_map(
        |(seconds, fails, bytes, pause, timeout, place)| Spec {
            seconds,
            fails,
            bytes,
            pause,
            timeout,
            place,
        },
    )
}

fn leaf() -> impl Strategy<Value = Leaf> {
    let goal = prop::sample::select(vec![
        Goal::All,
        Goal::First { cancelling: false },
        Goal::First { cancelling: true },
        Goal::FirstGood,
        Goal::Mapped { at_once: 2, tolerated: 1 },
        Goal::Mapped { at_once: 1, tolerated: 0 },
    ]);
    let question = prop::sample::select(vec![Question::Peek, Question::Count, Question::ClearEvents]);
    prop_oneof![
        5 => spec().prop_map(Leaf::Step),
        2 => long().prop_map(Leaf::Sleep),
        3 => (event(), prop::option::of(long())).prop_map(|(event, within)| Leaf::Event { event, within }),
        1 => (question, event()).prop_map(|(question, event)| Leaf::Ask(question, event)),
        2 => bytes().prop_map(|bytes| Leaf::Capture { bytes }),
        1 => seconds().prop_map(Leaf::Child),
        1 => (goal, prop::collection::vec(spec(), 1..4)).prop_map(|(goal, specs)| Leaf::Steps(goal, specs)),
    ]
}

pub(crate) fn tree() -> impl Strategy<Value = Node> {
    leaf().prop_map(Node::Leaf).prop_recursive(3, 12, 3, |node| {
        let boxed = node.clone().prop_map(Box::new);
        let two = || (boxed.clone(), boxed.clone());
        let some = |from| prop::collection::vec(node.clone(), from..4);
        let racing =
            prop::sample::select(vec![Racing::Tokio, Racing::Select, Racing::SelectAll, Racing::Chance]);
        prop_oneof![
            4 => some(2).prop_map(Node::Seq),
            2 => some(2).prop_map(Node::Join),
            3 => (racing, some(2)).prop_map(|(racing, nodes)| Node::Race(racing, nodes)),
            1 => two().prop_map(|(one, other)| Node::Both(one, other)),
            2 => (some(2), 0..4_usize, boxed.clone())
                .prop_map(|(nodes, before, then)| Node::Unordered { nodes, before, then }),
            2 => (1..3_usize, any::<bool>(), some(2))
                .prop_map(|(at_once, in_order, nodes)| Node::Buffered { at_once, in_order, nodes }),
            2 => (long(), boxed.clone()).prop_map(|(seconds, node)| Node::Timeout(seconds.max(1), node)),
            2 => (some(2), boxed.clone()).prop_map(|(nodes, each)| Node::Handled(nodes, each)),
            1 => boxed.clone().prop_map(Node::PolledOnce),
            1 => (boxed.clone(), some(1), seconds(), 1..4_u32)
                .prop_map(|(at, aside, seconds, times)| Node::PolledSometimes { at, aside, seconds, times }),
            2 => two().prop_map(|(first, meanwhile)| Node::Aside(first, meanwhile)),
            2 => reminded(boxed.clone()),
            1 => boxed.clone().prop_map(Node::Shared),
            1 => two().prop_map(|(first, second)| Node::Channel(first, second)),
        ]
    })
}

fn reminded(boxed: impl Strategy<Value = Box<Node>> + Clone) -> impl Strategy<Value = Node> {
    let times = (long(), 1..4_u32, any::<bool>());
    (boxed.clone(), times, boxed).prop_map(|(awaited, (seconds, times, reminder_first), each)| {
        Node::Reminded { awaited, seconds, times, reminder_first, each }
    })
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let after = prop_oneof![3 => 0..4_u64, 1 => long()];
    let offer = (after, event(), bytes()).prop_map(|(after, event, bytes)| SentEvent { after, event, bytes });
    let ending =
        prop_oneof![6 => Just(Ending::Result), 2 => Just(Ending::Again), 1 => Just(Ending::Afterwards)];
    (tree(), prop::collection::vec(offer, 0..9), ending, any::<u64>())
        .prop_map(|(tree, offers, ending, write_choice)| Plan { tree, offers, ending, write_choice })
}
