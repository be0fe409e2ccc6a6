//! New tasks: once, twice, and after an earlier one of the same id.

use tickover_core::duration::Millis;
use tickover_core::id::Fingerprint;
use tickover_core::retry::{Delay, Jitter, RetryPolicy};
use tickover_core::task::command::{Command, Key, Schedule, Start};
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};

use super::fixture::{NOW, World, conflicting, deadline, json, look, present, retried};
use tickover_service::ports::StoreError;

pub(super) async fn a_new_task_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    let request = world.request("full");
    assert_eq!(world.store.task(&request.id).await?, None);
    let attempt =
        |secs| Some(AttemptTimeout { after: Millis::from_secs(secs), on_timeout: OnTimeout::Terminal });
    let request = Schedule {
        labels: Some(json(r#"{"tenant":"t"}"#)),
        retry: RetryPolicy {
            delay: Delay::Listed(vec![Millis::ZERO, Millis::from_secs(5)]),
            jitter: Jitter::Full,
            max_delay: Some(Millis::from_secs(60)),
            non_retryable: vec!["fatal".to_owned()],
            ..retried(4)
        },
        flow: tickover_core::flow::Flow::default(),
        timeouts: Timeouts {
            schedule_to_start: attempt(3_000),
            heartbeat: attempt(30),
            start_to_close: attempt(300),
            ..deadline(3_600)
        },
        start: Start::After(Millis::from_secs(2_000)),
        key: Some(Key { digest: Fingerprint::from_bytes([3; 16]), replaces: None }),
        ..request
    };
    let written = world.schedule(request).await?;
    assert_eq!(world.stored(&written).await?, written);

    let growing = RetryPolicy { delay: Delay::Fixed(Millis::from_secs(2)), backoff: 1.5, ..retried(3) };
    let written = world.schedule(Schedule { retry: growing, ..world.request("growing") }).await?;
    assert_eq!(world.stored(&written).await?, written);
    Ok(())
}

pub(super) async fn every_outcome_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    let completed = world.completed("completed", NOW).await?;
    let failed = world.failed("failed", NOW).await?;
    let skipped = world.schedule(Schedule { retry: retried(0), ..world.request("skipped") }).await?;
    let pending = world.scheduled("cancelled").await?;
    let cancelled = world.drive(&pending, &Command::Cancel { force: false }, NOW).await?;
    let late = world.schedule(Schedule { timeouts: deadline(1), ..world.request("late") }).await?;
    let late = world.drive(&late, &look(), NOW.plus(Millis::from_secs(1))).await?;
    for written in [completed, failed, skipped, cancelled, late] {
        assert!(written.ended().is_some());
        assert_eq!(world.stored(&written).await?, written);
    }
    Ok(())
}

pub(super) async fn an_id_in_use_conflicts_with_its_task(world: World) -> Result<(), StoreError> {
    let first = world.scheduled("twice").await?;
    let second = world.scheduled("twice").await;
    assert_eq!(conflicting(second), Some(first.clone()));
    assert_eq!(world.stored(&first).await?, first);
    Ok(())
}

pub(super) async fn creating_again_by_the_same_decision_counts_as_done(
    world: World,
) -> Result<(), StoreError> {
    let command = Command::Schedule(Box::new(world.request("again")));
    let decision = world.decide(None, &command, NOW);
    let written = world.carry_out(decision.clone()).await?;
    world.carry_out(decision).await?;
    assert_eq!(world.stored(&written).await?, written);
    Ok(())
}

pub(super) async fn an_id_is_free_at_the_very_end_of_retention(world: World) -> Result<(), StoreError> {
    let old = world.completed("reused", NOW).await?;
    let end = present(old.ended()).expires_at;
    let early = Millis::new(1);
    let command = Command::Schedule(Box::new(world.request("reused")));
    let too_early = world.carry_out(world.decide(None, &command, end.minus(early))).await;
    assert_eq!(conflicting(too_early), Some(old.clone()));

    // The very millisecond, not the next whole second.
    let new = world.carry_out(world.decide(None, &command, end)).await?;
    assert_ne!(new.incarnation, old.incarnation);
    assert_eq!(world.stored(&new).await?, new);
    Ok(())
}
