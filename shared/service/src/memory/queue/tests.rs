use std::collections::BTreeSet;

use futures::future::{join, join_all};
use tickover_core::flow::Priority;
use tickover_core::id::Fingerprint;

use super::*;
use crate::memory::ManualClock;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const NO_WAIT: Millis = Millis::ZERO;

fn name(text: &str) -> QueueName {
    QueueName::parse(text).unwrap()
}

fn message(body: &str, delay_ms: u64) -> Outgoing {
    Outgoing::plain(body, Millis::new(delay_ms))
}

fn fixture() -> (Arc<ManualClock>, MemoryQueue, QueueName) {
    let clock = Arc::new(ManualClock::new(START));
    let queue = MemoryQueue::new(Arc::<ManualClock>::clone(&clock), Queues::Fixed(vec![name("work")]));
    (clock, queue, name("work"))
}

#[tokio::test]
async fn a_wait_ends_to_the_millisecond_when_a_delay_or_a_visibility_does() {
    let (clock, queue, work) = fixture();
    queue.send(&work, &[message("a", 1_234)]).await.unwrap();
    let wait = Millis::from_secs(20);
    let first = clock.drive(queue.receive(&work, 10, Millis::new(777), wait)).await.unwrap();
    assert_eq!((first.len(), clock.now()), (1, START.plus(Millis::new(1_234))));
    let again = clock.drive(queue.receive(&work, 10, Millis::new(777), wait)).await.unwrap();
    assert_eq!((again.len(), clock.now()), (1, START.plus(Millis::new(1_234 + 777))));
}

#[tokio::test]
async fn nothing_waits_for_a_clock_that_is_set_back() {
    for by in [Millis::from_secs(3_600), Millis::from_secs(86_400)] {
        let (clock, queue, work) = fixture();
        queue
            .send(&work, &[message("ready", 0), message("held", 0), message("delayed", 9_000)])
            .await
            .unwrap();
        let held = queue.receive(&work, 1, Millis::from_secs(30), NO_WAIT).await.unwrap().remove(0);
        clock.set(clock.now().minus(by));
        let ready = queue.receive(&work, 9, Millis::from_secs(300), NO_WAIT).await.unwrap();
        assert_eq!(ready.len(), 1);
        queue.send(&work, &[message("new", 0)]).await.unwrap();
        assert_eq!(queue.receive(&work, 9, Millis::from_secs(300), NO_WAIT).await.unwrap()[0].body, "new");
        for (after, body) in [(9_000, "delayed"), (21_000, held.body.as_str())] {
            clock.advance(Millis::new(after - 1));
            let wait = queue.receive(&work, 9, Millis::from_secs(300), Millis::from_secs(1));
            let before = clock.now();
            let found = clock.drive(wait).await.unwrap();
            assert_eq!((found[0].body.as_str(), clock.now().since(before)), (body, Millis::new(1)));
        }
    }
}

#[tokio::test]
async fn a_wait_lasts_no_longer_because_the_clock_is_set_back_meanwhile() {
    let (clock, queue, work) = fixture();
    let wait = queue.receive(&work, 1, Millis::ZERO, Millis::from_secs(20));
    let set_back = async {
        clock.sleep_until(START.plus(Millis::from_secs(5))).await;
        clock.set(START.minus(Millis::from_secs(3_600)));
        // It looks at the clock, as whoever waits does when its span is over.
        queue.send(&work, &[message("other", 60_000)]).await.unwrap();
    };
    let (received, ()) = clock.drive(join(wait, set_back)).await;
    assert!(received.unwrap().is_empty());
    // The queue had not looked at the clock since the beginning.
    assert_eq!(clock.now(), START.minus(Millis::from_secs(3_600 - 20)));
}

#[tokio::test]
async fn a_wait_for_nothing_takes_as_long_as_asked_and_at_most_twenty_seconds() {
    let (clock, queue, work) = fixture();
    for (asked, taken) in [(1_500, 1_500), (60_000, 20_000)] {
        let started_at = clock.now();
        let received = clock.drive(queue.receive(&work, 1, Millis::ZERO, Millis::new(asked))).await.unwrap();
        assert_eq!((received, clock.now()), (Vec::new(), started_at.plus(Millis::new(taken))));
    }
}

