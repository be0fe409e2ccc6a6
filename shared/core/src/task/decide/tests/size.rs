//! The byte budget: a control record stays within one write unit for any request and in any state. Every step of
//! every scenario checks the budget. The tests here have everything at its maximum at once.

mod details;
mod lines;

use std::num::NonZeroU32;

use crate::command::Isolation;
use crate::failure::Failure;
use crate::id::{ExecutionId, Incarnation, Nonce, QueueName, StepName, TaskId, TaskKind, WorkerName};
use crate::limits;
use crate::parent::{Parent, Slot};
use crate::payload::{Json, Payload};
use crate::retry::{self, Delay, Jitter, MaxAttempts, RetryPolicy};
use crate::task::command::{Claim, Command, Complete, Fail, Heartbeat, SignOfLife};
use crate::task::{Outcome, Status};
use crate::timeout::OnTimeout;
use crate::trace::TraceContext;

use super::fixture::{Plan, Scene, blob, json, lease, span, t, task};

const ALMOST_A_YEAR: &str = "364d 23h 59m 59s 999ms";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A JSON string of exactly this many bytes.
fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// Names, policy, timeouts, key, labels and input, each at its maximum size.
fn largest() -> Plan {
    let mut plan = task().keyed().input(&text(350 * 1024)).labels(&text(4 * 1024));
    plan.schedule.id = TaskId::parse("i".repeat(limits::ID_MAX)).unwrap();
    plan.schedule.queue = QueueName::parse("q".repeat(limits::QUEUE_NAME_MAX)).unwrap();
    plan.schedule.kind = TaskKind::parse("k".repeat(limits::KIND_MAX)).unwrap();
    plan.schedule.trace = TraceContext::parse(TRACE);
    plan.schedule.retry = RetryPolicy {
        max_attempts: MaxAttempts::Limited(NonZeroU32::MAX),
        delay: Delay::Listed(vec![span(ALMOST_A_YEAR); retry::MAX_LISTED_DELAYS]),
        backoff: 1.0,
        // Shorter than a year, so that there is time for several attempts.
        max_delay: Some(span("100000s")),
        jitter: Jitter::Full,
        non_retryable: vec!["c".repeat(retry::MAX_CODES_BYTES / retry::MAX_CODES); retry::MAX_CODES],
    };
    assert_eq!(plan.schedule.retry.check(), Ok(()));
    plan.with_total_timeout(ALMOST_A_YEAR, false)
        .start_within(ALMOST_A_YEAR, OnTimeout::Cancel)
        .close_within(ALMOST_A_YEAR, OnTimeout::Cancel)
        .heartbeats(ALMOST_A_YEAR, OnTimeout::Cancel)
}

/// The same as a remote step of the execution with the longest names. Its id is derived, and it has no idempotency
/// key.
fn largest_step() -> Plan {
    let mut plan = largest();
    plan.schedule.id = TaskId::parse("s".repeat(24)).unwrap();
    plan.schedule.key = None;
    let slot = Slot { label: Nonce::from_bytes([255; 8]), item: u16::MAX, place: 99, of: 100 };
    plan.schedule.parent = Some(Parent {
        execution: ExecutionId::parse("p".repeat(limits::EXECUTION_ID_MAX)).unwrap(),
        incarnation: Incarnation::from_bytes([255; 8]),
        run: 99_999,
        again: 0,
        slot: Some(slot),
        step: Some(StepName::parse("n".repeat(StepName::MAX)).unwrap()),
        work: None,
        on_close: crate::execution::ParentClosePolicy::default(),
    });
    plan
}

/// The same with counters at their maximum.
fn aged(plan: Plan) -> Scene {
    plan.scheduled().edit(|task| {
        task.version = 999_999_999_999;
        task.attempt = u32::MAX - 100;
        task.losses = 0;
        task.revived_at = Some(t("1h"));
    })
}

fn claim(scene: Scene, name: &str) -> Scene {
    claim_of(scene, name, false)
}

fn park(scene: Scene, name: &str) -> Scene {
    claim_of(scene, name, true)
}

fn claim_of(scene: Scene, name: &str, paused: bool) -> Scene {
    claim_like(scene, name, |claim| claim.paused = paused)
}

fn claim_like(scene: Scene, name: &str, change: impl FnOnce(&mut Claim)) -> Scene {
    // Only a worker without other attempts may take over a lost attempt.
    let isolation = if scene.record().running().is_some() { Isolation::Alone } else { Isolation::Shared };
    let worker = Some(WorkerName::parse("w".repeat(limits::WORKER_MAX)).unwrap());
    let mut claim = Claim {
        lease: lease(name),
        worker,
        length: limits::LEASE_RANGE.1,
        hint: None,
        isolation,
        inside: false,
        paused: false,
        held: false,
        places: None,
        start: None,
        start_of: None,
    };
    change(&mut claim);
    scene.run(&Command::Claim(claim))
}

