//! Who sends the timer of a deadline: the write that sets it, or the tick that owns its slot, and no other.

use tickover_core::duration::Millis;
use tickover_core::task::Status;
use tickover_service::claim::Delivered;
use tickover_service::timers::{FireError, Fired};
use tickover_tests::scene::{Scene, task_id};

use super::{after, tick_of, with_deadline};

async fn status(scene: &Scene, id: &str) -> Status {
    scene.service.describe(&task_id(id)).await.unwrap().task.status()
}

#[tokio::test]
async fn a_deadline_of_five_seconds_fires_after_five_seconds_without_any_tick() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("a", 5)).await.unwrap();
    scene.clock.advance(Millis::new(4_999));
    assert_eq!((scene.fire().await, status(&scene, "a").await), (0, Status::Pending));
    scene.clock.advance(Millis::new(1));
    assert_eq!((scene.fire().await, status(&scene, "a").await), (1, Status::TimedOut));
    let task = scene.service.describe(&task_id("a")).await.unwrap().task;
    assert_eq!(task.ended().unwrap().ended_at, after(5));
}

#[tokio::test]
async fn the_tick_that_owns_a_slot_sends_each_of_its_timers_once() {
    for late in [0, 40] {
        let scene = Scene::in_memory();
        // Deadlines every ten seconds: with a tick a minute, each tick sends six timers.
        let deadlines = || (215..600_u64).step_by(10).chain((855..1_800).step_by(10));
        for seconds in deadlines() {
            scene.service.schedule(with_deadline(&format!("t{seconds}"), seconds)).await.unwrap();
        }
        assert_eq!(scene.timers().await, 0);
        let (mut handed_over, mut fired) = (0, 0);
        for minute in 0..31 {
            let report = tick_of(&scene, minute, late).await;
            assert_eq!(report.timed_out, 0, "minute {minute}: the sweep had to enforce it");
            handed_over += report.timers;
            for _ in 0..29 {
                scene.clock.advance(Millis::from_secs(2));
                fired += scene.fire().await;
            }
        }
        assert_eq!((handed_over, fired), (134, 134), "ticks {late} s late");
        for seconds in deadlines() {
            let task = scene.service.describe(&task_id(&format!("t{seconds}"))).await.unwrap().task;
            let lateness = task.ended().unwrap().ended_at.since(after(seconds));
            assert!(lateness <= Millis::from_secs(2), "t{seconds}: {lateness}");
        }
    }
}

#[tokio::test]
async fn a_deadline_just_after_the_backstop_fires_on_time() {
    for (late, seconds) in [(0, 601), (0, 650), (40, 705), (59, 610), (59, 797), (59, 801)] {
        let scene = Scene::in_memory();
        scene.service.schedule(with_deadline("a", seconds)).await.unwrap();
        for minute in (0..).take_while(|minute| minute * 60 + late < seconds) {
            tick_of(&scene, minute, late).await;
            scene.fire().await;
        }
        scene.clock.advance(after(seconds).since(scene.service.now()));
        scene.fire().await;
        let task = scene.service.describe(&task_id("a")).await.unwrap().task;
        assert_eq!(task.status(), Status::TimedOut, "{seconds} s, ticks {late} s late");
    }
}

#[tokio::test]
async fn the_next_tick_sends_the_timers_of_missed_ticks_and_none_twice() {
    let scene = Scene::in_memory();
    for number in 1..=30_u64 {
        scene.service.schedule(with_deadline(&format!("t{number}"), 200 + number * 10)).await.unwrap();
    }
    // 210 s to 500 s. The tick of minute 1 owns 180 s to 240 s, and also sends timers for earlier instants.
    assert_eq!(tick_of(&scene, 1, 0).await.timers, 3);
    assert_eq!(tick_of(&scene, 1, 20).await.timers, 0, "the same tick again");
    // The ticks of minutes 2 and 3 never came: this one covers 240 s to 420 s at once.
    assert_eq!(tick_of(&scene, 4, 0).await.timers, 17);
    assert_eq!(tick_of(&scene, 5, 0).await.timers, 6);
    assert_eq!(tick_of(&scene, 6, 0).await.timers, 3);
    assert_eq!(tick_of(&scene, 7, 0).await.timers, 0);
}

