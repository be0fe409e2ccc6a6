//! What each operation costs, by the `ConsumedCapacity` of the database in this process. A change that costs more fails here.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]
#![expect(clippy::float_cmp, reason = "whole and half units are exact")]

use tickover_core::duration::Millis;
use tickover_core::flow::{Debounce, FlowRequest, OnConflict, Unique, UniqueWindow};
use tickover_core::id::{Capability, FlowKey, QueueName, TaskKind};
use tickover_core::kind::{KindDefaults, Policies};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Failure;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_service::claim::ClaimedTask;
use tickover_service::cost;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::meter::{Bill, Meter};
use tickover_tests::scene::request;

/// A meter with an existing queue record: it is made once, and then written at most once a minute.
async fn meter() -> Meter {
    let meter = Meter::new().await.unwrap();
    meter.scene.service.schedule(request("work", None, None)).await.unwrap();
    let claimed = meter.scene.claim("work").await.unwrap().unwrap();
    meter.scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
    meter
}

async fn scheduled(meter: &Meter, request: ScheduleRequest) -> Bill {
    let (answer, bill) = meter.bill(meter.scene.service.schedule(request)).await;
    answer.unwrap();
    bill
}

async fn claimed(meter: &Meter) -> (ClaimedTask, Bill) {
    let (claimed, bill) = meter.bill(meter.scene.claim("work")).await;
    (claimed.unwrap().expect("a task to claim"), bill)
}

fn with_deadline(mut request: ScheduleRequest, seconds: u64) -> ScheduleRequest {
    let after = Millis::from_secs(seconds);
    request.timeouts.schedule_to_close = Some(LifeTimeout { after, is_error: true });
    request
}

#[tokio::test]
async fn a_whole_life_costs_five_write_units_and_one_message() {
    let meter = meter().await;
    let input = r#"{"to":"ada@example.com","template":"welcome"}"#;
    let schedule = scheduled(&meter, with_deadline(request("work", None, Some(input)), 3600)).await;
    assert_eq!(schedule, Bill { writes: 2.0, reads: 0.0, sends: 1 });
    let (task, claim) = claimed(&meter).await;
    assert_eq!(claim, Bill { writes: 1.0, reads: 0.0, sends: 0 });
    let service = &meter.scene.service;
    let (answer, complete) =
        meter.bill(service.complete(&task.task.id, &task.token, Json::parse("{\"sent\":true}"))).await;
    answer.unwrap();
    assert_eq!(complete.writes, 2.0);
    assert!(complete.reads <= 1.0 && complete.sends == 0, "{complete:?}");
    assert!(schedule.writes + claim.writes + complete.writes <= 5.0);
    assert!(schedule.within(cost::SCHEDULE) && claim.within(cost::CLAIM) && complete.within(cost::COMPLETE));
}

#[tokio::test]
async fn a_client_chosen_id_costs_no_more() {
    let meter = meter().await;
    let bill = scheduled(&meter, request("work", Some("mine"), Some("1"))).await;
    assert_eq!(bill, Bill { writes: 2.0, reads: 0.0, sends: 1 });
}

#[tokio::test]
async fn a_claim_that_starts_an_attempt_timeout_costs_three() {
    let meter = meter().await;
    let after = Millis::from_secs(30);
    let timeout = AttemptTimeout { after, on_timeout: OnTimeout::Retry };
    for timeouts in [
        Timeouts { start_to_close: Some(timeout), ..Timeouts::default() },
        Timeouts { heartbeat: Some(timeout), ..Timeouts::default() },
    ] {
        scheduled(&meter, ScheduleRequest { timeouts, ..request("work", None, None) }).await;
        let (_, claim) = claimed(&meter).await;
        assert_eq!(claim, Bill { writes: 3.0, reads: 0.0, sends: 1 }, "with its timer");
        assert!(claim.within(cost::CLAIM.and(cost::ATTEMPT_TIMEOUT)));
    }
}

#[tokio::test]
async fn a_heartbeat_costs_one_write_and_at_most_one_read() {
    let meter = meter().await;
    scheduled(&meter, with_deadline(request("work", None, None), 3600)).await;
    let (task, _) = claimed(&meter).await;
    for progress in [0.1, 0.9] {
        let beat = meter.scene.service.heartbeat(&task.task.id, &task.token, Some(progress));
        let (answer, bill) = meter.bill(beat).await;
        answer.unwrap();
        assert_eq!(bill.writes, 1.0);
        assert!(bill.reads <= 1.0 && bill.sends == 0, "{bill:?}");
        assert!(bill.within(cost::HEARTBEAT));
    }
}

