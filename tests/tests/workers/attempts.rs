//! How attempts end: with a result, with an error, with a lost lease.

use serde_json::json;

use crate::scene::{Language, Scene, says};

#[tokio::test]
async fn the_example_completes_a_task_with_its_output() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let worker = scene.example();
        // The queue doesn't exist before its first task.
        says(&worker, "claim work 404").await;
        let id = scene.schedule("welcome").await;
        let task = scene.until_status(&id, "completed").await;
        assert_eq!((&task["output"], &task["attempt"]), (&json!({"sent": "ada"}), &json!(1)), "{language:?}");
    }
}

#[tokio::test]
async fn an_exception_is_a_failed_attempt_with_its_code_and_is_tried_again() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let id = scene.schedule("flaky").await;
        let _worker = scene.worker(60);
        let task = scene.until_status(&id, "completed").await;
        assert_eq!((&task["output"], &task["attempt"]), (&json!("paid"), &json!(2)), "{language:?}");
        let first = &task["attempts"][0];
        assert_eq!(first["outcome"], "failed", "{language:?}: {first}");
        assert_eq!(first["error"]["code"], "card_declined", "{language:?}: {first}");
        assert_eq!(first["error"]["message"], "not today", "{language:?}: {first}");
    }
}

#[tokio::test]
async fn an_output_that_is_refused_for_its_size_is_a_failed_attempt() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let _worker = scene.worker(60);
        // More than an output may have, and more than a request may have.
        for bytes in [400_000, 7_000_000] {
            let task =
                json!({"queue": "work", "kind": "large", "input": {"bytes": bytes}, "retry": "fixed(3, 0s)"});
            let id = scene.post("tasks", &task).await["task"]["id"].as_str().expect("a task").to_owned();
            let task = scene.until_status(&id, "completed").await;
            assert_eq!((&task["output"], &task["attempt"]), (&json!("small"), &json!(2)), "{language:?}");
            let first = &task["attempts"][0];
            assert_eq!(
                (&first["outcome"], &first["error"]["code"]),
                (&json!("failed"), &json!("output_too_large")),
                "{language:?}: {first}"
            );
        }
    }
}

#[tokio::test]
async fn an_exception_that_is_not_retryable_ends_the_task_at_once() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let id = scene.schedule("final").await;
        let unknown = scene.schedule("unknown").await;
        let _worker = scene.worker(60);
        let task = scene.until_status(&id, "failed").await;
        assert_eq!((&task["error"]["code"], &task["attempt"]), (&json!("no_such_card"), &json!(1)));
        // A kind without a handler fails its attempts, and not the worker.
        assert_eq!(scene.until_status(&unknown, "failed").await["attempt"], 4, "{language:?}");
    }
}

/// The code and the start of the message that are recorded for what a handler throws.
fn told(language: Language, thrown: &str) -> (&'static str, &'static str) {
    match (language, thrown) {
        (_, "half") => ("half\u{fffd}", "a\u{fffd}b"),
        (_, "flag") => ("no_flag", "odd"),
        (Language::Python, "exit") => ("SystemExit", "gone gone"),
        (Language::Python, "mute") => ("Mute", ""),
        (Language::Python, "huge") => ("Odd", "xxx"),
        (Language::Python, _) => ("Odd", "odd"),
        (Language::TypeScript, "exit") => ("Error", "gone gone"),
        (Language::TypeScript, "mute") => ("Error", ""),
        (Language::TypeScript, "huge") => ("Error", "xxx"),
        (Language::TypeScript, "null") => ("Error", "null"),
        (Language::TypeScript, _) => ("Error", "odd"),
    }
}

#[tokio::test]
async fn whatever_a_handler_throws_is_reported_and_retried_by_the_policy() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let _worker = scene.worker(60);
        for thrown in ["exit", "method", "half", "empty", "flag", "mute", "huge", "null"] {
            let id = scene.schedule(&format!("odd-{thrown}")).await;
            let task = scene.until_status(&id, "failed").await;
            assert_eq!(task["attempt"], 4, "{language:?}, {thrown}: {task}");
            let (code, message) = told(language, thrown);
            let error = &task["error"];
            let is_told = error["message"].as_str().is_some_and(|told| told.starts_with(message));
            assert!(error["code"] == code && is_told, "{language:?}, {thrown}: {}", error["code"]);
        }
    }
}

#[tokio::test]
async fn an_example_workers_heartbeats_keep_a_task_longer_than_its_lease() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let id = scene.schedule("until-go").await;
        // The second worker would take the task over if its lease expired.
        let _workers = [scene.worker(1), scene.worker(1)];
        let claimed = scene.until_status(&id, "running").await;
        let mut leases = vec![claimed["lease_expires_at"].clone()];
        // Six heartbeats, a third of a second apart, are two leases' length.
        while leases.len() < 7 {
            let last = leases.last().cloned().unwrap_or_default();
            let extended = scene.until(&id, |task| task["lease_expires_at"] != last).await;
            assert_eq!(extended["attempts"].as_array().map(Vec::len), Some(1), "{language:?}: {extended}");
            leases.push(extended["lease_expires_at"].clone());
        }
        scene.go();
        let task = scene.until_status(&id, "completed").await;
        let attempts = task["attempts"].as_array().map(Vec::len);
        assert_eq!((&task["attempt"], attempts), (&json!(1), Some(1)), "{language:?}: {task}");
    }
}

#[tokio::test]
async fn a_handler_that_hangs_times_out_although_its_worker_lives_and_the_next_attempt_gets_its_values() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let silence = json!({"timeout": "2s", "errorOnTimeout": true});
        let task =
            json!({"queue": "work", "kind": "reports", "maxInactivity": silence, "retry": "fixed(1, 0s)"});
        let id = scene.post("tasks", &task).await["task"]["id"].as_str().expect("a task").to_owned();
        let _worker = scene.worker(1);
        let task = scene.until_status(&id, "completed").await;
        assert_eq!(task["output"], json!([0.5, {"row": 7}]), "{language:?}");
        assert_eq!(task["attempts"][0]["outcome"], "timed_out", "{language:?}: {task}");
    }
}

#[tokio::test]
async fn a_cancellation_stops_the_handler_and_ends_the_task() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let id = scene.schedule("until-stopped").await;
        let _worker = scene.worker(1);
        scene.until_status(&id, "running").await;
        scene.post(&format!("tasks/{id}/cancel"), &json!({})).await;
        let task = scene.until_status(&id, "cancelled").await;
        assert!(scene.was_stopped() && task["output"].is_null(), "{language:?}: {task}");
        // The lease would have expired too. The worker's release was faster.
        assert_eq!(task["attempts"][0]["outcome"], "released", "{language:?}: {task}");
    }
}

#[tokio::test]
async fn a_handler_whose_lease_is_lost_is_stopped_and_its_result_is_not_reported() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let id = scene.schedule("until-stopped").await;
        let worker = scene.worker(1);
        scene.until_status(&id, "running").await;
        scene.post(&format!("tasks/{id}/cancel"), &json!({"force": true})).await;
        says(&worker, &format!("heartbeat {id} 409")).await;
        says(&worker, &format!("release {id} 409")).await;
        assert!(scene.was_stopped(), "{language:?}");
        assert!(!worker.stdout().contains("complete"), "{language:?}: {}", worker.stdout());
    }
}
