//! What must hold of crons: each recorded run starts once, in time, and not beside another where it must not.

use std::collections::BTreeMap;

use tickover_core::cron::plan::Overlap;
use tickover_core::cron::run::{Occurrence, RunState};
use tickover_core::cron::{Cron, LIVE_MAX};
use tickover_core::due::Due;
use tickover_core::id::CronId;
use tickover_core::time::Timestamp;

use super::timeliness::{Passing, of_instants, of_notices};
use crate::Run;
use crate::ledger::{FAR, NotedCron};
use crate::plan::crons::PREFIX;
use crate::violation::{Invariant, Violation};

/// The task or execution of a run of a cron, each instant with the number of events before it.
#[derive(Default)]
struct Life {
    created: Vec<(usize, Timestamp)>,
    /// Its first end: the cron doesn't learn what an operator makes of it later.
    ended: Option<(usize, Timestamp)>,
}

/// The records of each cron, in order.
type Records = BTreeMap<CronId, Vec<NotedCron>>;

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut records = Records::new();
    for noted in run.world.ledger.crons() {
        records.entry(noted.cron.id.clone()).or_default().push(noted);
    }
    if records.is_empty() {
        return vec![];
    }
    let lives = lives(run);
    let mut found = runs_start_once(&records, &lives);
    found.extend(runs_do_not_overlap(&records, &lives));
    found.extend(of_instants(&instants(&records, run), run).into_iter().map(of_crons));
    found.extend(of_notices(&notices(&records, &lives, run), run).into_iter().map(of_crons));
    found.extend(crons_finish(&records, run));
    found
}

fn violation(at: Timestamp, cron: &Cron, what: &str) -> Violation {
    Violation::new(Invariant::Crons, at, format!("cron {} {what}: {cron:?}", cron.id))
}

fn of_crons(late: Violation) -> Violation {
    Violation { invariant: Invariant::Crons, ..late }
}

fn lives(run: &Run) -> BTreeMap<String, Life> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    for (number, event) in run.events.iter().enumerate() {
        let (id, is_new, has_ended) = if let Some(stored) = event.what.task_change() {
            let was = stored.before.as_ref().map(|before| before.incarnation);
            let after = &stored.after;
            (after.id.as_str(), was != Some(after.incarnation), after.ended().is_some())
        } else if let Some(change) = event.what.execution_change() {
            let was = change.before.as_ref().map(|before| before.incarnation);
            let after = &change.after;
            (after.id.as_str(), was != Some(after.incarnation), after.closed().is_some())
        } else {
            continue;
        };
        if !id.starts_with(PREFIX) {
            continue;
        }
        let life = lives.entry(id.to_owned()).or_default();
        life.created.extend(is_new.then_some((number, event.at)));
        if has_ended {
            life.ended.get_or_insert((number, event.at));
        }
    }
    lives
}

/// Where a run is first in its cron's record: its cron as it was then.
fn recorded(records: &Records) -> BTreeMap<String, (&NotedCron, Occurrence)> {
    let mut recorded = BTreeMap::new();
    for noted in records.values().flatten() {
        for run in noted.cron.runs.iter().filter(|run| run.state == RunState::Starting) {
            recorded.entry(noted.cron.run_id(&run.occurrence)).or_insert((noted, run.occurrence));
        }
    }
    recorded
}

fn runs_start_once(records: &Records, lives: &BTreeMap<String, Life>) -> Vec<Violation> {
    let recorded = recorded(records);
    let mut found = vec![];
    for (id, life) in lives {
        let first = life.created.first().map_or(0, |(number, _)| *number);
        let at = life.created.last().map_or(Timestamp::EPOCH, |(_, at)| *at);
        let mut wrong =
            |what: &str| found.push(Violation::new(Invariant::Crons, at, format!("run {id} {what}")));
        if life.created.len() > 1 {
            wrong("was started more than once");
        }
        if recorded.get(id).is_none_or(|(noted, _)| noted.number > first) {
            wrong("was started before its cron had recorded it");
        }
    }
    for noted in records.values().flatten() {
        for run in &noted.cron.runs {
            let is_started = run.state.is_open() || run.state == RunState::Done;
            let life = lives.get(&noted.cron.run_id(&run.occurrence));
            let exists =
                life.and_then(|life| life.created.first()).is_some_and(|(number, _)| *number <= noted.number);
            if is_started && !exists {
                found.push(violation(
                    noted.at,
                    &noted.cron,
                    "says of a run that it was started, and it wasn't",
                ));
            }
        }
    }
    found
}

