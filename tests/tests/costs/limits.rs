//! What concurrency limits and rates cost over a plain task, by the `ConsumedCapacity` of the database in this process.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]
#![expect(clippy::float_cmp, reason = "whole and half units are exact")]

use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionOutcome;
use tickover_core::execution::command::{Cleanup, Close, Ending};
use tickover_core::flow::{Concurrency, FlowRequest, Priority, Rate};
use tickover_core::id::{ExecutionId, FLOW_KEY_MAX, FlowKey, WorkflowName};
use tickover_core::kind::{KindDefaults, Policies};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};
use tickover_service::claim::{ClaimedTask, Together};
use tickover_service::executions::{StartRequest, StartedTurn, Work};
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::meter::{Bill, Meter};
use tickover_tests::scene::{claim_request, queue_name, request};

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

/// A task that needs a place at these keys.
fn limited(keys: &[&str], limit: u16) -> ScheduleRequest {
    let one = |text: &&str| Concurrency {
        key: FlowKey::parse(*text).unwrap(),
        limit: NonZeroU16::new(limit).unwrap(),
    };
    let flow = FlowRequest { concurrency: keys.iter().map(one).collect(), ..FlowRequest::default() };
    ScheduleRequest { flow, ..request("work", None, None) }
}

/// A task that starts at the rate of a key: 6 a minute, one at once.
fn paced(start: Start) -> ScheduleRequest {
    let key = FlowKey::parse("smtp").unwrap();
    let (limit, burst) = (NonZeroU32::new(6).unwrap(), NonZeroU32::MIN);
    let rate = Some(Rate { key, limit, per: Millis::from_secs(60), burst });
    ScheduleRequest {
        flow: FlowRequest { rate, ..FlowRequest::default() },
        start,
        ..request("work", None, None)
    }
}

async fn completed(meter: &Meter, claimed: &ClaimedTask) -> Bill {
    let service = &meter.scene.service;
    let (answer, bill) = meter.bill(service.complete(&claimed.task.id, &claimed.token, None)).await;
    answer.unwrap();
    bill
}

#[tokio::test]
async fn a_free_place_costs_two_write_units_over_a_plain_task() {
    let meter = meter().await;
    let mut lives = vec![];
    for request in [request("work", None, None), limited(&["customer-7"], 5), limited(&["customer-7"], 5)] {
        let schedule = scheduled(&meter, request).await;
        let (task, claim) = claimed(&meter).await;
        let complete = completed(&meter, &task).await;
        lives.push((schedule.writes, claim.writes, complete.writes, claim.reads + complete.reads));
    }
    let [plain, first, second] = [lives[0], lives[1], lives[2]];
    assert_eq!((plain.0, plain.1, plain.2), (2.0, 1.0, 2.0));
    for limited in [first, second] {
        assert_eq!((limited.0, limited.1, limited.2), (2.0, 2.0, 3.0));
        assert!(limited.3 - plain.3 <= 2.0, "{} reads", limited.3);
    }
}

#[tokio::test]
async fn a_task_that_had_to_wait_costs_four_write_units_over_a_plain_task_however_long_it_waits() {
    let meter = meter().await;
    scheduled(&meter, limited(&["k"], 1)).await;
    let (first, _) = claimed(&meter).await;
    // Its item in the line, instead of a message.
    let begins = scheduled(&meter, limited(&["k"], 1)).await;
    assert_eq!((begins.writes, begins.sends), (3.0, 0));
    let (answer, waits) = meter.bill(meter.scene.claim("work")).await;
    assert!(answer.unwrap().is_none());
    assert_eq!((waits.writes, waits.sends), (0.0, 0));
    // Who finishes gives the place on in the write that frees it.
    let freed = completed(&meter, &first).await;
    assert_eq!((freed.writes, freed.sends), (3.0, 1));
    let (second, claim) = claimed(&meter).await;
    // Its place.
    assert_eq!(claim.writes, 1.0 + 1.0);
    let complete = completed(&meter, &second).await;
    // The deletion of its item, and its place.
    assert_eq!(complete.writes, 2.0 + 2.0);
    let over = (begins.writes - 2.0) + (claim.writes - 1.0) + (complete.writes - 2.0);
    assert_eq!(over, 4.0);
}

