//! A cron's view for callers.

use tickover_core::cron::plan::When;
use tickover_core::cron::run::{IdTemplate, RunState, Target};
use tickover_core::cron::{Cron, State};
use tickover_core::time::Timestamp;
use tickover_service::crons::{DescribedCron, DescribedRun};

use tickover_wire::answer::{self, CronStatus, CronView, OccurrenceView, RunView};
use tickover_wire::{Instant, OpenEnum, Verbatim};

/// The view of a cron with its last runs.
pub fn cron(described: DescribedCron) -> CronView {
    let DescribedCron { record, given, runs, upcoming } = described;
    let plan = &record.plan;
    let (cron, time_zone, every) = match &plan.when {
        When::Cron(cron) => (Some(cron.expression().to_owned()), Some(cron.time_zone()), None),
        When::Every(interval) => (None, None, Some(interval.span().into())),
    };
    let local = |at| match &plan.when {
        When::Cron(cron) => cron.local(at),
        When::Every(_) => None,
    };
    let upcoming =
        upcoming.into_iter().map(|at| OccurrenceView { at: at.into(), local: local(at) }).collect();
    let (paused_at, finished_at) = ends(&record);
    let given = given.map(Verbatim);
    let (task, execution) = match &record.target {
        Target::Task { .. } => (given, None),
        Target::Execution { .. } => (None, given),
    };
    let at = |instant: Option<Timestamp>| instant.map(Instant);
    let template = record.template.clone().unwrap_or_else(|| IdTemplate::of(&record.id));
    CronView {
        status: status(&record.state).into(),
        created_at: record.created_at.into(),
        cron,
        time_zone: time_zone.map(str::to_owned),
        every,
        overlap: plan.overlap.into(),
        missed: plan.missed.into(),
        jitter: (!plan.jitter.is_zero()).then(|| plan.jitter.into()),
        max_runs: plan.max_runs.map(std::num::NonZeroU32::get),
        started: record.started,
        waiting: record.waiting.map_or(0, |waiting| waiting.count),
        next_at: at(record.next().map(|next| next.at)),
        next_start_at: at(record.next().map(|next| next.starts_at)),
        upcoming,
        paused_at: at(paused_at),
        finished_at: at(finished_at),
        task,
        execution,
        run_ids: template.as_str().to_owned(),
        runs: runs.into_iter().map(run).collect(),
        by: record.by.as_deref().map(super::by),
        id: record.id,
    }
}

/// The instants since when it is paused and since when it is finished.
fn ends(record: &Cron) -> (Option<Timestamp>, Option<Timestamp>) {
    match &record.state {
        State::Paused { since } => (Some(*since), None),
        State::Finished { at } => (None, Some(*at)),
        State::Active(_) | State::Deleted { .. } => (None, None),
    }
}

const fn status(state: &State) -> CronStatus {
    match state {
        State::Active(_) => CronStatus::Active,
        State::Paused { .. } => CronStatus::Paused,
        State::Finished { .. } => CronStatus::Finished,
        State::Deleted { .. } => CronStatus::Deleted,
    }
}

fn run(run: DescribedRun) -> RunView {
    let (state, reason) = match run.state {
        RunState::Starting => (answer::RunState::Starting, None),
        RunState::Open => (answer::RunState::Open, None),
        RunState::Stopping(_) => (answer::RunState::Stopping, None),
        RunState::Done => (answer::RunState::Started, None),
        RunState::Skipped(why) => (answer::RunState::Skipped, Some(why.as_str().to_owned())),
        RunState::Refused(code) => (answer::RunState::Refused, Some(code)),
    };
    RunView {
        at: run.occurrence.at.into(),
        id: run.id,
        manual: run.occurrence.manual,
        state: OpenEnum::Known(state),
        reason,
        status: run.status.map(str::to_owned),
        ended_at: run.ended_at.map(Instant),
    }
}
