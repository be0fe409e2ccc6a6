//! Lines and gates as long as users have them.

use futures::future::join_all;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::WorkflowName;
use tickover_core::timeout::LifeTimeout;

use super::*;
use crate::executions::tests::scene::{id, remote_step};
use crate::executions::{RemoteStep, StartRequest, Work};

/// The longest time for which a free place waits for somebody who can come.
const SOON: Millis = Millis::from_secs(2);
/// How long each call to the store takes.
const CALL_MS: u64 = 5;
/// A claim without a wait goes on for as long in vain, and ends the round of calls that it is at.
const IN_VAIN: Millis = Millis::new(100 + 6 * CALL_MS);

fn many(limited_to: u16) -> ScheduleRequest {
    needing(&[limit("customer", limited_to)])
}

impl Scene {
    /// Adds so many at once.
    async fn add_all(&self, count: usize, request: &ScheduleRequest) -> Vec<TaskId> {
        let mut ids = vec![];
        for some in vec![request.clone(); count].chunks(100) {
            let made = self.service.schedule_batch(some.to_vec()).await.unwrap();
            ids.extend(made.into_iter().map(|one| one.unwrap().task.id));
        }
        ids
    }

    /// Claims so many, one after the other.
    async fn claims_all(&self, count: usize) -> Vec<ClaimedTask> {
        let mut claimed = vec![];
        for _ in 0..count {
            claimed.push(self.claims().await.unwrap());
        }
        claimed
    }
}

#[tokio::test]
async fn a_day_of_waiting_of_two_hundred_costs_no_write_and_no_message() {
    let mut writes = vec![];
    for waiting in [0, 200] {
        let scene = Scene::new();
        scene.add(one()).await;
        let running = scene.claims().await.unwrap();
        for _ in 0..waiting {
            scene.add(one()).await;
        }
        let before = scene.writes();
        for _ in 0..(24 * 60) {
            scene.advance(60);
            scene.service.heartbeat(&running.task.id, &running.token, None).await.unwrap();
            scene.tick().await.unwrap();
        }
        assert_eq!((scene.messages("jobs").await, scene.line_of("customer").await.len()), (1, waiting));
        writes.push(scene.writes() - before);
    }
    // Those of the one that runs, and of the ticks.
    assert_eq!(writes[0], writes[1]);
}

#[tokio::test]
async fn in_a_line_of_two_thousand_those_come_that_can_whatever_stands_ahead_of_them() {
    let scene = Scene::new();
    let (both, smtp) = (needing(&[limit("customer", 1), limit("smtp", 2)]), needing(&[limit("smtp", 2)]));
    let of_smtp = scene.add_all(2, &smtp).await;
    let smtp = scene.claims_all(2).await;
    assert_eq!(of_smtp.len(), smtp.len());
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let ended = scene.add_all(700, &one()).await;
    scene.add_all(600, &on("night", one())).await;
    let doubly = scene.add_all(600, &both).await;
    scene.advance(1);
    let live = scene.add_all(100, &one()).await;
    assert_eq!(scene.line_of("customer").await.len(), 2_000);
    for id in &ended {
        scene.service.cancel(id, true).await.unwrap();
    }
    scene.service.pause_queue(&queue("night"), true).await.unwrap();
    let began_at = scene.now();
    scene.slow_store(CALL_MS);
    scene.completes(&running).await;
    let mut came = vec![];
    for _ in 0..10 {
        let next = scene.claims().await.unwrap();
        came.push(next.task.id.clone());
        scene.completes(&next).await;
    }
    assert_eq!(came.iter().filter(|id| live.contains(id)).count(), 10, "{came:?}");
    assert!(scene.now().since(began_at) <= SOON.saturating_mul(10), "{}", scene.now().since(began_at));
    // The other key has a place: those that wait for both have waited the longest.
    let next = scene.claims().await.unwrap();
    scene.completes(&smtp[0]).await;
    scene.completes(&next).await;
    assert!(doubly.contains(&scene.claims().await.unwrap().task.id));
}