#[tokio::test]
async fn a_task_whose_claim_finds_no_place_costs_five_write_units_over_a_plain_task() {
    let meter = meter().await;
    for _ in 0..20 {
        scheduled(&meter, limited(&["k"], 1)).await;
    }
    let (mut running, _) = claimed(&meter).await;
    let (answer, waits) = meter.bill(meter.scene.claim("work")).await;
    assert!(answer.unwrap().is_none());
    let (mut writes, mut count) = (waits.writes, 0.0);
    for _ in 1..20 {
        let free = completed(&meter, &running).await;
        let (next, claim) = claimed(&meter).await;
        writes += (free.writes - 2.0) + (claim.writes - 1.0);
        count += 1.0;
        running = next;
    }
    assert!(writes / count <= 5.0, "{} units each", writes / count);
}

/// The units that eleven ticks write, one a minute, while this one runs.
async fn ticks(meter: &Meter, running: Option<&ClaimedTask>) -> f64 {
    let mut writes = 0.0;
    for half in 1..=22 {
        meter.scene.clock.advance(Millis::from_secs(30));
        if let Some(running) = running {
            meter.scene.service.heartbeat(&running.task.id, &running.token, None).await.unwrap();
        }
        if half % 2 == 0 {
            let (report, bill) = meter.bill(meter.scene.tick()).await;
            report.unwrap();
            writes += bill.writes;
        }
    }
    writes
}

/// The tick moves its due slot, as it moves that of a task that waits in its queue.
#[tokio::test]
async fn a_task_that_a_claim_put_in_the_line_costs_no_more_to_wait_than_a_plain_one_and_then_nothing() {
    let (plain, at_key) = (meter().await, meter().await);
    scheduled(&plain, request("work", None, None)).await;
    for _ in 0..2 {
        scheduled(&at_key, limited(&["k"], 1)).await;
    }
    let (running, _) = claimed(&at_key).await;
    assert!(at_key.scene.claim("work").await.unwrap().is_none());
    let (of_plain, waits) = (ticks(&plain, None).await, ticks(&at_key, Some(&running)).await);
    // That of the other task is moved as well: its slot was at the first probe too.
    assert_eq!((of_plain, waits), (3.0, 6.0));
    assert_eq!(ticks(&at_key, Some(&running)).await, 0.0);
}

/// One whose attempts have a timeout beyond the first probe, and one that doesn't stay in the line while it runs.
#[tokio::test]
async fn a_timeout_of_the_attempt_and_a_high_limit_cost_no_write_unit_more_for_a_task_that_had_to_wait() {
    let after = AttemptTimeout { after: Millis::from_secs(3_600), on_timeout: OnTimeout::Retry };
    for (limit, start_to_close) in [(1, Some(after)), (51, None)] {
        let meter = meter().await;
        let asked = || {
            let timeouts = Timeouts { start_to_close, ..Timeouts::default() };
            ScheduleRequest { timeouts, ..limited(&["k"], limit) }
        };
        for _ in 0..limit {
            scheduled(&meter, asked()).await;
        }
        let mut running = vec![];
        for _ in 0..limit {
            running.push(claimed(&meter).await.0);
        }
        let begins = scheduled(&meter, asked()).await;
        assert_eq!((begins.writes, begins.sends), (3.0, 0));
        completed(&meter, &running[0]).await;
        let (second, claim) = claimed(&meter).await;
        let complete = completed(&meter, &second).await;
        let over = (begins.writes - 2.0) + (claim.writes - 1.0) + (complete.writes - 2.0);
        // The record of a key with many holders takes more units.
        let record = f64::from(limit).mul_add(90.0, 1_023.0).div_euclid(1_024.0);
        assert!(over <= 2.0 + 2.0 * record.max(1.0), "limit {limit}: {over}");
    }
}

#[tokio::test]
async fn a_task_behind_many_of_a_full_key_is_found_by_one_look_at_the_key_for_all_of_them() {
    let meter = meter().await;
    let many = vec![limited(&["customer"], 1); 80];
    assert!(meter.scene.service.schedule_batch(many).await.unwrap().iter().all(Result::is_ok));
    let (_running, _) = claimed(&meter).await;
    scheduled(&meter, request("work", None, None)).await;
    let (plain, bill) = claimed(&meter).await;
    assert!(plain.task.gates().is_empty());
    // Each record is read once, and the key for the first few, which are claimed one by one, and for each page.
    assert!(bill.reads <= 79.0 + 20.0, "{bill:?}");
}

