//! The record stays within its kilobyte with every limit at its maximum at once, from its creation to its end.

use super::fixture::{Scene, cron, definition, max_runs, span};
use crate::cron::command::{Command, Definition};
use crate::cron::expression::EXPRESSION_MAX;
use crate::cron::plan::{Missed, Overlap, Plan};
use crate::cron::run::{IdTemplate, PLACEHOLDER, Run, RunState, Skip, Stop, TEMPLATE_MAX, Target};
use crate::cron::{Cron, HISTORY, LIVE_MAX, WAITING_MAX, Waiting};
use crate::decision::Write;
use crate::duration::Millis;
use crate::id::{CronId, QueueName, TaskKind};
use crate::limits::{CONTROL_RECORD_BYTES, KIND_MAX, QUEUE_NAME_MAX};
use crate::payload::{BlobRef, Json};
use crate::size;

/// A definition with every value at its maximum length.
fn largest(request: usize) -> Box<Definition> {
    let listed: Vec<String> = (10..34).map(|minute| minute.to_string()).collect();
    let expression = format!("{} 1 1 * *", listed.join(","));
    assert!(expression.len() > EXPRESSION_MAX - 3, "{}", expression.len());
    let mut asked = definition(cron(&expression, "America/Argentina/ComodRivadavia"));
    asked.id = CronId::parse("i".repeat(64)).unwrap();
    asked.target = Target::Task {
        queue: QueueName::parse("q".repeat(QUEUE_NAME_MAX)).unwrap(),
        kind: TaskKind::parse("k".repeat(KIND_MAX)).unwrap(),
    };
    let template = format!("{}{PLACEHOLDER}", "t".repeat(TEMPLATE_MAX - PLACEHOLDER.len()));
    asked.template = Some(IdTemplate::parse(&template, &asked.target).unwrap());
    asked.request = Json::string(&"x".repeat(request - 2));
    asked.plan.overlap = Overlap::TerminateOther;
    asked.plan.missed = Missed::RunOnce;
    asked.plan.jitter = span("364d");
    asked.plan.max_runs = max_runs(u32::MAX);
    Box::new(asked)
}

/// The record with everything added that a cron can add.
fn grown(record: &Cron) -> Cron {
    let mut grown = record.clone();
    let next = grown.next().unwrap();
    (grown.started, grown.version) = (u32::MAX, u64::from(u32::MAX));
    grown.waiting = Some(Waiting { first: next.at, count: WAITING_MAX, since: next.starts_at });
    let occurrence = crate::cron::run::Occurrence { at: next.starts_at, manual: true };
    let live = RunState::Stopping(Stop::Terminate);
    let over = RunState::Refused("c".repeat(20));
    assert!(size::of(&over) >= size::of(&RunState::Skipped(Skip::Full)));
    let runs = std::iter::repeat_n(live, LIVE_MAX).chain(std::iter::repeat_n(over, HISTORY));
    grown.runs = runs.map(|state| Run { occurrence, state }).collect();
    grown
}

#[test]
fn the_record_stays_within_a_kilobyte_whatever_is_asked_for() {
    for request in (2..400).chain([2_000, 300_000]) {
        let mut scene = Scene::new();
        let decision = scene.decide(&Command::Create(largest(request)));
        let record = decision.record().unwrap();
        let size = size::of(&grown(record));
        assert!(size <= CONTROL_RECORD_BYTES, "{size} bytes with a request of {request}");
        assert_eq!(decision.blobs().len(), usize::from(record.request.blob().is_some()));
    }
}

#[test]
fn a_common_request_is_in_the_record_and_one_that_does_not_fit_is_in_a_blob() {
    let mut asked = definition(cron("0 9 * * MON-FRI", "Europe/Berlin"));
    asked.request = Json::string(&"x".repeat(200));
    let mut scene = Scene::new();
    assert!(scene.decide(&Command::Create(Box::new(asked.clone()))).blobs().is_empty());
    asked.request = Json::string(&"x".repeat(1_000));
    let decision = scene.decide(&Command::Create(Box::new(asked)));
    assert_eq!(decision.blobs()[0].1.len(), 1_002);
    assert_eq!(decision.record().unwrap().request.blob(), Some(decision.blobs()[0].0));
}

#[test]
fn the_payload_of_a_cron_is_kept_as_long_as_the_cron_exists_paused_or_not() {
    let mut scene = Scene::new();
    scene.ask(&Command::Create(largest(2_000))).unwrap();
    scene.ask(&Command::Pause).unwrap();
    for _ in 0..10 {
        let before = scene.record().request.blob().unwrap().clone();
        let due = scene.record().due.unwrap();
        assert!(due.at.plus(Millis::from_days(30)) < before.expires_at && due.at > scene.now);
        scene.now = due.at;
        let decision = scene.decide(&Command::Due { ended: vec![] });
        let kept = BlobRef { expires_at: scene.now.plus(Millis::from_days(120)), ..before };
        assert_eq!(decision.writes[0], Write::extend_blob(&kept));
        scene.ask(&Command::Due { ended: vec![] }).unwrap();
        assert_eq!(scene.record().request.blob(), Some(&kept));
    }
    scene.ask(&Command::Delete).unwrap();
    assert_eq!(scene.record().due, None);
}

/// Written once. From then on, tables contain it.
const GOLDEN: &str = include_str!("../../../golden/cron-v1.json");

#[test]
fn a_stored_record_is_written_and_read_exactly_as_it_always_was() {
    let record: Cron = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), GOLDEN.trim_end());
    let Plan { overlap, missed, .. } = record.plan;
    assert_eq!((overlap, missed), (Overlap::BufferAll, Missed::RunOnce));
    assert_eq!(record.runs[1].state, RunState::Stopping(Stop::Terminate));
}

#[test]
fn a_stored_record_is_read_back_as_it_was() {
    let mut scene = Scene::new();
    scene.ask(&Command::Create(largest(50))).unwrap();
    let record = grown(scene.record());
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Cron>(&text).unwrap(), record);
}