#[tokio::test]
async fn an_earlier_message_and_a_shortened_visibility_end_waits_already_begun() {
    let (clock, queue, work) = fixture();
    let day = Millis::from_secs(86_400);
    queue.send(&work, &[message("held", 0)]).await.unwrap();
    let held = queue.receive(&work, 1, day, NO_WAIT).await.unwrap().remove(0);
    let waiters = join_all((0..2).map(|_| queue.receive(&work, 1, day, Millis::from_secs(20))));
    let others = async {
        clock.sleep_until(START.plus(Millis::new(100))).await;
        queue.send(&work, &[message("delayed", 900)]).await.unwrap();
        clock.sleep_until(START.plus(Millis::new(200))).await;
        queue.change_visibility(&work, &held.receipt, Millis::new(300)).await.unwrap();
    };
    let (received, ()) = clock.drive(join(waiters, others)).await;
    let mut bodies: Vec<_> = received.into_iter().flatten().flatten().map(|received| received.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["delayed", "held"]);
    assert_eq!(clock.now(), START.plus(Millis::new(1_000)));
}

#[tokio::test]
async fn a_receipt_is_stale_for_another_receiver_queue_or_process() {
    let (clock, queue, work) = fixture();
    queue.send(&work, &[message("a", 0)]).await.unwrap();
    let first = queue.receive(&work, 1, Millis::new(10), NO_WAIT).await.unwrap().remove(0);
    clock.advance(Millis::new(10));
    let second = queue.receive(&work, 1, Millis::new(10), NO_WAIT).await.unwrap().remove(0);
    assert_ne!(first.receipt, second.receipt);
    let extended = queue.change_visibility(&work, &first.receipt, Millis::new(10)).await;
    assert!(matches!(extended, Err(QueueError::StaleReceipt)), "{extended:?}");

    let later: Arc<ManualClock> = Arc::new(ManualClock::new(START.plus(Millis::new(1))));
    let restarted = MemoryQueue::new(later, Queues::Fixed(vec![name("work")]));
    restarted.send(&work, &[message("b", 0)]).await.unwrap();
    restarted.receive(&work, 1, Millis::new(10), NO_WAIT).await.unwrap();
    restarted.delete(&work, &first.receipt).await.unwrap();
    assert!(!restarted.depth(&work).await.unwrap().is_empty());
}

#[tokio::test]
async fn fixed_queues_are_all_there_is_and_others_appear_when_opened() {
    let (clock, fixed, work) = fixture();
    let other = name("other");
    assert!(!fixed.open(&other).await.unwrap());
    assert!(!fixed.knows(&other));
    assert_eq!(fixed.names(), [QueueName::timers(), work]);

    let opening = MemoryQueue::new(clock, Queues::OnOpen);
    let unopened = opening.receive(&other, 1, Millis::ZERO, NO_WAIT).await;
    assert!(matches!(unopened, Err(QueueError::Unknown { .. })), "{unopened:?}");
    assert!(opening.open(&other).await.unwrap());
    opening.send(&other, &[message("a", 0)]).await.unwrap();
    assert!(opening.open(&other).await.unwrap());
    assert_eq!(opening.depth(&other).await.unwrap().visible, 1, "opening again keeps the messages");
    assert_eq!(opening.names(), [QueueName::timers(), other]);
}

#[tokio::test]
async fn a_backlog_of_a_hundred_thousand_is_received_completely() {
    let (_, queue, work) = fixture();
    let backlog: Vec<_> = (0..100_000).map(|n| message(&n.to_string(), 0)).collect();
    queue.send(&work, &backlog).await.unwrap();
    let mut drained = 0;
    loop {
        let received = queue.receive(&work, 10, Millis::from_secs(60), NO_WAIT).await.unwrap();
        for message in &received {
            assert_eq!(message.body, drained.to_string(), "in the order in which they were sent");
            queue.delete(&work, &message.receipt).await.unwrap();
            drained += 1;
        }
        if received.is_empty() {
            break;
        }
    }
    assert_eq!(drained, 100_000);
    assert!(queue.depth(&work).await.unwrap().is_empty());
}

