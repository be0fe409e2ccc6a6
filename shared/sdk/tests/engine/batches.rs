//! Steps whose code gets several tasks at once, run by a worker in virtual time.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tickover::client::TaskHandle;
use tickover::prelude::*;
use tickover::{Client, Registry, Worker, WorkerSettings, step_infos};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::payload::Json;
use tickover_service::executions::Work;

use crate::scene::{START, Scene, clock, settings};

/// The time since the beginning of the test, and the inputs.
type Call = (u64, Vec<String>);

/// The calls of a step's code.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    fn add(&self, at: u64, docs: &[Doc]) {
        self.0.lock().unwrap().push((at, docs.iter().map(|doc| doc.text.clone()).collect()));
    }

    fn all(&self) -> Vec<Call> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Doc {
    tenant: String,
    text: String,
}

fn doc(tenant: &str, text: &str) -> Doc {
    Doc { tenant: tenant.to_owned(), text: text.to_owned() }
}

/// What the code does is in its inputs.
#[tickover::step(
    queue = "docs",
    retry = "fixed(1, 10s)",
    fairness_key = "docs.tenant",
    batch(3, within = "2s")
)]
async fn index(#[state] calls: &Calls, docs: Vec<Doc>) -> Result<Vec<Result<String, Failure>>, Failure> {
    let infos = step_infos();
    let is_first = infos.iter().all(|info| info.attempt == 1);
    calls.add(clock().passed(), &docs);
    let has = |text: &str| docs.iter().any(|doc| doc.text == text);
    assert!(!(has("panic") && is_first), "on fire");
    if has("down") && is_first {
        return Err(Failure::new("down", "the index is down"));
    }
    if has("slow") {
        clock().after(Millis::from_secs(200)).await;
    }
    let mut results: Vec<_> = docs
        .iter()
        .zip(infos)
        .map(|(doc, info)| match doc.text.as_str() {
            "bad" if info.attempt == 1 => Err(Failure::new("bad", "not now")),
            text => Ok(format!("{text} {} of {}", info.attempt, docs.len())),
        })
        .collect();
    if has("short") && is_first {
        results.pop();
    }
    Ok(results)
}

/// A plain step of the same queue.
#[tickover::step(queue = "docs")]
async fn count(text: String) -> Result<usize> {
    Ok(text.len())
}

struct Library {
    scene: Scene,
    client: Client,
    calls: Calls,
}

impl Library {
    fn new() -> Self {
        let scene = Scene::new();
        Self { client: scene.service.clone().into(), scene, calls: Calls::default() }
    }

    fn worker(&self) -> Worker {
        self.worker_with(settings())
    }

    fn worker_with(&self, settings: WorkerSettings) -> Worker {
        let registry = Registry::new().with_step::<index>().with_step::<count>();
        Worker::new(self.scene.service.clone(), registry.with_state(self.calls.clone()), settings).unwrap()
    }

    async fn schedule(&self, docs: &[(&str, &str)]) -> Vec<TaskHandle<String>> {
        let mut tasks = vec![];
        for (tenant, text) in docs {
            tasks.push(self.client.schedule(index(doc(tenant, text))).await.unwrap());
        }
        tasks
    }

    /// Runs the worker for this long, with the test's clock for its steps.
    async fn pass(&self, ms: u64) {
        self.scene.inside(self.scene.pass(&self.worker(), Millis::new(ms))).await;
    }

    async fn outputs(&self, tasks: &[TaskHandle<String>]) -> Vec<String> {
        let mut outputs = vec![];
        for task in tasks {
            let found = task.describe().await.unwrap();
            let output = found.output.map(|output| output.as_str().trim_matches('"').to_owned());
            outputs.push(output.unwrap_or_else(|| {
                found.error.map_or_else(|| found.status.as_str().to_owned(), |error| error.code)
            }));
        }
        outputs
    }

    async fn depth(&self) -> (u64, u64) {
        let depth = self.scene.depth("docs").await;
        (depth.visible, depth.in_flight)
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn a_full_batch_runs_at_once_and_each_task_has_its_own_result() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "one"), ("a", "two"), ("a", "three")]).await;
    library.pass(1).await;
    assert_eq!(library.calls.all(), [(0, texts(&["one", "two", "three"]))]);
    assert_eq!(library.outputs(&tasks).await, ["one 1 of 3", "two 1 of 3", "three 1 of 3"]);
    assert_eq!(library.depth().await, (0, 0));
}

