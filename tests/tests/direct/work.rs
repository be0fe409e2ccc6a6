//! What direct workers do with tasks: each once, also after a death, a signal and a wait for the queue.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tickover::client::TaskStatus;
use tickover_tests::process::{Process, binary, until};
use tokio::process::Command;

use crate::scene::{Scene, UNTIL_GO, at_emulator, create_queue, tool, until_task};

#[tokio::test]
async fn two_direct_workers_do_each_task_once_and_retry_failed_attempts() {
    const TASKS: usize = 24;
    let scene = Scene::start().await;
    // Each third task's first attempt fails. The input is on the standard input.
    let script = r#"echo "$TICKOVER_TASK_ID $TICKOVER_ATTEMPT" >> "$DIR/runs"
        case "$TICKOVER_TASK_ID $TICKOVER_ATTEMPT" in *[0369]" 1") echo "not today" >&2; exit 3;; esac; cat"#;
    let mut tasks = vec![];
    for number in 0..TASKS {
        tasks.push(scene.schedule(&format!("mail-{number}")).await);
    }
    let options = ["--concurrency", "5", "--idle-exit", "1s"];
    let workers = [scene.worker(&options, script), scene.worker(&options, script)];
    let mut retried = 0;
    for task in &tasks {
        assert_eq!(task.result().await.expect("a result"), json!({"to": task.id().as_str()}));
        let attempts = task.describe().await.expect("a task").attempts;
        retried += attempts.len() - 1;
        let failed = attempts.iter().filter_map(|attempt| attempt.error.as_ref());
        assert!(failed.into_iter().all(|error| error.code == "exit_3"), "{attempts:?}");
    }
    for worker in workers {
        let ended = worker.ended().await.expect("an end");
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
    let runs = scene.runs();
    assert!(retried > 0);
    assert_eq!(runs.len(), TASKS + retried, "{runs:?}");
    assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len(), "an attempt ran twice: {runs:?}");
}

#[tokio::test]
async fn a_command_gets_the_stack_with_which_the_tool_calls_the_same_system() {
    let scene = Scene::start().await;
    let script = r#"echo "$TICKOVER_STACK|$TICKOVER_ENDPOINT|$TICKOVER_QUEUE|$AWS_REGION""#;
    let region = ["--region", "us-east-1", "--max-tasks", "1"];
    let worker = scene.worker(&region, script);
    let task = scene.schedule("mail").await;
    let expected = format!("{}||emails|us-east-1", scene.system);
    assert_eq!(task.result().await.expect("a result"), json!(expected));
    let ended = worker.ended().await.expect("an end");
    let place = format!("at the table and the queues of the stack {}, 1 at once", scene.system);
    assert!(ended.stderr.contains(&place) && !ended.stderr.contains("warning"), "{}", ended.stderr);
}