/// A store of tasks, of which the queue over it keeps few hints.
#[derive(Default)]
struct Pile(Mutex<Vec<Piled>>);

struct Piled {
    at: Timestamp,
    lane: Lane,
    version: u64,
    state: PiledState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PiledState {
    Pending,
    Running,
    Done,
}

/// The record of a task is told from others by its position.
fn incarnation(task: usize) -> Incarnation {
    Incarnation::from_bytes((task as u64).to_be_bytes())
}

/// Seven lanes: more than the queue keeps hints.
fn lane_of(task: usize) -> Lane {
    let tenant = |number: usize| Some(Fingerprint::from_bytes([u8::try_from(number).unwrap(); 16]));
    match task % 7 {
        0 | 1 => Lane::default(),
        2 => Lane { priority: Priority::High, tenant: None },
        number => Lane { priority: Priority::ALL[number % 3], tenant: tenant(number) },
    }
}

fn hint(task: usize, version: u64) -> String {
    serde_json::json!({"v": 1, "task": {"inc": incarnation(task), "ver": version}}).to_string()
}

impl Backlog for Pile {
    fn queues(&self) -> Result<Vec<QueueName>, StoreError> {
        Ok(vec![name("work")])
    }

    fn lanes(&self, _: &QueueName, after: Option<Lane>, max: usize) -> Result<Vec<Lane>, StoreError> {
        let tasks = self.0.lock().unwrap();
        let pending = tasks.iter().filter(|task| task.state == PiledState::Pending).map(|task| task.lane);
        let lanes: BTreeSet<Lane> = pending.filter(|lane| after.is_none_or(|after| *lane > after)).collect();
        Ok(lanes.into_iter().take(max).collect())
    }

    fn hints(
        &self,
        _: &QueueName,
        lane: Lane,
        choose: &mut dyn FnMut(Ready) -> Choice,
    ) -> Result<Vec<String>, StoreError> {
        let tasks = self.0.lock().unwrap();
        let mut pending: Vec<_> =
            tasks.iter().enumerate().filter(|(_, task)| task.state == PiledState::Pending).collect();
        pending.retain(|(_, task)| task.lane == lane);
        pending.sort_by_key(|(_, task)| task.at);
        let mut hints = vec![];
        for (number, Piled { at, version, .. }) in pending {
            match choose(Ready { at: *at, incarnation: incarnation(number), version: *version }) {
                Choice::Take => hints.push(hint(number, *version)),
                Choice::Skip => {}
                Choice::Stop => break,
            }
        }
        Ok(hints)
    }

    fn latest(&self) -> Result<Option<Timestamp>, StoreError> {
        let tasks = self.0.lock().unwrap();
        Ok(tasks.iter().filter(|task| task.state == PiledState::Pending).map(|task| task.at).max())
    }

    fn count(&self, _: &QueueName, now: Timestamp) -> Result<u64, StoreError> {
        let is_ready = |task: &&Piled| task.state == PiledState::Pending && task.at <= now;
        Ok(self.0.lock().unwrap().iter().filter(is_ready).count() as u64)
    }
}

/// Tasks that are scheduled, claimed, finished and tried again at random, with far more than the queue keeps.
struct Life {
    clock: Arc<ManualClock>,
    queue: MemoryQueue,
    pile: Arc<Pile>,
    /// The running tasks, each with the receipt of its message.
    running: Vec<(usize, String)>,
    random: u64,
}

const KEPT: u64 = 4;
const LEASE: Millis = Millis::from_secs(30);

impl Life {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let pile = Arc::new(Pile::default());
        let queue = MemoryQueue::over(pile.clone(), KEPT, clock.clone()).unwrap();
        Self { clock, queue, pile, running: vec![], random: seed }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    /// Makes a task pending from that long on, and sends its hint.
    async fn send(&self, number: usize, delay: Millis) {
        let version = {
            let mut tasks = self.pile.0.lock().unwrap();
            if number == tasks.len() {
                tasks.push(Piled {
                    at: START,
                    lane: lane_of(number),
                    version: 0,
                    state: PiledState::Pending,
                });
            }
            let task = &mut tasks[number];
            *task = Piled {
                at: self.clock.now().plus(delay),
                lane: task.lane,
                version: task.version + 1,
                state: PiledState::Pending,
            };
            task.version
        };
        let message = Outgoing { body: hint(number, version), delay, lane: lane_of(number) };
        self.queue.send(&name("work"), &[message]).await.unwrap();
    }

