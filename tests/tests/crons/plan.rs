//! When runs start, and how many there are.

use axum::http::Method;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;

use super::{body, complete_all, cron, make, states, tasks, until};

#[tokio::test]
async fn a_cron_starts_its_task_by_the_clocks_of_its_zone() {
    let caller = Caller::default();
    let made = make(&caller, "nightly", json!({"cron": "30 2 * * *", "time_zone": "Europe/Berlin"})).await;
    assert_eq!(made["next_at"], "2026-01-01T01:30:00.000Z");
    for day in 1..=3 {
        until(&caller, &format!("2026-01-0{day}T12:00:00Z")).await;
        complete_all(&caller).await;
    }
    let expected = ["nightly-20260101T013000Z", "nightly-20260102T013000Z", "nightly-20260103T013000Z"];
    assert_eq!(tasks(&caller).await, expected);
    let cron = cron(&caller, "nightly").await;
    assert_eq!((&cron["started"], &cron["next_at"]), (&json!(3), &json!("2026-01-04T01:30:00.000Z")));
    assert_eq!(cron["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn a_change_of_clocks_neither_skips_nor_repeats_a_nightly_run() {
    let caller = Caller::default();
    // The two spans end before the spring and the autumn change of clocks in 2026.
    let to = async |instant: &str| until(&caller, instant).await;
    caller.scene.clock.advance(Millis::from_days(86));
    let fields = json!({"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "overlap": "allow_all"});
    make(&caller, "spring", fields.clone()).await;
    to("2026-03-31T00:00:00Z").await;
    caller.ok("/v1/crons/spring/pause", json!({})).await;
    caller.scene.clock.advance(Millis::from_days(207));
    make(&caller, "autumn", fields).await;
    to("2026-10-27T00:00:00Z").await;
    let expected = [
        "autumn-20261024T003000Z",
        "autumn-20261025T003000Z",
        "autumn-20261026T013000Z",
        "spring-20260328T013000Z",
        "spring-20260329T010000Z",
        "spring-20260330T003000Z",
    ];
    assert_eq!(tasks(&caller).await, expected);
}

#[tokio::test]
async fn an_interval_starts_its_task_to_the_second_and_under_a_chosen_id() {
    let caller = Caller::default();
    let task = json!({"queue": "work", "kind": "work", "id": "poll.{occurrence}.x", "input": {"n": 1.50},
        "labels": {"team": "a"}, "timeout": "1h", "retry": "fixed(2, 3s)"});
    make(&caller, "poll", json!({"every": "150s", "task": task})).await;
    // The write that created the cron has sent a timer, so no tick is needed.
    caller.scene.clock.advance(Millis::from_secs(150));
    assert!(caller.scene.fire().await > 0);
    let started = caller.task("poll.20260101T000230Z.x").await;
    assert_eq!(started["created_at"], "2026-01-01T00:02:30.000Z");
    assert_eq!(started["input"].to_string(), r#"{"n":1.5}"#);
    assert_eq!(started["labels"], json!({"team": "a"}));
    assert_eq!(
        (&started["max_attempts"], &started["deadline_at"]),
        (&json!(3), &json!("2026-01-01T01:02:30.000Z"))
    );
}

#[tokio::test]
async fn a_tick_starts_an_occurrence_whose_timer_is_lost() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "60s"})).await;
    caller.scene.lose_messages(&tickover_core::id::QueueName::timers()).await;
    caller.pass(90).await;
    assert_eq!(tasks(&caller).await, ["s-20260101T000100Z"]);
}

#[tokio::test]
async fn after_max_runs_a_cron_is_finished() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "10m", "max_runs": 2, "overlap": "allow_all"})).await;
    until(&caller, "2026-01-01T02:00:00Z").await;
    assert_eq!(tasks(&caller).await.len(), 2);
    let cron = cron(&caller, "s").await;
    assert_eq!(
        (&cron["status"], &cron["finished_at"]),
        (&json!("finished"), &json!("2026-01-01T00:20:00.000Z"))
    );
    assert_eq!(cron["next_at"], Value::Null);
}

