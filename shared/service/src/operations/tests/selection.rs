//! Which records an operation is for.

use super::*;

fn label(team: &str) -> (String, String) {
    ("team".to_owned(), team.to_owned())
}

fn labels(team: &str) -> Option<Json> {
    Json::parse(format!("{{\"team\":{team:?}}}"))
}

/// Executions that started a second after each other: `declined` and `late` have failed with these errors,
/// `terminated` and `completed` ended so, `other` of another workflow has failed.
async fn executions() -> (Scene, Timestamp) {
    let scene = Scene::new();
    let began_at = scene.now();
    for (called, workflow, ending) in [
        ("declined", "orders", Some(failed("declined"))),
        ("late", "orders", Some(failed("late"))),
        ("terminated", "orders", None),
        ("completed", "orders", Some(completed())),
        ("other", "other", Some(failed("late"))),
    ] {
        let workflow = WorkflowName::parse(workflow).unwrap();
        let request = StartRequest { id: Some(id(called)), ..StartRequest::new(workflow, work()) };
        scene.start_with(StartRequest { labels: labels(called), ..request }).await;
        let turn = scene.turn().await.unwrap();
        match ending {
            Some(ending) => scene.end_turn(turn, ending).await,
            None => drop(scene.service.terminate(&id(called)).await.unwrap()),
        }
        scene.advance(1);
    }
    (scene, began_at)
}

async fn retried_executions(filter: ExecutionFilter, ids: &[&str]) -> Vec<&'static str> {
    let (scene, _) = executions().await;
    let ids: Vec<ExecutionId> = ids.iter().map(|called| id(called)).collect();
    let filter = if ids.is_empty() && filter.workflow.is_none() {
        ExecutionFilter { workflow: Some(orders()), ..filter }
    } else {
        filter
    };
    let operation = scene.carry_out(asked(Action::Retry, Selection::Executions { filter, ids })).await;
    let mut retried = vec![];
    for called in ["declined", "late", "terminated", "completed", "other"] {
        if scene.execution(called).await.run == 2 {
            retried.push(called);
        }
    }
    assert_eq!(operation.counts, counts(retried.len() as u64, retried.len() as u64, 0, &[]));
    retried
}

#[tokio::test]
async fn executions_are_chosen_by_each_condition() {
    let (_, began_at) = executions().await;
    let second = Some(began_at.plus(Millis::from_secs(1)));
    let of =
        |statuses: &[ExecutionStatus]| ExecutionFilter { statuses: statuses.to_vec(), ..Default::default() };
    let other = ExecutionFilter { workflow: WorkflowName::parse("other").ok(), ..Default::default() };
    let late = ExecutionFilter { error: Some("late".to_owned()), ..Default::default() };
    let all = ["declined", "late", "terminated", "completed", "other"];
    let none: [&str; 0] = [];
    let cases = [
        (ExecutionFilter::default(), &none[..], &["declined", "late"][..]),
        (other.clone(), &none, &["other"]),
        (of(&[ExecutionStatus::Cancelled]), &none, &["terminated"]),
        (
            of(&[ExecutionStatus::Completed, ExecutionStatus::Failed]),
            &none,
            &["declined", "late", "completed"],
        ),
        (late.clone(), &none, &["late"]),
        (ExecutionFilter { label: Some(label("declined")), ..Default::default() }, &none, &["declined"]),
        (ExecutionFilter { started_from: second, ..Default::default() }, &none, &["late"]),
        (ExecutionFilter { started_before: second, ..Default::default() }, &none, &["declined"]),
        (ExecutionFilter::default(), &["terminated", "late"], &["late", "terminated"]),
        (of(&[ExecutionStatus::Completed]), &["completed", "late"], &["completed"]),
        (late, &all, &["late", "other"]),
        (other, &all, &["other"]),
        (ExecutionFilter { label: Some(label("terminated")), ..Default::default() }, &all, &["terminated"]),
        // Listed twice.
        (ExecutionFilter::default(), &["late", "late"], &["late"]),
    ];
    for (filter, ids, expected) in cases {
        assert_eq!(retried_executions(filter.clone(), ids).await, expected, "{filter:?} {ids:?}");
    }
}

/// Tasks that were scheduled a second after each other, named likewise; `other` is in another queue and of another kind.
async fn tasks() -> (Scene, Timestamp) {
    let scene = Scene::new();
    let began_at = scene.now();
    let others = QueueName::parse("others").unwrap();
    for called in ["declined", "late", "cancelled", "other"] {
        let request = ScheduleRequest { labels: labels(called), ..job(called) };
        let kind = TaskKind::parse("post").unwrap();
        let request = match called {
            "other" => ScheduleRequest { queue: others.clone(), kind, ..request },
            _ => request,
        };
        let queue = request.queue.clone();
        scene.schedule_with(request).await;
        if called == "cancelled" {
            scene.service.cancel(&task_id(called), false).await.unwrap();
        } else {
            let claimed = scene.service.claim(&queue, &one_at_a_time()).await.unwrap().pop().unwrap();
            let error = Failure::new(if called == "other" { "late" } else { called }, "no");
            scene.service.fail(&claimed.task.id, &claimed.token, error, false).await.unwrap();
        }
        scene.advance(1);
    }
    (scene, began_at)
}