fn runs_do_not_overlap(records: &Records, lives: &BTreeMap<String, Life>) -> Vec<Violation> {
    let mut found = vec![];
    let recorded = recorded(records);
    for (id, (noted, occurrence)) in &recorded {
        let cron = &noted.cron;
        let may_overlap = matches!(cron.plan.overlap, Overlap::AllowAll | Overlap::TerminateOther);
        // Whoever triggers a run has it at once.
        if may_overlap || occurrence.manual {
            continue;
        }
        for (other, (before, _)) in &recorded {
            let is_same = before.cron.incarnation == cron.incarnation;
            let is_earlier = is_same && before.number < noted.number && other != id;
            let Some(life) = lives.get(other).filter(|_| is_earlier) else { continue };
            let is_open = life.created.first().is_some_and(|(number, _)| *number <= noted.number)
                && life.ended.is_none_or(|(number, _)| number > noted.number);
            if is_open {
                found.push(violation(noted.at, cron, &format!("started {id} while {other} was open")));
            }
        }
    }
    found
}

/// When each record ends: with the next one of its cron.
fn with_ends<'a>(records: &'a Records, run: &Run) -> Vec<(&'a NotedCron, Timestamp)> {
    let all = records.values().flat_map(|of_one| {
        let ends = of_one.iter().skip(1).map(|next| next.at).chain([run.ended_at]);
        of_one.iter().zip(ends)
    });
    all.collect()
}

/// The instants at which crons have something to do by themselves.
fn instants(records: &Records, run: &Run) -> Vec<Passing> {
    let mut all = vec![];
    for (noted, until) in with_ends(records, run) {
        let cron = &noted.cron;
        let live = cron.runs.iter().filter(|run| run.state.is_live()).count();
        let starting = cron.starting_runs().count();
        let (instant, acts) = if starting > 0 {
            // Runs are stopped and started one after the other. The write that says so follows the last one.
            (Some(noted.at), starting + cron.stopping_runs().count())
        } else {
            (cron.next().filter(|_| live < LIVE_MAX).map(|next| next.starts_at), 1)
        };
        let acts = u64::try_from(acts).unwrap_or(1);
        let brief = format!("cron {} of version {}", cron.id, cron.version);
        all.extend(instant.map(|instant| Passing { since: noted.at, instant, until, brief, acts }));
    }
    all
}

/// The ends of the runs that the next ones wait for.
fn notices(records: &Records, lives: &BTreeMap<String, Life>, run: &Run) -> Vec<Passing> {
    let mut all = vec![];
    for (noted, until) in with_ends(records, run) {
        let cron = &noted.cron;
        let ended = |occurrence| lives.get(&cron.run_id(&occurrence))?.ended.map(|(_, at)| at);
        let ends: Option<Vec<Timestamp>> = cron.open_runs().map(ended).collect();
        let is_known = cron.waiting.is_some() && cron.starting_runs().next().is_none();
        let Some(instant) = ends.filter(|_| is_known).and_then(|ends| ends.into_iter().max()) else {
            continue;
        };
        let brief = format!("cron {} of version {}, which waits for an end", cron.id, cron.version);
        all.push(Passing { since: noted.at, instant, until, brief, acts: 1 });
    }
    all
}

fn crons_finish(records: &Records, run: &Run) -> Vec<Violation> {
    let last = records.values().filter_map(|of_one| of_one.last());
    let is_work = |due: Due| due.at < run.ended_at.plus(FAR);
    let unfinished = last.filter(|noted| noted.cron.due.is_some_and(is_work));
    unfinished.map(|noted| violation(run.ended_at, &noted.cron, "never finished")).collect()
}
