//! What each action changes, and what it leaves alone.

use tickover_core::id::EventId;

use super::*;

/// Executions `failed`, `done`, `open` and `other`, which is open and isn't part of any operation.
async fn executions() -> Scene {
    let scene = Scene::new();
    scene.start("failed").await;
    scene.fail_turns().await;
    scene.start("done").await;
    scene.end_turns(completed).await;
    let other = WorkflowName::parse("other").unwrap();
    scene.start_with(StartRequest { id: Some(id("other")), ..StartRequest::new(other, work()) }).await;
    scene.start("open").await;
    scene.advance(1);
    scene
}

/// Tasks likewise; `running` is one that a worker has leased.
async fn tasks() -> Scene {
    let scene = Scene::new();
    scene.schedule("failed").await;
    scene.fail_tasks("declined").await;
    scene.schedule("done").await;
    let done = scene.claim().await.unwrap();
    scene.service.complete(&done.task.id, &done.token, None).await.unwrap();
    scene.schedule("running").await;
    scene.claim().await.unwrap();
    scene.schedule("open").await;
    let others = QueueName::parse("others").unwrap();
    scene.schedule_with(ScheduleRequest { queue: others, ..job("other") }).await;
    scene.advance(1);
    scene
}

#[tokio::test]
async fn executions_that_failed_are_retried_and_others_are_left_alone() {
    for action in [Action::Retry, Action::Restart] {
        let scene = executions().await;
        let before =
            [scene.execution("done").await, scene.execution("open").await, scene.execution("other").await];
        let operation = scene.carry_out(asked(action, all_orders())).await;
        assert_eq!((operation.counts, operation.pages), (counts(1, 1, 0, &[]), 1), "{action:?}");
        let failed = scene.execution("failed").await;
        assert_eq!((failed.run, failed.status()), (2, ExecutionStatus::Pending), "{action:?}");
        for was in before {
            assert_eq!(scene.execution(was.id.as_str()).await, was);
        }
    }
}

#[tokio::test]
async fn a_listed_execution_that_has_completed_runs_again_only_if_that_is_said() {
    for action in [Action::Retry, Action::RetryStep, Action::Restart] {
        let scene = executions().await;
        let operation = scene.carry_out(asked(action, these_executions(&["done"]))).await;
        assert_eq!(operation.counts, counts(1, 0, 1, &[]), "{action:?}");
        assert_eq!(scene.execution("done").await.run, 1, "{action:?}");
    }
    let scene = executions().await;
    let filter = ExecutionFilter { statuses: vec![ExecutionStatus::Completed], ..ExecutionFilter::default() };
    let done = Selection::Executions { filter, ids: vec![id("done"), id("failed")] };
    assert_eq!(scene.carry_out(asked(Action::Restart, done)).await.counts, counts(1, 1, 0, &[]));
    assert_eq!((scene.execution("done").await.run, scene.execution("failed").await.run), (2, 1));
}

#[tokio::test]
async fn a_retry_keeps_results_and_a_restart_does_not() {
    for (action, kept) in [(Action::Retry, 1), (Action::Restart, 0)] {
        let scene = Scene::new();
        scene.start("e").await;
        let turn = scene.turn().await.unwrap();
        let step = scene.large_step("charge").await;
        scene.close(&turn.execution, turn.lease, vec![step], failed("late")).await;
        scene.advance(1);
        scene.carry_out(asked(action, all_orders())).await;
        let journal = scene.service.journal_of(&scene.execution("e").await).await.unwrap();
        let steps = journal.iter().filter(|entry| entry.payload().is_some()).count();
        assert_eq!(steps, kept, "{action:?}");
    }
}

#[tokio::test]
async fn open_executions_are_cancelled_or_terminated_and_others_are_left_alone() {
    for action in [Action::Cancel, Action::Terminate] {
        let scene = executions().await;
        let before =
            [scene.execution("failed").await, scene.execution("done").await, scene.execution("other").await];
        let operation = scene.carry_out(asked(action, all_orders())).await;
        assert_eq!(operation.counts, counts(1, 1, 0, &[]), "{action:?}");
        let open = scene.execution("open").await;
        assert_eq!(open.status(), ExecutionStatus::Cancelled, "{action:?}");
        for was in before {
            assert_eq!(scene.execution(was.id.as_str()).await, was);
        }
    }
}

