//! Creating, changing, pausing, triggering and deleting crons, and the number of their runs.

use super::fixture::{RunStatus, Scene, definition, every, max_runs, span, t, template, timer_at, written};
use crate::cron::command::{Command, Definition};
use crate::cron::decision::Reply;
use crate::cron::plan::Overlap;
use crate::cron::run::{IdTemplate, Occurrence, PLACEHOLDER, RunState, Skip, TEMPLATE_MAX, Target};
use crate::cron::{LIVE_MAX, State};
use crate::due::DueKind;
use crate::error::{Reject, TakenBy};
use crate::id::{CronId, Fingerprint, Incarnation, WorkflowName};

/// Another caller's request, with other content if `content` differs.
fn another(when: crate::cron::plan::When, content: u8) -> Box<Definition> {
    let mut asked = definition(when);
    asked.incarnation = Incarnation::from_bytes([9; 8]);
    asked.fingerprint = Fingerprint::from_bytes([content; 16]);
    Box::new(asked)
}

#[test]
fn a_cron_starts_its_runs_one_by_one_under_ids_of_their_own() {
    let scene = Scene::of(every("1h"), |_| {});
    assert_eq!(scene.due(), Some(t("01:00:00")));
    let scene = scene.until("03:30:00").end_all();
    // The first run is still open at the second occurrence.
    assert_eq!(scene.world.keys().collect::<Vec<_>>(), ["report-20260101T010000Z"]);
    let scene = scene.until("04:30:00");
    assert_eq!(scene.started(), ["01:00:00", "04:00:00"]);
    assert_eq!(scene.due(), Some(t("05:00:00")));
}

#[test]
fn the_same_request_again_finds_it_and_another_one_is_refused() {
    let mut scene = Scene::of(every("1h"), |_| {});
    let ask = |scene: &mut Scene, content| scene.ask(&Command::Create(another(every("1h"), content)));
    assert_eq!(ask(&mut scene, 2), Ok(Reply::Created { existed: true }));
    assert!(matches!(ask(&mut scene, 7), Err(Reject::IdConflict { by: TakenBy::Cron, .. })));
    // A repetition of the call that created it, whose answer was lost.
    let own = Command::Create(Box::new(definition(every("1h"))));
    assert_eq!(scene.ask(&own), Ok(Reply::Created { existed: false }));
    assert_eq!(scene.record().version, 1);
}

#[test]
fn a_call_before_the_next_occurrence_writes_nothing() {
    let mut scene = Scene::of(every("1h"), |_| {});
    scene.now = t("00:59:59");
    let decision = scene.decide(&Command::Due { ended: vec![] });
    assert_eq!((written(&decision), decision.reply()), (None, Ok(&Reply::Done)));
}

#[test]
fn a_timer_is_sent_for_an_occurrence_before_the_next_sure_tick() {
    let mut scene = Scene::new();
    let decision = scene.decide(&Command::Create(Box::new(definition(every("200s")))));
    assert_eq!(timer_at(&decision), Some(t("00:03:20")));
    assert_eq!(decision.record().unwrap().due.unwrap().kind, DueKind::Armed);
    let decision = scene.decide(&Command::Create(Box::new(definition(every("201s")))));
    assert_eq!(timer_at(&decision), None);
    assert_eq!(decision.record().unwrap().due.unwrap().kind, DueKind::Instant);
}

#[test]
fn after_its_last_run_a_cron_is_finished_and_no_longer_due() {
    let scene = Scene::of(every("1h"), |plan| {
        plan.overlap = Overlap::AllowAll;
        plan.max_runs = max_runs(2);
    });
    let scene = scene.until("09:00:00");
    assert_eq!(scene.started(), ["01:00:00", "02:00:00"]);
    assert_eq!(scene.record().state, State::Finished { at: t("02:00:00") });
    assert_eq!(scene.due(), None);
    // A higher maximum may be set later.
    let mut more = another(every("1h"), 7);
    more.plan.max_runs = max_runs(3);
    let scene = scene.asked(&Command::Replace(more)).until("23:00:00");
    assert_eq!(scene.started(), ["01:00:00", "02:00:00", "10:00:00"]);
}

#[test]
fn skipped_and_triggered_runs_are_not_counted() {
    let scene = Scene::of(every("1h"), |plan| plan.max_runs = max_runs(2));
    let scene = scene.asked(&Command::Trigger).handle_due().until("02:30:00");
    assert_eq!(scene.started(), ["00:00:00"], "the triggered run is open");
    let scene = scene.end_all().until("03:30:00").end_all().until("09:30:00");
    assert_eq!(scene.started(), ["00:00:00", "03:00:00", "04:00:00"]);
}

