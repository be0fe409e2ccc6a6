//! Executions with places at keys and starts by rates: who begins, who waits, and what each of them keeps.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_service::executions::StartedTurn;
use tickover_service::ports::Clock as _;

use crate::worker::{Worker, completed};

/// A place at each of these keys, of so many.
fn places(keys: &[(&str, u16)]) -> Value {
    let one = |(key, limit): &(&str, u16)| json!({"key": key, "limit": limit});
    json!({"concurrency": keys.iter().map(one).collect::<Vec<_>>()})
}

impl Worker {
    async fn limit(&self, key: &str) -> Value {
        self.get(&format!("/v1/limits/{key}")).await["limit"].take()
    }

    /// Who has a place at a key, and who waits there.
    async fn at(&self, key: &str) -> (Vec<String>, Vec<String>) {
        let limit = self.limit(key).await;
        let names = |list: &Value| {
            let name = |one: &Value| {
                let task = one["task"].as_str().map(ToOwned::to_owned);
                task.unwrap_or_else(|| format!("@{}", one["execution"].as_str().expect("an owner")))
            };
            list.as_array().expect("a list").iter().map(name).collect()
        };
        (names(&limit["holders"]), names(&limit["next"]))
    }

    async fn end(&self, turn: StartedTurn) {
        self.close(turn, vec![], completed(&json!("done"))).await;
    }

    fn pass_without_tick(&self, millis: u64) {
        self.caller.scene.clock.advance(Millis::new(millis));
    }
}

#[tokio::test]
async fn no_more_executions_than_the_limit_are_in_progress_and_who_ends_promotes_the_next_at_once() {
    let worker = Worker::default();
    for id in ["a", "b", "c"] {
        worker.start(id, places(&[("customer-7", 1)])).await;
        worker.pass_without_tick(1);
    }
    let first = worker.take("a").await;
    assert!(worker.try_take().await.is_none());
    assert_eq!(
        worker.at("customer-7").await,
        (vec!["@a".to_owned()], vec!["@b".to_owned(), "@c".to_owned()])
    );
    worker.end(first).await;
    let second = worker.take("b").await;
    assert!(worker.try_take().await.is_none());
    worker.end(second).await;
    let third = worker.take("c").await;
    worker.end(third).await;
    assert_eq!(worker.at("customer-7").await, (vec![], vec![]));
}

#[tokio::test]
async fn an_execution_keeps_its_place_while_it_sleeps_for_months_and_through_all_its_runs() {
    let worker = Worker::default();
    worker.start("sleeper", places(&[("k", 1)])).await;
    let turn = worker.take("sleeper").await;
    worker.pass_without_tick(1);
    worker.start("other", places(&[("k", 1)])).await;
    assert!(worker.try_take().await.is_none());
    let wakes_at = worker.caller.scene.clock.now().plus(Millis::from_days(200));
    worker.suspend(turn, vec![], Some(wakes_at)).await;
    for _ in 0..20 {
        worker.caller.pass(10 * 86_400).await;
        assert_eq!(worker.at("k").await.0, ["@sleeper"]);
    }
    let turn = worker.take("sleeper").await;
    let again = tickover_core::execution::command::Ending::ContinueAsNew { input: None, carried: vec![] };
    worker.close(turn, vec![], again).await;
    let turn = worker.take("sleeper").await;
    assert_eq!((turn.execution.run, worker.at("k").await.0), (2, vec!["@sleeper".to_owned()]));
    worker.end(turn).await;
    let other = worker.take("other").await;
    assert_eq!(worker.at("k").await, (vec!["@other".to_owned()], vec![]));
    worker.end(other).await;
}