#[tokio::test]
async fn a_failure_costs_three_for_good_and_one_with_a_retry() {
    let meter = meter().await;
    let retry = RetryPolicy::fixed(1, Millis::from_secs(2));
    scheduled(&meter, ScheduleRequest { retry, ..request("work", None, None) }).await;
    let (task, _) = claimed(&meter).await;
    let service = &meter.scene.service;
    let error = Failure::new("boom", "it broke");
    let (answer, again) = meter.bill(service.fail(&task.task.id, &task.token, error.clone(), true)).await;
    answer.unwrap();
    assert_eq!((again.writes, again.sends), (1.0, 1));
    meter.scene.clock.advance(Millis::from_secs(2));
    let (task, _) = claimed(&meter).await;
    let (answer, last) = meter.bill(service.fail(&task.task.id, &task.token, error, true)).await;
    answer.unwrap();
    assert_eq!((last.writes, last.sends), (3.0, 0));
    assert!(again.reads <= 1.0 && last.reads <= 1.0);
    assert!(again.within(cost::RETRY) && last.within(cost::END_BADLY));
}

#[tokio::test]
async fn a_retry_that_must_move_in_the_index_costs_three() {
    let meter = meter().await;
    let mut asked = request("work", None, None);
    asked.retry = RetryPolicy::fixed(1, Millis::from_secs(2));
    asked.timeouts.schedule_to_start =
        Some(AttemptTimeout { after: Millis::from_secs(5), on_timeout: OnTimeout::Retry });
    asked.timeouts.start_to_close =
        Some(AttemptTimeout { after: Millis::from_secs(4), on_timeout: OnTimeout::Retry });
    scheduled(&meter, asked).await;
    let (task, _) = claimed(&meter).await;
    let error = Failure::new("boom", "");
    let (answer, bill) = meter.bill(meter.scene.service.fail(&task.task.id, &task.token, error, true)).await;
    answer.unwrap();
    // The hint of the next attempt, and the timer for its schedule-to-start timeout.
    assert!(bill.writes <= 3.0 && bill.sends == 2, "{bill:?}");
}

#[tokio::test]
async fn timing_out_costs_three() {
    let meter = meter().await;
    scheduled(&meter, with_deadline(request("work", None, None), 10)).await;
    meter.scene.clock.advance(Millis::from_secs(10));
    let (report, bill) = meter.bill(meter.scene.tick()).await;
    assert_eq!(report.unwrap().timed_out, 1);
    assert_eq!((bill.writes, bill.sends), (3.0, 0));
    // Two reads of every shard's index, and those of the parts of all lines, of the ticks' record and of the record itself.
    assert!(bill.reads <= 16.0 * 1.0 + 4.0 * 0.5 + 2.0, "{bill:?}");
}

#[tokio::test]
async fn a_tick_with_nothing_due_writes_nothing_and_reads_one_unit_a_shard_and_its_own_record() {
    let meter = meter().await;
    for _ in 0..20 {
        scheduled(&meter, request("work", None, None)).await;
    }
    let (report, bill) = meter.bill(meter.scene.tick()).await;
    assert_eq!(report.unwrap().looked_at, 0);
    assert_eq!(bill, Bill { writes: 0.0, reads: 16.0 * 1.0 + 0.5 + 4.0 * 0.5, sends: 0 });
    assert!(bill.within(cost::IDLE_SHARD.times(16.0).and(cost::TICK)));
}

#[tokio::test]
async fn a_deadlines_timer_costs_a_send_and_a_read_and_writes_nothing() {
    let meter = meter().await;
    let soon = scheduled(&meter, with_deadline(request("work", None, None), 60)).await;
    assert_eq!((soon.writes, soon.sends), (2.0, 2), "the hint, and the timer");
    let (task, _) = claimed(&meter).await;
    meter.scene.service.complete(&task.task.id, &task.token, None).await.unwrap();
    meter.scene.clock.advance(Millis::from_secs(60));
    let (fired, bill) = meter.bill(meter.scene.fire()).await;
    assert_eq!((fired, bill.writes, bill.sends), (1, 0.0, 0));
    assert!(bill.reads <= 1.0, "{bill:?}");
}

#[tokio::test]
async fn a_tick_that_sends_timers_writes_one_record_and_sends_at_most_one_message_a_shard() {
    let meter = meter().await;
    for _ in 0..20 {
        let bill = scheduled(&meter, with_deadline(request("work", None, None), 210)).await;
        assert_eq!((bill.writes, bill.sends), (2.0, 1), "no timer yet");
    }
    meter.scene.clock.advance(Millis::from_secs(60));
    let (report, bill) = meter.bill(meter.scene.tick()).await;
    assert_eq!(report.unwrap().timers, 20);
    // All instants are within one second: those of a shard are sent together.
    assert!(bill.writes == cost::HANDOVER.writes && (1..=16).contains(&bill.sends), "{bill:?}");
    // The index, and the ticks' record, which is read once more before it is written.
    let all = cost::IDLE_SHARD.times(16.0).and(cost::TICK).and(cost::HANDOVER);
    assert!(bill.reads <= all.reads, "{bill:?}");
    let (again, bill) = meter.bill(meter.scene.tick()).await;
    assert_eq!((again.unwrap().timers, bill.writes, bill.sends), (0, 0.0, 0));
}

