//! A process that dies, a store that throttles, and two processes with one operation.

use futures::future::join;
use tickover_core::operation::PAGE;
use tickover_core::payload::Payload;

use super::*;
use crate::executions::tests::mortal::NEVER;
use crate::memory::store::Item;

/// More than one page.
const MANY: usize = PAGE + 7;

/// Kills the process of an operation after `last` writes. Returns whether the operation was recorded, and whether its
/// process came to its end.
async fn killed(scene: &Scene, request: OperationRequest, last: u64) -> (bool, bool) {
    scene.crash_after(last);
    let is_recorded = scene.service.start_operation(request).await.is_ok();
    scene.advance(1);
    let fired = scene.try_fire(50_000).await;
    scene.crash_after(NEVER);
    (is_recorded, !fired.is_empty() && fired.iter().all(|failed| !failed))
}

#[tokio::test]
async fn each_execution_is_retried_once_though_the_process_dies_after_any_write_and_the_next_runs_fail() {
    let names = names(MANY);
    for last in 0.. {
        let scene = Scene::failed_executions(&names).await;
        let (is_recorded, is_done) = killed(&scene, asked(Action::Retry, all_orders()), last).await;
        if !is_recorded {
            // The caller repeats its request.
            scene.begin(asked(Action::Retry, all_orders())).await;
        }
        let mut runs = 0;
        scene.recover(async |scene: &Scene| runs += scene.fail_turns().await).await;
        let operation = scene.operation("op").await;
        assert_eq!(operation.end.map(|end| end.how), Some(HowEnded::Completed), "{last}");
        assert_eq!((runs, scene.runs(&names, 2).await), (MANY, 2 * u32::try_from(MANY).unwrap()), "{last}");
        assert!(operation.counts.changed <= MANY as u64, "{last}");
        if is_done {
            assert!(last > MANY as u64, "{last}");
            break;
        }
    }
}

#[tokio::test]
async fn each_listed_task_is_retried_once_though_the_process_dies_after_any_write_and_it_fails_again() {
    let names = names(12);
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    for last in 0.. {
        let scene = Scene::failed_tasks(&names).await;
        let request = || asked(Action::Retry, these_tasks(&listed));
        let (is_recorded, is_done) = killed(&scene, request(), last).await;
        if !is_recorded {
            scene.begin(request()).await;
        }
        let mut attempts = 0;
        scene.recover(async |scene: &Scene| attempts += scene.fail_tasks("again").await).await;
        let operation = scene.operation("op").await;
        assert_eq!(operation.end.map(|end| end.how), Some(HowEnded::Completed), "{last}");
        assert_eq!(attempts, names.len(), "{last}");
        let Counts { matched, changed, unchanged, refused } = operation.counts;
        assert_eq!((matched, refused.len()), (12, 0), "{last}");
        // What a process had changed before it died counts as changed.
        assert_eq!((changed, unchanged), (12, 0), "{last}");
        if is_done {
            assert!(last > 12, "{last}");
            break;
        }
    }
}

#[tokio::test]
async fn an_event_arrives_once_though_the_process_dies_after_any_write() {
    let names = names(12);
    for last in 0.. {
        let scene = Scene::new();
        for name in &names {
            scene.start(name).await;
        }
        scene.advance(1);
        let request = || asked(Action::SendEvent, all_orders());
        let (is_recorded, is_done) = killed(&scene, request(), last).await;
        if !is_recorded {
            scene.begin(request()).await;
        }
        scene.recover(async |_: &Scene| ()).await;
        let operation = scene.operation("op").await;
        assert!(operation.is_over());
        assert_eq!(operation.counts, counts(12, 12, 0, &[]), "{last}");
        for name in &names {
            assert_eq!(scene.execution(name).await.pending_events, 1, "{last}: {name}");
        }
        if is_done {
            assert!(last > 12, "{last}");
            break;
        }
    }
}