#[tokio::test]
async fn an_event_arrives_once_at_each_open_execution() {
    let scene = executions().await;
    let operation = scene.carry_out(asked(Action::SendEvent, all_orders())).await;
    assert_eq!(operation.counts, counts(1, 1, 0, &[]));
    let waiting = scene.service.events(&id("open")).await.unwrap();
    let [event] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!(event.id.as_ref().map(EventId::as_str), Some("op"));
    assert_eq!((event.name.as_str(), event.payload.as_ref().unwrap().as_str()), ("go", "\"now\""));
    for name in ["failed", "done", "other"] {
        assert_eq!(scene.execution(name).await.pending_events, 0);
    }
    // Another operation's event is another event.
    let again =
        OperationRequest { id: Some(operation_id("again")), ..asked(Action::SendEvent, all_orders()) };
    assert_eq!(scene.carry_out(again).await.counts, counts(1, 1, 0, &[]));
    assert_eq!(scene.execution("open").await.pending_events, 2);
}

#[tokio::test]
async fn tasks_that_failed_are_retried_and_others_are_left_alone() {
    let scene = tasks().await;
    let mut before = vec![];
    for name in ["done", "running", "open", "other"] {
        before.push(scene.task(name).await);
    }
    let operation = scene.carry_out(asked(Action::Retry, all_jobs())).await;
    assert_eq!(operation.counts, counts(1, 1, 0, &[]));
    let failed = scene.task("failed").await;
    assert_eq!(
        (failed.status(), failed.revived_at),
        (Status::Pending, Some(operation.created_at.plus(Millis::from_secs(1))))
    );
    for was in before {
        assert_eq!(scene.task(was.id.as_str()).await, was);
    }
}

#[tokio::test]
async fn open_tasks_are_cancelled_or_terminated_and_others_are_left_alone() {
    for (action, running) in [(Action::Cancel, Status::Running), (Action::Terminate, Status::Cancelled)] {
        let scene = tasks().await;
        let mut before = vec![];
        for name in ["failed", "done", "other"] {
            before.push(scene.task(name).await);
        }
        let operation = scene.carry_out(asked(action, all_jobs())).await;
        assert_eq!(operation.counts, counts(2, 2, 0, &[]), "{action:?}");
        assert_eq!(scene.task("open").await.status(), Status::Cancelled);
        let task = scene.task("running").await;
        assert_eq!(task.status(), running, "{action:?}");
        assert!(task.running().is_none_or(|lease| lease.cancel_requested));
        for was in before {
            assert_eq!(scene.task(was.id.as_str()).await, was);
        }
    }
}

#[tokio::test]
async fn a_record_that_is_as_wanted_already_counts_as_unchanged() {
    let scene = tasks().await;
    scene.service.cancel(&task_id("running"), false).await.unwrap();
    let operation = scene.carry_out(asked(Action::Cancel, these_tasks(&["running", "failed"]))).await;
    assert_eq!(operation.counts, counts(2, 0, 2, &[]));
    let scene = executions().await;
    let turn = scene.turn().await.unwrap();
    scene.service.cancel_execution(&turn.execution.id).await.unwrap();
    let one = turn.execution.id.as_str();
    let operation = scene.carry_out(asked(Action::Cancel, these_executions(&[one, "failed"]))).await;
    assert_eq!(operation.counts, counts(2, 0, 2, &[]));
}

#[tokio::test]
async fn what_an_action_can_not_do_is_counted_by_its_code() {
    let scene = executions().await;
    let ids = these_executions(&["failed", "done", "open", "absent"]);
    let operation = scene.carry_out(asked(Action::SendEvent, ids)).await;
    assert_eq!(operation.counts, counts(3, 1, 0, &[("already_terminal", 2), ("not_found", 1)]));
    let scene = tasks().await;
    let ids = these_tasks(&["failed", "done", "open", "absent"]);
    let operation = scene.carry_out(asked(Action::Retry, ids)).await;
    assert_eq!(operation.counts, counts(3, 1, 1, &[("already_terminal", 1), ("not_found", 1)]));
    assert_eq!(scene.task("done").await.status(), Status::Completed);
}

#[tokio::test]
async fn a_dry_run_counts_and_changes_nothing() {
    for action in [Action::Retry, Action::Restart, Action::Cancel, Action::Terminate, Action::SendEvent] {
        let scene = executions().await;
        let mut before = vec![];
        for name in ["failed", "done", "open", "other"] {
            before.push(scene.execution(name).await);
        }
        let request = OperationRequest { dry_run: true, ..asked(action, all_orders()) };
        assert_eq!(scene.carry_out(request).await.counts, counts(1, 0, 0, &[]), "{action:?}");
        for was in before {
            assert_eq!(scene.execution(was.id.as_str()).await, was, "{action:?}");
        }
    }
    let scene = tasks().await;
    let before = scene.task("failed").await;
    let request = OperationRequest { dry_run: true, ..asked(Action::Retry, all_jobs()) };
    assert_eq!(scene.carry_out(request).await.counts, counts(1, 0, 0, &[]));
    assert_eq!(scene.task("failed").await, before);
}
