//! The workflow whose body executes a tree.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, Either, join, join_all, select, select_all};
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt as _, StreamExt as _};
use tickover::Millis;
use tickover::prelude::*;
use tokio::sync::oneshot;

use crate::random_poll::Pool;
use crate::steps::{job, little};
use crate::tree::{Ending, Goal, Leaf, Node, Question, Racing, Spec};
use crate::witness::{ID, Witness};

/// The result of a piece of a body: a number derived from everything that the piece saw.
type Sum = BoxFuture<'static, u64>;

/// The code of a failure after which the test reruns the execution.
pub(crate) const AGAIN: &str = "again";
/// The prefix of all names in the code that handles a failure.
const ON_FAILURE: &str = "on_failure:";

/// A body that is running.
struct Body {
    ctx: Ctx,
    witness: Arc<Witness>,
    turn: usize,
    /// The prefix of its names in the journal.
    prefix: &'static str,
    /// How often each event was waited for or asked about. The count is part of the name of each such wait.
    uses: Mutex<BTreeMap<String, u32>>,
}

/// Runs the plan of this thread's witness.
#[tickover::workflow("random", on_failure = afterwards, on_failure_timeout = "300d")]
pub(crate) async fn random(ctx: Ctx, (): ()) -> Result<u64> {
    let run = ctx.run();
    let sum = Body::run(ctx, "").await;
    match Witness::current().plan.ending {
        Ending::Again if run == 1 => Err(Error::new(AGAIN, "the test reruns it with its kept results")),
        Ending::Afterwards => Err(Error::new("failed", "the test runs the code for failures")),
        Ending::Again | Ending::Result => Ok(sum),
    }
}

/// Runs the same tree after a failure.
async fn afterwards(ctx: Ctx, (): (), cause: Cause) -> Result<Option<u64>> {
    match cause {
        Cause::Body(failure) if failure.code != AGAIN => Ok(Some(Body::run(ctx, ON_FAILURE).await)),
        _ => Ok(None),
    }
}

/// A hash that depends on each observation and on their order.
fn mix(sum: u64, more: u64) -> u64 {
    sum.rotate_left(7).wrapping_mul(0x0100_0000_01B3) ^ more
}

fn sum_of(text: &str) -> u64 {
    text.bytes().fold(7, |sum, byte| mix(sum, u64::from(byte)))
}

fn sum(sums: impl IntoIterator<Item = u64>) -> u64 {
    sums.into_iter().fold(3, mix)
}

fn told<T: std::fmt::Debug, E: Display>(outcome: Result<T, E>) -> String {
    match outcome {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    }
}

impl Body {
    async fn run(ctx: Ctx, prefix: &'static str) -> u64 {
        let witness = Witness::current();
        let turn = witness.turn(ctx.run(), prefix);
        let body = Arc::new(Self { ctx, witness, turn, prefix, uses: Mutex::default() });
        let tree = body.witness.plan.tree.clone();
        let sum = body.go(&tree, "0").await;
        body.noted(sum.to_string());
        sum
    }

    /// Records an observation that depends on the outcomes of these names, and returns its hash.
    fn saw(&self, needs: &[String], what: &str) -> u64 {
        let needs = needs.iter().map(|name| format!("{}{name}", self.prefix)).collect();
        self.witness.saw(self.turn, needs, what);
        sum_of(what)
    }

    /// Records an observation that follows from earlier observations.
    fn noted(&self, what: impl AsRef<str>) {
        self.witness.saw(self.turn, vec![], what.as_ref());
    }

