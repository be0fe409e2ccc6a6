//! A key that the tasks of many other keys share: whoever waits for it, of whichever of their lines.

use std::collections::BTreeSet;

use tickover_core::flow::Priority;

use super::*;

/// The places of the key that all share.
const SMTP: usize = 3;

/// A task of a customer, of whom two run at a time, that needs one of three places of another key as well.
fn mail_of(customer: usize) -> ScheduleRequest {
    needing(&[limit(&format!("customer {customer}"), 2), limit("smtp", 3)])
}

/// A report of which three run at a time, and ten for each customer.
fn report_for(customer: usize) -> ScheduleRequest {
    needing(&[limit("report", 3), limit(&format!("customer {customer}"), 10)])
}

impl Scene {
    /// Three run, of other customers than those of a test.
    async fn fill_smtp(&self) -> Vec<ClaimedTask> {
        let mut running = vec![];
        for nth in 0..SMTP {
            self.add(mail_of(1_000 + nth)).await;
            running.push(self.claims().await.unwrap());
        }
        running
    }

    async fn heartbeats(&self, running: &[ClaimedTask]) {
        for one in running {
            self.service.heartbeat(&one.task.id, &one.token, None).await.unwrap();
        }
    }

    /// Minutes in which those that run are alive. Returns how many writes there were.
    async fn minutes(&self, count: usize, running: &[ClaimedTask]) -> u64 {
        let before = self.writes();
        for _ in 0..count {
            self.advance(60);
            self.heartbeats(running).await;
            self.tick().await.unwrap();
        }
        self.writes() - before
    }

    /// Completes this one and claims the next, until nobody comes any more. Returns who came.
    async fn works_off(&self, mut running: Vec<ClaimedTask>) -> Vec<TaskId> {
        let mut came = vec![];
        while !running.is_empty() {
            self.completes(&running.remove(0)).await;
            while let Some(next) = self.claims().await {
                came.push(next.task.id.clone());
                running.push(next);
            }
        }
        came
    }
}

#[tokio::test]
async fn each_of_a_hundred_lines_that_wait_for_one_key_gets_its_places_without_a_tick() {
    let scene = Scene::new();
    let running = scene.fill_smtp().await;
    let mut waiting = vec![];
    for customer in 1..=100 {
        for _ in 0..2 {
            scene.advance(1);
            scene.heartbeats(&running).await;
            waiting.push(scene.add(mail_of(customer)).await);
        }
    }
    assert_eq!(scene.messages("jobs").await, 3, "those that run");
    let before = scene.writes();
    let came = scene.works_off(running).await;
    assert_eq!(came, waiting, "in the order in which they came");
    // Each: its end, the new claim, its places, its offer, and who stands in the line for the next.
    let each = (scene.writes() - before) / 200;
    assert!(each <= 20, "{each} writes for one");
    assert_eq!(scene.line_of("smtp").await, [], "nobody waits");
}

#[tokio::test]
async fn a_day_of_waiting_for_a_shared_key_costs_no_write_and_no_message() {
    let mut writes = vec![];
    for customers in [0, 40] {
        let scene = Scene::new();
        let running = scene.fill_smtp().await;
        for customer in 1..=customers {
            scene.add(mail_of(customer)).await;
            scene.add(mail_of(customer)).await;
        }
        writes.push(scene.minutes(24 * 60, &running).await);
        assert_eq!(scene.messages("jobs").await, 3);
    }
    // Those of the ones that run, and of the ticks.
    assert_eq!(writes[0], writes[1]);
}

#[tokio::test]
async fn whoever_waits_for_a_shared_key_names_that_key_and_the_key_says_that_some_wait() {
    let scene = Scene::new();
    let _running = scene.fill_smtp().await;
    let mut found = vec![];
    for _ in 0..2 {
        scene.advance(1);
        let id = scene.add(mail_of(1)).await;
        let waits_at = scene.service.waits_at(&scene.found(&id).await).await.unwrap().unwrap();
        found.push((waits_at.limit.key, waits_at.position));
    }
    // The first one stands there for both.
    assert_eq!(found, [("smtp".to_owned(), Some(1)), ("smtp".to_owned(), None)]);
    let (limits, more) = scene.service.full_keys().await.unwrap();
    let limits: Vec<_> = limits.iter().map(|one| (one.key.as_str(), one.waiting.len(), one.more)).collect();
    // Nobody has needed a place of the customer yet, so its key has no record; its line is there.
    assert_eq!((limits, more), (vec![("customer 1", 2, false), ("smtp", 1, true)], false));
}

#[tokio::test]
async fn one_that_stood_for_others_and_was_cancelled_leaves_its_place_to_the_next_of_them() {
    let scene = Scene::new();
    let running = scene.fill_smtp().await;
    let first = scene.add(mail_of(1)).await;
    scene.advance(1);
    let second = scene.add(mail_of(1)).await;
    let stand_ins = scene.line_of("smtp").await;
    assert_eq!(stand_ins.iter().map(|one| one.owner.task()).collect::<Vec<_>>(), [Some(&first)]);
    scene.service.cancel(&first, true).await.unwrap();
    scene.completes(&running[0]).await;
    assert_eq!(scene.claims().await.unwrap().task.id, second);
}