fn progress(scene: Scene, name: &str) -> Scene {
    scene.run(&Command::Heartbeat(Heartbeat {
        lease: lease(name),
        sign_of: SignOfLife::Both,
        progress: Some(1.0 / 3.0),
        details: None,
        blob_id: blob("details"),
        places: None,
    }))
}

fn fail(scene: Scene, name: &str, message: &str, retryable: bool) -> Scene {
    let error = Failure::new("e".repeat(limits::ERROR_CODE_MAX), message);
    scene.run(&Command::Fail(Fail { lease: lease(name), error, retryable, blob_id: blob("message") }))
}

fn complete(scene: Scene, name: &str, output: Option<Json>) -> Scene {
    scene.run(&Command::Complete(Complete { lease: lease(name), output, blob_id: blob("output") }))
}

/// Goes through every state, with three past attempts of the maximum size. Each step checks the budget.
fn through_every_state(begin: impl Fn() -> Scene) {
    let message = "m".repeat(10_000);
    let worn = || {
        let mut scene = begin();
        for name in ["a", "b", "c"] {
            let available_at = scene.pending().available_at;
            scene = progress(claim(scene.at_instant(available_at), name), name);
            scene = fail(scene, name, &message, true).is(Status::Pending);
        }
        let available_at = scene.pending().available_at;
        scene.at_instant(available_at)
    };
    let running = || progress(claim(worn(), "d"), "d").cancel().is(Status::Running);
    worn().cancel().is(Status::Cancelled).retry().is(Status::Pending);
    running().tick_seeing(super::fixture::EMPTY);
    running().cancel_by_force().is(Status::Cancelled);
    for bytes in [2, 40, 100, 200, 300, 400, 1_000, 350 * 1024] {
        complete(running(), "d", Some(json(&text(bytes)))).is(Status::Completed);
    }
    complete(running(), "d", None).is(Status::Completed);
    let claimed = || progress(claim(worn(), "d"), "d");
    for bytes in [0, 20, 60, 120, 240, 241, 10_000] {
        let scene = fail(claimed(), "d", &message[..bytes], false).is(Status::Failed);
        assert_whole_message(&scene, &message[..bytes]);
        scene.retry().is(Status::Pending);
    }
    let scene = claimed();
    if let Some(deadline) = scene.record().deadline_at {
        scene.at_instant(deadline).tick().is(Status::Cancelled);
    }
    let scene = claimed();
    let lost = scene.running().lease_expires_at;
    claim(scene.at_instant(lost), "e").is(Status::Running);
    park(claimed().at_instant(lost), "e").is(Status::Running);
    let scene = claimed().at_instant(lost.plus(span("6h"))).tick();
    assert!(scene.record().hinted_at.is_some());
    complete(scene, "d", Some(json(&text(1_000)))).is(Status::Completed);
}

/// The worker's message can be read in full, in the record or in a blob.
#[track_caller]
fn assert_whole_message(scene: &Scene, message: &str) {
    let Outcome::Failed { error, message: aside } = scene.outcome() else { panic!("{:?}", scene.outcome()) };
    match aside {
        None => assert_eq!(error.message, message),
        Some(_) => assert_eq!(*scene.decision().blobs()[0].1, Json::string(message)),
    }
}

#[test]
fn everything_at_its_maximum_at_once_stays_within_the_budget_in_every_state() {
    through_every_state(|| aged(largest()));
    through_every_state(|| aged(largest().input("1").labels("{}")));
    let no_payloads = || {
        let mut plan = largest();
        plan.schedule.input = None;
        plan.schedule.labels = None;
        plan
    };
    through_every_state(|| aged(no_payloads()));
    through_every_state(|| aged(largest_step()));
    through_every_state(|| aged(largest_step().input("1").labels("{}")));
    // With the names and all four timeouts at their maximum, there is still space for a useful policy.
    assert!(matches!(&largest().schedule.retry.delay, Delay::Listed(delays) if delays.len() > 5));
}

#[test]
fn inputs_of_any_size_leave_space_for_later_data() {
    for bytes in (2..700).step_by(23).chain([4 * 1024]) {
        through_every_state(|| aged(task().attempts(-1).input(&text(bytes))));
        through_every_state(|| aged(task().attempts(-1).input(&text(bytes)).labels(&text(bytes))));
        through_every_state(|| aged(task().attempts(-1).input(&text(bytes)).labels(&text(4 * 1024))));
    }
}

#[test]
fn a_task_that_ended_by_a_timeout_stays_within_the_budget_with_its_last_error() {
    let plan = largest().deadline(ALMOST_A_YEAR);
    let failed = fail(claim(aged(plan), "a"), "a", &"é".repeat(5_000), true).is(Status::Pending);
    let deadline = failed.record().deadline_at.unwrap();
    let scene = failed.at_instant(deadline).tick().is(Status::TimedOut);
    assert!(scene.error().message.starts_with("the task's deadline passed"));
}

