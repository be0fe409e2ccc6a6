//! Earlier runs: listed, shown and exported.

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use tickover_core::execution::command::Ending;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::memory::MemoryStore;
use tickover_service::memory::store::Item;
use tickover_service::ports::Store as _;
use tickover_tests::http::Caller;

use crate::worker::{Worker, completed, failed_by, failed_run, name, payload};

/// After every expiry.
const FAR: Timestamp = Timestamp::from_millis(9_999_999_999_999);

fn kinds(timeline: &Value) -> Vec<&str> {
    let entries = timeline["entries"].as_array().expect("a list");
    entries.iter().map(|entry| entry["kind"].as_str().expect("a kind")).collect()
}

impl Worker {
    /// Ends the next turn of `e` and its run, a second after the last call.
    async fn run(&self, steps: &[&str], ending: Ending) {
        self.caller.pass(1).await;
        let turn = self.take("e").await;
        let entries = steps.iter().map(|step| self.step(step, &json!(step))).collect();
        self.close(turn, entries, ending).await;
    }

    async fn refused(&self, path: &str) -> Value {
        let (status, problem) = self.caller.send(Method::GET, path, None).await;
        assert_eq!(status.as_u16(), 400, "{path}: {problem}");
        problem
    }
}

/// An execution in its fourth run: the code continued after the first one, an operator restarted it after the second
/// and had only a step run again after the third.
async fn in_its_fourth_run() -> Worker {
    let worker = Worker::default();
    worker.start("e", json!({"input": 1})).await;
    let next = Ending::ContinueAsNew { input: Some(payload(&json!(2))), carried: vec![] };
    worker.run(&["a", "b"], next).await;
    worker.run(&[], failed_by("charge")).await;
    worker.operate("e", "restart").await;
    worker.run(&["a", "c"], completed(&json!("done"))).await;
    worker.caller.ok("/v1/executions/e/rerun", json!({"steps": ["c"]})).await;
    worker
}

#[tokio::test]
async fn earlier_runs_are_listed_latest_first_page_by_page() {
    let worker = in_its_fourth_run().await;
    let answer = worker.get("/v1/executions/e/runs").await;
    assert_eq!((&answer["id"], &answer["run"], &answer["cursor"]), (&json!("e"), &json!(4), &Value::Null));
    let runs = answer["runs"].as_array().unwrap();
    let told: Vec<_> =
        runs.iter().map(|run| (&run["run"], &run["status"], &run["journal_entries"])).collect();
    let expected = [
        (&json!(3), &json!("completed"), &json!(3)),
        (&json!(2), &json!("failed"), &json!(0)),
        (&json!(1), &json!("continued"), &json!(2)),
    ];
    assert_eq!(told, expected);
    assert_eq!(runs[1]["error"]["code"], "payment");
    assert_eq!(runs[2]["ended_at"], runs[1]["started_at"]);
    assert!(runs[0]["started_at"].as_str() < runs[0]["ended_at"].as_str(), "{runs:?}");

    let mut found = vec![];
    let mut path = "/v1/executions/e/runs?limit=2".to_owned();
    for _ in 0..3 {
        let page = worker.get(&path).await;
        found.extend(page["runs"].as_array().unwrap().iter().map(|run| run["run"].clone()));
        let Some(cursor) = page["cursor"].as_str() else { break };
        path = format!("/v1/executions/e/runs?limit=2&cursor={cursor}");
    }
    assert_eq!(found, [3, 2, 1].map(|run| json!(run)));
}

#[tokio::test]
async fn an_execution_in_its_first_run_has_no_earlier_ones() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let answer = worker.get("/v1/executions/e/runs").await;
    assert_eq!(answer, json!({"id": "e", "run": 1, "runs": []}));
}

