//! How late instants are noticed, with a tick a minute and the queue of timers.
//!
//! Workers schedule, claim, fail and complete tasks over HTTP, with long polls. The lateness of a deadline comes from
//! the task's record. The lateness of a start comes from the time of the answer that gave the task to a worker.

mod dev;
mod sqs;
mod users;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_tests::scene::task_id;

use crate::{float, print};
use users::{Seen, Users};

/// The first instant, counted from the scheduling of its task, and the span from the first to the last instant.
const FIRST: Millis = Millis::from_secs(15);
const SPREAD: Millis = Millis::from_secs(180);
/// The shortest delay of a retry, counted from the failure: by then all first attempts have failed.
const RETRY_FIRST: Millis = Millis::from_secs(30);
/// For instants more than 200 s ahead the write sends no timer. The tick sends it.
const FAR_FIRST: Millis = Millis::from_secs(205);
const FAR_SPREAD: Millis = Millis::from_secs(175);
/// The time after the last instant until the measurement ends.
const GRACE: Millis = Millis::from_secs(5);

/// How many tasks of each kind there are.
#[derive(Clone, Copy)]
struct Plan {
    deadlines: usize,
    retries: usize,
    starts: usize,
    far_deadlines: usize,
}

const PLAN: Plan = Plan { deadlines: 500, retries: 500, starts: 500, far_deadlines: 200 };

/// The local system, all in this process, as `tickover dev` runs it.
pub(crate) async fn dev(is_wanted: bool) -> Result<()> {
    if !is_wanted {
        return Ok(());
    }
    let (system, base) = dev::start().await?;
    measure("lateness-dev", &Users::new(&base, &system.service)?, PLAN).await
}

/// The queues of an emulated AWS, and a driver that reads them as Lambda does.
pub(crate) async fn sqs(is_wanted: bool) -> Result<()> {
    if !is_wanted {
        return Ok(());
    }
    let (system, base) = sqs::start().await?;
    measure("lateness-sqs", &Users::new(&base, &system.service)?, PLAN).await?;
    system.stop().await
}

/// Instants, each with the time at which it was noticed.
#[derive(Default)]
struct Group {
    noticed: Vec<Noticed>,
    missing: usize,
}

/// Sorted by lateness, the smallest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Noticed {
    /// By how many milliseconds the instant was noticed late; negative is early.
    late_ms: i64,
    at: Timestamp,
    id: String,
}

impl Group {
    fn add(&mut self, id: &str, at: Timestamp, noticed_at: Timestamp) {
        let late_ms = noticed_at.as_millis() - at.as_millis();
        self.noticed.push(Noticed { late_ms, at, id: id.to_owned() });
    }
}

async fn measure(bench: &str, users: &Users, plan: Plan) -> Result<()> {
    let deadlines = users.schedule("deadlines", plan.deadlines, FIRST, SPREAD, "timeout").await?;
    let far = users.schedule("far-deadlines", plan.far_deadlines, FAR_FIRST, FAR_SPREAD, "timeout").await?;
    let retries = users.schedule("retries", plan.retries, RETRY_FIRST, SPREAD, "retry").await?;
    let starts = users.schedule("starts", plan.starts, FIRST, SPREAD, "delay").await?;
    let scheduled_at = users.now();
    // All other instants are before this one.
    let last = scheduled_at.plus(FAR_FIRST).plus(FAR_SPREAD);
    let seen = users.work_until(&["retries", "starts"], last.plus(GRACE)).await?;

    let service = users.service();
    report(bench, "deadlines", of_deadlines(service, deadlines.keys()).await?);
    report(bench, "retries", of_starts(service, &retries, 2, &seen).await?);
    report(bench, "delayed_starts", of_starts(service, &starts, 1, &seen).await?);
    report(bench, "handed_over_by_tick", of_deadlines(service, far.keys()).await?);
    Ok(())
}

/// Deadlines and ends from the records.
async fn of_deadlines(service: &Service, ids: impl Iterator<Item = &String>) -> Result<Group> {
    let mut group = Group::default();
    for id in ids {
        let task = service.describe(&task_id(id)).await?.task;
        let deadline_at = task.deadline_at.with_context(|| format!("{id} has a deadline"))?;
        match task.ended() {
            Some(ended) => group.add(id, deadline_at, ended.ended_at),
            None => group.missing += 1,
        }
    }
    Ok(group)
}

/// Starts as the workers saw them. A start counts as early only if the record says so.
async fn of_starts(
    service: &Service,
    scheduled: &BTreeMap<String, Option<Timestamp>>,
    attempt: u32,
    seen: &BTreeMap<(String, u32), Seen>,
) -> Result<Group> {
    let mut group = Group::default();
    for (id, available_at) in scheduled {
        // The answer to the first attempt's failure said when the retry may start.
        let told = seen.get(&(id.clone(), 1)).and_then(|first| first.again_at);
        let available_at = if attempt == 1 { *available_at } else { told };
        let (Some(at), Some(came)) = (available_at, seen.get(&(id.clone(), attempt))) else {
            group.missing += 1;
            continue;
        };
        let task = service.describe(&task_id(id)).await?.task;
        let past = task.history.iter().find(|past| past.attempt == attempt);
        let claimed_at = past.and_then(|past| past.claimed_at).unwrap_or(came.at);
        group.add(id, at, if claimed_at < at { claimed_at } else { came.at });
    }
    Ok(group)
}

fn report(bench: &str, of: &str, mut group: Group) {
    group.noticed.sort_unstable();
    let late_ms: Vec<i64> = group.noticed.iter().map(|noticed| noticed.late_ms).collect();
    let latest = group.noticed.last();
    print(&json!({
        "bench": bench,
        "of": of,
        "count": late_ms.len(),
        "missing": group.missing,
        "early": late_ms.iter().filter(|ms| **ms < 0).count(),
        "p50_ms": percentile(&late_ms, 0.5),
        "p99_ms": percentile(&late_ms, 0.99),
        "max_ms": late_ms.last(),
        "latest": latest.map(|latest| format!("{} at {}", latest.id, latest.at.to_rfc3339())),
    }));
}

/// The smallest value that is not below this share of all values.
fn percentile(sorted: &[i64], share: f64) -> Option<i64> {
    let rank = (float(sorted.len()) * share).ceil();
    let place = (1..=sorted.len()).find(|place| float(*place) >= rank)?;
    sorted.get(place - 1).copied()
}
