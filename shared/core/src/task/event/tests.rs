use super::{Event, EventType, events};
use crate::task::Status;
use crate::task::decide::tests::fixture::{Scene, parent, t, task, written};
use crate::timeout::OnTimeout::{Cancel, Retry, Terminal};

/// One event of each type, one on each line, written when the format was first used.
const GOLDEN: &str = include_str!("../../../golden/event-v1.jsonl");

/// The events of the scenario's last step, at that time.
fn last_events(scene: &Scene, now: &str) -> Vec<Event> {
    written(scene.decision()).flat_map(|(before, after)| events(before, after, t(now))).collect()
}

#[track_caller]
fn assert_events(scene: Scene, now: &str, names: &[&str]) -> Scene {
    let told = last_events(&scene, now);
    assert_eq!(told.iter().map(|event| event.what.name()).collect::<Vec<_>>(), names, "{told:#?}");
    scene
}

/// The last step's event of that type, as its receivers parse it.
#[track_caller]
fn wire(scene: &Scene, now: &str, name: &str) -> serde_json::Value {
    let told = last_events(scene, now);
    let event = told.iter().find(|event| event.what.name() == name).unwrap();
    serde_json::from_str(&event.body().unwrap()).unwrap()
}

#[test]
fn every_type_is_written_as_it_always_was() {
    let mut lines = Vec::new();
    let mut tell = |scene: Scene, now: &str| {
        lines.extend(last_events(&scene, now).iter().map(|event| event.body().unwrap()));
        scene
    };
    // A task with every transition.
    let plan = task().attempts(5).delay("5s").deadline("1h").close_within("10s", Retry);
    let scene = tell(plan.scheduled(), "0s");
    let scene = tell(scene.at("1s").claim("a"), "1s");
    let scene = tell(scene.at("2s").fail("a"), "2s");
    let scene = tell(scene.at("7s").claim("b"), "7s");
    let scene = tell(scene.at("18s").tick(), "18s");
    let scene = tell(scene.at("23s").claim_for("c", "1s"), "23s");
    let scene = tell(scene.at("25s").claim("d"), "25s");
    let scene = tell(scene.at("26s").cancel(), "26s");
    let scene = tell(scene.at("27s").fail_for_good("d"), "27s");
    let scene = tell(scene.at("28s").retry(), "28s");
    let scene = tell(scene.at("29s").claim("e"), "29s");
    tell(scene.at("30s").complete("e"), "30s");
    // The other outcomes.
    let scene = task().deadline("1h").scheduled().at("1m").claim_for("a", "2h");
    tell(scene.at("1h 250ms").tick(), "1h 250ms");
    let doomed = task().attempts(2).delay("1h").deadline("30m").scheduled().claim("a");
    tell(doomed.at("1m").fail("a"), "1m");
    tell(task().with_total_timeout("1m", false).scheduled().at("2m").tick(), "2m");
    tell(task().scheduled().claim("a").at("3s").fail("a"), "3s");
    tell(task().attempts(0).scheduled(), "0s");
    assert_eq!(lines.join("\n"), GOLDEN.trim_end());
}

#[test]
fn the_golden_events_have_every_type_and_no_message() {
    for name in [
        "TaskScheduled",
        "TaskStarted",
        "AttemptTimedOut",
        "TaskRetrying",
        "TaskCompleted",
        "TaskFailed",
        "TaskTimedOut",
        "TaskCancelled",
        "TaskCancelRequested",
        "TaskSkipped",
        "TaskRevived",
    ] {
        assert!(GOLDEN.contains(&format!("\"type\":\"{name}\"")), "{name}");
    }
    assert!(!GOLDEN.contains("on fire"));
}

#[test]
fn an_extended_lease_and_a_second_probe_are_no_events() {
    let scene = assert_events(task().scheduled().claim("a").at("30s").heartbeat("a"), "30s", &[]);
    let scene = assert_events(scene.at("31s").progress("a", 0.5), "31s", &[]);
    let scene = assert_events(scene.at("32s").cancel(), "32s", &["TaskCancelRequested"]);
    let scene = assert_events(scene.at("33s").cancel(), "33s", &[]);
    assert_events(scene.at("34s").progress("a", 0.7), "34s", &[]);
    assert_events(task().scheduled().at("7h").tick(), "7h", &[]);
    assert_events(task().starting_in("1h").scheduled().at("58m").tick(), "58m", &[]);
}

#[test]
fn one_write_can_have_several_events_in_order() {
    let lost = task().attempts(2).scheduled().claim_for("a", "10s").at("15s").claim("b");
    let lost = assert_events(lost, "15s", &["TaskRetrying", "TaskStarted"]);
    assert_eq!(wire(&lost, "15s", "TaskRetrying")["outcome"], "lost");
    assert_eq!(wire(&lost, "15s", "TaskStarted")["waited_ms"], 5_000);
    let late = task().attempts(2).close_within("10s", Retry).scheduled().claim("a").at("11s").claim("b");
    let late = assert_events(late, "11s", &["AttemptTimedOut", "TaskRetrying", "TaskStarted"]);
    assert_eq!(wire(&late, "11s", "TaskRetrying")["attempt"], 1);
    assert_eq!(wire(&late, "11s", "TaskStarted")["attempt"], 2);
    let unclaimed = task().attempts(2).start_within("10s", Retry).scheduled().at("11s").claim("a");
    let unclaimed = assert_events(unclaimed, "11s", &["AttemptTimedOut", "TaskRetrying", "TaskStarted"]);
    assert_eq!(wire(&unclaimed, "11s", "AttemptTimedOut")["started_at"], serde_json::Value::Null);
    assert_events(task().attempts(0).scheduled(), "0s", &["TaskScheduled", "TaskSkipped"]);
}