#[tokio::test]
async fn tasks_and_executions_of_one_key_have_its_places_together() {
    let worker = Worker::default();
    worker.start("order", places(&[("k", 1)])).await;
    worker.caller.schedule("mail", places(&[("k", 1)])).await;
    let turn = worker.take("order").await;
    assert!(worker.caller.claim().await.is_none());
    assert_eq!(worker.at("k").await, (vec!["@order".to_owned()], vec!["mail".to_owned()]));
    worker.end(turn).await;
    let task = worker.caller.claim().await.expect("the task");
    worker.start("next", places(&[("k", 1)])).await;
    assert!(worker.try_take().await.is_none());
    let path = "/v1/tasks/mail/complete";
    worker.caller.ok(path, json!({"lease": task["lease"]})).await;
    worker.take("next").await;
}

#[tokio::test]
async fn who_waits_sees_the_key_its_position_and_who_has_the_places() {
    let worker = Worker::default();
    worker.start("a", places(&[("k", 1)])).await;
    let _turn = worker.take("a").await;
    worker.start("b", places(&[("k", 1)])).await;
    assert!(worker.try_take().await.is_none());
    let seen = worker.seen("b").await;
    assert_eq!(seen["next"]["what"], "waits_for_place");
    assert_eq!((&seen["waits_at"]["position"], &seen["waits_at"]["limit"]["key"]), (&json!(1), &json!("k")));
    let holders = &seen["waits_at"]["limit"]["holders"];
    assert_eq!(holders, &json!([{"execution": "a", "called": false}]));
    // The one that has a place waits for nothing.
    assert!(worker.seen("a").await["waits_at"].is_null());
}

#[tokio::test]
async fn who_is_cancelled_or_times_out_while_it_waits_leaves_the_line() {
    let worker = Worker::default();
    worker.start("a", places(&[("k", 1)])).await;
    let turn = worker.take("a").await;
    let late = json!({"concurrency": [{"key": "k", "limit": 1}], "execution_timeout": "30s"});
    for (id, fields) in [("cancelled", places(&[("k", 1)])), ("late", late), ("last", places(&[("k", 1)]))] {
        worker.pass_without_tick(1);
        worker.start(id, fields).await;
        assert!(worker.try_take().await.is_none());
    }
    worker.operate("cancelled", "cancel").await;
    assert_eq!(worker.at("k").await.1, ["@late", "@last"]);
    worker.caller.scene.clock.advance(Millis::from_secs(31));
    worker.caller.scene.fire().await;
    worker.caller.pass(1).await;
    assert_eq!(worker.seen("late").await["status"], "timed_out");
    assert_eq!(worker.at("k").await.1, ["@last"]);
    worker.end(turn).await;
    worker.take("last").await;
}

#[tokio::test]
async fn who_is_paused_while_it_waits_lets_others_go_first_and_comes_again_when_it_is_resumed() {
    let worker = Worker::default();
    worker.start("a", places(&[("k", 1)])).await;
    let turn = worker.take("a").await;
    for id in ["paused", "other"] {
        worker.pass_without_tick(1);
        worker.start(id, places(&[("k", 1)])).await;
        assert!(worker.try_take().await.is_none());
    }
    worker.operate("paused", "pause").await;
    worker.end(turn).await;
    let other = worker.take("other").await;
    worker.operate("paused", "resume").await;
    assert!(worker.try_take().await.is_none());
    worker.end(other).await;
    worker.take("paused").await;
}

#[tokio::test]
async fn while_it_waits_at_one_key_it_has_no_place_at_the_others() {
    let worker = Worker::default();
    worker.start("a", places(&[("x", 1)])).await;
    let first = worker.take("a").await;
    worker.start("b", places(&[("x", 1), ("y", 1), ("z", 1)])).await;
    assert!(worker.try_take().await.is_none());
    for key in ["x", "y", "z"] {
        assert!(!worker.at(key).await.0.contains(&"@b".to_owned()), "{key}");
    }
    // So it doesn't keep those from starting that need only the others.
    worker.start("c", places(&[("y", 1), ("z", 1)])).await;
    let third = worker.take("c").await;
    worker.end(first).await;
    assert!(worker.try_take().await.is_none());
    worker.end(third).await;
    // A line calls again whoever still waits for another key, after the minute of its call at the latest.
    let mut turn = worker.try_take().await;
    for _ in 0..5 {
        if turn.is_some() {
            break;
        }
        worker.caller.pass(61).await;
        turn = worker.try_take().await;
    }
    assert_eq!(turn.expect("a turn").execution.id.as_str(), "b");
    for key in ["x", "y", "z"] {
        assert_eq!(worker.at(key).await.0, ["@b"], "{key}");
    }
}

