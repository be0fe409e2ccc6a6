//! Batches from the queue of timers.

use serde_json::{Value, json};
use tickover_core::id::TaskId;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};

use crate::deployment::{Deployment, batch, failed_messages, message_id, running_task, waiting_task};

/// A timer's message for this task. `due_at` is the instant of the due slot for which it was sent.
fn timer(task: &str, at: Timestamp, due_at: Timestamp) -> String {
    Wake::Timer(Timer { record: TaskId::parse(task).unwrap().into(), at, due_at }).body().unwrap()
}

fn instant(value: &Value) -> Timestamp {
    Timestamp::parse_rfc3339(value.as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn only_the_invalid_timers_of_a_batch_fail_and_a_valid_one_takes_effect() {
    let deployment = Deployment::new().await;
    let [schedule, claim, tick] =
        [deployment.start("schedule").await, deployment.start("claim").await, deployment.start("tick").await];
    let later = waiting_task(&schedule, "later", json!({"timeout": "1h"})).await;
    let soon = waiting_task(&schedule, "soon", json!({"timeout": "1s"})).await;
    let (deadline_at, created_at) = (instant(&soon["deadline_at"]), instant(&soon["created_at"]));

    let timers = batch(
        "sqs_timers",
        [
            r#"{"v":1,"timer":{"task":"soon","#.to_owned() + r#""at":"seagull"}}"#,
            timer("soon", deadline_at, deadline_at).replace(r#""v":1"#, r#""seagull":1,"v":2"#),
            timer("nobody", created_at, created_at),
            // The id is in use again: this timer was for an earlier task with the id.
            timer("later", created_at, created_at),
            timer("soon", deadline_at, deadline_at),
        ],
    );
    let answer = tick.invoke(timers.clone()).await.unwrap();
    assert_eq!(failed_messages(&answer), [message_id(&timers, 0), message_id(&timers, 1)]);
    let logs = tick.logs();
    for (place, reason) in [(0, "not a timer: Data error at line 1 column"), (1, "a timer of format 2")] {
        let id = message_id(&timers, place);
        let line = logs.lines().find(|line| line.contains("message failed") && line.contains(id));
        assert!(line.is_some_and(|line| line.contains(reason)), "{reason}: {logs}");
    }
    assert!(!logs.contains("seagull"), "a message's body is logged: {logs}");

    // The valid timer waited for the rest of its second.
    let refused = claim.invoke(json!({"id": "soon", "worker": "worker-1"})).await.unwrap();
    assert_eq!(refused["code"], "already_terminal", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("timed_out"), "{refused}");
    // The task whose id an old timer named is unchanged.
    let claimed = claim.invoke(json!({"id": "later", "worker": "worker-1"})).await.unwrap();
    let task = &claimed["tasks"][0];
    assert_eq!((&task["attempt"], &task["deadline_at"]), (&json!(1), &later["deadline_at"]), "{claimed}");
}

#[tokio::test]
async fn timers_of_a_batch_wait_for_their_last_second_side_by_side() {
    let deployment = Deployment::new().await;
    let [schedule, claim, tick] =
        [deployment.start("schedule").await, deployment.start("claim").await, deployment.start("tick").await];
    assert_eq!(tick.init_error().await, None);
    let mut timers = Vec::new();
    let mut leases = Vec::new();
    for place in 0..10 {
        let id = format!("t{place}");
        leases.push(running_task(&schedule, &claim, &id, json!({"start_to_close_timeout": "1s"})).await);
    }
    let first_at = crate::deployment::now();
    for place in 0..10 {
        let id = format!("t{place}");
        // All of these timers wait for an instant just ahead, although their own instants may have passed.
        timers.push(timer(&id, first_at.plus(tickover_core::duration::Millis::new(900)), first_at));
    }
    let answer = tick.invoke(batch("sqs_timers", timers)).await.unwrap();
    assert_eq!(failed_messages(&answer), [""; 0]);
    let took_ms = crate::deployment::now().since(first_at).as_u64();
    assert!((900..5_000).contains(&took_ms), "ten timers, a second each, took {took_ms} ms");
}
