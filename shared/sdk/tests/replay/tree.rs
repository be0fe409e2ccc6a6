//! Random bodies: a small language of what workflows' code does with its context and with futures.

use proptest::prelude::*;

/// A piece of a body.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    /// One after the other.
    Seq(Vec<Node>),
    /// All at once, until all have ended.
    Join(Vec<Node>),
    /// All at once, until one has ended. The others are dropped.
    Race(Racing, Vec<Node>),
    /// Both at once; whichever is left when one has ended is awaited by itself.
    Both(Box<Node>, Box<Node>),
    /// In a `FuturesUnordered`, of which so many are awaited before something else, and the rest after it.
    Unordered {
        nodes: Vec<Node>,
        before: usize,
        then: Box<Node>,
    },
    /// As a stream that keeps so many under way.
    Buffered {
        at_once: usize,
        in_order: bool,
        nodes: Vec<Node>,
    },
    /// In so many seconds or not at all.
    Timeout(u64, Box<Node>),
    /// As one after the other ends, which is followed by something else, while the others are set aside. Which of them
    /// is polled first is a matter of chance.
    Handled(Vec<Node>, Box<Node>),
    /// Polled once and dropped.
    Glance(Box<Node>),
    /// Looked at so many times, after so many seconds each, while the others are set aside until it is over.
    Looked {
        at: Box<Node>,
        aside: Vec<Node>,
        seconds: u64,
        times: u32,
    },
    /// Polled once, set aside while something else is awaited, and awaited then.
    Aside(Box<Node>, Box<Node>),
    /// Awaited with a reminder after so many seconds, so many times, and with something to do after each.
    Reminded {
        awaited: Box<Node>,
        seconds: u64,
        times: u32,
        reminder_first: bool,
        each: Box<Node>,
    },
    /// Awaited by two at once.
    Shared(Box<Node>),
    /// The second begins when the first one says so, by a channel.
    Channel(Box<Node>, Box<Node>),
}

/// How a race is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Racing {
    /// `tokio::select! { biased; … }` of the first two.
    Tokio,
    /// `futures::future::select` of the first two.
    Select,
    /// `futures::future::select_all`.
    SelectAll,
    /// As `tokio::select!` is without `biased`: which of them is polled first is a matter of chance.
    Chance,
}

/// What a context offers.
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
    /// A child that takes so many seconds.
    Child(u64),
}

/// What is asked about the events that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    Peek,
    Count,
    ClearEvents,
}

/// What is wanted of many steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    All,
    First {
        cancelling: bool,
    },
    FirstGood,
    /// A `ctx.map`: so many at once, as long as no more than so many fail.
    Mapped {
        at_once: usize,
        tolerated: usize,
    },
}

/// A step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) seconds: u64,
    /// Attempts that fail.
    pub(crate) fails: u32,
    pub(crate) bytes: usize,
    /// How long a failure is followed by nothing.
    pub(crate) pause: u64,
    pub(crate) timeout: Option<u64>,
    pub(crate) place: Place,
}

/// Where a step runs, and what is written before it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inline,
    AtMostOnce,
    DurableTimeout,
    Remote,
}

/// An event that comes from outside, so many seconds after the one before it.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) after: u64,
    pub(crate) event: &'static str,
    pub(crate) bytes: usize,
}

/// What comes after the body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// Nothing.
    Result,
    /// It fails and is run again, with the results that it had.
    Again,
    /// It fails, and the code for that does the same under other names.
    Afterwards,
}

/// A body, and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tree: Node,
    pub(crate) offers: Vec<Offer>,
    pub(crate) ending: Ending,
    /// Which writes the system dies after, where there are too many for all of them.
    pub(crate) luck: u64,
}

/// The events' names.
pub(crate) const EVENTS: [&str; 2] = ["a", "b"];

/// Seconds, few of them different, so that much ends at the same instant.
fn seconds() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 1, 2, 2, 3, 5, 7, 10, 20, 30, 60, 90])
}

fn long() -> impl Strategy<Value = u64> {
    prop_oneof![3 => seconds(), 1 => prop::sample::select(vec![120, 600, 3_600, 86_400])]
}

/// Most are small; of the rest, none rides in the journal.
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
        1 => Just(Place::DurableTimeout),
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

/// A body.
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
            1 => boxed.clone().prop_map(Node::Glance),
            1 => (boxed.clone(), some(1), seconds(), 1..4_u32)
                .prop_map(|(at, aside, seconds, times)| Node::Looked { at, aside, seconds, times }),
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

/// Something to run.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let after = prop_oneof![3 => 0..4_u64, 1 => long()];
    let offer = (after, event(), bytes()).prop_map(|(after, event, bytes)| Offer { after, event, bytes });
    let ending =
        prop_oneof![6 => Just(Ending::Result), 2 => Just(Ending::Again), 1 => Just(Ending::Afterwards)];
    (tree(), prop::collection::vec(offer, 0..9), ending, any::<u64>())
        .prop_map(|(tree, offers, ending, luck)| Plan { tree, offers, ending, luck })
}
