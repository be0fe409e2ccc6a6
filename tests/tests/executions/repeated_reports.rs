//! A repeated report of a turn, because the first answer was lost or others have written meanwhile: nothing is recorded
//! twice, and nothing is lost.

use serde_json::{Value, json};
use tickover_core::execution::command::Ending;
use tickover_core::execution::journal::{Entry, Happened, pending_events};
use tickover_core::id::ExecutionId;
use tickover_service::executions::StartedTurn;

use crate::worker::{Worker, payload};

impl Worker {
    async fn send(&self, event: &str, id: &str) {
        let body = json!({"event_id": id});
        self.caller.ok(&format!("/v1/executions/e/events/{event}"), body).await;
    }

    /// The ids of the events that wait, oldest first.
    async fn waiting(&self) -> Vec<Value> {
        let mut pending = self.get("/v1/executions/e/events").await;
        let events = pending["events"].as_array_mut().expect("a list").iter_mut();
        events.map(|event| event["event_id"].take()).collect()
    }

    async fn journal(&self) -> Vec<Entry> {
        let id = ExecutionId::parse("e").expect("an id");
        let service = &self.caller.scene.service;
        let described = service.execution(&id).await.expect("an answer").expect("an execution");
        service.journal_of(&described.execution).await.expect("a journal")
    }
}

/// The ending that continues as new, with the events that this turn knows of.
fn continue_with_new_run(turn: &StartedTurn, brought: &[Entry]) -> Ending {
    let journal: Vec<Entry> = turn.journal.iter().chain(brought).cloned().collect();
    let events = pending_events(&journal).into_iter().cloned().collect();
    Ending::ContinueAsNew { input: Some(payload(&json!(2))), carried: events }
}

/// A turn of an execution to which three events have been sent.
async fn with_events(worker: &Worker) -> StartedTurn {
    worker.start("e", json!({})).await;
    for (event, id) in [("go", "1"), ("stop", "2"), ("go", "3")] {
        worker.send(event, id).await;
    }
    worker.take("e").await
}

#[tokio::test]
async fn an_event_that_comes_just_before_the_next_run_waits_in_it_behind_the_others() {
    let worker = Worker::default();
    let turn = with_events(&worker).await;
    let taken = vec![worker.taken("go")];
    let ending = continue_with_new_run(&turn, &taken);
    // The turn has read its journal, and its write comes next.
    worker.send("go", "4").await;
    worker.close(turn, taken, ending).await;
    assert_eq!(worker.seen("e").await["run"], 2);
    assert_eq!(worker.waiting().await, ["2", "3", "4"]);
    let turn = worker.take("e").await;
    let taken = vec![worker.taken("go")];
    let ending = continue_with_new_run(&turn, &taken);
    worker.close(turn, taken, ending).await;
    assert_eq!(worker.waiting().await, ["2", "4"]);
}

#[tokio::test]
async fn an_event_is_carried_over_although_earlier_ones_were_sealed() {
    let worker = Worker::default();
    let turn = with_events(&worker).await;
    let large = |index: usize| worker.step(&format!("large[{index}]"), &json!("x".repeat(190)));
    let brought: Vec<Entry> = (0..6).map(large).collect();
    let known = turn.execution.clone();
    let turn = StartedTurn { execution: worker.record(&turn, brought).await.unwrap(), ..turn };
    assert!(turn.execution.sealed.is_some() && known.sealed.is_none());
    let ending = continue_with_new_run(&turn, &[]);
    worker.send("go", "4").await;
    worker.close(turn, vec![], ending).await;
    assert_eq!(worker.waiting().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_record_that_is_repeated_is_in_the_journal_once() {
    let worker = Worker::default();
    let turn = with_events(&worker).await;
    let brought = vec![worker.step("charge", &json!(1)), worker.taken("go")];
    worker.record(&turn, brought.clone()).await.unwrap();
    // The answer was lost, an event was written in between, and the turn knows of neither.
    worker.send("go", "4").await;
    let more = [brought, vec![worker.step("print", &json!(2))]].concat();
    worker.record(&turn, more).await.unwrap();
    let named = |text: &str| {
        let text = text.to_owned();
        move |entry: &&Entry| matches!(&entry.what, Happened::Step { name, .. } | Happened::Waited { name, .. } if name.as_str() == text)
    };
    let journal = worker.journal().await;
    for step in ["charge", "go", "print"] {
        assert_eq!(journal.iter().filter(named(step)).count(), 1, "{step}");
    }
    assert_eq!(worker.waiting().await, ["2", "3", "4"]);
}

#[tokio::test]
async fn the_end_of_a_run_that_is_repeated_ends_no_other_run() {
    let worker = Worker::default();
    let turn = with_events(&worker).await;
    let ending = || continue_with_new_run(&turn, &[]);
    worker.try_close(&turn, vec![], ending()).await.unwrap();
    worker.send("go", "4").await;
    assert!(worker.try_close(&turn, vec![], ending()).await.is_err());
    assert_eq!(worker.seen("e").await["run"], 2);
    assert_eq!(worker.waiting().await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn cleared_events_are_neither_taken_nor_carried_over() {
    let drain = |worker: &Worker| {
        let service = worker.caller.scene.service.clone();
        let (id, name) =
            (ExecutionId::parse("e").unwrap(), tickover_core::id::EventName::parse("go").unwrap());
        async move { service.clear_events(&id, name).await.unwrap() }
    };
    let worker = Worker::default();
    let turn = with_events(&worker).await;
    let (taken, ending) = (vec![worker.taken("go")], continue_with_new_run(&turn, &[]));
    assert_eq!(drain(&worker).await, 2);
    assert!(worker.record(&turn, taken).await.is_err(), "it took an event that was already taken");
    worker.close(turn, vec![], ending).await;
    assert_eq!(worker.waiting().await, ["2"]);
}