async fn retried_tasks(filter: TaskFilter, ids: &[&str]) -> Vec<&'static str> {
    let (scene, _) = tasks().await;
    let ids = ids.iter().map(|called| task_id(called)).collect();
    let operation = scene.carry_out(asked(Action::Retry, Selection::Tasks { filter, ids })).await;
    let mut retried = vec![];
    for called in ["declined", "late", "cancelled", "other"] {
        if scene.task(called).await.status() == Status::Pending {
            retried.push(called);
        }
    }
    assert_eq!(operation.counts, counts(retried.len() as u64, retried.len() as u64, 0, &[]));
    retried
}

#[tokio::test]
async fn tasks_are_chosen_by_each_condition() {
    let (_, began_at) = tasks().await;
    let second = Some(began_at.plus(Millis::from_secs(1)));
    let late = TaskFilter { error: Some("late".to_owned()), ..Default::default() };
    let of_jobs = TaskFilter { queue: Some(jobs()), ..Default::default() };
    let all = ["declined", "late", "cancelled", "other"];
    let none: [&str; 0] = [];
    let cases = [
        (of_jobs.clone(), &none[..], &["declined", "late"][..]),
        (TaskFilter { kind: TaskKind::parse("post").ok(), ..Default::default() }, &none, &["other"]),
        (TaskFilter { statuses: vec![Status::Cancelled], ..Default::default() }, &all, &["cancelled"]),
        (late.clone(), &none, &["late", "other"]),
        (TaskFilter { error: Some("late".to_owned()), ..of_jobs.clone() }, &none, &["late"]),
        (TaskFilter { label: Some(label("other")), ..Default::default() }, &none, &["other"]),
        (TaskFilter { created_from: second, ..Default::default() }, &none, &["late", "other"]),
        (TaskFilter { created_before: second, ..Default::default() }, &none, &["declined"]),
        (TaskFilter::default(), &["cancelled", "other"], &["cancelled", "other"]),
        (of_jobs, &all, &["declined", "late", "cancelled"]),
        (late, &["declined", "late"], &["late"]),
        (TaskFilter::default(), &["late", "late"], &["late"]),
    ];
    for (filter, ids, expected) in cases {
        assert_eq!(retried_tasks(filter.clone(), ids).await, expected, "{filter:?} {ids:?}");
    }
}

#[tokio::test]
async fn what_began_or_ended_after_the_operation_was_recorded_is_left_alone() {
    let scene = Scene::failed_executions(&names(2)).await;
    for action in [Action::Retry, Action::Restart] {
        let request = OperationRequest { id: None, ..asked(action, all_orders()) };
        let operation = scene.begin(request).await;
        scene.advance(1);
        // Somebody retries one meanwhile, and it fails again.
        scene.service.restart(&id("r0000")).await.unwrap();
        assert_eq!(scene.fail_turns().await, 1);
        // Another one starts and fails.
        let later = format!("later-{action:?}");
        scene.start(&later).await;
        assert_eq!(scene.fail_turns().await, 1);
        let before = [scene.execution("r0000").await, scene.execution(&later).await];
        assert_eq!(scene.fire(50_000).await, 1);
        let operation = scene.operation(operation.id.as_str()).await;
        assert!(operation.is_over());
        assert_eq!(operation.counts.matched, operation.counts.changed + operation.counts.unchanged);
        for was in before {
            assert_eq!(scene.execution(was.id.as_str()).await, was, "{action:?}");
        }
        assert_eq!(scene.fail_turns().await as u64, operation.counts.changed);
        scene.advance(1);
    }
    assert_eq!(scene.execution("r0001").await.run, 3);
    let scene = Scene::failed_tasks(&names(2)).await;
    scene.begin(asked(Action::Retry, all_jobs())).await;
    scene.advance(1);
    scene.service.retry(&task_id("r0000")).await.unwrap();
    scene.schedule("later").await;
    assert_eq!(scene.fail_tasks("again").await, 2);
    assert_eq!(scene.fire(50_000).await, 1);
    assert_eq!(scene.operation("op").await.counts, counts(3, 1, 2, &[]));
    assert_eq!(scene.fail_tasks("again").await, 1);
}

#[tokio::test]
async fn what_starts_after_the_operation_was_recorded_gets_no_event_and_is_not_cancelled() {
    for action in [Action::Cancel, Action::Terminate, Action::SendEvent] {
        let scene = Scene::new();
        scene.begin(asked(action, these_executions(&["later"]))).await;
        scene.advance(1);
        scene.start("later").await;
        let before = scene.execution("later").await;
        assert_eq!(scene.fire(50_000).await, 1);
        assert_eq!(scene.execution("later").await, before);
        assert_eq!(scene.operation("op").await.counts, counts(1, 0, 1, &[]));
    }
    let scene = Scene::new();
    scene.begin(asked(Action::Terminate, these_tasks(&["later"]))).await;
    scene.advance(1);
    scene.schedule("later").await;
    assert_eq!(scene.fire(50_000).await, 1);
    assert_eq!(scene.task("later").await.status(), Status::Pending);
}

#[tokio::test]
async fn a_record_that_only_a_newer_build_can_read_is_left_out() {
    for selection in [these_executions(&["r0000", "r0001", "r0002", "absent"]), all_orders()] {
        let scene = Scene::failed_executions(&names(3)).await;
        scene.make_unreadable("r0001");
        let is_listed = selection != all_orders();
        let operation = scene.carry_out(asked(Action::Retry, selection)).await;
        let refused: &[(&str, u64)] = if is_listed { &[("internal", 1), ("not_found", 1)] } else { &[] };
        assert_eq!(operation.counts, counts(2, 2, 0, refused));
        assert_eq!((scene.execution("r0000").await.run, scene.execution("r0001").await.run), (2, 1));
    }
}