#[tokio::test]
async fn a_place_of_a_shared_key_goes_on_after_a_death_between_any_two_writes_within_two_ticks() {
    for writes in 1..12 {
        let scene = Scene::new();
        let running = scene.fill_smtp().await;
        let mut waiting = BTreeSet::new();
        for customer in 1..=3 {
            waiting.insert(scene.add(mail_of(customer)).await);
            waiting.insert(scene.add(mail_of(customer)).await);
        }
        scene.crash_after(writes);
        let _died = scene.service.complete(&running[0].task.id, &running[0].token, None).await;
        let claimed = scene.service.claim(&queue("jobs"), &request()).await;
        scene.crash_after(NEVER);
        let mut running = claimed.unwrap_or_default();
        for _ in 0..9 {
            scene.advance(60);
            for one in &running {
                scene.completes(one).await;
                waiting.remove(&one.task.id);
            }
            scene.tick().await.unwrap();
            running = scene.claims().await.into_iter().collect();
        }
        for one in &running {
            waiting.remove(&one.task.id);
        }
        assert_eq!(waiting, BTreeSet::new(), "after {writes} writes");
    }
}

#[tokio::test]
async fn of_three_hundred_customers_in_one_line_nobody_is_passed_over_for_ever() {
    let scene = Scene::new();
    let mut running = vec![];
    for customer in 0..3 {
        scene.add(report_for(customer)).await;
        running.push(scene.claims().await.unwrap());
    }
    let mut waiting = BTreeSet::new();
    for customer in 0..300 {
        waiting.insert(scene.add(report_for(customer)).await);
    }
    // Each customer that got its turn comes again at once.
    for _ in 0..900 {
        scene.completes(&running.remove(0)).await;
        let next = scene.claims().await.unwrap();
        if waiting.remove(&next.task.id) && waiting.is_empty() {
            return;
        }
        let customer = next.task.gates().to_vec();
        let text = customer.iter().find(|gated| gated.text != "report").unwrap().text.clone();
        scene.advance(1);
        scene.add(report_for(text.rsplit(' ').next().unwrap().parse().unwrap())).await;
        running.push(next);
    }
    panic!("{} wait still", waiting.len());
}

#[tokio::test]
async fn whoever_gets_a_place_at_another_key_is_found_behind_a_thousand_branches_that_cannot_come() {
    let scene = Scene::new();
    let narrow =
        |customer: usize| needing(&[limit("report", 1), limit(&format!("customer {customer:04}"), 1)]);
    let holds = |customer: usize| needing(&[limit(&format!("customer {customer:04}"), 1)]);
    let mut running = vec![];
    for customer in 0..300 {
        scene.add(holds(customer)).await;
        running.push(scene.claims().await.unwrap());
    }
    let mut waiting = vec![];
    for customer in 0..300 {
        waiting.push(scene.add(narrow(customer)).await);
        assert!(scene.claims().await.is_none());
    }
    for nth in [299, 0, 150] {
        scene.completes(&running[nth]).await;
        let next = scene.claims().await.unwrap();
        assert_eq!(next.task.id, waiting[nth]);
        scene.completes(&next).await;
    }
}

#[tokio::test]
async fn an_item_that_was_left_over_at_the_head_of_a_line_stands_for_nobody_at_another_key() {
    let scene = Scene::new();
    let running = scene.fill_smtp().await;
    // Its process died between the two writes.
    let gone = mail_of(1);
    let first = scene.add(gone).await;
    let (home, item) = scene.found(&first).await.waiting().item(scene.now()).unwrap();
    scene.service.cancel(&first, true).await.unwrap();
    scene.store.commit(&[enter(home, item)]).await.unwrap();
    scene.advance(1);
    let live = scene.add(mail_of(1)).await;
    scene.advance(1);
    let other = scene.add(mail_of(2)).await;
    for (nth, expected) in [live, other].iter().enumerate() {
        scene.completes(&running[nth]).await;
        assert_eq!(scene.claims().await.unwrap().task.id, *expected);
    }
}

#[tokio::test]
async fn one_that_needs_three_places_comes_when_the_one_is_free_that_it_lacks() {
    for names in [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["d", "e", "f"], ["f", "d", "e"]] {
        let [home, wide, full] = names;
        let scene = Scene::new();
        let waits = scene.add(on("three", needing(&[limit(home, 1), limit(wide, 2), limit(full, 3)]))).await;
        scene.add(needing(&[limit(wide, 2)])).await;
        let _one = scene.claims().await.unwrap();
        let mut running = vec![];
        for _ in 0..3 {
            scene.add(needing(&[limit(full, 3)])).await;
            running.push(scene.claims().await.unwrap());
        }
        assert!(scene.claim_from("three").await.is_none());
        scene.completes(&running[0]).await;
        assert_eq!(scene.claim_from("three").await.unwrap().task.id, waits, "{names:?}");
    }
}