#[tokio::test]
async fn the_timeline_and_the_export_of_an_earlier_run_are_those_it_had() {
    let worker = in_its_fourth_run().await;
    let timeline = worker.get("/v1/executions/e/timeline?run=1").await;
    assert_eq!(timeline["run"], 1);
    let mut told = kinds(&timeline);
    told.sort_unstable();
    assert_eq!(told, ["run_continued", "started", "step_completed", "step_completed", "turn_started"]);
    let second = worker.get("/v1/executions/e/timeline?run=2").await;
    let expected = ["started", "run_continued", "run_started", "execution_failed"];
    assert_eq!(kinds(&second), expected);
    assert_eq!(second["entries"][3]["error"]["code"], "payment");
    let third = worker.get("/v1/executions/e/timeline?run=3").await;
    assert_eq!(third["entries"].as_array().unwrap().last().unwrap()["output"], "done");
    let current = worker.get("/v1/executions/e/timeline").await;
    assert_eq!(current, worker.get("/v1/executions/e/timeline?run=4").await);
    assert_eq!(current["run"], 4);

    let export = worker.get("/v1/executions/e/export?run=1&payloads=true").await;
    assert_eq!((&export["execution"]["run"], &export["execution"]["in"]), (&json!(1), &json!({"j": "1"})));
    let names: Vec<_> = export["entries"].as_array().unwrap().iter().map(|entry| &entry["s"]["n"]).collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn a_retried_run_is_shown_with_its_error_and_the_start_of_the_next_attempt() {
    let worker = Worker::default();
    let started =
        worker.start("e", json!({"input": 1, "execution_timeout": "1h", "run_timeout": "5m"})).await;
    worker.run(&["a"], failed_run()).await;
    let starts_at = worker.caller.after(30);
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["run"], &seen["input"]), (&json!("pending"), &json!(2), &json!(1)));
    assert_eq!((&seen["attempt"], &seen["max_attempts"]), (&json!(2), &json!(3)));
    assert_eq!(seen["next"], json!({"what": "run_starts", "at": starts_at}));
    assert_eq!((&seen["run_started_at"], &seen["available_at"]), (&json!(starts_at), &json!(starts_at)));
    assert_eq!(seen["deadline_at"], started["deadline_at"]);
    assert_eq!(seen["run_deadline_at"], worker.caller.after(330));

    let earlier = worker.get("/v1/executions/e/runs").await["runs"][0].clone();
    assert_eq!((&earlier["run"], &earlier["status"]), (&json!(1), &json!("failed")));
    assert_eq!((&earlier["error"]["code"], &earlier["retried_at"]), (&json!("payment"), &json!(starts_at)));
    let first = worker.get("/v1/executions/e/timeline?run=1").await;
    let last = first["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["kind"], &last["until"]), (&json!("run_failed"), &json!(starts_at)));
    assert_eq!(last["error"]["code"], "payment");
    let second = worker.get("/v1/executions/e/timeline").await;
    assert_eq!(kinds(&second), ["started", "retried", "run_started"]);

    assert!(worker.try_take().await.is_none(), "before the policy's delay");
    worker.caller.pass(30).await;
    let turn = worker.take("e").await;
    worker.close(turn, vec![], failed_run()).await;
    worker.caller.pass(30).await;
    let turn = worker.take("e").await;
    worker.close(turn, vec![], failed_run()).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["run"], &seen["attempt"]), (&json!("failed"), &json!(3), &json!(3)));
    worker.operate("e", "restart").await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["run"], &seen["attempt"], &seen["max_attempts"]), (&json!(4), &json!(1), &json!(3)));
}