#[tokio::test]
async fn a_tick_from_the_future_records_no_timers_that_it_has_not_sent() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("soon", 210)).await.unwrap();
    let stop_at = after(90);
    scene.clock.advance(Millis::from_secs(60));
    assert_eq!(scene.service.tick(after(36_000), stop_at).await.unwrap().timers, 1);
    scene.service.schedule(with_deadline("later", 600)).await.unwrap();
    assert_eq!(tick_of(&scene, 9, 0).await.timers, 1);
}

#[tokio::test]
async fn concurrent_ticks_send_a_timer_at_most_once_each_and_it_fires_once() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("a", 210)).await.unwrap();
    scene.clock.advance(Millis::from_secs(60));
    let ticks = (0..4).map(|_| scene.service.tick(after(60), after(110)));
    let reports = futures::future::join_all(ticks).await;
    let handed_over: u64 = reports.into_iter().map(|report| report.unwrap().timers).sum();
    assert!((1..=4).contains(&handed_over), "{handed_over}");
    scene.clock.advance(Millis::from_secs(150));
    scene.fire().await;
    let task = scene.service.describe(&task_id("a")).await.unwrap().task;
    assert_eq!((task.status(), task.version), (Status::TimedOut, 2));
}

#[tokio::test]
async fn a_deadline_of_days_fires_to_the_second() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("a", 3 * 86_400 + 7)).await.unwrap();
    for minute in 0..(3 * 1_440) {
        let report = tick_of(&scene, minute, 0).await;
        assert_eq!(report.timed_out, 0);
    }
    scene.clock.advance(Millis::from_secs(67));
    assert_eq!(scene.fire().await, 1);
    assert_eq!(status(&scene, "a").await, Status::TimedOut);
}

#[tokio::test]
async fn an_early_timer_is_sent_again_and_a_repeated_one_does_nothing() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("a", 100)).await.unwrap();
    let at = after(100).as_millis();
    let body = format!(r#"{{"v":1,"timer":{{"task":"a","at":{at},"due_at":{at}}}}}"#);
    let stop_at = after(50);
    assert_eq!(scene.service.fire(Delivered::first(&body), stop_at).await.unwrap(), Fired::SentOn);
    assert_eq!(scene.timers().await, 2, "the timer of the write, and the one that was sent again");
    scene.clock.advance(Millis::from_secs(100));
    assert_eq!(scene.service.fire(Delivered::first(&body), stop_at).await.unwrap(), Fired::TimedOut);
    assert_eq!(scene.service.fire(Delivered::first(&body), stop_at).await.unwrap(), Fired::Spent);
    let nobody = body.replace(r#""a""#, r#""nobody""#);
    assert_eq!(scene.service.fire(Delivered::first(&nobody), stop_at).await.unwrap(), Fired::Spent);
    assert_eq!(scene.fire().await, 2, "and the earlier timers have no effect");
}

#[tokio::test]
async fn a_timer_waits_for_its_last_second_and_one_that_is_far_too_early_is_refused() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("a", 100)).await.unwrap();
    scene.clock.advance(Millis::new(99_001));
    let at = after(100).as_millis();
    let body = format!(r#"{{"v":1,"timer":{{"task":"a","at":{at},"due_at":{at}}}}}"#);
    assert_eq!(scene.service.fire(Delivered::first(&body), after(150)).await.unwrap(), Fired::TimedOut);
    assert_eq!(scene.service.now(), after(100));
    let far = body.replace(&format!(r#""at":{at},"#), r#""at":99999999999999,"#);
    let refused = scene.service.fire(Delivered::first(&far), after(150)).await.unwrap_err();
    assert!(matches!(refused, FireError::TooFarAhead { .. }) && !refused.is_retryable(), "{refused}");
}

#[tokio::test]
async fn without_a_queue_of_timers_the_tick_still_enforces_every_deadline() {
    let scene = Scene::in_memory();
    scene.service.schedule(with_deadline("a", 5)).await.unwrap();
    scene.clock.advance(Millis::from_secs(5));
    // All of the timers are lost.
    scene.lose_messages(&tickover_core::id::QueueName::timers()).await;
    assert_eq!(tick_of(&scene, 1, 0).await.timed_out, 1);
    assert_eq!(status(&scene, "a").await, Status::TimedOut);
}
