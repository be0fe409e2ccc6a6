//! What executions cost, by the `ConsumedCapacity` of the database in this process. A change that costs more fails here.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![expect(clippy::float_cmp, reason = "whole and half units are exact")]

mod callbacks;

use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending, Suspend};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState, Slot};
use tickover_core::id::{EventName, ExecutionId, Nonce, QueueName, StepName, TaskKind, WorkflowName};
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_service::claim::ClaimRequest;
use tickover_service::cost;
use tickover_service::executions::{EndedStep, RemoteStep, StartRequest, StartedTurn, Suspended, Work};
use tickover_service::ports::Listed;
use tickover_tests::meter::{Bill, Meter};

/// Steps of the fan-out.
const FAN_OUT: u16 = 100;

fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

fn work(max: usize) -> ClaimRequest {
    ClaimRequest { worker: None, max, lease: Millis::from_secs(60), wait: Millis::ZERO, provides: vec![] }
}

/// A meter with an existing queue record.
async fn meter() -> Meter {
    meter_listing(Listed::default()).await
}

/// The same with a list of these executions of all workflows.
async fn meter_listing(listed: Listed) -> Meter {
    let meter = Meter::listing(listed).await.unwrap();
    meter.scene.service.schedule(tickover_tests::scene::request("work", None, None)).await.unwrap();
    let claimed = meter.scene.claim("work").await.unwrap().unwrap();
    meter.scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
    meter
}