#[tokio::test]
async fn jitter_delays_a_start_within_its_bounds_and_not_its_name() {
    let caller = Caller::default();
    let made = make(&caller, "s", json!({"every": "1h", "jitter": "20m", "overlap": "allow_all"})).await;
    let start = made["next_start_at"].as_str().unwrap().to_owned();
    assert!(
        start.as_str() > "2026-01-01T01:00:00.000Z" && start.as_str() <= "2026-01-01T01:20:00.000Z",
        "{start}"
    );
    until(&caller, "2026-01-01T01:00:00Z").await;
    assert_eq!(tasks(&caller).await.len(), 0);
    until(&caller, "2026-01-01T01:20:00Z").await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z"]);
    let created = caller.task("s-20260101T010000Z").await["created_at"].as_str().unwrap().to_owned();
    assert!(created >= start, "{created}");
}

#[tokio::test]
async fn missed_occurrences_are_skipped_or_run_once() {
    let caller = Caller::default();
    make(&caller, "skips", json!({"every": "1h"})).await;
    make(&caller, "runs", json!({"every": "1h", "missed": "run_once"})).await;
    caller.scene.lose_messages(&tickover_core::id::QueueName::timers()).await;
    // No function runs for a day and a half, not even the tick.
    caller.pass(36 * 3_600 + 1_800).await;
    assert_eq!(tasks(&caller).await, ["runs-20260102T120000Z"]);
    assert_eq!(states(&cron(&caller, "skips").await), ["skipped: missed"]);
    assert_eq!(cron(&caller, "runs").await["next_at"], "2026-01-02T13:00:00.000Z");
}

#[tokio::test]
async fn a_paused_cron_starts_nothing_until_it_is_resumed() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h", "paused": true})).await;
    until(&caller, "2026-01-01T03:30:00Z").await;
    let paused = cron(&caller, "s").await;
    assert_eq!((&paused["status"], &paused["next_at"]), (&json!("paused"), &Value::Null));
    let resumed = caller.ok("/v1/crons/s/resume", json!({})).await["cron"].take();
    assert_eq!(resumed["next_at"], "2026-01-01T04:00:00.000Z");
    until(&caller, "2026-01-01T04:30:00Z").await;
    assert_eq!(tasks(&caller).await, ["s-20260101T040000Z"]);
    caller.ok("/v1/crons/s/pause", json!({})).await;
    complete_all(&caller).await;
    until(&caller, "2026-01-01T06:30:00Z").await;
    assert_eq!(tasks(&caller).await.len(), 1);
}

#[tokio::test]
async fn a_trigger_starts_a_run_at_once_and_beside_the_plan() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h", "paused": true, "max_runs": 1})).await;
    caller.scene.clock.advance(Millis::from_secs(5));
    let triggered = caller.ok("/v1/crons/s/trigger", json!({})).await;
    assert_eq!(triggered["run"], "s-20260101T000005.000Z");
    assert_eq!(caller.task("s-20260101T000005.000Z").await["status"], "pending");
    let cron = cron(&caller, "s").await;
    assert_eq!((&cron["started"], &cron["runs"][0]["manual"]), (&json!(0), &json!(true)));
}

#[tokio::test]
async fn creating_a_cron_can_be_repeated_and_a_different_one_with_its_id_is_refused() {
    let caller = Caller::default();
    let asked = body("s", json!({"every": "1h"}));
    let (first, _) = caller.post("/v1/crons", asked.clone()).await;
    let (again, _) = caller.post("/v1/crons", asked).await;
    assert_eq!((first.as_u16(), again.as_u16()), (201, 200));
    let other = caller.refused("/v1/crons", body("s", json!({"every": "2h"}))).await;
    assert_eq!(other, (409, "id_conflict".to_owned()));
}

