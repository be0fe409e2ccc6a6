//! The rules of crons with one bug each: the tests see the failure that the bug causes.
//!
//! The simulation starts no crons. So the tests here put each bug into the rules of a service and check three laws,
//! which hold for a cron without a bug.

use std::sync::Arc;

use serde_json::json;
use tickover_core::command::Context;
use tickover_core::cron::{self, Command, Cron, Decision};
use tickover_core::decision::Write;
use tickover_core::record::Record;
use tickover_service::Rules;
use tickover_tests::http::Caller;
use tickover_tests::scene::Scene;

use super::{complete_all, cron as stored, make, tasks, until};

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A run that is open counts as ended.
    OpenRunsForgotten,
    /// A cron has no due slot once a run of it is open.
    NoDueSlotWhileOpen,
    /// The result of starting a run isn't recorded.
    StartsNotRecorded,
}

/// A rule that must hold for a cron.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    /// No run starts beside another one.
    OneAtATime,
    /// Each occurrence that finds nothing open becomes a run.
    NoneMissed,
    /// The result of each start is recorded.
    AllFollowed,
}

/// The rules of the core with a bug in decisions about crons.
struct Wrong(Bug);

impl Rules for Wrong {
    fn decide_cron(&self, record: Option<&Cron>, command: &Command, context: &Context<'_>) -> Decision {
        match (self.0, command, record) {
            (Bug::OpenRunsForgotten, Command::Due { .. }, Some(open)) => {
                let ended = open.open_runs().collect();
                cron::decide(record, &Command::Due { ended }, context)
            }
            (Bug::StartsNotRecorded, Command::Started { .. }, _) => {
                cron::decide(record, &Command::Started { results: vec![] }, context)
            }
            (Bug::NoDueSlotWhileOpen, _, _) => without_place(cron::decide(record, command, context)),
            (Bug::OpenRunsForgotten | Bug::StartsNotRecorded, _, _) => cron::decide(record, command, context),
        }
    }
}

fn without_place(mut decision: Decision) -> Decision {
    for write in &mut decision.writes {
        if let Write::Put { after: Record::Cron(after), .. } = write
            && after.open_runs().next().is_some()
        {
            after.due = None;
        }
    }
    decision
}

/// The laws that are broken within three hours of an hourly cron. The task of the first run is completed late, the
/// others at once.
async fn broken(bug: Option<Bug>) -> Vec<Law> {
    let mut scene = Scene::in_memory();
    if let Some(bug) = bug {
        scene.service = scene.service.with_rules(Arc::new(Wrong(bug)));
    }
    let caller = Caller::of(scene);
    make(&caller, "s", json!({"every": "1h", "overlap": "skip"})).await;
    until(&caller, "2026-01-01T02:30:00Z").await;
    let beside = tasks(&caller).await;
    for at in ["02:30", "03:30", "04:30"] {
        until(&caller, &format!("2026-01-01T{at}:00Z")).await;
        complete_all(&caller).await;
    }
    let started = tasks(&caller).await;
    let hours = ["01", "03", "04"].map(|hour| format!("s-20260101T{hour}0000Z"));
    let states = super::states(&stored(&caller, "s").await);
    let laws = [
        (Law::OneAtATime, beside.len() == 1),
        (Law::NoneMissed, hours.iter().all(|id| started.contains(id))),
        (Law::AllFollowed, !states.iter().any(|state| state == "starting")),
    ];
    laws.into_iter().filter(|(_, is_kept)| !is_kept).map(|(law, _)| law).collect()
}

#[tokio::test]
async fn without_a_bug_every_law_is_kept() {
    assert_eq!(broken(None).await, []);
}

#[tokio::test]
async fn an_open_run_that_is_forgotten_is_noticed() {
    assert!(broken(Some(Bug::OpenRunsForgotten)).await.contains(&Law::OneAtATime));
}

#[tokio::test]
async fn a_cron_without_a_due_slot_is_noticed() {
    assert!(broken(Some(Bug::NoDueSlotWhileOpen)).await.contains(&Law::NoneMissed));
}

#[tokio::test]
async fn a_start_that_is_not_recorded_is_noticed() {
    assert!(broken(Some(Bug::StartsNotRecorded)).await.contains(&Law::AllFollowed));
}