#[test]
fn a_task_that_expires_at_an_operators_retry_has_an_event_of_its_end_before_its_revival() {
    let late = task().deadline("10s").scheduled().claim("a").at("12s").retry();
    let late = assert_events(late, "12s", &["TaskTimedOut", "TaskRevived"]);
    assert_eq!(wire(&late, "12s", "TaskTimedOut")["lateness_ms"], 2_000);
    let waiting = task().with_total_timeout("10s", false).scheduled().at("12s").retry();
    assert_events(waiting, "12s", &["TaskCancelled", "TaskRevived"]);
}

#[test]
fn the_event_of_a_timeout_has_its_instant_and_its_lateness() {
    let heartbeats = task().heartbeats("20s", Terminal).scheduled().at("1m").claim("a");
    let silent = assert_events(heartbeats.at("1m 21s").tick(), "1m 21s", &["TaskTimedOut"]);
    let event = wire(&silent, "1m 21s", "TaskTimedOut");
    assert_eq!((&event["kind"], &event["lateness_ms"]), (&"heartbeat".into(), &1_000.into()));
    assert_eq!(event["deadline_at"], t("1m 20s").to_rfc3339());
    assert_eq!(event["started_at"], t("1m").to_rfc3339());
    assert_eq!((&event["worker"], &event["outcome"]), (&"worker-a".into(), &"timed_out".into()));
    let nobody = task().start_within("20s", Cancel).scheduled();
    let nobody = assert_events(nobody.at("30s").tick(), "30s", &["TaskCancelled"]);
    let event = wire(&nobody, "30s", "TaskCancelled");
    assert_eq!((&event["kind"], &event["lateness_ms"]), (&"schedule_to_start".into(), &10_000.into()));
}

#[test]
fn the_event_of_a_doomed_retry_has_a_future_deadline() {
    let plan = || task().attempts(3).delay("1h").deadline("30m").close_within("1m", Retry);
    let failed = assert_events(plan().scheduled().claim("a").at("10s").fail("a"), "10s", &["TaskTimedOut"]);
    let event = wire(&failed, "10s", "TaskTimedOut");
    assert_eq!((&event["doomed"], &event["lateness_ms"]), (&true.into(), &0.into()));
    assert_eq!((&event["outcome"], &event["error_code"]), (&"failed".into(), &"broken".into()));
    let slow = plan().scheduled().claim("a").at("1m").tick();
    let slow = assert_events(slow, "1m", &["AttemptTimedOut", "TaskTimedOut"]);
    assert_eq!(wire(&slow, "1m", "AttemptTimedOut")["kind"], "start_to_close");
    assert_eq!(wire(&slow, "1m", "TaskTimedOut")["kind"], "schedule_to_close");
}

#[test]
fn a_timeout_after_a_cancel_request_has_an_event_of_its_own() {
    let asked = task().deadline("10s").scheduled().claim("a").at("1s").cancel();
    let ended = assert_events(asked.at("11s").tick(), "11s", &["AttemptTimedOut", "TaskCancelled"]);
    assert_eq!(wire(&ended, "11s", "AttemptTimedOut")["kind"], "schedule_to_close");
    assert_eq!(wire(&ended, "11s", "TaskCancelled")["kind"], serde_json::Value::Null);
}

#[test]
fn the_end_says_which_status_it_is() {
    let ends = [
        task().scheduled().claim("a").complete("a"),
        task().scheduled().claim("a").fail("a"),
        task().scheduled().cancel(),
        task().attempts(0).scheduled(),
        task().max_losses(0).scheduled().claim_for("a", "1s").at("2s").claim("b"),
    ];
    for scene in ends {
        let ended: Vec<Status> =
            last_events(&scene, "2s").iter().filter_map(|event| EventType::ended_as(&event.what)).collect();
        assert_eq!(ended, [scene.record().status()]);
    }
}

#[test]
fn every_event_of_a_step_says_whose_it_is() {
    let step = || {
        let mut plan = task().attempts(2).deadline("1h");
        let step = crate::id::StepName::parse("label[3]").ok();
        plan.schedule.parent = Some(crate::parent::Parent { step, ..parent() });
        plan.scheduled()
    };
    for (scene, now, name) in [
        (step(), "0s", "TaskScheduled"),
        (step().at("1s").claim("a"), "1s", "TaskStarted"),
        (step().at("1h").tick(), "1h", "TaskTimedOut"),
    ] {
        let event = wire(&scene, now, name);
        assert_eq!(
            (&event["execution_id"], &event["step"]),
            (&"order-7".into(), &"label[3]".into()),
            "{name}"
        );
    }
}