#[tokio::test]
async fn a_priority_and_a_fairness_key_cost_no_unit_and_no_read() {
    let meter = meter().await;
    let fairness = FlowKey::parse("k".repeat(FLOW_KEY_MAX)).ok();
    let mut lives = vec![];
    for flow in [
        FlowRequest::default(),
        FlowRequest { priority: Priority::High, fairness: fairness.clone(), ..FlowRequest::default() },
        FlowRequest { priority: Priority::Low, fairness, ..FlowRequest::default() },
    ] {
        let schedule = scheduled(&meter, ScheduleRequest { flow, ..request("work", None, None) }).await;
        let (task, claim) = claimed(&meter).await;
        lives.push([schedule, claim, completed(&meter, &task).await]);
    }
    assert_eq!(lives[0], lives[1]);
    assert_eq!(lives[0], lives[2]);
}

#[tokio::test]
async fn a_task_without_keys_costs_no_unit_and_no_read_more() {
    let meter = meter().await;
    let schedule = scheduled(&meter, request("work", None, None)).await;
    let (task, claim) = claimed(&meter).await;
    assert_eq!(schedule, Bill { writes: 2.0, reads: 0.0, sends: 1 });
    assert_eq!(claim, Bill { writes: 1.0, reads: 0.0, sends: 0 });
    let beat = meter.scene.service.heartbeat(&task.task.id, &task.token, None);
    let (answer, bill) = meter.bill(beat).await;
    answer.unwrap();
    assert_eq!((bill.writes, bill.reads), (1.0, 1.0));
    assert_eq!(completed(&meter, &task).await.writes, 2.0);
}

/// Without kinds and capabilities, a process that only schedules looks for the first defaults of a queue once a minute.
#[tokio::test]
async fn plain_tasks_cost_half_a_read_a_minute_for_each_queue_and_none_where_tasks_are_claimed() {
    let meter = meter().await;
    let tick = || meter.scene.clock.advance(Millis::from_secs(1));
    let (mut minutes, mut scheduling) = ([0.0; 4], 0.0);
    for reads in &mut minutes {
        for _ in 0..60 {
            tick();
            *reads += scheduled(&meter, request("work", None, None)).await.reads;
        }
    }
    assert_eq!(minutes, [0.5; 4]);
    // A claim reads the record every 5 s, because the queue may be paused, and scheduling uses that copy.
    claimed(&meter).await;
    for _ in 0..120 {
        tick();
        scheduling += scheduled(&meter, request("work", None, None)).await.reads;
        claimed(&meter).await;
    }
    assert_eq!(scheduling, 0.0);
}

#[tokio::test]
async fn the_first_defaults_of_a_queue_count_everywhere_within_a_minute_and_changes_within_five_seconds() {
    let meter = meter().await;
    let (queue, kind) = (queue_name("work"), request("work", None, None).kind);
    let operator = meter.another();
    let fixed = |retries| RetryPolicy::fixed(retries, Millis::from_secs(1));
    let set = async |retries| {
        let policies = Policies { retry: fixed(retries), ..Policies::default() };
        let defaults = KindDefaults { given: Json::parse("{}").unwrap(), policies, by: None };
        operator.set_kind(&queue, &kind, defaults).await.unwrap();
    };
    let retry = async || meter.scene.service.schedule(request("work", None, None)).await.unwrap().task.retry;
    set(2).await;
    assert_eq!(retry().await, RetryPolicy::none());
    meter.scene.clock.advance(Millis::from_secs(60));
    assert_eq!(retry().await, fixed(2));
    set(3).await;
    meter.scene.clock.advance(Millis::from_secs(5));
    assert_eq!(retry().await, fixed(3));
    operator.delete_kind(&queue, &kind).await.unwrap();
    meter.scene.clock.advance(Millis::from_secs(5));
    assert_eq!(retry().await, RetryPolicy::none());
}

