//! What functions do seldom, as they are deployed. It needs permissions all the same: the judge refuses what a role of the
//! template may not do, and `cargo xtask test` lists the permissions that no test needs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tickover_api::calls;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::ExecutionId;
use tickover_core::timer::{Sweep, Wake};
use tickover_service::Service;
use tickover_service::memory::ManualClock;
use tickover_tests::emulator::judge;
use tickover_tests::runtime_api::Function;

use crate::deployment::{Deployment, batch, failed_messages, now};
use crate::permissions::{ask, call, envelope, long_text};
use crate::polling::worker as program;

/// How long something may take that real time brings.
const BOUND: Duration = Duration::from_mins(1);
/// More events than one record holds.
const EVENTS: usize = 400;

async fn execution(service: &Service, id: &str) -> tickover_core::execution::Execution {
    service.execution(&ExecutionId::parse(id).unwrap()).await.unwrap().unwrap().execution
}

/// Sends an event that nothing waits for.
async fn send(schedule: &Function, id: &str, number: usize) {
    let event =
        json!({"id": id, "name": "noise", "event_id": format!("e{number}"), "payload": "p".repeat(9_000)});
    schedule.invoke(envelope("event", &event)).await.unwrap();
}

/// Sends events that nothing waits for until the oldest are in segments.
async fn fill(service: &Service, schedule: &Function, id: &str) {
    for number in 0..EVENTS {
        if number % 20 == 19 && execution(service, id).await.sealed.is_some() {
            return;
        }
        send(schedule, id, number).await;
    }
    panic!("its journal is still in its record: {:?}", execution(service, id).await);
}

#[tokio::test]
async fn a_long_journal_is_read_for_its_timeline_and_by_its_next_turn() {
    let deployment = Deployment::new().await.with_everything().await;
    let [schedule, worker] = [deployment.start("schedule").await, deployment.start("worker").await];
    let (gateway, service) = (deployment.start("gateway").await, deployment.service().await);
    let order = json!({"number": 1, "boxes": ["books"], "express": true});
    let start = json!({"id": "long", "workflow": "order-fulfilment", "queue": "emails", "input": order});
    ask(&schedule, envelope("execution", &start)).await;
    let turn = async || {
        let turn = worker.invoke(batch("sqs_ingress", deployment.hints().await)).await.unwrap();
        assert_eq!(failed_messages(&turn), [""; 0], "{}", worker.logs());
    };
    turn().await;
    fill(&service, &schedule, "long").await;
    let timeline = call(&gateway, "GET", "/v1/executions/long/timeline", json!({})).await;
    assert!(timeline["entries"].as_array().is_some_and(|entries| entries.len() > 20), "{timeline}");
    // The first event again: the record no longer knows it.
    send(&schedule, "long", 0).await;
    let shipped = json!({"id": "long", "name": "shipped", "payload": {"carrier": "a bicycle"}});
    ask(&schedule, envelope("event", &shipped)).await;
    let ends = async {
        while execution(&service, "long").await.closed().is_none() {
            turn().await;
        }
    };
    tokio::time::timeout(BOUND, ends).await.unwrap();
    assert_eq!(execution(&service, "long").await.status(), ExecutionStatus::Completed);
}

/// Whoever looks at an execution first after its deadline ends it, with its open steps.
#[tokio::test]
async fn a_long_journal_is_read_by_whoever_ends_its_execution() {
    let deployment = Deployment::new().await.with_everything().await;
    let [schedule, tick] = [deployment.start("schedule").await, deployment.start("tick").await];
    let service = deployment.service().await;
    let folder = tempfile::tempdir().unwrap();
    for (id, by_event) in [("by-event", true), ("by-tick", false)] {
        let errand = json!({"parcels": [{"name": "books", "gate": folder.path().join("closed")}]});
        let start = json!({"id": id, "workflow": "errand", "queue": "emails", "input": errand,
                           "execution_timeout": "20s"});
        let works = program(&deployment.environment("worker", &judge()), &["10m", "1s"]);
        ask(&schedule, envelope("execution", &start)).await;
        let waits = async {
            loop {
                let record = execution(&service, id).await;
                if record.status() == ExecutionStatus::Waiting && record.open_steps == 1 {
                    return;
                }
            }
        };
        tokio::time::timeout(BOUND, waits).await.unwrap();
        // Nobody is left who would end it.
        drop(works);
        fill(&service, &schedule, id).await;
        let ends = async {
            while execution(&service, id).await.closed().is_none() {
                if by_event {
                    send(&schedule, id, EVENTS).await;
                } else {
                    assert_eq!(ask(&tick, json!({})).await["failed"], 0, "{}", tick.logs());
                }
            }
        };
        let ended = tokio::time::timeout(BOUND, ends).await;
        assert!(ended.is_ok(), "{:?}", execution(&service, id).await);
    }
}