#[tokio::test]
async fn of_three_hundred_that_run_a_lower_limit_takes_no_place_and_lets_nobody_begin_until_it_holds() {
    let scene = Scene::new();
    scene.add_all(300, &many(300)).await;
    let mut running = scene.claims_all(300).await;
    let next = scene.add(many(300)).await;
    scene.service.set_limit(&key("customer"), NonZeroU16::new(200)).await.unwrap();
    for ended in running.drain(..100) {
        scene.completes(&ended).await;
        assert!(scene.claims().await.is_none());
    }
    assert_eq!(scene.gate_of("customer").await.holders.len(), 200);
    scene.completes(&running[0]).await;
    assert_eq!(scene.claims().await.unwrap().task.id, next);
}

#[tokio::test]
async fn ten_thousand_that_have_ended_ahead_delay_nobody_and_cost_a_read_for_each_hundred() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let live = scene.add(one()).await;
    // Their items: their processes died before they deleted them.
    let (gate, item) = scene.found(&live).await.waiting().item(scene.now()).unwrap();
    let item = Waiter { priority: Priority::High, ..item };
    for number in 0..10_000_u64 {
        let owner = TaskId::parse(format!("gone-{number}")).unwrap().into();
        let incarnation = Incarnation::from_bytes(number.to_be_bytes());
        let left = Waiter { owner, incarnation, ..item.clone() };
        scene.store.commit(&[enter(gate.clone(), left)]).await.unwrap();
    }
    scene.advance(700);
    scene.service.heartbeat(&running.task.id, &running.token, None).await.unwrap();
    let (began_at, calls) = (scene.now(), scene.calls());
    scene.slow_store(CALL_MS);
    scene.completes(&running).await;
    assert_eq!(scene.claims().await.unwrap().task.id, live);
    assert!(scene.now().since(began_at) <= SOON, "{}", scene.now().since(began_at));
    // For each page of the line: its items, their records, and their deletion.
    assert!(scene.calls() - calls <= 3 * 10_000 / 100 + 30, "{} calls", scene.calls() - calls);
    let left = scene.line_of("customer").await;
    assert_eq!(
        left.iter().map(|one| one.owner.task()).collect::<Vec<_>>(),
        [Some(&live)],
        "the one that runs"
    );
}

#[tokio::test]
async fn ten_thousand_that_were_cancelled_ahead_delay_nobody() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let ahead = scene.add_all(10_000, &one()).await;
    let last = scene.add(one()).await;
    for id in &ahead {
        scene.service.cancel(id, true).await.unwrap();
    }
    assert_eq!(scene.line_of("customer").await.len(), 1);
    scene.completes(&running).await;
    assert_eq!(scene.claims().await.unwrap().task.id, last);
}

#[tokio::test]
async fn places_that_were_left_behind_are_found_wherever_they_stand_among_a_thousand() {
    let scene = Scene::new();
    scene.add_all(1_000, &many(1_000)).await;
    let mut running = scene.claims_all(1_000).await;
    let mut waits = scene.add_all(3, &many(1_000)).await;
    for nth in [0, 500, 999] {
        let place = &scene.gate_of("customer").await.holders[nth].owner;
        let last = running.iter().find(|one| *place == one.task.id.clone().into()).unwrap();
        // It ends, and its process dies before it gives its place up.
        scene.crash_after(1);
        scene.service.complete(&last.task.id, &last.token, None).await.unwrap_err();
        scene.crash_after(NEVER);
        // Two minutes.
        for _ in 0..2 {
            scene.tick().await.unwrap();
        }
        let next = scene.claims().await.unwrap();
        assert!(waits.contains(&next.task.id), "at {nth}");
        waits.retain(|one| *one != next.task.id);
        running.push(next);
    }
}