#[tokio::test]
async fn repeated_hints_of_one_execution_take_one_place_and_free_none_that_it_has() {
    let worker = Worker::default();
    worker.start("a", places(&[("x", 2), ("y", 1)])).await;
    // A second start sends a second hint.
    worker.start("a", places(&[("x", 2), ("y", 1)])).await;
    let turn = worker.take("a").await;
    assert!(worker.try_take().await.is_none());
    assert_eq!(worker.at("x").await, (vec!["@a".to_owned()], vec![]));
    assert_eq!(worker.at("y").await, (vec!["@a".to_owned()], vec![]));
    worker.end(turn).await;
    assert_eq!(worker.at("x").await, (vec![], vec![]));
}

#[tokio::test]
async fn an_execution_that_is_restarted_needs_a_place_again() {
    let worker = Worker::default();
    worker.start("a", places(&[("k", 1)])).await;
    let turn = worker.take("a").await;
    worker.close(turn, vec![], crate::worker::failed_by("charge")).await;
    worker.start("b", places(&[("k", 1)])).await;
    let turn = worker.take("b").await;
    worker.operate("a", "restart").await;
    assert!(worker.try_take().await.is_none());
    worker.end(turn).await;
    worker.take("a").await;
    assert_eq!(worker.at("k").await.0, ["@a"]);
}

#[tokio::test]
async fn an_operator_takes_its_place_from_an_execution_and_it_goes_on() {
    let worker = Worker::default();
    worker.start("a", places(&[("k", 1)])).await;
    let turn = worker.take("a").await;
    worker.start("b", places(&[("k", 1)])).await;
    assert!(worker.try_take().await.is_none());
    let (status, answer) = worker.caller.send(Method::DELETE, "/v1/limits/k/holders/@a", None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    worker.take("b").await;
    worker.end(turn).await;
    assert_eq!(worker.at("k").await.0, ["@b"]);
    let (status, answer) = worker.caller.send(Method::DELETE, "/v1/limits/k/holders/@@a", None).await;
    assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));
}

#[tokio::test]
async fn executions_of_a_rate_start_evenly_spread_and_say_so() {
    let worker = Worker::default();
    let rate = json!({"rate": {"key": "api", "limit": 6, "per": "1m"}});
    for id in ["a", "b", "c"] {
        worker.start(id, rate.clone()).await;
    }
    worker.take("a").await;
    assert!(worker.try_take().await.is_none());
    let seen = worker.seen("c").await;
    assert_eq!(seen["next"], json!({"what": "waits_for_rate", "at": worker.caller.after(20), "key": "api"}));
    worker.caller.pass(10).await;
    worker.take("b").await;
    assert!(worker.try_take().await.is_none());
    // The last start is given back by who doesn't need it.
    worker.operate("c", "cancel").await;
    worker.start("d", rate).await;
    assert_eq!(worker.seen("d").await["available_at"], worker.caller.after(10));
    worker.caller.pass(10).await;
    worker.take("d").await;
}

#[tokio::test]
async fn a_repeated_start_takes_no_second_start_of_the_rate() {
    let worker = Worker::default();
    let rate = json!({"rate": {"key": "api", "limit": 6, "per": "1m"}});
    for _ in 0..3 {
        worker.start("a", rate.clone()).await;
    }
    worker.start("b", rate).await;
    assert_eq!(worker.seen("b").await["available_at"], worker.caller.after(10));
}

