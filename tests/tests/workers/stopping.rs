//! How a worker ends, and what doesn't end it.

use serde_json::json;

use crate::scene::{Language, Scene, ends_well, says, start_example};

#[tokio::test]
async fn a_signal_lets_the_running_task_end_and_no_other_one_start() {
    for (language, signal) in [
        (Language::Python, "TERM"),
        (Language::Python, "INT"),
        (Language::TypeScript, "TERM"),
        (Language::TypeScript, "INT"),
    ] {
        let scene = Scene::start(language).await;
        let first = scene.schedule("until-go").await;
        let worker = scene.worker(1);
        scene.until_status(&first, "running").await;
        let second = scene.schedule("until-go").await;
        worker.signal(signal).await.expect("a signal");
        // A heartbeat after the signal shows that the worker goes on.
        let lease = scene.task(&first).await["lease_expires_at"].clone();
        scene.until(&first, |task| task["lease_expires_at"] != lease).await;
        scene.go();
        ends_well(&worker).await;
        let first = scene.task(&first).await;
        assert_eq!(
            (&first["status"], &first["output"]),
            (&json!("completed"), &json!("done")),
            "{language:?}"
        );
        let second = scene.task(&second).await;
        assert_eq!((&second["status"], &second["attempt"]), (&json!("pending"), &json!(0)), "{language:?}");
    }
}

#[tokio::test]
async fn a_task_that_arrives_while_the_worker_stops_is_left_to_others() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let warm_up = scene.schedule("flaky").await;
        let worker = scene.worker(60);
        // After this task, the worker claims again, and the server keeps that claim open.
        scene.until_status(&warm_up, "completed").await;
        worker.signal("TERM").await.expect("a signal");
        if let Language::TypeScript = language {
            says(&worker, "stopping").await;
        }
        let late = scene.schedule("flaky").await;
        ends_well(&worker).await;
        let late = scene.task(&late).await;
        assert_eq!(
            (&late["status"], &late["attempt"]),
            (&json!("pending"), &json!(0)),
            "{language:?}: {late}"
        );
    }
}

#[tokio::test]
async fn a_worker_waits_for_a_server_that_is_away() {
    for language in Language::ALL {
        // A port on which no server listens any more.
        let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
        let gone = gone.expect("an address").to_string();
        let worker = start_example(language, &format!("http://{gone}"));
        says(&worker, "claim work 503").await;
        let scene = Scene::start_at(language, &gone).await;
        let id = scene.schedule("welcome").await;
        scene.until_status(&id, "completed").await;
    }
}