#[tokio::test]
async fn a_queue_that_was_called_in_vain_at_a_shared_key_is_called_again_after_a_pause() {
    let scene = Scene::new();
    let running = scene.fill_smtp().await;
    for customer in 1..=4 {
        scene.add(on("late", mail_of(customer))).await;
    }
    for one in &running {
        scene.completes(one).await;
    }
    for _ in 0..3 {
        scene.advance(60);
        scene.tick().await.unwrap();
    }
    assert_ne!(scene.gate_of("smtp").await.absent, []);
    scene.service.pause_queue(&queue("late"), true).await.unwrap();
    scene.service.pause_queue(&queue("late"), false).await.unwrap();
    assert_eq!(scene.gate_of("smtp").await.absent, []);
    assert!(scene.claim_from("late").await.is_some());
}

#[tokio::test]
async fn a_paused_queue_with_hundreds_of_lines_keeps_no_other_from_a_shared_key() {
    let scene = Scene::new();
    let running = scene.fill_smtp().await;
    for customer in 0..300 {
        scene.add(on("paused", mail_of(customer))).await;
    }
    scene.advance(1);
    let live = scene.add(mail_of(500)).await;
    scene.service.pause_queue(&queue("paused"), true).await.unwrap();
    scene.heartbeats(&running).await;
    let (writes, calls) = (scene.writes(), scene.calls());
    scene.completes(&running[0]).await;
    assert_eq!(scene.claims().await.unwrap().task.id, live);
    let (writes, calls) = (scene.writes() - writes, scene.calls() - calls);
    assert!(writes <= 40 && calls <= 200, "{writes} writes, {calls} calls");
    scene.service.pause_queue(&queue("paused"), false).await.unwrap();
    scene.completes(&running[1]).await;
    assert!(scene.claim_from("paused").await.is_some());
}

#[tokio::test]
async fn the_line_is_shown_in_its_order_however_many_of_another_queue_stand_before() {
    let scene = Scene::new();
    scene.add(one()).await;
    let _running = scene.claims().await.unwrap();
    let others: Vec<_> = (0..1_100).map(|_| on("bulk", one())).collect();
    for some in others.chunks(100) {
        assert!(scene.service.schedule_batch(some.to_vec()).await.unwrap().iter().all(Result::is_ok));
    }
    let mut first = on("zero", one());
    first.flow.priority = Priority::High;
    let first = scene.add(first).await;
    let waits_at = scene.service.waits_at(&scene.found(&first).await).await.unwrap().unwrap();
    assert_eq!((waits_at.position, &waits_at.limit.waiting[0]), (Some(1), &first.into()));
}

#[tokio::test]
async fn one_tick_is_enough_for_a_shared_key_whose_call_was_lost() {
    for round in 0..6 {
        let scene = Scene::new();
        let mail = |customer: usize| needing(&[limit(&format!("{round} {customer}"), 1), limit("smtp", 2)]);
        for customer in 0..2 {
            scene.add(mail(customer)).await;
        }
        let running = [scene.claims().await.unwrap(), scene.claims().await.unwrap()];
        for customer in 2..6 {
            scene.add(mail(customer)).await;
        }
        for claimed in &running {
            scene.completes(claimed).await;
        }
        let hidden = Millis::from_secs(60);
        let received = scene.queue.receive(&queue("jobs"), 10, hidden, Millis::ZERO).await.unwrap();
        assert_eq!(received.len(), 2, "so many places are free");
        for message in &received {
            scene.queue.delete(&queue("jobs"), &message.receipt).await.unwrap();
        }
        scene.advance(60);
        scene.tick().await.unwrap();
        assert!(scene.claims().await.is_some() && scene.claims().await.is_some());
    }
}

#[tokio::test]
async fn a_low_priority_gets_a_place_at_a_shared_key_while_high_ones_come_and_come() {
    let scene = Scene::new();
    let of = |customer: usize, priority| {
        let mut request = needing(&[limit(&format!("customer {customer}"), 1), limit("smtp", 2)]);
        request.flow.priority = priority;
        request
    };
    scene.add(of(0, Priority::High)).await;
    scene.add(of(1, Priority::High)).await;
    let mut running = vec![scene.claims().await.unwrap(), scene.claims().await.unwrap()];
    scene.advance(1);
    let low = scene.add(of(2, Priority::Low)).await;
    for customer in 3..13 {
        scene.add(of(customer, Priority::High)).await;
    }
    let mut begun = 0;
    for customer in 13..60 {
        scene.advance(1);
        scene.add(of(customer, Priority::High)).await;
        scene.completes(&running.remove(0)).await;
        running.push(scene.claims().await.unwrap());
        begun += 1;
        if running.last().unwrap().task.id == low {
            break;
        }
    }
    assert!(begun < 40, "the low one waits behind all high ones");
}