#[test]
fn a_paused_cron_starts_nothing_and_skips_the_occurrences_in_between() {
    let scene = Scene::of(every("1h"), |plan| plan.missed = crate::cron::plan::Missed::RunOnce);
    let scene = scene.asked(&Command::Pause).asked(&Command::Pause);
    assert_eq!((scene.due(), scene.record().state.as_str()), (None, "paused"));
    let scene = scene.at("05:30:00").asked(&Command::Resume);
    assert_eq!(scene.due(), Some(t("06:00:00")));
    let scene = scene.until("06:30:00").asked(&Command::Resume);
    assert_eq!(scene.started(), ["06:00:00"]);
}

#[test]
fn a_trigger_starts_a_run_now_even_of_a_paused_cron() {
    let mut scene = Scene::of(every("1h"), |_| {}).asked(&Command::Pause);
    scene.now = t("00:10:00");
    let first = Occurrence { at: t("00:10:00"), manual: true };
    assert_eq!(scene.ask(&Command::Trigger), Ok(Reply::Triggered(first)));
    let second = Occurrence { at: t("2026-01-01T00:10:00.001Z"), manual: true };
    assert_eq!(scene.ask(&Command::Trigger), Ok(Reply::Triggered(second)));
    let scene = scene.handle_due();
    let ids: Vec<_> = scene.world.keys().collect();
    assert_eq!(ids, ["report-20260101T001000.000Z", "report-20260101T001000.001Z"]);
    assert_eq!((scene.record().started, scene.due()), (0, None));
}

#[test]
fn a_trigger_in_the_instant_of_an_occurrence_is_another_run() {
    let scene = Scene::of(every("1h"), |plan| plan.overlap = Overlap::AllowAll);
    let scene = scene.at("01:00:00").asked(&Command::Trigger).handle_due();
    assert_eq!(scene.world.len(), 2);
}

#[test]
fn triggers_in_one_instant_are_as_many_runs_though_all_of_them_end_in_between() {
    let mut scene = Scene::of(every("1h"), |_| {}).asked(&Command::Pause);
    scene.now = t("00:10:00");
    for _ in 0..8 {
        scene = scene.asked(&Command::Trigger).handle_due().end_all().handle_due();
    }
    assert_eq!(scene.world.len(), 8);
}

#[test]
fn more_runs_than_are_followed_are_refused_by_name() {
    let mut scene = Scene::of(every("1h"), |_| {});
    for _ in 0..LIVE_MAX {
        scene = scene.asked(&Command::Trigger);
    }
    let scene = &mut scene.handle_due();
    let refused = scene.ask(&Command::Trigger).unwrap_err();
    assert_eq!(refused, Reject::LimitExceeded { limit: "open_runs", value: LIVE_MAX + 1, maximum: LIVE_MAX });
}

#[test]
fn a_deleted_cron_counts_as_absent_and_its_id_is_free() {
    let mut scene = Scene::of(every("1h"), |_| {}).until("01:30:00").asked(&Command::Delete);
    assert_eq!(scene.record().expires_at(), Some(t("01:30:00")));
    let gone = Err(Reject::NoCron);
    for command in [Command::Delete, Command::Pause, Command::Resume, Command::Trigger] {
        assert_eq!(scene.ask(&command), gone);
    }
    assert_eq!(scene.ask(&Command::Due { ended: vec![] }), gone);
    assert_eq!(scene.ask(&Command::Create(another(every("2h"), 7))), Ok(Reply::Created { existed: false }));
    assert_eq!((scene.record().version, scene.due()), (4 + 1, Some(t("03:30:00"))));
    assert_eq!(scene.world["report-20260101T010000Z"], RunStatus::Open, "its runs are left alone");
}

#[test]
fn replacing_creates_or_changes_and_keeps_the_history() {
    let mut scene = Scene::new();
    assert_eq!(scene.ask(&Command::Replace(another(every("1h"), 2))), Ok(Reply::Created { existed: false }));
    let mut scene = scene.until("01:30:00");
    assert_eq!(scene.ask(&Command::Replace(another(every("1h"), 2))), Ok(Reply::Created { existed: false }));
    let mut asked = another(every("10m"), 7);
    asked.incarnation = Incarnation::from_bytes([5; 8]);
    assert_eq!(scene.ask(&Command::Replace(asked)), Ok(Reply::Created { existed: true }));
    assert_eq!((scene.record().started, scene.record().created_at), (1, t("00:00:00")));
    let scene = scene.end_all().until("01:45:00");
    assert_eq!(scene.started(), ["01:00:00", "01:40:00"]);
}