#[tokio::test]
async fn delayed_executions_and_those_that_waited_for_a_worker_reserve_their_start_at_their_first_turn() {
    let worker = Worker::default();
    let rate = |delay: &str| json!({"rate": {"key": "api", "limit": 1, "per": "1m"}, "delay": delay});
    worker.start("delayed", rate("10m")).await;
    for id in ["a", "b", "c"] {
        worker.start(id, rate("0s")).await;
    }
    assert_eq!(worker.seen("c").await["available_at"], worker.caller.after(120));
    // No worker came for an hour. They don't all start at once then.
    worker.caller.pass(3_600).await;
    let mut begun = vec![];
    for _ in 0..4 {
        let turn = worker.try_take().await.expect("a turn");
        begun.push(turn.execution.id.to_string());
        assert!(worker.try_take().await.is_none(), "after {begun:?}");
        worker.end(turn).await;
        worker.caller.pass(61).await;
    }
    begun.sort();
    assert_eq!(begun, ["a", "b", "c", "delayed"]);
}

#[tokio::test]
async fn limits_and_rates_that_cannot_be_are_refused_by_name() {
    let worker = Worker::default();
    for (fields, field) in [
        (json!({"concurrency": [{"key": "k", "limit": 0}]}), "concurrency"),
        (json!({"concurrency": [{"key": "k", "limit": 1_001}]}), "concurrency"),
        (json!({"concurrency": [{"key": "k".repeat(257), "limit": 1}]}), "concurrency"),
        (places(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)]), "concurrency"),
        (json!({"rate": {"key": "k", "limit": 0}}), "rate"),
        (json!({"rate": {"key": "k", "limit": 5, "burst": 6}}), "rate"),
        (json!({"rate": {"key": "k", "limit": 5, "per": "25h"}}), "rate"),
    ] {
        let mut body = json!({"workflow": "orders"});
        if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
            body.extend(fields);
        }
        let (status, problem) = worker.caller.post("/v1/executions", body.clone()).await;
        assert!(status.is_client_error(), "{body}: {problem}");
        assert!(problem.to_string().contains(field), "{body}: {problem}");
    }
    // Of two limits for one key, the later one counts.
    worker.start("a", places(&[("k", 1), ("k", 7)])).await;
    worker.take("a").await;
    assert_eq!(worker.limit("k").await["limit"], 7);
}

#[tokio::test]
async fn executions_of_a_unique_key_and_of_a_burst_are_one() {
    let worker = Worker::default();
    let unique = |on_conflict: &str| json!({"unique": {"key": "sync-7", "on_conflict": on_conflict}});
    worker.start("first", unique("existing")).await;
    let (status, answer) = worker
        .caller
        .post("/v1/executions", json!({"workflow": "orders", "unique": {"key": "sync-7"}}))
        .await;
    assert_eq!((status, &answer["execution"]["id"]), (StatusCode::OK, &json!("first")));
    let mut refused = json!({"workflow": "orders", "id": "other"});
    refused
        .as_object_mut()
        .expect("an object")
        .extend(unique("refuse").as_object().expect("an object").clone());
    assert_eq!(worker.caller.refused("/v1/executions", refused).await, (409, "not_unique".to_owned()));
    let turn = worker.take("first").await;
    worker.end(turn).await;

    let burst = |input: u32| {
        let debounce = json!({"key": "index-9", "wait": "10s", "at_most": "1m"});
        json!({"workflow": "orders", "input": input, "debounce": debounce})
    };
    let first = worker.caller.ok("/v1/executions", burst(1)).await["execution"].take();
    worker.caller.pass(9).await;
    let (status, second) = worker.caller.post("/v1/executions", burst(2)).await;
    assert_eq!((status, &second["execution"]["id"]), (StatusCode::OK, &first["id"]));
    assert_eq!(
        (&second["execution"]["input"], &second["execution"]["available_at"]),
        (&json!(2), &json!(worker.caller.after(10)))
    );
    worker.caller.pass(10).await;
    let turn = worker.try_take().await.expect("the last one");
    assert_eq!(turn.input.as_ref().map(tickover_core::payload::Json::as_str), Some("2"));
    let both = json!({"workflow": "orders", "unique": {"key": "a"}, "debounce": {"key": "a", "wait": "1s", "at_most": "1s"}});
    assert_eq!(worker.caller.refused("/v1/executions", both).await.0, 400);
}
