//! What operators change says who they were, and nothing else does.

use tickover_core::by::{By, Caller, PageOf};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ParentClosePolicy};
use tickover_core::id::{FlowKey, GateId};
use tickover_core::kind::{KindDefaults, Policies};

use super::*;
use crate::executions::tests::scene::{failed_by, name};
use crate::flow::gate_digest;

fn ada() -> By {
    By::caller(Caller::new("ada"))
}

impl Scene {
    fn by_ada(&self) -> Service {
        self.service.clone().called_by(ada())
    }
}

/// The operators' marks in a journal: the kind of each, and whose call it was.
fn marks(execution: &Execution) -> Vec<(String, Option<By>)> {
    let mark = |entry: &Entry| match &entry.what {
        Happened::Note { kind, .. } => Some((kind.clone(), entry.by().cloned())),
        Happened::Reopened { name, .. } => Some((format!("{name} again"), entry.by().cloned())),
        _ => None,
    };
    execution.journal.iter().filter_map(mark).collect()
}

fn of_ada(kinds: &[&str]) -> Vec<(String, Option<By>)> {
    kinds.iter().map(|kind| ((*kind).to_owned(), Some(ada()))).collect()
}

#[tokio::test]
async fn what_an_operator_does_with_an_execution_is_in_its_journal_with_the_operator() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    scene.by_ada().pause(&id("e")).await.unwrap();
    scene.by_ada().resume(&id("e")).await.unwrap();
    assert_eq!(marks(&scene.execution("e").await), of_ada(&["paused", "resumed"]));
    let entries = vec![scene.failed_step("s")];
    scene.close(&turn.execution, turn.lease, entries, failed_by("s")).await;
    scene.by_ada().retry_step(&id("e"), name("s")).await.unwrap();
    assert_eq!(marks(&scene.execution("e").await), of_ada(&["paused", "resumed", "s again"]));
    scene.by_ada().terminate(&id("e")).await.unwrap();
    let ended = scene.execution("e").await;
    assert_eq!(marks(&ended), of_ada(&["paused", "resumed", "s again", "terminated"]));
    scene.by_ada().restart(&id("e")).await.unwrap();
    assert_eq!(marks(&scene.execution("e").await), of_ada(&["restarted"]));
}

#[tokio::test]
async fn what_nobody_is_known_for_leaves_no_name_and_no_note_of_an_end() {
    let scene = Scene::new();
    scene.started("e", None).await;
    scene.service.pause(&id("e")).await.unwrap();
    scene.service.terminate(&id("e")).await.unwrap();
    let record = scene.execution("e").await;
    assert_eq!(marks(&record), [("paused".to_owned(), None)]);
    assert!(!serde_json::to_string(&record.journal).unwrap().contains("\"b\""));
}

#[tokio::test]
async fn a_child_that_ends_with_its_parent_has_the_operators_name_nowhere() {
    let scene = Scene::new();
    let turn = scene.started("parent", None).await;
    let mut child = scene.begin_child(&turn.execution, "child", 60).await;
    if let Happened::Child { policy, .. } = &mut child.what {
        *policy = ParentClosePolicy::Terminate;
    }
    scene.wait(&turn, vec![child], true).await;
    scene.by_ada().terminate(&id("parent")).await.unwrap();
    let child = scene.execution("child").await;
    assert!(child.closed().is_some() && marks(&child).iter().all(|(_, by)| by.is_none()), "{child:?}");
}

#[tokio::test]
async fn tasks_queues_kinds_and_limits_say_who_has_changed_them() {
    let scene = Scene::new();
    let task = task_id("t");
    scene.schedule("t").await;
    scene.service.cancel(&task, true).await.unwrap();
    assert_eq!(scene.service.describe(&task).await.unwrap().task.by, None);
    assert_eq!(scene.by_ada().retry(&task).await.unwrap().by.as_deref(), Some(&ada()));

    let jobs = jobs();
    let by = async || scene.service.fresh_record(&jobs).await.unwrap().and_then(|record| record.by);
    scene.service.pause_queue(&jobs, true).await.unwrap();
    assert_eq!(by().await, None);
    scene.by_ada().pause_queue(&jobs, false).await.unwrap();
    assert_eq!(by().await, Some(ada()));

    let kind = TaskKind::parse("mail").unwrap();
    let defaults = KindDefaults { given: Json::string("x"), policies: Policies::default(), by: None };
    scene.by_ada().set_kind(&jobs, &kind, defaults.clone()).await.unwrap();
    assert_eq!(scene.service.kind(&jobs, &kind).await.unwrap().by.as_deref(), Some(&ada()));
    // The same once more, by somebody else, changes nothing.
    scene.service.set_kind(&jobs, &kind, defaults).await.unwrap();
    assert_eq!(scene.service.kind(&jobs, &kind).await.unwrap().by.as_deref(), Some(&ada()));

    let key = FlowKey::parse("customer").unwrap();
    let gate = GateId::from(&gate_digest(&key));
    let pinned_by = async || scene.service.ports.store.gate(&gate).await.unwrap().unwrap().pinned_by;
    scene.by_ada().set_limit(&key, std::num::NonZeroU16::new(2)).await.unwrap();
    assert_eq!(pinned_by().await, Some(ada()));
    scene.by_ada().set_limit(&key, None).await.unwrap();
    assert_eq!(pinned_by().await, None);
}

#[tokio::test]
async fn what_an_operation_changes_names_it_its_page_and_who_started_it() {
    let scene = Scene::failed_tasks(&names(1)).await;
    scene.start("r0000").await;
    scene.advance(1);
    for (action, selection) in [(Action::Retry, all_jobs()), (Action::Terminate, all_orders())] {
        let request = OperationRequest { id: None, ..asked(action, selection) };
        let started = scene.by_ada().start_operation(request).await.unwrap().operation;
        assert_eq!(started.by, ada().caller);
        scene.advance(1);
        while scene.fire(50_000).await > 0 {}
        let page = PageOf { operation: started.id.clone(), number: 0 };
        let by = By { page: Some(page), ..ada() };
        match action {
            Action::Retry => assert_eq!(scene.task("r0000").await.by.as_deref(), Some(&by)),
            _ => assert_eq!(marks(&scene.execution("r0000").await), [("terminated".to_owned(), Some(by))]),
        }
        // It is over: to stop it leaves no mark.
        let (stopped, changed) = scene.by_ada().stop_operation(&started.id).await.unwrap();
        assert_eq!((stopped.operation.stop, changed), (None, false));
    }
    let request = OperationRequest { id: None, ..asked(Action::Cancel, all_orders()) };
    let started = scene.service.start_operation(request).await.unwrap().operation;
    assert_eq!(started.by, None);
    let stopped = scene.by_ada().stop_operation(&started.id).await.unwrap().0.operation;
    assert_eq!(stopped.stop.unwrap().by, ada().caller);
}