#[tokio::test]
async fn a_claim_spends_a_tenth_of_a_second_on_a_full_key_and_one_behind_twenty_thousand_comes_soon() {
    let scene = Scene::new();
    scene.add_all(20_000, &one()).await;
    let plain = scene.add(needing(&[])).await;
    let _running = scene.claims().await.unwrap();
    scene.slow_store(CALL_MS);
    let began_at = scene.now();
    let claimed = loop {
        let asked_at = scene.now();
        let claimed = scene.claims().await;
        let took = scene.now().since(asked_at);
        assert!(took <= IN_VAIN, "{took}");
        if let Some(claimed) = claimed {
            break claimed;
        }
    };
    assert_eq!(claimed.task.id, plain);
    // A millisecond for each that is ahead.
    assert!(scene.now().since(began_at) <= Millis::from_secs(20), "{}", scene.now().since(began_at));
}

#[tokio::test]
async fn a_task_is_found_behind_two_thousand_executions_and_as_many_steps_of_a_full_key() {
    let scene = Scene::new();
    let turn = scene.started("parent", None).await;
    let names = scene
        .service
        .start_remote(
            &turn.execution,
            (0..2_000).map(|nth| RemoteStep { flow: one().flow, ..remote_step(nth) }).collect(),
        )
        .await
        .all()
        .unwrap();
    let at = scene.now();
    scene
        .suspend(&turn, names.into_iter().map(|name| Entry { at, what: Happened::Remote { name } }).collect())
        .await;
    let workflow = WorkflowName::parse("orders").unwrap();
    let starts = (0..2_000).map(|nth| StartRequest {
        id: Some(id(&format!("e-{nth}"))),
        flow: Box::new(one().flow),
        ..StartRequest::new(workflow.clone(), queue("work"))
    });
    join_all(starts.map(|start| scene.service.start(start)))
        .await
        .into_iter()
        .for_each(|one| drop(one.unwrap()));
    let plain = scene.add(on("work", needing(&[]))).await;
    let next = async || scene.service.next_work(&queue("work"), &request()).await.unwrap().pop();
    assert!(matches!(next().await, Some(Work::Task(step)) if step.task.parent.is_some()));
    scene.slow_store(CALL_MS);
    let began_at = scene.now();
    let task = loop {
        let asked_at = scene.now();
        let found = next().await;
        let took = scene.now().since(asked_at);
        assert!(took <= IN_VAIN.saturating_add(Millis::new(4 * CALL_MS)), "{took}");
        match found {
            Some(Work::Task(task)) => break task,
            Some(Work::Turn(turn)) => panic!("{turn:?}"),
            None => {}
        }
    };
    assert_eq!(task.task.id, plain);
    assert_eq!(scene.line_of("customer").await.len(), 3_999);
    assert!(scene.now().since(began_at) <= Millis::from_secs(4), "{}", scene.now().since(began_at));
}

#[tokio::test]
async fn a_backlog_that_takes_the_whole_tick_keeps_it_from_no_line() {
    let scene = Scene::new();
    scene.add(one()).await;
    let running = scene.claims().await.unwrap();
    let waits = scene.add(one()).await;
    let ends = LifeTimeout { after: Millis::from_secs(30), is_error: true };
    let timeouts = Timeouts { schedule_to_close: Some(ends), ..Timeouts::default() };
    scene.add_all(400, &on("night", ScheduleRequest { timeouts, ..needing(&[]) })).await;
    // It ends, and its process dies before it gives its place up.
    scene.crash_after(1);
    scene.service.complete(&running.task.id, &running.token, None).await.unwrap_err();
    scene.crash_after(NEVER);
    scene.advance(60);
    scene.slow(10);
    let now = scene.now();
    let report = scene.service.tick(now, now.plus(Millis::from_secs(1))).await.unwrap();
    scene.slow(0);
    assert!(report.out_of_time, "{report:?}");
    assert_eq!(scene.claims().await.unwrap().task.id, waits);
}