async fn started(meter: &Meter, id: &str) -> Bill {
    let request = StartRequest {
        id: Some(ExecutionId::parse(id).unwrap()),
        input: Json::parse(r#"{"order":"o-1","boxes":3}"#),
        ..StartRequest::new(WorkflowName::parse("order-fulfilment").unwrap(), queue())
    };
    let (answer, bill) = meter.bill(meter.scene.service.start(request)).await;
    assert!(!answer.unwrap().existed);
    bill
}

async fn turn(meter: &Meter) -> (StartedTurn, Bill) {
    let request = work(1);
    let (taken, bill) = meter.bill(meter.scene.service.next_work(&queue(), &request)).await;
    match taken.unwrap().pop().unwrap() {
        Work::Turn(turn) => (*turn, bill),
        Work::Task(task) => panic!("a task: {task:?}"),
    }
}

fn name(text: impl Into<String>) -> StepName {
    StepName::parse(text).unwrap()
}

fn step(meter: &Meter, number: u32) -> Entry {
    let output = Some(Payload::Inline(Json::parse(format!(r#"{{"charge":"c-{number}"}}"#)).unwrap()));
    let outcome = StepOutcome::Completed { output };
    let what = Happened::Step {
        name: name(format!("step-{number}")),
        outcome,
        attempts: Some(1),
        expired: None,
        errors: vec![],
    };
    Entry { at: meter.scene.service.now(), what }
}

async fn closed(meter: &Meter, turn: &StartedTurn, execution: &Execution, entries: Vec<Entry>) -> Bill {
    let output = Some(Payload::Inline(Json::parse(r#"{"receipt":"r-1"}"#).unwrap()));
    let ending = Ending::Outcome(ExecutionOutcome::Completed { output });
    let close = Close { lease: turn.lease, entries, ending, cleanup: Cleanup::default(), values: None };
    let (answer, bill) = meter.bill(meter.scene.service.close_turn(execution, close)).await;
    assert!(matches!(answer.unwrap().state, ExecutionState::Ended(_)));
    bill
}

async fn suspended(meter: &Meter, turn: &StartedTurn, execution: &Execution, with: Suspend) -> Bill {
    let suspend =
        Suspend { lease: turn.lease, seen_version: execution.version, seen_wakes: execution.wakes, ..with };
    let (answer, bill) = meter.bill(meter.scene.service.suspend_turn(execution, suspend)).await;
    assert!(matches!(answer.unwrap(), Suspended::Done(_)));
    bill
}

fn asleep(
    entries: Vec<Entry>,
    until: Option<tickover_core::time::Timestamp>,
    awaits_others: bool,
) -> Suspend {
    Suspend {
        lease: tickover_core::id::LeaseId::from_bytes([0; 16]),
        entries,
        seen_version: 0,
        seen_wakes: 0,
        until,
        awaits_others,
        events: vec![],
        cleanup: Cleanup::default(),
        values: None,
    }
}

#[tokio::test]
async fn five_inline_steps_cost_ten_write_units_one_read_and_one_message() {
    let meter = meter().await;
    let start = started(&meter, "e-1").await;
    assert_eq!((start.writes, start.reads, start.sends), (3.0, 0.0, 1));
    let (turn, claim) = turn(&meter).await;
    assert_eq!((claim.writes, claim.sends), (1.0, 0));
    let (mut execution, mut whole) = (turn.execution.clone(), start.writes + claim.writes);
    for number in 1..=4 {
        let record = meter.scene.service.record_turn(
            &execution,
            turn.lease,
            vec![step(&meter, number)],
            Cleanup::default(),
        );
        let (answer, bill) = meter.bill(record).await;
        execution = answer.unwrap();
        assert_eq!(bill, Bill { writes: 1.0, reads: 0.0, sends: 0 }, "step {number}");
        assert!(bill.within(cost::INLINE_STEP));
        whole += bill.writes;
    }
    // The close writes the last result as well.
    let close = closed(&meter, &turn, &execution, vec![step(&meter, 5)]).await;
    assert_eq!(close, Bill { writes: 2.0, reads: 0.0, sends: 0 });
    assert!(claim.reads <= 1.0, "{claim:?}");
    assert_eq!(whole + close.writes, 10.0);
    assert!(start.within(cost::START) && claim.within(cost::TURN) && close.within(cost::CLOSE));
}

/// A run that another one follows costs one write unit more than one that doesn't: the segment that shows it later.
#[tokio::test]
async fn an_earlier_run_is_kept_for_one_write_unit() {
    let meter = meter().await;
    started(&meter, "e-1").await;
    for number in 1..=3 {
        let (turn, _) = turn(&meter).await;
        let ending = Ending::ContinueAsNew { input: Json::parse("7").map(Payload::Inline), carried: vec![] };
        let entries = vec![step(&meter, number)];
        let close = Close { lease: turn.lease, entries, ending, cleanup: Cleanup::default(), values: None };
        let (answer, bill) = meter.bill(meter.scene.service.close_turn(&turn.execution, close)).await;
        assert_eq!(answer.unwrap().run, number + 1);
        // The record, and the segment.
        assert_eq!((bill.writes, bill.reads, bill.sends), (2.0, 0.0, 1), "{bill:?}");
    }
}

/// The retry of a failed run costs what any further run does, and nothing while it waits.
#[tokio::test]
async fn a_retried_run_costs_no_more_than_one_that_continues() {
    let meter = meter().await;
    started(&meter, "e-1").await;
    let (turn, _) = turn(&meter).await;
    let error = tickover_core::task::Failure::new("declined", "no");
    let outcome = ExecutionOutcome::Failed { error, step: None, retries_exhausted: false };
    let retry = RetryPolicy::fixed(1, Millis::from_secs(10));
    let ending = Ending::FailedRun { outcome, retry, carried: vec![] };
    let close = Close {
        lease: turn.lease,
        entries: vec![step(&meter, 1)],
        ending,
        cleanup: Cleanup::default(),
        values: None,
    };
    let (answer, bill) = meter.bill(meter.scene.service.close_turn(&turn.execution, close)).await;
    assert_eq!(answer.unwrap().run, 2);
    assert_eq!((bill.writes, bill.reads, bill.sends), (2.0, 0.0, 1), "{bill:?}");
}

#[tokio::test]
async fn a_list_of_all_executions_costs_a_start_one_write_unit_and_a_failure_and_its_restart_another() {
    let default = bills_of(Listed::Failed).await;
    let all = bills_of(Listed::All).await;
    assert_eq!(default[0], [3.0, 1.0, 2.0, 3.0]);
    // The entry of a failed one is made, and deleted again.
    assert_eq!(default[1], [3.0, 1.0, 3.0, 4.0]);
    assert_eq!(all[0], [4.0, 1.0, 2.0, 3.0]);
    // The entry moves: one is deleted, and one is made.
    assert_eq!(all[1], [4.0, 1.0, 4.0, 5.0]);
    let [start, ..] = all[0];
    assert_eq!(start, cost::START.and(cost::LISTED).writes);
}

#[tokio::test]
async fn counting_executions_of_a_list_reads_them_and_writes_nothing() {
    let meter = meter_listing(Listed::All).await;
    for number in 0..200 {
        started(&meter, &format!("e-{number}")).await;
    }
    let (found, bill) = meter.bill(meter.scene.service.count_executions()).await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.read, found.is_complete), (Some(200), true));
    // Of each hundred: half a unit for each of the list's 64 keys, and the records.
    assert_eq!(bill, Bill { writes: 0.0, reads: 2.0 * (32.0 + 100.0), sends: 0 });
}

/// The write units of two executions, of which one completes and one fails: of the start, the turn's, the end and a
/// restart.
async fn bills_of(listed: Listed) -> Vec<[f64; 4]> {
    let meter = meter_listing(listed).await;
    let mut bills = vec![];
    let error = tickover_core::task::Failure::new("declined", "no");
    let failed = ExecutionOutcome::Failed { error, step: None, retries_exhausted: false };
    for (id, outcome) in [("good", ExecutionOutcome::Completed { output: None }), ("bad", failed)] {
        let start = started(&meter, id).await;
        let (turn, claim) = self::turn(&meter).await;
        let ending = Ending::Outcome(outcome);
        let close =
            Close { lease: turn.lease, entries: vec![], ending, cleanup: Cleanup::default(), values: None };
        let (answer, close) = meter.bill(meter.scene.service.close_turn(&turn.execution, close)).await;
        let (restarted, restart) = meter.bill(meter.scene.service.restart(&answer.unwrap().id)).await;
        assert_eq!(restarted.unwrap().run, 2);
        bills.push([start, claim, close, restart].map(|bill| bill.writes));
        let (again, _) = self::turn(&meter).await;
        closed(&meter, &again, &again.execution, vec![]).await;
    }
    bills
}

/// Once a minute, a claim or the start of a turn records in the queue's own record up to where messages have been
/// received, and every few seconds that record is read again. This lets the next turn do neither.
async fn note_watermark(meter: &Meter) {
    started(meter, "e-0").await;
    turn(meter).await;
    meter.scene.clock.advance(Millis::from_secs(1));
    meter.scene.service.describe_queue(&queue()).await.unwrap();
}

/// The ticks of so many minutes. Their reads of the index aren't of an execution.
async fn minutes(meter: &Meter, count: u32) -> Bill {
    let mut whole = Bill { writes: 0.0, reads: 0.0, sends: 0 };
    for _ in 0..count {
        meter.scene.clock.advance(Millis::from_secs(60));
        let (report, bill) = meter.bill(meter.scene.tick()).await;
        report.unwrap();
        whole.writes += bill.writes;
        whole.sends += bill.sends;
    }
    whole
}

#[tokio::test]
async fn an_hour_of_sleep_costs_four_write_units_one_read_and_one_message() {
    let meter = meter().await;
    started(&meter, "e-1").await;
    let (first, _) = turn(&meter).await;
    let until = meter.scene.service.now().plus(Millis::from_secs(3600));
    let begun =
        Entry { at: meter.scene.service.now(), what: Happened::Until { name: name("settle"), until } };
    let suspend = suspended(&meter, &first, &first.execution, asleep(vec![begun], Some(until), false)).await;
    // Its due slot moves to the first probe of its hint.
    assert_eq!((suspend.writes, suspend.sends), (3.0, 0), "{suspend:?}");
    meter.scene.service.done_with(&queue(), first.receipt.as_deref().unwrap()).await;
    let ticks = minutes(&meter, 59).await;
    // The ticks' own record, however many sleeps end in that minute.
    assert_eq!((ticks.writes, ticks.sends), (cost::HANDOVER.writes, 1), "{ticks:?}");
    meter.scene.clock.advance(Millis::from_secs(59));
    note_watermark(&meter).await;
    let (second, wake) = turn(&meter).await;
    assert_eq!(suspend.writes + wake.writes, cost::SLEEP.writes);
    assert!(suspend.reads + wake.reads <= cost::SLEEP.reads, "{suspend:?} {wake:?}");
    closed(&meter, &second, &second.execution, vec![]).await;
}

#[tokio::test]
async fn a_sleep_of_five_minutes_costs_two_write_units_one_read_and_one_message() {
    let meter = meter().await;
    started(&meter, "e-1").await;
    let (first, _) = turn(&meter).await;
    let until = meter.scene.service.now().plus(Millis::from_secs(300));
    let begun =
        Entry { at: meter.scene.service.now(), what: Happened::Until { name: name("settle"), until } };
    let suspend = suspended(&meter, &first, &first.execution, asleep(vec![begun], Some(until), false)).await;
    let receipt = first.receipt.as_deref().unwrap();
    meter.scene.service.done_with(&queue(), receipt).await;
    meter.scene.clock.advance(Millis::from_secs(299));
    note_watermark(&meter).await;
    let (second, wake) = turn(&meter).await;
    assert!(wake.reads <= 1.0, "{wake:?}");
    let whole = Bill {
        writes: suspend.writes + wake.writes,
        reads: suspend.reads + wake.reads,
        sends: suspend.sends + wake.sends,
    };
    assert!(whole.within(cost::SHORT_SLEEP), "{suspend:?} {wake:?}");
    let close = closed(&meter, &second, &second.execution, vec![]).await;
    assert!(close.writes <= 2.0, "{close:?}");
}

#[tokio::test]
async fn a_wait_for_an_event_costs_five_write_units_however_late_it_comes() {
    let meter = meter().await;
    started(&meter, "e-1").await;
    let (first, _) = turn(&meter).await;
    let suspend = suspended(&meter, &first, &first.execution, asleep(vec![], None, false)).await;
    let receipt = first.receipt.as_deref().unwrap();
    meter.scene.service.done_with(&queue(), receipt).await;
    let ticks = minutes(&meter, 120).await;
    assert_eq!((ticks.writes, ticks.sends), (0.0, 0), "nothing is due");
    note_watermark(&meter).await;
    let id = ExecutionId::parse("e-1").unwrap();
    let event = EventName::parse("shipped").unwrap();
    let offer = meter.scene.service.send_event(&id, event.clone(), None, Json::parse(r#"{"carrier":"x"}"#));
    let (offered, offer) = meter.bill(offer).await;
    assert!(!offered.unwrap().duplicate);
    let (second, wake) = turn(&meter).await;
    let whole = Bill {
        writes: suspend.writes + offer.writes + wake.writes,
        reads: suspend.reads + offer.reads + wake.reads,
        sends: suspend.sends + offer.sends + wake.sends,
    };
    assert!(whole.within(cost::WAIT), "{suspend:?} {offer:?} {wake:?}");
    let taken = Happened::Waited { name: name("slip"), event: Some(event) };
    let taken = Entry { at: meter.scene.service.now(), what: taken };
    let close = closed(&meter, &second, &second.execution, vec![taken]).await;
    assert!(close.writes <= 2.0, "{close:?}");
}

#[tokio::test]
async fn a_claim_and_a_heartbeat_of_a_remote_step_read_its_execution_for_half_a_unit() {
    let meter = meter().await;
    started(&meter, "e-1").await;
    let (first, _) = turn(&meter).await;
    let step = RemoteStep {
        name: name("label"),
        kind: TaskKind::parse("print-label").unwrap(),
        queue: queue(),
        input: Json::parse(r#"{"box":"b-1"}"#),
        retry: RetryPolicy::default(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        given: vec![],
        slot: None,
        any_queue: false,
        at_most: None,
    };
    meter.scene.service.start_remote(&first.execution, vec![step]).await.all().unwrap();
    let request = work(1);
    let (claimed, bill) = meter.bill(meter.scene.service.claim(&queue(), &request)).await;
    let [claimed] = &claimed.unwrap()[..] else { panic!("there is one") };
    assert_eq!(bill, Bill { writes: 1.0, reads: 0.5, sends: 0 });
    assert!(bill.within(cost::CLAIM.and(cost::PARENT)));
    let beat = meter.scene.service.heartbeat(&claimed.task.id, &claimed.token, None);
    let (answer, bill) = meter.bill(beat).await;
    assert!(!answer.unwrap().cancel_requested);
    assert!(bill.within(cost::HEARTBEAT.and(cost::PARENT)), "{bill:?}");
}

/// An execution that starts so many remote steps at once, waits for all of them, and closes.
async fn fan_out(meter: &Meter, of: u16) -> Bill {
    let service = &meter.scene.service;
    let ((), bill) = meter
        .bill(Box::pin(async {
            started(meter, "e-1").await;
            let (first, _) = turn(meter).await;
            let names: Vec<StepName> = (0..of).map(|place| name(format!("label[{place}]"))).collect();
            let steps = names.iter().zip(0..).map(|(name, place)| RemoteStep {
                name: name.clone(),
                kind: TaskKind::parse("print-label").unwrap(),
                queue: queue(),
                input: Json::parse(r#"{"box":"b-1"}"#),
                retry: RetryPolicy::default(),
                flow: tickover_core::flow::FlowRequest::default(),
                timeouts: Timeouts::default(),
                given: vec![],
                slot: Some(Slot { label: Nonce::from_bytes([7; 8]), item: 0, place, of }),
                any_queue: false,
                at_most: None,
            });
            service.start_remote(&first.execution, steps.collect()).await.all().unwrap();
            let begun =
                |name: &StepName| Entry { at: service.now(), what: Happened::Remote { name: name.clone() } };
            let entries = names.iter().map(begun).collect();
            suspended(meter, &first, &first.execution, asleep(entries, None, true)).await;
            service.done_with(&queue(), first.receipt.as_deref().unwrap()).await;
            let mut done = 0;
            let second = loop {
                let mut turns = Vec::new();
                for one in service.next_work(&queue(), &work(10)).await.unwrap() {
                    match one {
                        Work::Task(task) => {
                            let output = Json::parse(r#"{"label":"l-1"}"#);
                            service.complete(&task.task.id, &task.token, output).await.unwrap();
                            done += 1;
                        }
                        Work::Turn(turn) => turns.push(*turn),
                    }
                }
                if let Some(turn) = turns.pop() {
                    break turn;
                }
            };
            assert_eq!(done, of, "only the last step's end wakes it");
            let ended = service.remote_outcomes(&second.execution, &names).await.unwrap();
            assert_eq!(ended.len(), usize::from(of));
            let ends = ended.into_iter().map(|(name, ended): (_, EndedStep)| Entry {
                at: service.now(),
                what: Happened::Step {
                    name,
                    outcome: ended.outcome,
                    attempts: None,
                    expired: None,
                    errors: vec![],
                },
            });
            let execution = service
                .record_turn(&second.execution, second.lease, ends.collect(), Cleanup::default())
                .await
                .unwrap();
            closed(meter, &second, &execution, vec![]).await;
        }))
        .await;
    bill
}

#[tokio::test]
async fn a_fan_out_of_a_hundred_costs_six_and_a_half_write_units_a_step() {
    let meter = meter().await;
    let before = meter.send_requests();
    let bill = fan_out(&meter, FAN_OUT).await;
    let steps = f64::from(FAN_OUT);
    let together = cost::started_together(steps);
    let requests = u32::try_from(meter.send_requests() - before).unwrap();
    assert_eq!(f64::from(requests), cost::START.and(together).and(cost::JOIN).send_requests);
    assert!(bill.writes / steps <= 6.5, "{bill:?}");
    assert!(bill.reads / steps <= 2.55, "{bill:?}");
    assert!(
        bill.within(
            cost::REMOTE_STEP.times(steps).and(together).and(cost::START).and(cost::JOIN).and(cost::CLOSE)
        ),
        "{bill:?}"
    );
}

#[tokio::test]
async fn a_fan_out_of_two_costs_its_steps_and_one_wait() {
    let bill = fan_out(&meter().await, 2).await;
    let expected =
        cost::START.and(cost::TURN).and(cost::REMOTE_STEP.times(2.0)).and(cost::JOIN).and(cost::CLOSE);
    // The ends have a write of their own here, as before an inline step.
    let expected = expected.and(cost::INLINE_STEP);
    assert!(bill.within(expected), "{bill:?} {expected:?}");
}