#[tokio::test]
async fn a_batch_that_is_not_full_runs_when_its_time_to_fill_is_over() {
    let library = Library::new();
    let early = library.schedule(&[("a", "one")]).await;
    let goal = async {
        library.scene.after(Millis::new(1_500)).await;
        let late = library.schedule(&[("a", "two")]).await;
        library.scene.after(Millis::new(499)).await;
        // No task has a lease while it waits for others.
        for task in early.iter().chain(&late) {
            let found = task.describe().await.unwrap();
            assert_eq!((found.status.as_str(), found.attempt), ("pending", 0));
        }
        library.scene.after(Millis::new(1)).await;
        library.scene.after(Millis::new(1)).await;
        library.outputs(&early).await.into_iter().chain(library.outputs(&late).await).collect::<Vec<_>>()
    };
    let worker = library.worker();
    let outputs = library.scene.inside(library.scene.until(&worker, goal)).await;
    assert_eq!(library.calls.all(), [(2_000, texts(&["one", "two"]))]);
    assert_eq!(outputs, ["one 1 of 2", "two 1 of 2"]);
}

#[tokio::test]
async fn tasks_of_different_keys_and_kinds_are_never_in_one_batch() {
    let library = Library::new();
    library.schedule(&[("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("c", "5")]).await;
    let plain = library.client.schedule(count("four".to_owned())).await.unwrap();
    library.pass(2_001).await;
    let mut calls = library.calls.all();
    calls.sort();
    assert_eq!(calls, [(2_000, texts(&["1", "3"])), (2_000, texts(&["2", "4"])), (2_000, texts(&["5"]))]);
    assert_eq!(plain.describe().await.unwrap().output.unwrap().as_str(), "4");
}

#[tokio::test]
async fn a_task_that_fails_is_retried_alone_and_the_others_stay_completed() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "one"), ("a", "bad"), ("a", "three")]).await;
    library.pass(12_001).await;
    assert_eq!(library.calls.all(), [(0, texts(&["one", "bad", "three"])), (12_000, texts(&["bad"]))]);
    assert_eq!(library.outputs(&tasks).await, ["one 1 of 3", "bad 2 of 1", "three 1 of 3"]);
}

#[tokio::test]
async fn a_panic_an_error_of_all_or_a_wrong_number_of_results_fails_each_task() {
    for (text, code) in [("panic", "panic"), ("down", "down"), ("short", "wrong_result_count")] {
        let library = Library::new();
        let tasks = library.schedule(&[("a", "one"), ("a", text), ("a", "three")]).await;
        library.pass(5_000).await;
        for task in &tasks {
            let found = task.describe().await.unwrap();
            assert_eq!((found.status.as_str(), found.attempt), ("pending", 1), "{text}");
            let error = found.error.unwrap();
            assert_eq!(error.code, code);
            if text == "short" {
                assert_eq!(error.message, "step `index` got 3 inputs and returned 2 results");
            }
        }
        library.pass(20_000).await;
        assert_eq!(
            library.outputs(&tasks).await,
            ["one 2 of 3".to_owned(), format!("{text} 2 of 3"), "three 2 of 3".to_owned()]
        );
    }
}

#[tokio::test]
async fn an_input_that_does_not_fit_fails_alone() {
    let library = Library::new();
    let mut tasks = library.schedule(&[("a", "one"), ("a", "two")]).await;
    let bad = library.client.task::<String>("index", 7).queue("docs").fairness_key("a");
    tasks.insert(1, bad.await.unwrap());
    library.pass(2_001).await;
    assert_eq!(library.outputs(&tasks).await, ["one 1 of 2", "invalid_input", "two 1 of 2"]);
}

#[tokio::test]
async fn each_task_keeps_its_lease_and_one_that_loses_it_does_not_hurt_the_others() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "slow"), ("a", "two"), ("a", "three")]).await;
    let goal = async {
        library.scene.after(Millis::from_secs(5)).await;
        tasks[1].terminate().await.unwrap();
        tasks[2].cancel().await.unwrap();
        library.scene.after(Millis::from_secs(190)).await;
        assert_eq!(tasks[0].describe().await.unwrap().status.as_str(), "running");
        library.scene.after(Millis::from_secs(6)).await;
    };
    let worker = library.worker();
    library.scene.inside(library.scene.until(&worker, goal)).await;
    // The code can't be stopped for one task of several, so the result of the third one counts.
    assert_eq!(library.outputs(&tasks).await, ["slow 1 of 3", "cancelled", "three 1 of 3"]);
    assert_eq!(library.calls.all().len(), 1);
}

#[tokio::test]
async fn the_code_stops_when_no_task_of_the_batch_needs_it_any_more() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "slow"), ("a", "two"), ("a", "three")]).await;
    let goal = async {
        library.scene.after(Millis::from_secs(5)).await;
        for task in &tasks {
            task.cancel().await.unwrap();
        }
        library.scene.after(Millis::from_secs(60)).await;
        library.outputs(&tasks).await
    };
    let worker = library.worker();
    let outputs = library.scene.inside(library.scene.until(&worker, goal)).await;
    assert_eq!(outputs, ["cancelled"; 3]);
}