#[tokio::test]
async fn an_operation_without_its_message_is_continued_by_the_tick_and_no_earlier() {
    let scene = Scene::failed_executions(&names(3)).await;
    scene.begin(asked(Action::Retry, all_orders())).await;
    assert_eq!(scene.lose_timers().await, 1);
    scene.advance(30);
    scene.tick().await.unwrap();
    assert_eq!(scene.fire(50_000).await, 0);
    assert_eq!(scene.operation("op").await.pages, 0);
    scene.advance(31);
    scene.tick().await.unwrap();
    // Before the message: the slot is taken, so that the next tick sends no other.
    let taken = scene.operation("op").await;
    assert_eq!((taken.pages, taken.due.map(|due| due.at > scene.now())), (0, Some(true)));
    assert_eq!(scene.fire(50_000).await, 1);
    assert!(scene.operation("op").await.is_over());
    assert_eq!(scene.runs(&names(3), 2).await, 6);
}

#[tokio::test]
async fn a_system_that_starts_again_continues_an_operation_at_once() {
    let scene = Scene::failed_executions(&names(3)).await;
    scene.begin(asked(Action::Retry, all_orders())).await;
    assert_eq!(scene.lose_timers().await, 1);
    scene.advance(1);
    scene.service.hint_all().await.unwrap();
    scene.fire(50_000).await;
    assert!(scene.operation("op").await.is_over());
}

#[tokio::test]
async fn a_process_whose_time_is_up_sends_the_rest_on() {
    let scene = Scene::failed_executions(&names(MANY)).await;
    scene.begin(asked(Action::Retry, all_orders())).await;
    // Each read of the clock takes a while: there is time for one page.
    scene.slow(10);
    assert_eq!(scene.fire(400).await, 1);
    let first = scene.operation("op").await;
    assert_eq!((first.pages, first.is_over(), first.counts.matched), (1, false, 100));
    assert_eq!(scene.fire(400).await, 1);
    scene.slow(0);
    let last = scene.operation("op").await;
    assert_eq!((last.pages, last.is_over()), (2, true));
    assert_eq!(last.counts, counts(MANY as u64, MANY as u64, 0, &[]));
}

#[tokio::test]
async fn two_processes_with_one_operation_retry_each_execution_once() {
    let names = names(MANY);
    let scene = Scene::failed_executions(&names).await;
    let operation = scene.begin(asked(Action::Retry, all_orders())).await;
    scene.advance(1);
    scene.interleave();
    let stop_at = scene.now().plus(Millis::from_secs(50));
    let (one, other) = join(
        scene.service.carry_out_operation(&operation.id, stop_at),
        scene.service.carry_out_operation(&operation.id, stop_at),
    )
    .await;
    one.unwrap();
    other.unwrap();
    while scene.fire(50_000).await > 0 {}
    let operation = scene.operation("op").await;
    assert_eq!((operation.pages, operation.is_over()), (2, true));
    let Counts { matched, changed, unchanged, refused } = operation.counts;
    assert!(refused.is_empty(), "{refused:?}");
    assert!(matched <= MANY as u64 && matched >= changed + unchanged, "{matched} {changed} {unchanged}");
    assert_eq!(scene.runs(&names, 2).await, 2 * u32::try_from(MANY).unwrap());
}

#[tokio::test]
async fn one_stopped_in_a_page_changes_nothing_after_that_page() {
    let names = names(MANY);
    let scene = Scene::failed_executions(&names).await;
    let operation = scene.begin(asked(Action::Retry, all_orders())).await;
    scene.advance(1);
    scene.interleave();
    let stop_at = scene.now().plus(Millis::from_secs(50));
    let stop = async {
        while scene.execution(&names[MANY - 1]).await.run == 1 {
            tokio::task::yield_now().await;
        }
        scene.service.stop_operation(&operation.id).await.unwrap()
    };
    let (carried_out, (stopped, changed)) =
        join(scene.service.carry_out_operation(&operation.id, stop_at), stop).await;
    carried_out.unwrap();
    // Its counts are still to come, and it says so.
    assert_eq!((changed, stopped.operation.pages, stopped.operation.is_over()), (true, 0, false));
    assert!(stopped.operation.stop.is_some());
    scene.recover(async |scene: &Scene| _ = scene.fail_turns().await).await;
    let operation = scene.operation("op").await;
    assert_eq!(operation.end.map(|end| end.how), Some(HowEnded::Stopped));
    assert_eq!((operation.pages, operation.due), (1, None));
    assert_eq!(operation.counts, counts(100, 100, 0, &[]));
    assert_eq!(scene.runs(&names, 1).await, 100 * 2 + 7);
    // To stop it again changes nothing.
    assert!(!scene.service.stop_operation(&operation.id).await.unwrap().1);
}