    /// The name of the next use of this kind of this event.
    fn next_use(&self, sort: &str, event: &str) -> String {
        let name = format!("{sort}:{event}");
        let mut uses = self.uses.lock().unwrap();
        let count = uses.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            more => format!("{name}[{}]", more - 1),
        }
    }

    fn all(self: &Arc<Self>, nodes: &[Node], at: &str) -> Vec<Sum> {
        nodes.iter().enumerate().map(|(index, node)| self.go(node, &format!("{at}.{index}"))).collect()
    }

    /// Runs a piece of the body. Its position is the prefix of its names.
    fn go(self: &Arc<Self>, node: &Node, at: &str) -> Sum {
        let (body, at) = (Arc::clone(self), at.to_owned());
        match node.clone() {
            Node::Leaf(leaf) => body.leaf(leaf, at),
            Node::Seq(nodes) => async move {
                let mut sums = vec![];
                for piece in body.all(&nodes, &at) {
                    sums.push(piece.await);
                }
                sum(sums)
            }
            .boxed(),
            Node::Join(nodes) => join_all(body.all(&nodes, &at)).map(sum).boxed(),
            Node::Race(racing, nodes) => body.race(racing, nodes, at).boxed(),
            Node::Both(one, other) => async move {
                let (one, other) = (body.go(&one, &format!("{at}.0")), body.go(&other, &format!("{at}.1")));
                match select(one, other).await {
                    Either::Left((first, left)) => sum([1, first, left.await]),
                    Either::Right((first, left)) => sum([2, first, left.await]),
                }
            }
            .boxed(),
            Node::Unordered { nodes, before, then } => body.unordered(nodes, before, *then, at).boxed(),
            Node::Buffered { at_once, in_order, nodes } => async move {
                let pieces = stream::iter(body.all(&nodes, &at));
                let sums: Vec<u64> = if in_order {
                    pieces.buffered(at_once).collect().await
                } else {
                    pieces.buffer_unordered(at_once).collect().await
                };
                sum(sums)
            }
            .boxed(),
            Node::Timeout(seconds, node) => async move {
                let limited = body.go(&node, &format!("{at}.0"));
                match body.ctx.timeout(at.as_str(), Millis::from_secs(seconds), limited).await {
                    Ok(sum) => sum,
                    Err(elapsed) => body.saw(&[at], &elapsed.to_string()),
                }
            }
            .boxed(),
            Node::Handled(nodes, each) => body.handled(nodes, *each, at).boxed(),
            Node::PolledOnce(node) => async move {
                let glance = body.go(&node, &format!("{at}.0")).now_or_never();
                body.noted(format!("{at}: {}", told::<_, &str>(glance.ok_or("not yet"))));
                glance.unwrap_or(5)
            }
            .boxed(),
            Node::PolledSometimes { at: node, aside, seconds, times } => async move {
                let mut polled = body.go(&node, &format!("{at}.0"));
                let mut aside = join_all(body.all(&aside, &format!("{at}.aside"))).fuse();
                let set_aside = futures::poll!(&mut aside);
                let mut came = None;
                for round in 0..times {
                    came = (&mut polled).now_or_never();
                    body.noted(format!("{at}: {} at look {round}", told::<_, &str>(came.ok_or("not yet"))));
                    if came.is_some() {
                        break;
                    }
                    let name = format!("{at}[{round}]");
                    Arc::clone(&body).leaf(Leaf::Sleep(seconds), name).await;
                }
                let came = match came {
                    Some(came) => came,
                    None => polled.await,
                };
                let aside = if set_aside.is_ready() { vec![] } else { aside.await };
                sum([came, sum(aside)])
            }
            .boxed(),
            Node::Aside(first, meanwhile) => async move {
                let mut first = body.go(&first, &format!("{at}.0")).fuse();
                let early = futures::poll!(&mut first);
                let meanwhile = body.go(&meanwhile, &format!("{at}.1")).await;
                let first = if early.is_ready() { 1 } else { first.await };
                sum([meanwhile, first])
            }
            .boxed(),
            Node::Reminded { awaited, seconds, times, reminder_first, each } => {
                let reminder = (Millis::from_secs(seconds), times, reminder_first);
                body.reminded(*awaited, reminder, *each, at).boxed()
            }
            Node::Shared(node) => {
                let shared = body.go(&node, &format!("{at}.0")).shared();
                join(shared.clone(), shared).map(|(one, other)| sum([one, other])).boxed()
            }
            Node::Channel(first, second) => async move {
                let (sender, receiver) = oneshot::channel();
                let first = async { sender.send(body.go(&first, &format!("{at}.0")).await) };
                let second = async {
                    let word = receiver.await.unwrap();
                    sum([word, body.go(&second, &format!("{at}.1")).await])
                };
                join(first, second).await.1
            }
            .boxed(),
        }
    }

    async fn race(self: Arc<Self>, racing: Racing, nodes: Vec<Node>, at: String) -> u64 {
        let mut pieces = self.all(&nodes, &at);
        let (winner, won) = match racing {
            Racing::Chance => Pool::new(&self.witness, pieces).next().await.unwrap(),
            Racing::SelectAll => {
                let (won, winner, _) = select_all(pieces).await;
                (winner, won)
            }
            Racing::Select => {
                let (one, other) = (pieces.remove(0), pieces.remove(0));
                match select(one, other).await {
                    Either::Left((won, _)) => (0, won),
                    Either::Right((won, _)) => (1, won),
                }
            }
            Racing::Tokio => {
                let (one, other) = (pieces.remove(0), pieces.remove(0));
                tokio::select! {
                    biased;
                    won = one => (0, won),
                    won = other => (1, won),
                }
            }
        };
        self.noted(format!("{at}: {winner} won"));
        mix(won, u64::try_from(winner).unwrap())
    }

    async fn unordered(self: Arc<Self>, nodes: Vec<Node>, before: usize, then: Node, at: String) -> u64 {
        let pieces = self.all(&nodes, &at).into_iter().enumerate();
        let numbered = pieces.map(|(index, piece)| piece.map(move |sum| (index, sum)));
        let mut pool: FuturesUnordered<_> = numbered.collect();
        let mut sums = vec![];
        while sums.len() < before
            && let Some((index, sum)) = pool.next().await
        {
            self.noted(format!("{at}: {index} ended"));
            sums.push(sum);
        }
        sums.push(self.go(&then, &format!("{at}.then")).await);
        while let Some((index, sum)) = pool.next().await {
            self.noted(format!("{at}: {index} ended"));
            sums.push(sum);
        }
        // The pool stays alive while this sleep runs, whether futures are left in it or not.
        sums.push(self.go(&Node::Leaf(Leaf::Sleep(2)), &format!("{at}.end")).await);
        drop(pool);
        sum(sums)
    }

    async fn handled(self: Arc<Self>, nodes: Vec<Node>, each: Node, at: String) -> u64 {
        let mut pool = Pool::new(&self.witness, self.all(&nodes, &at));
        let mut sums = vec![];
        while let Some((index, sum)) = pool.next().await {
            self.noted(format!("{at}: {index} ended"));
            sums.extend([sum, self.go(&each, &format!("{at}.each{index}")).await]);
        }
        sum(sums)
    }

    async fn reminded(
        self: Arc<Self>,
        awaited: Node,
        (span, times, reminder_first): (Millis, u32, bool),
        each: Node,
        at: String,
    ) -> u64 {
        let mut awaited = self.go(&awaited, &format!("{at}.0"));
        let mut sums = vec![];
        for round in 0..times {
            let name = format!("{at}[{round}]");
            let reminder = self.ctx.sleep(name.as_str(), span);
            let decided = if reminder_first {
                tokio::select! { biased; _ = reminder => None, sum = &mut awaited => Some(sum) }
            } else {
                tokio::select! { biased; sum = &mut awaited => Some(sum), _ = reminder => None }
            };
            if let Some(decided) = decided {
                self.noted(format!("{at}: decided after {round}"));
                return sum([decided, sum(sums)]);
            }
            self.saw(&[name], &format!("{at}: reminder {round}"));
            sums.push(self.go(&each, &format!("{at}.{}", round + 1)).await);
        }
        sum([awaited.await, sum(sums)])
    }

    fn leaf(self: Arc<Self>, leaf: Leaf, at: String) -> Sum {
        match leaf {
            Leaf::Step(spec) => async move {
                let outcome = self.ctx.step(job(self.prefix, &at, spec)).await;
                self.saw(&[at], &told(outcome))
            }
            .boxed(),
            Leaf::Sleep(seconds) => async move {
                let slept = self.ctx.sleep(at.as_str(), Millis::from_secs(seconds)).await;
                self.saw(std::slice::from_ref(&at), &format!("{at}: {}", told(slept)))
            }
            .boxed(),
            Leaf::Event { event, within } => async move {
                let name = self.next_use("event", event);
                let limit = within.map_or_else(forever, |span| tickover::within(Millis::from_secs(span)));
                let came = self.ctx.wait_for_event::<String>(event, limit).await;
                let what = format!("{name}: {}", told(came));
                self.saw(&[name], &what)
            }
            .boxed(),
            Leaf::Ask(question, event) => self.ask(question, event).boxed(),
            Leaf::Capture { bytes } => async move {
                let (witness, name) = (Arc::clone(&self.witness), at.clone());
                let value = self.ctx.capture(at.as_str(), move || witness.make(&name, bytes)).await;
                self.saw(&[at], &told(value))
            }
            .boxed(),
            Leaf::Child(seconds) => async move {
                let ended = self.ctx.child(&little, seconds).id(format!("{ID}-{at}")).await;
                self.saw(&[format!("child:{ID}-{at}")], &format!("{at}: {}", told(ended)))
            }
            .boxed(),
            Leaf::Steps(goal, specs) => self.steps(goal, specs, at).boxed(),
        }
    }

    async fn ask(self: Arc<Self>, question: Question, event: &'static str) -> u64 {
        let (name, answer) = match question {
            Question::Peek => {
                (self.next_use("peek", event), told(self.ctx.peek_event::<String>(event).await))
            }
            Question::Count => (self.next_use("count", event), told(self.ctx.count_events(event).await)),
            Question::ClearEvents => {
                (self.next_use("drain", event), told(self.ctx.clear_events(event).await))
            }
        };
        let what = format!("{name}: {answer}");
        self.saw(&[name], &what)
    }

    async fn steps(self: Arc<Self>, goal: Goal, specs: Vec<Spec>, at: String) -> u64 {
        let name = |index: usize| format!("{at}[{index}]");
        let all: Vec<String> = (0..specs.len()).map(name).collect();
        let steps = specs.iter().zip(&all).map(|(spec, name)| job(self.prefix, name, *spec));
        let ctx = &self.ctx;
        let (needs, what) = match goal {
            Goal::All => (all.clone(), told(ctx.join_all(at.as_str(), steps).await)),
            Goal::First { cancelling } => {
                let race = ctx.select(at.as_str(), steps);
                let (winner, won) = if cancelling { race.cancelling().await } else { race.await };
                (vec![name(winner)], format!("{winner}: {}", told(won)))
            }
            Goal::Mapped { at_once, tolerated } => {
                let mapped = ctx.map(at.as_str(), steps, |step| step);
                match mapped.concurrency(at_once).tolerate(tolerated).await {
                    Ok(settled) => (all.clone(), format!("{settled:?}")),
                    Err(failed) => {
                        let needs = failed.failed.iter().map(|(index, _)| name(*index)).collect();
                        (needs, format!("{failed}, {} completed", failed.completed))
                    }
                }
            }
            Goal::FirstGood => match ctx.select_ok(at.as_str(), steps).await {
                Ok((winner, won)) => (vec![name(winner)], format!("{winner}: {won}")),
                Err(failed) => (all.clone(), failed.to_string()),
            },
        };
        self.saw(&needs, &what)
    }
}