#[tokio::test]
async fn a_batch_takes_one_place_of_the_concurrency_and_what_has_none_is_claimable_by_others_at_once() {
    let library = Library::new();
    library.schedule(&[("a", "one"), ("b", "two")]).await;
    let worker = library.worker_with(WorkerSettings { concurrency: 1, ..settings() });
    let other = async {
        library.scene.after(Millis::new(100)).await;
        let work = library.scene.work("docs", Millis::from_secs(60)).await;
        assert_eq!(library.depth().await, (0, 2));
        work
    };
    let work = library.scene.inside(library.scene.until(&worker, other)).await;
    let [Work::Task(task)] = work.as_slice() else { unreachable!("{work:?}") };
    assert_eq!((task.task.attempt, task.task.version), (1, 2));
    assert_eq!(task.input.as_ref().map(Json::as_str), Some(r#"{"tenant":"b","text":"two"}"#));
}

#[tokio::test]
async fn with_one_place_a_batch_still_fills() {
    let library = Library::new();
    library.schedule(&[("a", "one"), ("a", "two"), ("a", "three"), ("a", "four")]).await;
    let worker = library.worker_with(WorkerSettings { concurrency: 1, ..settings() });
    library.scene.inside(library.scene.pass(&worker, Millis::new(4_001))).await;
    let calls: Vec<_> = library.calls.all().into_iter().map(|(_, docs)| docs).collect();
    assert_eq!(calls, [texts(&["one", "two", "three"]), texts(&["four"])]);
}

#[tokio::test]
async fn a_worker_that_stops_gives_back_the_tasks_that_wait_for_their_batch() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "one"), ("a", "two")]).await;
    let worker = library.worker();
    let stop = library.scene.after(Millis::from_secs(1));
    library.scene.inside(library.scene.clock.drive(worker.run(stop))).await;
    assert_eq!(library.depth().await, (2, 0));
    assert_eq!((library.calls.all().len(), library.scene.now()), (0, START.plus(Millis::from_secs(1))));
    assert_eq!(library.outputs(&tasks).await, ["pending"; 2]);
    library.pass(2_001).await;
    assert_eq!(library.outputs(&tasks).await, ["one 1 of 2", "two 1 of 2"]);
}

#[tokio::test]
async fn a_deadline_that_passes_while_a_batch_fills_ends_its_task_only() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "one")]).await;
    let brief = library.client.schedule(index(doc("a", "brief"))).timeout("1s").await.unwrap();
    library.pass(2_001).await;
    assert_eq!(library.outputs(&tasks).await, ["one 1 of 1"]);
    assert_eq!(brief.describe().await.unwrap().status.as_str(), "timed_out");
}

#[tokio::test]
async fn tasks_of_a_lost_batch_run_again_together_and_after_the_second_loss_each_alone() {
    for (losses, outputs) in [(1, ["one 1 of 2", "two 1 of 2"]), (2, ["one 1 of 1", "two 1 of 1"])] {
        let library = Library::new();
        let tasks = library.schedule(&[("a", "one"), ("a", "two")]).await;
        for _ in 0..losses {
            // This process leases both and then dies.
            assert_eq!(library.scene.work_beside_others("docs", Millis::from_secs(60)).await.len(), 2);
            library.scene.clock.advance(Millis::from_secs(60));
        }
        library.pass(5_000).await;
        assert_eq!(library.outputs(&tasks).await, outputs, "{losses}");
    }
}

#[tokio::test]
async fn a_short_lease_shortens_the_time_to_fill() {
    let library = Library::new();
    library.schedule(&[("a", "one")]).await;
    let worker = library.worker_with(WorkerSettings { lease: Millis::from_secs(2), ..settings() });
    library.scene.inside(library.scene.pass(&worker, Millis::new(1_001))).await;
    assert_eq!(library.calls.all(), [(1_000, texts(&["one"]))]);
}

#[tokio::test]
async fn one_round_of_a_worker_runs_what_is_there_in_batches() {
    let library = Library::new();
    let tasks = library.schedule(&[("a", "1"), ("b", "2"), ("a", "3"), ("a", "4"), ("a", "5")]).await;
    let worker = library.worker();
    assert_eq!(library.scene.inside(worker.run_once()).await.unwrap(), 5);
    let mut sizes: Vec<_> = library.calls.all().into_iter().map(|(_, docs)| docs.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1, 3]);
    assert!(library.outputs(&tasks).await.iter().all(|output| output.contains(" 1 of ")));
    assert_eq!(worker.queues(), [QueueName::parse("docs").unwrap()]);
}