// ---- in the record or in a blob

#[test]
fn an_input_that_fits_is_inline_and_a_larger_one_is_written_aside() {
    let mut inline = 0;
    for bytes in 2..1_000 {
        let scene = task().input(&text(bytes)).scheduled();
        match scene.record().input.as_ref().unwrap() {
            Payload::Inline(body) => {
                assert_eq!(body.as_str(), text(bytes));
                assert_eq!(scene.decision().blobs(), []);
                assert!(inline == 0 || inline == bytes - 1, "inline again after one that wasn't");
                inline = bytes;
            }
            Payload::Blob(at) => {
                let blobs = scene.decision().blobs();
                let [blob] = blobs.as_slice() else { panic!("{:?}", scene.decision().blobs()) };
                assert_eq!((blob.0, blob.1.as_str()), (at, text(bytes).as_str()));
                assert_eq!(blob.0.id, super::fixture::blob("input"));
            }
        }
    }
    assert!((300..600).contains(&inline), "{inline} bytes are inline");
}

#[test]
fn of_input_and_labels_the_larger_goes_aside_first() {
    let (small, large) = (text(100), text(2_000));
    let is_inline = |payload: &Option<Payload>| matches!(payload, Some(Payload::Inline(_)));
    for (input, labels, inline) in [
        (&small, &small, (true, true)),
        (&large, &small, (false, true)),
        (&small, &large, (true, false)),
        (&large, &large, (false, false)),
    ] {
        let scene = task().input(input).labels(labels).scheduled();
        assert_eq!((is_inline(&scene.record().input), is_inline(&scene.record().labels)), inline);
        let aside = usize::from(!inline.0) + usize::from(!inline.1);
        assert_eq!(scene.decision().blobs().len(), aside);
    }
}

#[test]
fn an_output_that_fits_is_inline_and_a_larger_one_is_written_aside_and_outlives_the_record() {
    let done = |bytes| complete(claim(task().scheduled(), "a"), "a", Some(json(&text(bytes))));
    let scene = done(300);
    assert_eq!(*scene.outcome(), Outcome::Completed { output: Some(Payload::Inline(json(&text(300)))) });
    assert_eq!(scene.decision().blobs(), []);
    let scene = done(2_000);
    let Outcome::Completed { output: Some(Payload::Blob(at)) } = scene.outcome() else { panic!() };
    assert_eq!(scene.decision().blobs()[0].0, at);
    assert_eq!(scene.decision().blobs()[0].1.as_str(), text(2_000));
    assert!(at.expires_at > scene.record().ended().unwrap().expires_at);
}

#[test]
fn a_trace_stays_as_long_as_other_texts_can_be_cut() {
    let mut plan = task().attempts(-1).input(&text(400)).labels(&text(100));
    plan.schedule.trace = TraceContext::parse(TRACE);
    let mut scene = aged(plan);
    for name in ["a", "b", "c"] {
        let available_at = scene.pending().available_at;
        scene =
            fail(progress(claim(scene.at_instant(available_at), name), name), name, &"m".repeat(500), true);
        assert_eq!(scene.record().trace, TraceContext::parse(TRACE));
    }
}

#[test]
fn texts_that_only_people_read_are_cut_first() {
    let plan = largest();
    let policy = plan.schedule.retry.clone();
    let scene = claim(fail(claim(aged(plan), "a"), "a", &"m".repeat(500), true), "b");
    assert_eq!(scene.record().history[0].lease, Some(lease("a")), "the fence of a closed attempt stays");
    assert_eq!(scene.record().retry, policy);
}

#[test]
fn the_name_of_a_step_never_moves_a_payload_out_of_the_record() {
    let step = |input: usize, is_named: bool| {
        let mut plan = task().input(&text(input));
        let step = is_named.then(|| StepName::parse("n".repeat(StepName::MAX)).unwrap());
        plan.schedule.parent = Some(Parent { step, ..super::fixture::parent() });
        plan.scheduled()
    };
    let is_named = |scene: &Scene| scene.record().step().is_some();
    assert!(is_named(&step(100, true)));
    for bytes in 2..700 {
        let (named, plain) = (step(bytes, true), step(bytes, false));
        assert_eq!(
            named.decision().blobs().len(),
            plain.decision().blobs().len(),
            "an input of {bytes} bytes"
        );
        let done = |scene| complete(claim(scene, "a"), "a", Some(json(&text(bytes))));
        let (named, plain) = (done(step(100, true)), done(step(100, false)));
        assert_eq!(
            named.decision().blobs().len(),
            plain.decision().blobs().len(),
            "a result of {bytes} bytes"
        );
        let failed = |scene| fail(claim(scene, "a"), "a", &"m".repeat(bytes), false);
        let (named, plain) = (failed(step(100, true)), failed(step(100, false)));
        assert_eq!(
            named.decision().blobs().len(),
            plain.decision().blobs().len(),
            "a message of {bytes} bytes"
        );
    }
}
