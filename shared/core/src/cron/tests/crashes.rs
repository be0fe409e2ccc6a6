//! The process that carries out a decision may crash at any point, be slow, or run twice. Every run still happens
//! once.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::fixture::{RunStatus, Scene, every, max_runs, t, written};
use crate::cron::command::Command;
use crate::cron::decision::Decision;
use crate::cron::plan::Overlap;
use crate::duration::Millis;

#[test]
fn a_run_recorded_by_a_process_that_crashed_is_started_by_the_next_call() {
    let mut scene = Scene::overlapping(Overlap::Skip);
    scene.now = t("01:00:00");
    let decision = scene.decide(&Command::Due { ended: vec![] });
    scene.write(&decision);
    assert_eq!((scene.starts, scene.due()), (0, Some(t("01:00:00"))), "it stays due");
    let scene = scene.at("01:01:00");
    assert_eq!((scene.started(), scene.starts), (vec!["01:00:00".to_owned()], 1));
}

#[test]
fn a_run_started_by_a_process_that_crashed_is_started_again_with_the_same_id() {
    let mut scene = Scene::overlapping(Overlap::Skip);
    scene.now = t("01:00:00");
    let decision = scene.decide(&Command::Due { ended: vec![] });
    scene.write(&decision);
    scene.carry_out(&decision);
    let scene = scene.at("01:01:00");
    assert_eq!((scene.world.len(), scene.starts), (1, 2));
    assert_eq!(scene.record().started, 1);
}

#[test]
fn a_late_report_of_a_start_changes_nothing() {
    let mut scene = Scene::overlapping(Overlap::Skip);
    scene.now = t("01:00:00");
    let decision = scene.decide(&Command::Due { ended: vec![] });
    scene.write(&decision);
    let results = scene.carry_out(&decision);
    let mut scene = scene.handle_due().end_all().at("02:00:00");
    let before = scene.record.clone();
    scene.ask(&Command::Started { results }).unwrap();
    assert_eq!(scene.record, before);
}

/// A step of the random sequence.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Wait(u16),
    /// A process handles the cron, and crashes after this many of three actions: write, start, report the start.
    Look(u8),
    /// A process that decided earlier carries out its old decision now.
    Thaw,
    /// A process decides, and then waits.
    Freeze,
    /// The oldest open run ends.
    End,
    Pause,
    Resume,
    Trigger,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_u16..1_500).prop_map(Step::Wait),
        5 => (0_u8..4).prop_map(Step::Look),
        1 => Just(Step::Freeze),
        1 => Just(Step::Thaw),
        3 => Just(Step::End),
        1 => Just(Step::Pause),
        1 => Just(Step::Resume),
        1 => Just(Step::Trigger),
    ];
    prop::collection::vec(step, 1..80)
}

/// Carries out a decision up to the action at which the process crashes.
fn carry(scene: &mut Scene, decision: &Decision, far: u8) {
    let is_current = |scene: &Scene| match written(decision) {
        Some((before, _)) => before == scene.record.as_ref(),
        None => true,
    };
    if far == 0 || !is_current(scene) {
        return;
    }
    scene.write(decision);
    if far > 1 {
        let results = scene.carry_out(decision);
        if far > 2 && !results.is_empty() {
            let _ = scene.ask(&Command::Started { results });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_run_happens_once_and_overlaps_another_only_if_allowed(
        policy in 0..Overlap::ALL.len(), most in 1_u32..12, steps in steps(),
    ) {
        let overlap = Overlap::ALL[policy];
        let mut scene = Scene::of(every("10m"), |plan| {
            plan.overlap = overlap;
            plan.max_runs = max_runs(most);
        });
        let (mut frozen, mut triggered, mut decided) = (None, 0, BTreeSet::new());
        for step in steps {
            match step {
                Step::Wait(secs) => scene.now = scene.now.plus(Millis::from_secs(u64::from(secs))),
                Step::Look(far) => {
                    let decision = scene.decide(&Command::Due { ended: scene.ended() });
                    carry(&mut scene, &decision, far);
                }
                Step::Freeze => frozen = Some(scene.decide(&Command::Due { ended: scene.ended() })),
                Step::Thaw => {
                    if let Some(decision) = frozen.take() {
                        carry(&mut scene, &decision, 3);
                    }
                }
                Step::End => {
                    if let Some(fate) = scene.world.values_mut().find(|fate| **fate == RunStatus::Open) {
                        *fate = RunStatus::Ended;
                    }
                }
                Step::Pause => { let _ = scene.ask(&Command::Pause); }
                Step::Resume => { let _ = scene.ask(&Command::Resume); }
                Step::Trigger => triggered += u32::from(scene.ask(&Command::Trigger).is_ok()),
            }
            let record = scene.record();
            decided.extend(record.starting_runs().map(|run| record.run_id(&run)));
            let is_planned = |id: &&String| !id.contains('.');
            let open = scene.world.iter().filter(|(id, fate)| is_planned(id) && **fate == RunStatus::Open).count();
            match overlap {
                Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll | Overlap::CancelOther => {
                    prop_assert!(open <= 1, "{:?}", scene.world);
                }
                Overlap::AllowAll | Overlap::TerminateOther => {}
            }
            prop_assert!(record.started <= most);
        }
        // The tick starts the runs that were recorded and never started.
        let scene = scene.handle_due();
        let started: BTreeSet<String> = scene.world.keys().cloned().collect();
        prop_assert!(decided.is_subset(&started), "{decided:?} {started:?}");
        let planned = started.iter().filter(|id| !id.contains('.')).count();
        prop_assert_eq!(planned, usize::try_from(scene.record().started).unwrap());
        prop_assert_eq!(started.len() - planned, usize::try_from(triggered).unwrap());
    }
}
