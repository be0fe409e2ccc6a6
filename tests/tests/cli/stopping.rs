//! How many tasks a worker runs at once, and how it ends.

use serde_json::json;
use tickover_tests::process::Process;

use crate::scene::{Scene, is_gone};

const UNTIL_FILE: &str = r#"echo $$ > "$DIR/pid"; while [ ! -e "$DIR/go" ]; do sleep 0.05; done; echo done"#;

#[tokio::test]
async fn tasks_run_at_once_up_to_the_concurrency() {
    let scene = Scene::start().await;
    // Each command ends only when three have started.
    let script =
        r#"touch "$DIR/$TICKOVER_TASK_ID"; while [ $(ls "$DIR" | wc -l) -lt 3 ]; do sleep 0.05; done"#;
    let _worker = scene.worker(&["--concurrency", "3"], script);
    let mut ids = vec![];
    for _ in 0..3 {
        ids.push(scene.schedule_plain("meet").await);
    }
    for id in ids {
        scene.until_status(&id, "completed").await;
    }
}

#[tokio::test]
async fn ctrl_c_finishes_running_tasks_and_claims_no_new_ones() {
    let scene = Scene::start().await;
    let worker = scene.worker(&[], UNTIL_FILE);
    let first = scene.schedule_plain("first").await;
    scene.until_status(&first, "running").await;
    let second = scene.schedule_plain("second").await;
    scene.file("pid").await;
    worker.signal("INT").await.expect("a signal");
    worker.says("claiming no new ones").await;
    scene.signal("go");
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(scene.task(&first).await["output"], "done");
    let second = scene.task(&second).await;
    assert_eq!((&second["status"], &second["attempt"]), (&json!("pending"), &json!(0)));
}

#[tokio::test]
async fn a_task_that_arrives_while_the_worker_stops_is_released() {
    let scene = Scene::start().await;
    let worker = scene.worker(&["--wait", "10s"], "echo never");
    // After this task, the worker polls again: a long poll that finds nothing.
    let warm_up = scene.schedule_plain("warm-up").await;
    scene.until_status(&warm_up, "completed").await;
    worker.signal("TERM").await.expect("a signal");
    worker.says("claiming no new ones").await;
    let id = scene.schedule_plain("late").await;
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let task = scene.task(&id).await;
    assert_eq!((&task["status"], &task["attempt"]), (&json!("pending"), &json!(0)), "{task}");
}

#[tokio::test]
async fn a_second_ctrl_c_ends_running_tasks_and_releases_them() {
    let scene = Scene::start().await;
    let worker = scene.worker(&[], UNTIL_FILE);
    let id = scene.schedule_plain("long").await;
    let pid = scene.file("pid").await;
    worker.signal("INT").await.expect("a signal");
    worker.says("claiming no new ones").await;
    let ended = worker.interrupt().await.expect("an end");
    assert_eq!(ended.status.code(), Some(130), "{}", ended.stderr);
    is_gone(&pid).await;
    let task = scene.task(&id).await;
    assert_eq!((&task["status"], &task["attempt"]), (&json!("pending"), &json!(0)));
    assert_eq!(task["attempts"][0]["outcome"], "released");
}

#[tokio::test]
async fn a_worker_ends_by_itself_after_so_many_tasks_or_when_idle() {
    let scene = Scene::start().await;
    let mut ids = vec![];
    for _ in 0..3 {
        ids.push(scene.schedule_plain("any").await);
    }
    let ended =
        scene.worker(&["--max-tasks", "2", "--concurrency", "3"], "true").ended().await.expect("an end");
    assert!(ended.status.success() && ended.stderr.contains("2 completed"), "{}", ended.stderr);
    let ended = scene.worker(&["--idle-exit", "100ms"], "true").ended().await.expect("an end");
    assert!(ended.status.success() && ended.stderr.contains("1 completed"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_worker_waits_for_a_queue_that_does_not_exist_yet() {
    let scene = Scene::start().await;
    let worker = scene.worker(&[], "true");
    worker.says("waiting for the first one").await;
    let id = scene.schedule_plain("first").await;
    scene.until_status(&id, "completed").await;
    assert_eq!(worker.stderr().matches("waiting for the first one").count(), 1, "{}", worker.stderr());
}

#[tokio::test]
async fn a_worker_waits_for_an_unreachable_server_and_reports_that_once() {
    // A port on which no server listens any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let endpoint = format!("http://{gone}");
    let worker =
        Process::tickover(&["--endpoint", &endpoint, "work", "work", "--", "true"]).expect("a worker");
    worker.says("trying again").await;
    let server = Process::tickover(&["dev", "--listen", &gone.to_string()]).expect("a server");
    server.address().await.expect("an address");
    worker.says("no task was ever scheduled").await;
    let ended = worker.interrupt().await.expect("an end");
    assert!(ended.status.success());
    assert_eq!(ended.stderr.matches("trying again").count(), 1, "{}", ended.stderr);
}

#[tokio::test]
async fn a_server_that_says_it_listens_ends_well_when_it_is_asked_to_stop() {
    for _ in 0..10 {
        let server = Process::tickover(&["dev", "--listen", "127.0.0.1:0"]).expect("a server");
        server.address().await.expect("an address");
        server.signal("TERM").await.expect("a signal");
        let ended = server.ended().await.expect("an end");
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
}

#[tokio::test]
async fn the_commands_of_a_worker_that_is_killed_end_with_what_they_have_started() {
    let scene = Scene::start().await;
    let script = r#"sleep 1000 & echo $! > "$DIR/child"; echo $$ > "$DIR/pid"; wait"#;
    let worker = scene.worker(&[], script);
    scene.schedule_plain("long").await;
    let (child, pid) = (scene.file("child").await, scene.file("pid").await);
    worker.signal("KILL").await.expect("a signal");
    is_gone(&pid).await;
    is_gone(&child).await;
}
