//! Published values: part of a turn's writes, and of the execution rather than of a run.

use crate::execution::command::{Command, Ending};
use crate::execution::decision::Reply;
use crate::execution::{Execution, ExecutionStatus as Status};
use crate::payload::Payload;

use super::fixture::{Scene, done, execution, failure, json, lease};

const DOCUMENT: &str = r#"{"stage":[1,0,"packing"]}"#;

fn values(execution: &Execution) -> Option<&str> {
    match execution.values.as_ref()? {
        Payload::Inline(json) => Some(json.as_str()),
        Payload::Blob(_) => None,
    }
}

fn published() -> Scene {
    execution().started().start_turn("a").publish("a", DOCUMENT, done("step", "1"))
}

#[test]
fn a_turns_write_brings_what_it_has_published_without_an_entry_of_its_own() {
    let scene = published();
    assert_eq!((values(scene.record()), scene.record().journal.len()), (Some(DOCUMENT), 1));
    assert_eq!(scene.decision().writes.len(), 1);
    // A heartbeat brings them too, and writes that bring none leave them.
    let beat = |values: Option<&str>| {
        let values = values.map(|text| Payload::Inline(json(text)));
        Command::Heartbeat { lease: lease("a"), entries: vec![], values }
    };
    let scene = scene.apply(&beat(Some("{}"))).replies(Reply::Renewed);
    assert_eq!(values(scene.record()), Some("{}"));
    let scene = scene.apply(&beat(None)).wait("a").is(Status::Waiting);
    assert_eq!(values(scene.record()), Some("{}"));
    // So does one that can't suspend, because something has happened since.
    let scene = published().send_event("go");
    let scene = scene.suspend("a", |suspend| {
        suspend.seen_version -= 1;
        suspend.values = Some(Payload::Inline(json("{}")));
    });
    assert_eq!((values(scene.record()), scene.record().turn().is_some()), (Some("{}"), true));
}

#[test]
fn published_values_stay_through_all_runs_and_no_earlier_run_has_them() {
    let ended = |scene: &Scene| {
        let segments = scene.decision().segments();
        segments.into_iter().find_map(|(_, segment)| Some(segment.end.as_ref()?.record.values.clone()))
    };
    let next = published().continue_as_new("a", vec![]);
    assert_eq!((values(next.record()), ended(&next)), (Some(DOCUMENT), Some(None)));
    let retried = published().fail_run("a", failure("broken", None), "fixed(2, 1s)");
    assert_eq!((values(retried.record()), ended(&retried)), (Some(DOCUMENT), Some(None)));
    let closed = published().fail("a").has_ended();
    assert_eq!(values(closed.record()), Some(DOCUMENT));
    let restarted = closed.restart(vec![]);
    assert_eq!((values(restarted.record()), ended(&restarted)), (Some(DOCUMENT), Some(None)));
    let handled = execution().on_failure("1h").started().start_turn("a");
    let handled = handled.publish("a", DOCUMENT, done("step", "1")).fail("a").is(Status::Pending);
    assert_eq!(values(handled.record()), Some(DOCUMENT));
    let ending = Ending::ContinueAsNew { input: None, carried: vec![] };
    let last = published().close_with("a", vec![done("another", "2")], ending);
    assert_eq!(values(last.record()), Some(DOCUMENT));
}