/// The service of the deployment, so many days ago.
async fn days_ago(deployment: &Deployment, days: u64) -> Service {
    let then = now().minus(Millis::from_secs(days * 86_400));
    deployment.service_at(Arc::new(ManualClock::new(then))).await
}

#[tokio::test]
async fn a_task_that_waits_for_months_keeps_its_key() {
    let deployment = Deployment::new().await.with_everything().await;
    let task =
        json!({"id": "patient", "idempotency_key": "once", "queue": "emails", "kind": "k"}).to_string();
    calls::schedule(&days_ago(&deployment, 58).await, task.as_bytes()).await.unwrap();
    let expiry = async || {
        let items = deployment.items().await;
        let key = items.iter().find(|item| item["pk"].as_s().unwrap().starts_with("key#")).unwrap();
        key["ttl"].as_n().unwrap().clone()
    };
    let before = expiry().await;
    let tick = deployment.start("tick").await;
    assert_eq!(ask(&tick, json!({"scheduled_at": now().to_rfc3339()})).await["failed"], 0, "{}", tick.logs());
    assert_ne!(expiry().await, before, "{}", tick.logs());
}

#[tokio::test]
async fn a_worker_that_ends_an_old_execution_keeps_its_input_longer() {
    let deployment = Deployment::new().await.with_everything().await;
    let order = json!({"number": 1, "boxes": [], "express": true, "note": long_text()});
    let start = json!({"id": "old", "workflow": "order-fulfilment", "queue": "emails", "input": order});
    calls::executions::start(&days_ago(&deployment, 85).await, start.to_string().as_bytes()).await.unwrap();
    let service = deployment.service().await;
    let before = execution(&service, "old").await.kept;
    let worker = deployment.start("worker").await;
    let ends = async {
        while execution(&service, "old").await.closed().is_none() {
            let turn = worker.invoke(batch("sqs_ingress", deployment.hints().await)).await.unwrap();
            assert_eq!(failed_messages(&turn), [""; 0], "{}", worker.logs());
        }
    };
    tokio::time::timeout(BOUND, ends).await.unwrap();
    let after = execution(&service, "old").await;
    assert!(after.kept > before, "{before:?} {after:?}");
}

#[tokio::test]
async fn a_cron_writes_down_a_queue_that_is_new_and_a_sweep_that_goes_on() {
    let deployment = Deployment::new().await.with_everything().await;
    let cron = json!({"id": "hourly", "every": "1h", "task": {"queue": "emails", "kind": "k"}}).to_string();
    calls::create_cron(&days_ago(&deployment, 1).await, cron.as_bytes()).await.unwrap();
    let tick = deployment.start("tick").await;
    assert_eq!(ask(&tick, json!({"scheduled_at": now().to_rfc3339()})).await["failed"], 0, "{}", tick.logs());
    let body = Wake::Sweep(Sweep { shard: 0, since: None }).body().unwrap();
    let swept = tick.invoke(batch("sqs_timers", vec![body])).await.unwrap();
    assert_eq!(failed_messages(&swept), [""; 0], "{}", tick.logs());
    let items = deployment.items().await;
    for kind in ["queue#emails", "tick"] {
        assert!(items.iter().any(|item| item["pk"].as_s().unwrap().starts_with(kind)), "{kind}: {items:?}");
    }
}

#[tokio::test]
async fn a_worker_leaves_work_of_each_class_that_it_does_not_know_to_others() {
    let deployment = Deployment::new().await.with_everything().await;
    for class in ["high", "low"] {
        deployment.class_queue(class).await;
    }
    let [schedule, worker] = [deployment.start("schedule").await, deployment.start("worker").await];
    for class in ["high", "low"] {
        ask(&schedule, json!({"id": class, "queue": "emails", "kind": "unknown", "priority": class})).await;
        let (name, bodies) = deployment.hints_of(class).await;
        let mut delivered = batch("sqs_ingress", bodies);
        delivered["Records"][0]["eventSourceARN"] =
            json!(format!("arn:aws:sqs:us-east-1:000000000000:{name}"));
        let answer = worker.invoke(delivered).await.unwrap();
        assert_eq!(failed_messages(&answer).len(), 1, "{answer}; {}", worker.logs());
    }
}

/// Steps and programs beside them use a worker's permissions.
#[tokio::test]
async fn a_program_with_a_workers_permissions_schedules_a_task_under_a_key() {
    let deployment = Deployment::new().await.with_everything().await;
    for _ in 0..2 {
        let noted =
            program(&deployment.environment("worker", &judge()), &["note", "once"]).ended().await.unwrap();
        assert_eq!(noted.status.code(), Some(0), "{noted:?}");
    }
    let service = deployment.service().await;
    assert_eq!(calls::list(&service, &[]).await.unwrap().body.get().matches("\"kind\":\"note\"").count(), 1);
    assert!(!deployment.due_timers().await.is_empty());
}