/// The first task of a key starts at once, the others have to wait for their starts.
#[tokio::test]
async fn a_start_by_a_rate_costs_one_write_unit_over_a_plain_task() {
    let meter = meter().await;
    for nth in 0..3_u64 {
        let schedule = scheduled(&meter, paced(Start::After(Millis::ZERO))).await;
        assert_eq!((schedule.writes, schedule.reads, schedule.sends), (2.0 + 1.0, 1.0, 1), "task {nth}");
    }
    for nth in 0..3_u64 {
        let (task, claim) = claimed(&meter).await;
        // The records of the task and of the key, and every 5 s that of the queue, for all tasks.
        assert!(claim.writes == 1.0 && claim.reads <= 2.5, "task {nth}: {claim:?}");
        assert_eq!(completed(&meter, &task).await.writes, 2.0);
        meter.scene.clock.advance(Millis::from_secs(10));
    }
}

#[tokio::test]
async fn the_starts_of_a_batch_cost_one_write_unit_together() {
    let meter = meter().await;
    let requests = vec![paced(Start::After(Millis::ZERO)); 20];
    let (answer, bill) = meter.bill(meter.scene.service.schedule_batch(requests)).await;
    assert!(answer.unwrap().iter().all(Result::is_ok));
    assert_eq!((bill.writes, bill.reads), (20.0 * 2.0 + 1.0, 1.0));
}

#[tokio::test]
async fn a_delayed_task_with_a_rate_costs_one_write_unit_more_and_two_if_it_is_put_off() {
    let meter = meter().await;
    let later = Start::After(Millis::from_secs(120));
    for _ in 0..2 {
        assert_eq!(scheduled(&meter, paced(later)).await.writes, 2.0);
    }
    meter.scene.clock.advance(Millis::from_secs(119));
    // Once a minute a claim writes the queue's record: that of a plain task does it here.
    scheduled(&meter, request("work", None, None)).await;
    claimed(&meter).await;
    meter.scene.clock.advance(Millis::from_secs(1));
    let (_, first) = claimed(&meter).await;
    // The record, which may be older than its message, and the gate.
    assert_eq!((first.writes, first.reads), (1.0 + 1.0, 2.0));
    let (answer, put_off) = meter.bill(meter.scene.claim("work")).await;
    assert!(answer.unwrap().is_none());
    assert_eq!(put_off.writes, 2.0);
    meter.scene.clock.advance(Millis::from_secs(10));
    assert_eq!(claimed(&meter).await.1.writes, 1.0);
}

#[tokio::test]
async fn a_batch_costs_no_write_unit_and_no_read_more_than_the_same_tasks_one_at_a_time() {
    let meter = meter().await;
    let queue = queue_name("work");
    let mut alone = Bill { writes: 0.0, reads: 0.0, sends: 0 };
    for _ in 0..5 {
        scheduled(&meter, tenant("a")).await;
        let (task, claim) = claimed(&meter).await;
        let complete = completed(&meter, &task).await;
        alone.writes += claim.writes + complete.writes;
        alone.reads += claim.reads + complete.reads;
    }
    for _ in 0..5 {
        scheduled(&meter, tenant("a")).await;
        scheduled(&meter, tenant("b")).await;
    }
    let together = Together { same_key: true, fill: Millis::from_secs(2) };
    let request = claim_request(5);
    for _ in 0..2 {
        let claim = meter.scene.service.claim_together(&queue, &request, together);
        let (tasks, claim) = meter.bill(claim).await;
        let tasks = tasks.unwrap();
        // The messages of the other tenant are given back with no write and no message more.
        assert_eq!((tasks.len(), claim.writes, claim.reads, claim.sends), (5, 5.0, 0.0, 0));
        let mut batch = claim;
        for task in &tasks {
            let complete = completed(&meter, task).await;
            batch.writes += complete.writes;
            batch.reads += complete.reads;
        }
        assert_eq!((batch.writes, batch.reads), (alone.writes, alone.reads));
    }
}

/// A task of a tenant of its queue.
fn tenant(key: &str) -> ScheduleRequest {
    let flow = FlowRequest { fairness: FlowKey::parse(key).ok(), ..FlowRequest::default() };
    ScheduleRequest { flow, ..request("work", None, None) }
}

/// Starts an execution and returns its bill.
async fn started(meter: &Meter, id: &str, flow: FlowRequest) -> Bill {
    let workflow = WorkflowName::parse("order-fulfilment").unwrap();
    let id = Some(ExecutionId::parse(id).unwrap());
    let request =
        StartRequest { id, flow: Box::new(flow), ..StartRequest::new(workflow, queue_name("work")) };
    let (answer, bill) = meter.bill(meter.scene.service.start(request)).await;
    assert!(!answer.unwrap().existed);
    bill
}

