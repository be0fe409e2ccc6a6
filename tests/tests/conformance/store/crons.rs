//! Crons: written under their own condition, in the due index like all records, and listed in the order of creation.

use tickover_core::command::Context;
use tickover_core::cron::command::{Command, Definition, StartResult};
use tickover_core::cron::expression::CronExpression;
use tickover_core::cron::plan::{Missed, Overlap, Plan, When};
use tickover_core::cron::run::{Occurrence, RunState, Target};
use tickover_core::cron::{Cron, decide};
use tickover_core::decision::Write;
use tickover_core::id::{BlobId, CronId, Fingerprint, Incarnation, RecordId, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;

use super::fixture::{NOW, SHARD, World, conflicting, json, later, parsed, queue};
use tickover_service::ports::{DueRange, StoreError};

fn name(text: &str) -> CronId {
    parsed(CronId::parse(text))
}

/// A cron for every minute.
#[expect(clippy::expect_used, reason = "a case's own constant")]
fn definition(world: &World, id: &str) -> Definition {
    Definition {
        id: name(id),
        incarnation: Incarnation::from_bytes(*world.nonce().as_bytes()),
        target: Target::Task { queue: queue("mail"), kind: parsed(TaskKind::parse("send")) },
        template: None,
        request: json(r#"{"a":1.50}"#),
        plan: Plan {
            when: When::Cron(Box::new(
                CronExpression::parse("* * * * *", "Europe/Berlin").expect("an expression"),
            )),
            overlap: Overlap::BufferAll,
            missed: Missed::RunOnce,
            jitter: later(30).since(NOW),
            max_runs: std::num::NonZeroU32::new(9),
        },
        paused: None,
        fingerprint: Fingerprint::from_bytes([7; 16]),
        blob_id: BlobId::from_bytes([8; 16]),
    }
}

/// A command's result for a cron: the writes, and the record after them.
#[expect(clippy::expect_used, reason = "a case's own command")]
fn changed(world: &World, before: Option<&Cron>, command: &Command, now: Timestamp) -> (Vec<Write>, Cron) {
    let limits = Limits { due_shards: 1, ..Limits::default() };
    let context = Context { now, nonce: world.nonce(), limits: &limits, by: None };
    let decision = decide(before, command, &context);
    (decision.writes, decision.outcome.expect("a change").0)
}

/// Writes a new cron.
async fn made(world: &World, id: &str, now: Timestamp) -> Result<Cron, StoreError> {
    let (writes, record) = changed(world, None, &Command::Create(Box::new(definition(world, id))), now);
    world.store.commit(&writes).await?;
    Ok(record)
}

/// Decides and writes.
async fn decided_and_written(
    world: &World,
    before: &Cron,
    command: &Command,
    now: Timestamp,
) -> Result<Cron, StoreError> {
    let (writes, record) = changed(world, Some(before), command, now);
    world.store.commit(&writes).await?;
    Ok(record)
}

pub(super) async fn every_change_of_a_cron_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    assert_eq!(world.store.cron(&name("s")).await?, None);
    let mut record = made(&world, "s", NOW).await?;
    assert_eq!(world.store.cron(&name("s")).await?.as_ref(), Some(&record));
    let open = |record: &Cron| -> Vec<Occurrence> { record.starting_runs().collect() };
    for seconds in [120, 180, 240] {
        let due = Command::Due { ended: vec![] };
        record = decided_and_written(&world, &record, &due, later(seconds)).await?;
        assert_eq!(world.store.cron(&name("s")).await?.as_ref(), Some(&record));
        let results: Vec<_> = open(&record).into_iter().map(|run| (run, StartResult::Started)).collect();
        if !results.is_empty() {
            record =
                decided_and_written(&world, &record, &Command::Started { results }, later(seconds)).await?;
        }
    }
    assert!(record.waiting.is_some() && record.runs[0].state == RunState::Open);
    for command in [Command::Pause, Command::Trigger, Command::Resume, Command::Delete] {
        record = decided_and_written(&world, &record, &command, later(250)).await?;
        assert_eq!(world.store.cron(&name("s")).await?.as_ref(), Some(&record));
    }
    Ok(())
}

pub(super) async fn a_cron_is_created_once_and_changed_only_in_the_version_that_was_read(
    world: World,
) -> Result<(), StoreError> {
    let first = changed(&world, None, &Command::Create(Box::new(definition(&world, "s"))), NOW);
    let rival = changed(&world, None, &Command::Create(Box::new(definition(&world, "s"))), NOW);
    world.store.commit(&first.0).await?;
    // The same write again: its answer was lost.
    world.store.commit(&first.0).await?;
    assert_eq!(conflicting(world.store.commit(&rival.0).await), None);
    let paused = changed(&world, Some(&first.1), &Command::Pause, later(1));
    let triggered = changed(&world, Some(&first.1), &Command::Trigger, later(1));
    world.store.commit(&paused.0).await?;
    world.store.commit(&paused.0).await?;
    assert_eq!(conflicting(world.store.commit(&triggered.0).await), None);
    assert_eq!(world.store.cron(&name("s")).await?, Some(paused.1));
    // A cron that never existed can't be changed.
    let other = changed(&world, None, &Command::Create(Box::new(definition(&world, "t"))), NOW);
    let lost = changed(&world, Some(&other.1), &Command::Pause, later(1));
    assert_eq!(conflicting(world.store.commit(&lost.0).await), None);
    assert_eq!(world.store.cron(&name("t")).await?, None);
    Ok(())
}

pub(super) async fn a_cron_is_due_at_its_slot_until_it_has_none(world: World) -> Result<(), StoreError> {
    let task = world.scheduled("s").await?;
    let record = made(&world, "s", NOW).await?;
    let range = DueRange::until(SHARD, later(86_400));
    let entries = world.store.due(range, 10, None).await?.items;
    let of = |id: RecordId| entries.iter().find(|entry| entry.record == id);
    let entry = of(RecordId::Cron(name("s")));
    assert_eq!(entry.map(|entry| (entry.due_at, entry.kind)), record.due.map(|due| (due.at, due.kind)));
    assert!(of(RecordId::Task(task.id)).is_some() && entries.len() == 2);
    decided_and_written(&world, &record, &Command::Pause, later(1)).await?;
    assert_eq!(world.store.due(range, 10, None).await?.items.len(), 1);
    Ok(())
}

pub(super) async fn crons_are_listed_in_the_order_in_which_they_were_made(
    world: World,
) -> Result<(), StoreError> {
    world.scheduled("a-task").await?;
    let mut all = Vec::new();
    for (seconds, id) in [(0, "c"), (10, "a"), (20, "d"), (30, "b")] {
        all.push(made(&world, id, later(seconds)).await?);
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.store.crons(3, cursor.as_deref()).await?;
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, all);
    decided_and_written(&world, &all[1], &Command::Delete, later(40)).await?;
    let left: Vec<_> = world.store.crons(10, None).await?.items.into_iter().map(|one| one.id).collect();
    assert_eq!(left, ["c", "d", "b"].map(name));
    assert!(matches!(world.store.crons(3, Some("x")).await, Err(StoreError::BadCursor)));
    Ok(())
}
