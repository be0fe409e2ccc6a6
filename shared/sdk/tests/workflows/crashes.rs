//! Runs every example workflow many times. In each run the system dies after a different write. The result must be the
//! same, and no step that had ended may run again.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tickover::test::TestEnv;

#[path = "../../examples/flows/fan_out.rs"]
mod fan_out;
#[path = "../../examples/flows/import.rs"]
mod import;
#[path = "../../examples/flows/order.rs"]
mod order;
#[path = "../../examples/flows/outside.rs"]
pub(crate) mod outside;
#[path = "../../examples/flows/reminder.rs"]
mod reminder;
#[path = "../../examples/flows/trip.rs"]
mod trip;

use outside::Call;

/// A workflow, with the events that it gets from outside.
trait Story {
    fn env(&self) -> TestEnv;

    /// Runs it from its start to its result, and returns the result as text.
    async fn tell(&self, env: &TestEnv) -> String;
}

/// How often each call was made.
type Calls = BTreeMap<Call, u32>;

/// Runs a story without a death, and then once for each of its writes with a death after that write.
async fn survives(story: &impl Story, expected: &str) {
    outside::take();
    let env = story.env();
    let result = story.tell(&env).await;
    let (writes, usual) = (env.writes(), by_step(&outside::take()));
    assert_eq!((result.as_str(), env.deaths()), (expected, 0));
    assert!(writes >= 5, "{writes}");
    let mut count_ended_and_not_repeated = 0;
    for write in 1..=writes {
        let run = run_with_a_death(story, write).await;
        assert_eq!(run.result, expected, "death after write {write}");
        count_ended_and_not_repeated += run
            .count_ended_and_not_repeated(&usual)
            .unwrap_or_else(|problem| panic!("death after write {write}: {problem}"));
    }
    assert!(count_ended_and_not_repeated > 0, "no step had ended at any death");
}

struct RunWithDeath {
    result: String,
    /// The keys of the steps that had ended when the system died.
    ended: Vec<String>,
    before: Calls,
    after: Calls,
}

impl RunWithDeath {
    /// How many steps had ended and did not run again. A step that was interrupted may start again.
    fn count_ended_and_not_repeated(&self, usual: &BTreeMap<String, u32>) -> Result<u32, String> {
        let mut count_ended_and_not_repeated = 0;
        for (call, times) in &self.before {
            let again = self.after.get(call).copied().unwrap_or(0);
            let has_ended = self.ended.contains(&call.key);
            let usual = usual.get(&call.step).copied().unwrap_or(0);
            if again > 0 && (has_ended || times + again > 2 * usual) {
                return Err(format!(
                    "{} ran {times} times before the death and {again} times after it",
                    call.step
                ));
            }
            count_ended_and_not_repeated += u32::from(has_ended);
        }
        Ok(count_ended_and_not_repeated)
    }
}

#[test]
fn a_step_that_had_ended_and_runs_again_would_be_noticed() {
    let call = |key: &str| Call { step: "charge".to_owned(), key: key.to_owned() };
    let calls = |counts: &[(&str, u32)]| counts.iter().map(|(key, count)| (call(key), *count)).collect();
    let usual = BTreeMap::from([("charge".to_owned(), 1)]);
    let run = |before, after| RunWithDeath {
        result: String::new(),
        ended: vec!["a".to_owned()],
        before: calls(before),
        after: calls(after),
    };
    assert_eq!(run(&[("a", 1), ("b", 1)], &[("b", 1), ("c", 1)]).count_ended_and_not_repeated(&usual), Ok(1));
    assert!(run(&[("a", 1)], &[("a", 1)]).count_ended_and_not_repeated(&usual).is_err());
    assert!(run(&[("b", 1)], &[("b", 2)]).count_ended_and_not_repeated(&usual).is_err());
}

async fn run_with_a_death(story: &impl Story, write: u64) -> RunWithDeath {
    outside::take();
    let dead = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&dead);
    let env = story.env().on_death(move |death| {
        *seen.lock().unwrap() = Some((death.completed.clone(), outside::take()));
    });
    env.kill_after_write(write);
    let result = story.tell(&env).await;
    // A death after the last write comes after the result: run until it has happened.
    env.run_until_idle().await.unwrap();
    assert_eq!(env.deaths(), 1, "write {write}");
    let (ended, before) = dead.lock().unwrap().take().unwrap();
    RunWithDeath { result, ended, before, after: outside::take() }
}

/// For each step name, the highest number of calls of one step.
fn by_step(calls: &Calls) -> BTreeMap<String, u32> {
    let mut most = BTreeMap::new();
    for (call, times) in calls {
        let known: &mut u32 = most.entry(call.step.clone()).or_default();
        *known = (*known).max(*times);
    }
    most
}