    /// Receives and claims what it can. Returns how many messages came.
    async fn receive(&mut self, max: usize) -> usize {
        let received = self.queue.receive(&name("work"), max, LEASE, NO_WAIT).await.unwrap();
        let count = received.len();
        for message in received {
            let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
            let is_of = |task: &Piled, number| {
                body["task"] == serde_json::json!({"inc": incarnation(number), "ver": task.version})
            };
            let claimed = {
                let mut tasks = self.pile.0.lock().unwrap();
                let number = (0..tasks.len()).find(|number| is_of(&tasks[*number], *number));
                number.filter(|number| tasks[*number].state == PiledState::Pending).inspect(|number| {
                    tasks[*number].state = PiledState::Running;
                    tasks[*number].version += 1;
                })
            };
            match claimed {
                Some(number) => self.running.push((number, message.receipt)),
                None => self.queue.delete(&name("work"), &message.receipt).await.unwrap(),
            }
        }
        count
    }

    fn ready(&self) -> u64 {
        self.pile.count(&name("work"), self.clock.now()).unwrap()
    }

    async fn step(&mut self) {
        match self.below(8) {
            0..3 => {
                let number = self.pile.0.lock().unwrap().len();
                let delay = if self.below(2) == 0 { 0 } else { self.below(120) };
                self.send(number, Millis::from_secs(delay)).await;
            }
            3..5 => {
                let max = 1 + usize::try_from(self.below(4)).unwrap();
                let came = self.receive(max).await;
                assert!(came > 0 || self.ready() == 0, "{} tasks are ready and none comes", self.ready());
            }
            5 if !self.running.is_empty() => {
                let (number, receipt) = self.running.remove(0);
                self.pile.0.lock().unwrap()[number].state = PiledState::Done;
                self.queue.delete(&name("work"), &receipt).await.unwrap();
            }
            // The attempt failed. Its message may stay in flight, as that of a worker that was lost.
            6 if !self.running.is_empty() => {
                let (number, receipt) = self.running.remove(0);
                let delay = self.below(40);
                self.send(number, Millis::from_secs(delay)).await;
                if self.below(2) == 0 {
                    self.queue.delete(&name("work"), &receipt).await.unwrap();
                }
            }
            _ => {
                let span = self.below(20_000);
                self.clock.advance(Millis::new(span));
            }
        }
        let state = self.queue.queue_state(&name("work")).unwrap();
        let depth = state.lock().messages.depth(self.clock.now());
        let came_back = self.pile.0.lock().unwrap().len() as u64;
        assert!(depth.delayed <= KEPT && depth.visible <= 4 * KEPT + came_back, "{depth:?}");
    }
}

/// Whoever receives gets a task if one is ready, whatever fills the queue. Without that, a task waits for the tick.
#[tokio::test]
async fn a_bounded_queue_never_hides_a_task_that_is_ready() {
    for seed in 0..60 {
        let mut life = Life::new(seed);
        for _ in 0..300 {
            life.step().await;
        }
        for _ in 0..400 {
            life.clock.advance(Millis::from_secs(1));
            while life.receive(10).await > 0 {}
            assert_eq!(life.ready(), 0, "seed {seed}");
        }
    }
}

/// What a queue over a backlog gives out next, as positions in the pile.
async fn next_tasks(queue: &MemoryQueue, pile: &Pile, count: usize) -> Vec<usize> {
    let mut numbers = vec![];
    while numbers.len() < count {
        let received = queue.receive(&name("work"), 10, LEASE, NO_WAIT).await.unwrap();
        assert!(!received.is_empty(), "after {} tasks none comes", numbers.len());
        for message in received {
            let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
            let of: Incarnation = serde_json::from_value(body["task"]["inc"].clone()).unwrap();
            let number = usize::try_from(u64::from_be_bytes(*of.as_bytes())).unwrap();
            pile.0.lock().unwrap()[number].state = PiledState::Running;
            numbers.push(number);
        }
    }
    numbers
}

/// Tasks of these lanes, one after another, all ready.
async fn burst(queue: &MemoryQueue, pile: &Pile, lanes: impl IntoIterator<Item = Lane>) {
    for lane in lanes {
        let number = {
            let mut tasks = pile.0.lock().unwrap();
            tasks.push(Piled { at: START, lane, version: 1, state: PiledState::Pending });
            tasks.len() - 1
        };
        let message = Outgoing { body: hint(number, 1), delay: NO_WAIT, lane };
        queue.send(&name("work"), &[message]).await.unwrap();
    }
}

fn tenant(number: u8) -> Lane {
    Lane { priority: Priority::Normal, tenant: Some(Fingerprint::from_bytes([number; 16])) }
}

/// A queue that keeps this many hints over a pile.
fn bounded(kept: u64) -> (MemoryQueue, Arc<Pile>) {
    let pile = Arc::new(Pile::default());
    (MemoryQueue::over(pile.clone(), kept, Arc::new(ManualClock::new(START))).unwrap(), pile)
}

#[tokio::test]
async fn a_burst_that_fills_what_a_queue_keeps_keeps_no_other_tenant_out() {
    let (queue, pile) = bounded(64);
    burst(&queue, &pile, vec![tenant(1); 2_000]).await;
    let first = next_tasks(&queue, &pile, 500).await.len();
    burst(&queue, &pile, vec![tenant(2); 10]).await;
    let then = next_tasks(&queue, &pile, 22).await;
    let of_second = then.iter().filter(|number| **number >= 2_000).count();
    assert_eq!(of_second, 10, "after {first} of the burst: {then:?}");
}

/// As after a restart: no message is there, and the burst is the older one.
#[tokio::test]
async fn a_backlog_of_one_tenant_is_read_in_turn_with_those_of_the_others() {
    let (queue, pile) = bounded(64);
    let mut lanes = vec![tenant(1); 2_000];
    lanes.extend((0..60).map(|number| tenant(2 + number % 3)));
    let tasks =
        lanes.into_iter().map(|lane| Piled { at: START, lane, version: 1, state: PiledState::Pending });
    pile.0.lock().unwrap().extend(tasks);
    let first = next_tasks(&queue, &pile, 90).await;
    let of_others = first.iter().filter(|number| **number >= 2_000).count();
    assert_eq!(of_others, 60, "{first:?}");
}

#[tokio::test]
async fn more_tenants_than_a_queue_keeps_hints_all_get_their_turn() {
    let (queue, pile) = bounded(8);
    let tasks = (0..400_usize).map(|number| {
        let lane = tenant(u8::try_from(number % 100).unwrap());
        Piled { at: START, lane, version: 1, state: PiledState::Pending }
    });
    pile.0.lock().unwrap().extend(tasks);
    // The burst of one of them is older than all others' tasks.
    let order = next_tasks(&queue, &pile, 400).await;
    for number in 0..100 {
        let mine: Vec<_> = (0..400).filter(|place| order[*place] % 100 == number).collect();
        assert!(mine[0] < 150 && mine[3] >= 200, "{number}: {mine:?}");
    }
}

#[tokio::test]
async fn a_backlog_of_low_tasks_keeps_no_high_one_waiting_and_gets_one_turn_in_ten() {
    let (queue, pile) = bounded(64);
    let of = |priority| Lane { priority, tenant: None };
    burst(&queue, &pile, vec![of(Priority::Low); 1_000]).await;
    burst(&queue, &pile, vec![of(Priority::High); 1_000]).await;
    let order = next_tasks(&queue, &pile, 1_000).await;
    let low = order.iter().filter(|number| **number < 1_000).count();
    assert!((95..=105).contains(&low), "{low} low ones of 1,000");
    assert!(order[..9].iter().all(|number| *number >= 1_000), "{order:?}");
    for ten in order.chunks(10) {
        assert!(ten.iter().any(|number| *number < 1_000), "{ten:?}");
    }
}