#[tokio::test]
async fn a_cron_is_replaced_listed_and_deleted() {
    let caller = Caller::default();
    let put = async |id: &str, fields: Value| {
        let (status, answer) =
            caller.send(Method::PUT, &format!("/v1/crons/{id}"), Some(&body(id, fields))).await;
        (status.as_u16(), answer["cron"].clone())
    };
    for id in ["a", "b", "c"] {
        assert_eq!(put(id, json!({"every": "1h"})).await.0, 201);
        caller.scene.clock.advance(Millis::from_secs(1));
    }
    let (status, changed) = put("a", json!({"cron": "0 12 * * *"})).await;
    assert_eq!((status, &changed["next_at"]), (200, &json!("2026-01-01T12:00:00.000Z")));
    assert_eq!(changed["every"], Value::Null);
    let (status, _) = caller.send(Method::DELETE, "/v1/crons/b", None).await;
    assert_eq!(status.as_u16(), 200);
    let list = async |query: &str| {
        let (_, answer) = caller.send(Method::GET, &format!("/v1/crons{query}"), None).await;
        let ids: Vec<String> = answer["crons"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, answer["cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(list("").await.0, ["a", "c"]);
    let (first, cursor) = list("?limit=1").await;
    let (rest, _) = list(&format!("?limit=5&cursor={}", cursor.unwrap())).await;
    assert_eq!([first, rest].concat(), ["a", "c"]);
    for call in ["pause", "trigger"] {
        assert_eq!(caller.refused(&format!("/v1/crons/b/{call}"), json!({})).await.0, 404);
    }
    until(&caller, "2026-01-01T01:30:00Z").await;
    assert_eq!(tasks(&caller).await, ["c-20260101T010002Z"]);
    // The id is free again.
    assert_eq!(put("b", json!({"every": "2h"})).await.0, 201);
}

#[tokio::test]
async fn a_request_accepted_in_a_cron_is_accepted_for_its_runs() {
    let caller = Caller::default();
    // The limit doesn't count white space that a person wrote.
    let labels = format!(r#"{{"team": {}"a"}}"#, " ".repeat(5_000));
    for (id, target, kind) in [("t", "task", "kind"), ("e", "execution", "workflow")] {
        let text = format!(
            r#"{{"every": "1h", "{target}": {{"queue": "work", "{kind}": "x", "labels": {labels}}}}}"#
        );
        let answer = caller.put_text(&format!("/v1/crons/{id}"), &text).await;
        assert_eq!(answer.0.as_u16(), 201, "{}", answer.1);
        let triggered = caller.ok(&format!("/v1/crons/{id}/trigger"), json!({})).await;
        assert_eq!(states(&triggered["cron"]), ["open"], "{triggered}");
    }
    let (_, tasks) = caller.send(Method::GET, "/v1/tasks", None).await;
    assert_eq!(tasks["tasks"][0]["labels"], json!({"team": "a"}));
}

#[tokio::test]
async fn a_cron_whose_every_run_would_be_refused_is_refused_with_the_limit() {
    let caller = Caller::default();
    let large: Value = (0..16).map(|index| (format!("l{index}"), json!("x".repeat(256)))).collect();
    let text = |bytes: usize| Value::from("x".repeat(bytes));
    for (target, limit) in [
        (json!({"task": {"queue": "q", "kind": "k", "labels": large}}), "labels_bytes"),
        (json!({"task": {"queue": "q", "kind": "k", "input": text(360_000)}}), "input_bytes"),
        (json!({"execution": {"workflow": "w", "labels": large}}), "labels_bytes"),
        (json!({"execution": {"workflow": "w", "memo": text(5_000)}}), "memo_bytes"),
        (json!({"execution": {"workflow": "w", "input": text(360_000)}}), "input_bytes"),
    ] {
        let mut asked = target.clone();
        asked["every"] = json!("1h");
        let (status, problem) = caller.send(Method::PUT, "/v1/crons/s", Some(&asked)).await;
        assert_eq!((status.as_u16(), &problem["limit"]), (413, &json!(limit)), "{problem}");
    }
    let long = "s".repeat(60);
    let asked = json!({"every": "1h", "execution": {"workflow": "w"}});
    let (status, problem) = caller.send(Method::PUT, &format!("/v1/crons/{long}"), Some(&asked)).await;
    assert_eq!((status.as_u16(), &problem["field"]), (400, &json!("id")), "{problem}");
    // A refused request creates no queue.
    let (_, queues) = caller.send(Method::GET, "/v1/queues", None).await;
    assert_eq!(queues["queues"], json!([]));
}

/// A second name would be a way around the routes by which operators' calls are allowed.
#[tokio::test]
async fn crons_have_one_name() {
    let caller = Caller::default();
    let asked = body("s", json!({"cron": "0 3 * * *"}));
    assert_eq!(caller.refused("/v1/schedules", asked).await.0, 404);
    for (method, path) in [(Method::GET, "/v1/schedules"), (Method::DELETE, "/v1/schedules/s")] {
        assert_eq!(caller.send(method, path, None).await.0, 404, "{path}");
    }
}