#[test]
fn replacing_pauses_and_resumes_only_if_it_says_so() {
    let scene = Scene::of(every("1h"), |_| {}).asked(&Command::Pause);
    let mut asked = another(every("2h"), 7);
    let scene = scene.asked(&Command::Replace(asked.clone()));
    assert_eq!(scene.record().state.as_str(), "paused");
    asked.paused = Some(false);
    let scene = scene.asked(&Command::Replace(asked.clone()));
    assert_eq!(scene.due(), Some(t("02:00:00")));
    asked.paused = Some(true);
    assert_eq!(scene.asked(&Command::Replace(asked)).due(), None);
}

#[test]
fn runs_with_other_ids_do_not_overlap_runs_after_a_change() {
    let scene = Scene::of(every("1h"), |_| {}).until("01:30:00");
    let mut asked = another(every("1h"), 7);
    asked.template = Some(template("other-{occurrence}"));
    let scene = scene.asked(&Command::Replace(asked)).until("02:45:00");
    assert_eq!(scene.world.keys().collect::<Vec<_>>(), ["other-20260101T020000Z", "report-20260101T010000Z"]);
}

#[test]
fn a_change_waits_for_runs_that_are_written_down_but_not_started() {
    let mut scene = Scene::of(every("1h"), |_| {});
    scene.now = t("01:00:00");
    scene.ask(&Command::Due { ended: vec![] }).unwrap();
    let decision = scene.decide(&Command::Replace(another(every("2h"), 7)));
    assert_eq!((written(&decision), decision.reply()), (None, Ok(&Reply::StartFirst)));
    let starts: Vec<_> = decision.record().unwrap().starting_runs().collect();
    assert_eq!(starts, [Occurrence::planned(t("01:00:00"))]);
}

#[test]
fn pausing_and_changing_the_plan_drop_waiting_occurrences() {
    let waiting = || Scene::overlapping(Overlap::BufferOne).until("02:30:00");
    assert!(waiting().record().waiting.is_some());
    let dropped = ("02:00:00".to_owned(), RunState::Skipped(Skip::Dropped));
    let paused = waiting().asked(&Command::Pause);
    assert_eq!((paused.record().waiting, paused.runs().last()), (None, Some(&dropped)));
    let changed = waiting().asked(&Command::Replace(another(every("2h"), 7)));
    assert_eq!((changed.record().waiting, changed.runs().last()), (None, Some(&dropped)));
}

#[test]
fn a_refused_start_is_kept_with_its_code_and_not_repeated() {
    let mut scene = Scene::of(every("1h"), |_| {});
    scene.refuses = true;
    let scene = scene.until("01:30:00");
    let refused = RunState::Refused("unknown_queue".to_owned());
    assert_eq!(scene.runs(), [("01:00:00".to_owned(), refused)]);
    assert_eq!((scene.starts, scene.due()), (1, Some(t("02:00:00"))));
}

#[test]
fn a_template_must_contain_the_occurrence_and_always_give_a_valid_id() {
    let task = super::fixture::task_target();
    let execution = Target::Execution { workflow: WorkflowName::parse("w").unwrap() };
    let wrong = |text: &str, target: &Target| IdTemplate::parse(text, target).unwrap_err().to_string();
    assert!(wrong("report", &task).contains("{occurrence}"));
    assert!(wrong("a b-{occurrence}", &task).contains("A-Z"));
    let long = |length: usize| format!("{}{PLACEHOLDER}", "x".repeat(length - PLACEHOLDER.len()));
    assert!(IdTemplate::parse(&long(TEMPLATE_MAX), &task).is_ok());
    assert!(wrong(&long(TEMPLATE_MAX + 1), &task).contains("at most 72 bytes"));
    assert!(wrong(&long(TEMPLATE_MAX), &execution).contains("at most 64 characters"));
    let mut scene = Scene::new();
    let mut asked = another(every("1h"), 1);
    asked.id = CronId::parse("x".repeat(44)).unwrap();
    asked.target = execution;
    let refused = scene.ask(&Command::Create(asked.clone())).unwrap_err();
    assert!(refused.to_string().starts_with("id: "), "{refused}");
    asked.id = CronId::parse("x".repeat(43)).unwrap();
    assert!(scene.ask(&Command::Create(asked)).is_ok());
}

#[test]
fn jitter_moves_the_start_and_never_the_name() {
    let scene = Scene::of(every("1h"), |plan| plan.jitter = span("30m"));
    let (due, jitter) = (scene.due().unwrap(), span("30m"));
    assert!(due > t("01:00:00") && due <= t("01:00:00").plus(jitter), "{due:?}");
    let scene = scene.until("01:45:00");
    assert_eq!(scene.started(), ["01:00:00"]);
}