#[tokio::test]
async fn a_payload_is_paid_for_once_when_written_and_once_when_read() {
    let meter = meter().await;
    for kilobytes in [10_u32, 100] {
        let input = format!("\"{}\"", "x".repeat(kilobytes as usize * 1024 - 200));
        let schedule = scheduled(&meter, request("work", None, Some(&input))).await;
        assert_eq!(schedule, Bill { writes: 2.0 + f64::from(kilobytes), reads: 0.0, sends: 1 });
        let (task, claim) = claimed(&meter).await;
        assert_eq!(claim.writes, 1.0);
        assert!(claim.reads <= (f64::from(kilobytes) / 4.0).ceil(), "{claim:?}");
        let service = &meter.scene.service;
        let (answer, beat) = meter.bill(service.heartbeat(&task.task.id, &task.token, None)).await;
        answer.unwrap();
        assert!(beat.writes == 1.0 && beat.reads <= 1.0, "{beat:?}");
        let (answer, complete) = meter.bill(service.complete(&task.task.id, &task.token, None)).await;
        answer.unwrap();
        assert!(complete.writes == 2.0 && complete.reads <= 1.0, "{complete:?}");
    }
}

#[tokio::test]
async fn scheduling_again_with_the_same_id_does_not_write_the_payload_again() {
    let meter = meter().await;
    let input = format!("\"{}\"", "x".repeat(100 * 1024));
    scheduled(&meter, request("work", Some("once"), Some(&input))).await;
    let again = scheduled(&meter, request("work", Some("once"), Some(&input))).await;
    assert_eq!(again.writes, 0.0);
    assert!(again.reads <= 1.0, "{again:?}");
}

#[tokio::test]
async fn a_refused_condition_is_counted_at_what_it_is_billed() {
    let meter = meter().await;
    scheduled(&meter, request("work", Some("twice"), Some("1"))).await;
    let again = scheduled(&meter, request("work", Some("twice"), Some("1"))).await;
    assert_eq!((again.writes, again.reads), (1.0, 0.0));
    assert_eq!(meter.store.usage().failed_conditions, 1);
}

#[tokio::test]
async fn a_unique_key_and_a_burst_cost_one_write_unit_more_and_a_bounce_one() {
    let meter = meter().await;
    let key = || FlowKey::parse("digest-7").unwrap();
    let asking = |flow| ScheduleRequest { flow, ..request("work", None, Some("1")) };
    let unique = Unique { key: key(), window: UniqueWindow::Open, on_conflict: OnConflict::Existing };
    let unique = || asking(FlowRequest { unique: Some(unique.clone()), ..FlowRequest::default() });
    let first = scheduled(&meter, unique()).await;
    assert_eq!((first.writes, first.sends), (3.0, 1));
    let existing = scheduled(&meter, unique()).await;
    assert_eq!((existing.writes, existing.sends), (0.0, 0));
    let (wait, at_most) = (Millis::from_secs(10), Millis::from_secs(60));
    let debounce = || Some(Debounce { key: key(), wait, at_most });
    let burst = || asking(FlowRequest { debounce: debounce(), ..FlowRequest::default() });
    let first = scheduled(&meter, burst()).await;
    assert_eq!((first.writes, first.sends), (3.0, 1));
    let bounce = scheduled(&meter, burst()).await;
    assert_eq!((bounce.writes, bounce.sends), (1.0, 0));
}

#[tokio::test]
async fn defaults_of_a_kind_and_requirements_cost_no_write_and_at_most_half_a_read() {
    let meter = meter().await;
    let queue = QueueName::parse("work").unwrap();
    let policies = Policies { retry: RetryPolicy::fixed(3, Millis::from_secs(2)), ..Policies::default() };
    // As much as a queue may have.
    for number in 0.. {
        let kind = TaskKind::parse(if number == 0 {
            request("work", None, None).kind.to_string()
        } else {
            format!("other-{number}")
        })
        .unwrap();
        let given = Json::parse(r#"{"retry":"fixed(3, 2s)"}"#).unwrap();
        let defaults = KindDefaults { given, policies: policies.clone(), by: None };
        if meter.scene.service.set_kind(&queue, &kind, defaults).await.is_err() {
            break;
        }
    }
    let gpu = Capability::parse("gpu").unwrap();
    let flow = || FlowRequest { requires: vec![gpu.clone()], ..FlowRequest::default() };
    for asked in
        [request("work", None, None), ScheduleRequest { flow: flow(), ..request("work", None, None) }]
    {
        let cached = scheduled(&meter, asked.clone()).await;
        assert_eq!(cached, Bill { writes: 2.0, reads: 0.0, sends: 1 });
        meter.scene.clock.advance(Millis::from_secs(5));
        let read = scheduled(&meter, asked).await;
        assert_eq!(read, Bill { writes: 2.0, reads: 0.5, sends: 1 });
    }
}