struct Order;

impl Story for Order {
    fn env(&self) -> TestEnv {
        TestEnv::new().workflow(order::fulfil).step::<order::print_label>()
    }

    async fn tell(&self, env: &TestEnv) -> String {
        let order = order::Order { number: 7, boxes: vec!["books".to_owned(), "lamps".to_owned()] };
        let run = env.start(&order::fulfil, order).await.unwrap();
        env.advance("2h").await.unwrap();
        run.send_event("shipped", order::Shipment { carrier: "bicycle".to_owned() }).await.unwrap();
        let receipt = run.result().await.unwrap();
        format!("{} {} {}", receipt.charge.reference, receipt.labels.join(", "), receipt.carrier)
    }
}

#[tokio::test]
async fn an_order_survives_a_death_after_each_write() {
    survives(&Order, "charge-7 label for books, label for lamps bicycle").await;
}

/// An order that is never shipped: the wait for the shipment times out, and the step that refunds the money runs.
struct NeverShipped;

impl Story for NeverShipped {
    fn env(&self) -> TestEnv {
        Order.env()
    }

    async fn tell(&self, env: &TestEnv) -> String {
        let order = order::Order { number: 8, boxes: vec!["books".to_owned()] };
        let run = env.start(&order::fulfil, order).await.unwrap();
        let error = run.result().await.unwrap_err().to_string();
        let refunded = run.timeline().await.unwrap().contains("refund-8");
        format!("{error}; refunded: {refunded}")
    }
}

#[tokio::test]
async fn an_order_that_is_never_shipped_is_refunded_once() {
    let expected = "the execution failed: no event `shipped` came within 7d; refunded: true";
    survives(&NeverShipped, expected).await;
}

struct Gallery;

impl Story for Gallery {
    fn env(&self) -> TestEnv {
        TestEnv::new().workflow(fan_out::gallery)
    }

    async fn tell(&self, env: &TestEnv) -> String {
        let run = env.start(&fan_out::gallery, vec![400, 1_200, 8_000, 800]).await.unwrap();
        run.result().await.unwrap()
    }
}

#[tokio::test]
async fn a_fan_out_survives_a_death_after_each_write() {
    survives(&Gallery, "[300, 900, 600], 1 left out").await;
}

/// A survey that is answered after the first reminder, or never.
struct Survey {
    answered: bool,
}

impl Story for Survey {
    fn env(&self) -> TestEnv {
        TestEnv::new().workflow(reminder::survey)
    }

    async fn tell(&self, env: &TestEnv) -> String {
        let run = env.start(&reminder::survey, "How was it?".to_owned()).await.unwrap();
        if self.answered {
            env.advance("5d").await.unwrap();
            run.send_event("answer", "fine").await.unwrap();
        }
        let asked = run.result().await.unwrap();
        format!("{:?} after {}", asked.answer, asked.mails)
    }
}

#[tokio::test]
async fn sleeps_and_waits_survive_a_death_after_each_write() {
    survives(&Survey { answered: true }, "Some(\"fine\") after 2").await;
    survives(&Survey { answered: false }, "None after 3").await;
}

struct Import;

impl Story for Import {
    fn env(&self) -> TestEnv {
        TestEnv::new().workflow((import::import, import::import_page))
    }

    async fn tell(&self, env: &TestEnv) -> String {
        let input = import::Import { name: "people".to_owned(), page: 1, pages: 3, rows: 0 };
        let run = env.start(&import::import, input).await.unwrap();
        let rows = run.result().await.unwrap();
        format!("{rows} rows in {} runs", run.describe().await.unwrap().run)
    }
}

#[tokio::test]
async fn children_and_new_runs_survive_a_death_after_each_write() {
    survives(&Import, "60 rows in 3 runs").await;
}

struct Trip {
    has_room: bool,
}

impl Story for Trip {
    fn env(&self) -> TestEnv {
        TestEnv::new().workflow(trip::book)
    }

    async fn tell(&self, env: &TestEnv) -> String {
        let trip = trip::Trip { to: "Rome".to_owned(), has_room: self.has_room };
        let run = env.start(&trip::book, trip).await.unwrap();
        format!("{:?}", run.result().await.unwrap())
    }
}

#[tokio::test]
async fn bookings_are_undone_whenever_the_system_dies() {
    survives(&Trip { has_room: false }, "Nothing(\"flight to Rome cancelled\")").await;
    survives(&Trip { has_room: true }, "Both(\"flight to Rome\", \"hotel in Rome\")").await;
}