/// As when a store deletes items early.
#[tokio::test]
async fn an_export_leaves_out_payloads_that_have_expired() {
    let store = Arc::new(MemoryStore::default());
    let worker = Worker { caller: Caller::over(store.clone()) };
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let large = Json::parse(json!("x".repeat(5_000)).to_string()).unwrap();
    let output = Some(worker.caller.scene.service.store_payload(large).await.unwrap());
    let outcome = StepOutcome::Completed { output };
    let aside = worker.entry(Happened::Step {
        name: name("aside"),
        outcome,
        attempts: Some(1),
        expired: None,
        errors: vec![],
    });
    worker.close(turn, vec![aside, worker.step("inline", &json!(2))], completed(&json!(3))).await;
    let gone = store.delete_expired(FAR, |item| matches!(item, Item::Blob(_)));
    assert_eq!(gone.len(), 1);
    let export = worker.get("/v1/executions/e/export?payloads=true").await;
    let outputs: Vec<_> =
        export["entries"].as_array().unwrap().iter().map(|entry| &entry["s"]["o"]["c"]["o"]).collect();
    assert_eq!(outputs[1], &json!({"j": "2"}));
    assert_eq!(outputs[0]["b"]["n"], json!(5_002), "{export}");
}

#[tokio::test]
async fn a_run_that_doesnt_exist_or_isnt_kept_is_refused() {
    let worker = in_its_fourth_run().await;
    for path in ["timeline?run=0", "timeline?run=5", "export?run=9", "timeline?run=x", "runs?cursor=x"] {
        worker.refused(&format!("/v1/executions/e/{path}")).await;
    }
    let (status, _) = worker.caller.send(Method::GET, "/v1/executions/nobody/runs", None).await;
    assert_eq!(status.as_u16(), 404);
}

/// The first write of a turn's end was refused because an event had arrived. The run ended with the second one.
#[tokio::test]
async fn the_end_of_a_refused_write_isnt_the_end_of_the_run() {
    let store = Arc::new(MemoryStore::default());
    let worker = Worker { caller: Caller::over(store.clone()) };
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    worker.caller.ok("/v1/executions/e/events/go", json!({"payload": 1})).await;
    let ending = Ending::ContinueAsNew { input: None, carried: vec![] };
    let execution = worker.try_close(&turn, vec![worker.step("a", &json!(1))], ending).await.unwrap();
    let (id, incarnation) = (&execution.id, execution.incarnation);
    let segments = store.segments(id, incarnation, 1, 0).await.unwrap();
    assert_eq!(segments.iter().filter(|(_, segment)| segment.end.is_some()).count(), 2);
    let timeline = worker.get("/v1/executions/e/timeline?run=1").await;
    let mut told = kinds(&timeline);
    told.sort_unstable();
    assert_eq!(told, ["event_sent", "run_continued", "started", "step_completed", "turn_started"]);
}

#[tokio::test]
async fn an_earlier_run_is_described_with_its_own_state_input_and_output() {
    let worker = in_its_fourth_run().await;
    let of_run =
        async |run: u32| worker.get(&format!("/v1/executions/e?run={run}")).await["execution"].take();
    let first = of_run(1).await;
    assert_eq!(
        (&first["status"], &first["input"], &first["run"]),
        (&json!("continued"), &json!(1), &json!(1))
    );
    assert_eq!(first["ended_at"], worker.get("/v1/executions/e/runs").await["runs"][2]["ended_at"]);
    assert_eq!(first["next"], json!({"what": "next_run"}));
    for gone in ["worker", "lease_expires_at", "waits_for", "output", "error"] {
        assert_eq!(first.get(gone), None, "{gone}");
    }
    let second = of_run(2).await;
    assert_eq!((&second["status"], &second["input"]), (&json!("failed"), &json!(2)));
    assert_eq!(second["cause"]["step"], "charge");
    let third = of_run(3).await;
    assert_eq!((&third["status"], &third["output"]), (&json!("completed"), &json!("done")));
    // The current one is described as without a number.
    assert_eq!(of_run(4).await, worker.seen("e").await);
    assert_eq!(worker.refused("/v1/executions/e?run=5").await["field"], "run");
    assert_eq!(worker.refused("/v1/executions/e?run=1&wait=1s").await["field"], "wait");
}