#[tokio::test]
async fn one_stopped_before_a_page_changes_nothing() {
    let names = names(3);
    let scene = Scene::failed_executions(&names).await;
    let operation = scene.begin(asked(Action::Retry, all_orders())).await;
    scene.advance(1);
    scene.service.stop_operation(&operation.id).await.unwrap();
    assert_eq!(scene.fire(50_000).await, 1);
    let operation = scene.operation("op").await;
    assert_eq!(operation.end.map(|end| end.how), Some(HowEnded::Stopped));
    assert_eq!((operation.counts, scene.runs(&names, 1).await), (Counts::default(), 3));
}

#[tokio::test]
async fn one_stopped_while_its_process_is_dead_counts_what_that_had_changed_and_changes_no_more() {
    let names = names(12);
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut most = 0;
    for last in 1..12 {
        let scene = Scene::failed_tasks(&names).await;
        if !killed(&scene, asked(Action::Retry, these_tasks(&listed)), last).await.0 {
            continue;
        }
        let op = operation_id("op");
        let (stopped, changed) = scene.service.stop_operation(&op).await.unwrap();
        assert_eq!((changed, stopped.operation.is_over()), (true, false));
        let done = scene.count_of_tasks(&names, Status::Pending).await;
        scene.recover(async |_: &Scene| ()).await;
        let operation = scene.operation("op").await;
        assert_eq!(operation.end.map(|end| end.how), Some(HowEnded::Stopped));
        assert_eq!(operation.counts, counts(done, done, 0, &[]), "{last}");
        assert_eq!(scene.count_of_tasks(&names, Status::Pending).await, done, "{last}");
        most = most.max(done);
        // It goes on with the page that was lost, and counts each record once.
        assert!(scene.service.resume_operation(&op).await.unwrap().1);
        assert!(!scene.service.resume_operation(&op).await.unwrap().1);
        scene.recover(async |_: &Scene| ()).await;
        let operation = scene.operation("op").await;
        assert_eq!(operation.end.map(|end| end.how), Some(HowEnded::Completed));
        assert_eq!(operation.counts, counts(12, 12, 0, &[]), "{last}");
        assert!(!scene.service.resume_operation(&op).await.unwrap().1);
    }
    assert!(most > 5, "{most}");
}

#[tokio::test]
async fn a_page_that_the_store_throttles_is_tried_again() {
    let scene = Scene::saying(StoreError::Throttled);
    let names = names(5);
    for name in &names {
        scene.start(name).await;
    }
    scene.fail_turns().await;
    scene.advance(1);
    scene.begin(asked(Action::Retry, all_orders())).await;
    scene.advance(1);
    // Each restart writes the end of the run before and the record.
    scene.crash_after(4);
    assert_eq!(scene.try_fire(50_000).await, [true]);
    scene.crash_after(NEVER);
    let cut_off = scene.operation("op").await;
    assert_eq!((cut_off.pages, cut_off.is_over(), scene.runs(&names, 1).await), (0, false, 7));
    scene.advance(61);
    assert_eq!(scene.fire(50_000).await, 1);
    let operation = scene.operation("op").await;
    // Those of the first try have no status that matches any more.
    assert_eq!((operation.is_over(), operation.counts), (true, counts(3, 3, 0, &[])));
    assert_eq!(scene.runs(&names, 2).await, 10);
}

#[tokio::test]
async fn one_whose_request_is_lost_ends_as_failed() {
    let scene = Scene::failed_executions(&names(3)).await;
    let listed: Vec<String> = names(100);
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let operation = scene.begin(asked(Action::Retry, these_executions(&listed))).await;
    let Payload::Blob(at) = &operation.details else { panic!("{operation:?}") };
    scene
        .memory
        .delete_expired(scene.now().plus(Millis::from_secs(400 * 86_400)), |item| *item == Item::Blob(at.id));
    assert!(scene.store.blob(&at.id).await.unwrap().is_none());
    scene.advance(1);
    assert_eq!(scene.fire(50_000).await, 1);
    let operation = scene.store.operation(&operation.id).await.unwrap().unwrap();
    assert!(matches!(operation.end.unwrap().how, HowEnded::Failed { .. }));
    assert_eq!((operation.due, scene.runs(&names(3), 1).await), (None, 3));
}
