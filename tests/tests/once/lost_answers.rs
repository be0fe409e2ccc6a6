//! A store that applies a write and loses its answer, at every write in turn, changes no outcome.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::task::{Failure, Task};
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::ServiceError;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Store;
use tickover_tests::faults::AfterEachWrite;
use tickover_tests::scene::{Scene, queue_name, request, task_id};

/// A task when the story is over, without its random parts.
#[derive(Debug, PartialEq)]
struct Summary {
    status: &'static str,
    attempt: u32,
    endings: Vec<&'static str>,
    output: Option<String>,
    input_bytes: usize,
}

/// How callers behave when a call ends in "try again".
#[derive(Clone, Copy, PartialEq)]
enum Callers {
    /// They never need to retry: the service's own retries suffice.
    Trusting,
    /// They call again.
    Stubborn,
}

struct Story {
    scene: Scene,
    callers: Callers,
}

impl Story {
    /// Calls until it works; a trusting caller calls once.
    async fn call<T, F>(&self, call: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        for _ in 0..5 {
            match call().await {
                Ok(answer) => return answer,
                Err(error @ (ServiceError::Unavailable { .. } | ServiceError::Throttled)) => {
                    assert!(self.callers == Callers::Stubborn, "one lost answer reached the caller: {error}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the answers aren't lost for ever")
    }

    /// A claim whose answer is lost for good leaves its message in flight. The message becomes visible when the lease
    /// ends.
    async fn claim(&self, queue: &str) -> (Task, String) {
        for _ in 0..5 {
            if let Some(claimed) = self.call(|| self.scene.claim(queue)).await {
                return (claimed.task, claimed.token);
            }
            assert!(self.callers == Callers::Stubborn, "the task is there to be claimed");
            self.scene.clock.advance(Millis::from_secs(61));
        }
        panic!("never claimed")
    }

    async fn tell(&self) -> Vec<Summary> {
        let service = &self.scene.service;
        let (retried_id, keyed_id) = (task_id("retried"), task_id("keyed"));
        let large = format!("\"{}\"", "x".repeat(10_000));

        // This task fails once, is released once, and completes with a large result.
        let retried = || {
            let mut request = request("work", Some("retried"), Some(&large));
            request.retry = RetryPolicy::fixed(2, Millis::from_secs(5));
            request
        };
        self.call(|| service.schedule(retried())).await;
        let (_, lease) = self.claim("work").await;
        self.call(|| service.heartbeat(&retried_id, &lease, Some(0.5))).await;
        let error = || Failure::new("flaky", "once");
        self.call(|| service.fail(&retried_id, &lease, error(), true)).await;
        self.scene.clock.advance(Millis::from_secs(5));
        let (_, lease) = self.claim("work").await;
        self.call(|| service.release(&retried_id, &lease)).await;
        let (_, lease) = self.claim("work").await;
        let output = || Json::parse(large.clone());
        self.call(|| service.complete(&retried_id, &lease, output())).await;

        // This task is scheduled with an idempotency key, cancelled, retried by an operator, and completed.
        let keyed = || {
            let mut request = request("keyed", Some("keyed"), Some("1"));
            request.idempotency_key = Some("order-1".to_owned());
            request
        };
        self.call(|| service.schedule(keyed())).await;
        self.call(|| service.cancel(&keyed_id, false)).await;
        self.call(|| service.retry(&keyed_id)).await;
        let (_, lease) = self.claim("keyed").await;
        self.call(|| service.complete(&keyed_id, &lease, Json::parse("2"))).await;

        // This task starts in an hour, and its deadline passes while no worker has it.
        let late = || {
            let mut request = request("late", Some("late"), None);
            request.start = Start::After(Millis::from_secs(3600));
            let after = Millis::from_secs(7200);
            let schedule_to_close = Some(LifeTimeout { after, is_error: true });
            request.timeouts = Timeouts { schedule_to_close, ..Timeouts::default() };
            request
        };
        self.call(|| service.schedule(late())).await;
        for _ in 0..16 {
            self.scene.clock.advance(Millis::from_secs(600));
            self.call(|| self.scene.tick()).await;
        }
        let mut summaries = Vec::new();
        for id in ["retried", "keyed", "late"] {
            let described = service.describe(&task_id(id)).await.unwrap();
            summaries.push(Summary {
                status: described.task.status().as_str(),
                attempt: described.task.attempt,
                endings: described.task.history.iter().map(|past| past.ending.as_str()).collect(),
                output: described.output.map(|json| json.as_str().to_owned()),
                input_bytes: described.input.map_or(0, |json| json.len()),
            });
        }
        assert!(self.scene.claim("work").await.unwrap().is_none(), "no message is left");
        assert!(service.list_queues().await.unwrap().len() >= 3, "{:?}", queue_name("work"));
        summaries
    }
}

async fn story(lost: std::ops::Range<u64>, callers: Callers) -> (Vec<Summary>, u64) {
    let store = Arc::new(AfterEachWrite::losing(Arc::new(MemoryStore::default()), lost));
    let scene = Scene::over(store.clone() as Arc<dyn Store>);
    let summaries = Story { scene, callers }.tell().await;
    (summaries, store.writes())
}

#[tokio::test]
async fn one_lost_answer_at_any_write_changes_no_outcome_and_no_caller_notices() {
    let (expected, writes) = story(0..0, Callers::Trusting).await;
    assert_eq!(
        expected.iter().map(|task| task.status).collect::<Vec<_>>(),
        ["completed", "completed", "timed_out"]
    );
    assert_eq!(expected[0].endings, ["failed", "released", "completed"]);
    assert!(writes > 15, "{writes}");
    for number in 0..writes {
        let (outcome, _) = story(number..number + 1, Callers::Trusting).await;
        assert_eq!(outcome, expected, "the answer to write {number} was lost");
    }
}

#[tokio::test]
async fn answers_lost_until_the_caller_repeats_the_call_change_no_outcome() {
    let (expected, writes) = story(0..0, Callers::Trusting).await;
    for number in 0..writes {
        // Five answers in a row: more than the service retries by itself.
        let (outcome, _) = story(number..number + 5, Callers::Stubborn).await;
        for (outcome, expected) in outcome.iter().zip(&expected) {
            // A claim whose answer never arrived is a lost attempt, which doesn't count.
            let counted: Vec<_> = outcome.endings.iter().filter(|ending| **ending != "lost").collect();
            let wanted: Vec<_> = expected.endings.iter().collect();
            assert!(wanted.ends_with(&counted[counted.len().saturating_sub(2)..]), "{outcome:?}");
            let kept = |summary: &Summary| {
                (summary.status, summary.attempt, summary.output.clone(), summary.input_bytes)
            };
            assert_eq!(kept(outcome), kept(expected), "answers from write {number} on were lost");
        }
    }
}

#[tokio::test]
async fn two_different_requests_for_one_id_at_once_leave_one_whole_task() {
    for _ in 0..20 {
        let scene = Scene::in_memory();
        let input = |c: &str| format!("\"{}\"", c.repeat(100 * 1024));
        let (first, second) = (input("a"), input("b"));
        let (one, other) = futures::join!(
            scene.service.schedule(request("work", Some("same"), Some(&first))),
            scene.service.schedule(request("work", Some("same"), Some(&second))),
        );
        let won = match (&one, &other) {
            (Ok(_), Err(error)) => (first, error.to_string()),
            (Err(error), Ok(_)) => (second, error.to_string()),
            both => panic!("exactly one may win: {both:?}"),
        };
        assert!(won.1.contains("other content"), "{}", won.1);
        let claimed = scene.claim("work").await.unwrap().unwrap();
        assert_eq!(claimed.input.unwrap().as_str(), won.0);
        assert!(scene.claim("work").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_claim_that_fails_is_an_error_and_succeeds_after_the_lease() {
    // The first write creates the queue's record, the second the task. Then five answers in a row are lost.
    let store = Arc::new(AfterEachWrite::losing(Arc::new(MemoryStore::default()), 2..7));
    let scene = Scene::over(store as Arc<dyn Store>);
    scene.service.schedule(request("work", Some("a"), None)).await.unwrap();
    assert!(matches!(scene.claim("work").await, Err(ServiceError::Unavailable { .. })));
    // The write was applied: the unknown lease has to expire, and then the message is visible.
    scene.clock.advance(Millis::from_secs(60));
    let claimed = scene.claim("work").await.unwrap().unwrap();
    assert_eq!((claimed.task.id.as_str(), claimed.task.attempt), ("a", 1));
}