async fn next_turn(meter: &Meter) -> (Option<StartedTurn>, Bill) {
    let request = claim_request(1);
    let (taken, bill) = meter.bill(meter.scene.service.next_work(&queue_name("work"), &request)).await;
    let turn = taken.unwrap().pop().map(|work| match work {
        Work::Turn(turn) => *turn,
        Work::Task(task) => panic!("a task: {task:?}"),
    });
    (turn, bill)
}

async fn closed(meter: &Meter, turn: StartedTurn) -> Bill {
    let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
    let close =
        Close { lease: turn.lease, entries: vec![], ending, cleanup: Cleanup::default(), values: None };
    let (answer, bill) = meter.bill(meter.scene.service.close_turn(&turn.execution, close)).await;
    answer.unwrap();
    bill
}

fn at_most(limit: u16) -> FlowRequest {
    limited(&["customer-7"], limit).flow
}

#[tokio::test]
async fn a_place_of_an_execution_costs_two_write_units_and_one_that_had_to_wait_four() {
    let meter = meter().await;
    let mut lives = vec![];
    for (id, flow) in [("plain", FlowRequest::default()), ("first", at_most(5)), ("second", at_most(5))] {
        let start = started(&meter, id, flow).await;
        let (turn, taken) = next_turn(&meter).await;
        let close = closed(&meter, turn.unwrap()).await;
        lives.push((start.writes + taken.writes + close.writes, taken.reads + close.reads));
    }
    let [plain, first, second] = [lives[0], lives[1], lives[2]];
    assert_eq!((first.0 - plain.0, second.0 - plain.0), (2.0, 2.0), "{lives:?}");
    assert!(second.1 - plain.1 <= 2.0, "{lives:?}");
    // The second one waits for the first one's place.
    started(&meter, "holder", at_most(1)).await;
    let (holder, _) = next_turn(&meter).await;
    let start = started(&meter, "waiter", at_most(1)).await;
    let (none, waits) = next_turn(&meter).await;
    assert!(none.is_none());
    let frees = closed(&meter, holder.unwrap()).await;
    let (waiter, takes) = next_turn(&meter).await;
    let ends = closed(&meter, waiter.unwrap()).await;
    // Of the holder's end, only what it costs more than the plain end is the waiter's.
    let writes = start.writes + waits.writes + takes.writes + ends.writes + (frees.writes - ends.writes);
    assert_eq!(writes - plain.0, 4.0, "{waits:?} {frees:?} {takes:?} {ends:?}");
}

#[tokio::test]
async fn an_execution_whose_first_turn_finds_no_place_costs_five_write_units_over_a_plain_one() {
    let meter = meter().await;
    let start = started(&meter, "plain", FlowRequest::default()).await;
    let (turn, taken) = next_turn(&meter).await;
    let plain = start.writes + taken.writes + closed(&meter, turn.unwrap()).await.writes;
    for nth in 0..10 {
        started(&meter, &format!("limited-{nth}"), at_most(1)).await;
    }
    let (running, _) = next_turn(&meter).await;
    let mut running = running.unwrap();
    let (none, waits) = next_turn(&meter).await;
    assert!(none.is_none());
    let mut writes = waits.writes;
    for _ in 1..10 {
        let free = closed(&meter, running).await;
        let (next, taken) = next_turn(&meter).await;
        writes += start.writes + free.writes + taken.writes - plain;
        running = next.unwrap();
    }
    assert!(writes / 9.0 <= 5.0, "{} units each", writes / 9.0);
}

#[tokio::test]
async fn a_start_of_an_execution_by_a_rate_costs_one_write_unit() {
    let meter = meter().await;
    let mut lives = vec![];
    for (id, flow) in [("plain", FlowRequest::default()), ("paced", paced(Start::After(Millis::ZERO)).flow)] {
        let start = started(&meter, id, flow).await;
        let (turn, taken) = next_turn(&meter).await;
        let close = closed(&meter, turn.unwrap()).await;
        lives.push(start.writes + taken.writes + close.writes);
    }
    assert_eq!(lives[1] - lives[0], 1.0, "{lives:?}");
}