#[tokio::test]
async fn another_direct_worker_takes_over_from_a_killed_one_when_the_lease_ends() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--lease", "2s"], UNTIL_GO);
    let task = scene.schedule("mail").await;
    until("the first run", async || (scene.runs().len() == 1).then_some(())).await;
    worker.kill().await.expect("an end");

    let next = scene.worker(&["--lease", "2s", "--max-tasks", "1"], UNTIL_GO);
    until("the second run", async || (scene.runs().len() == 2).then_some(())).await;
    scene.go();
    assert_eq!(task.result().await.expect("a result"), json!("done"));
    assert_eq!(next.ended().await.expect("an end").status.code(), Some(0));
    let attempts = task.describe().await.expect("a task").attempts;
    let outcomes: Vec<String> = attempts.iter().map(|attempt| json!(attempt.outcome).to_string()).collect();
    assert_eq!(outcomes, [r#""lost""#, r#""completed""#], "{attempts:?}");
}

#[tokio::test]
async fn a_direct_worker_that_is_asked_to_stop_finishes_its_task_and_claims_no_other() {
    let scene = Scene::start().await;
    // The lease ends before the task does, unless heartbeats go on after the signal.
    let worker = scene.worker(&["--lease", "1s"], UNTIL_GO);
    let first = scene.schedule("first").await;
    until("the first run", async || (scene.runs().len() == 1).then_some(())).await;
    let second = scene.schedule("second").await;
    worker.signal("TERM").await.expect("a signal");
    worker.says("claiming no new ones").await;
    let lease = first.describe().await.expect("a task").lease_expires_at;
    until_task(&first, |task| task.lease_expires_at != lease).await;
    scene.go();
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(first.result().await.expect("a result"), json!("done"));
    let second = second.describe().await.expect("a task");
    assert_eq!((second.status.known(), second.attempt), (Some(TaskStatus::Pending), 0), "{second:?}");
    assert_eq!(scene.runs(), ["first"]);
}

#[tokio::test]
async fn a_second_signal_ends_the_command_and_releases_the_task_to_another_direct_worker() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--lease", "1h"], UNTIL_GO);
    let task = scene.schedule("mail").await;
    until("the first run", async || (scene.runs().len() == 1).then_some(())).await;
    worker.signal("TERM").await.expect("a signal");
    worker.says("claiming no new ones").await;
    worker.signal("TERM").await.expect("a signal");
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(ended.stderr.contains("1 released"), "{}", ended.stderr);

    // Its lease is longer than this test: the next worker has the task only because it was released.
    scene.go();
    let _next = scene.worker(&[], UNTIL_GO);
    assert_eq!(task.result().await.expect("a result"), json!("done"));
}

#[tokio::test]
async fn a_direct_worker_of_a_queue_that_is_not_there_says_so_and_waits_for_it() {
    let scene = Scene::start().await;
    let worker = scene.worker_of("letters", &["--max-tasks", "1"], "cat");
    let name = format!("{}-work-letters", scene.system);
    worker.says(&format!("there is no queue letters: waiting until SQS has one with the name {name}")).await;
    create_queue(&name).await;
    let task = scene.client.task::<Value>("send", 7).queue("letters").await.expect("a task");
    assert_eq!(task.result().await.expect("a result"), json!(7));
    assert_eq!(worker.ended().await.expect("an end").status.code(), Some(0));
}

#[tokio::test]
async fn a_stack_of_another_version_is_worked_for_with_a_warning() {
    let scene = Scene::start().await;
    crate::scene::parameter(&scene.system, "version", "9.4.2").await;
    let mut tool = tool(&["--stack", &scene.system, "work", "emails", "--direct", "--idle-exit", "0"]);
    let worker = Process::from_command(tool.args(["--wait", "0", "--", "cat"])).expect("a worker");
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let warning = format!("warning: the stack `{}` runs Tickover 9.4.2, and this tool is", scene.system);
    assert!(ended.stderr.starts_with(&warning), "{}", ended.stderr);
}

#[tokio::test]
async fn a_worker_in_rust_finds_its_table_and_queues_by_the_systems_name() {
    let scene = Scene::start().await;
    let worker = |system: &str| {
        let mut command = Command::new(binary("polling_worker"));
        let command = at_emulator(&mut command).env("TICKOVER_SYSTEM", system).args(["1h", "40s"]);
        Process::from_command(command).expect("a worker")
    };
    let runs = worker(&scene.system);
    let errand = json!({"parcels": [{"name": "books"}]});
    let errand = scene.client.start_by_name::<Value>("errand", "emails", errand).await.expect("an execution");
    errand.send_event("signed", "Ada").await.expect("an event");
    let log = errand.result().await.expect("a result");
    assert_eq!(log, json!(["passed", "books carried", "signed by Ada"]));
    runs.signal("TERM").await.expect("a signal");
    assert_eq!(runs.ended().await.expect("an end").status.code(), Some(0));

    let lost = worker("nowhere").ended().await.expect("an end");
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    assert!(lost.stderr.contains("no system `nowhere` in region us-east-1"), "{lost:?}");
}
