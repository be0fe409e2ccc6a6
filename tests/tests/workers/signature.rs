//! Requests to an address on AWS are signed.

use std::path::Path;

use crate::gateway::{CREDENTIALS, Gateway};
use crate::scene::{Language, Scene, says};

#[tokio::test]
async fn every_request_to_aws_is_signed_for_the_service_and_region_of_the_address() {
    for language in Language::ALL {
        for (host, scope) in [
            ("abc123.execute-api.eu-central-1.amazonaws.com", "eu-central-1/execute-api"),
            ("abc123.lambda-url.us-west-2.on.aws", "us-west-2/lambda"),
        ] {
            let scene = Scene::start(language).await;
            let gateway = Gateway::start(&scene.endpoint, scope).await;
            let id = scene.schedule("until-go").await;
            let worker = scene.worker_at(&format!("http://{host}:{}", gateway.port), 1, &CREDENTIALS);
            says(&worker, &format!("heartbeat {id} 200")).await;
            scene.go();
            scene.until_status(&id, "completed").await;
            for call in
                ["queues/work/claim", &format!("tasks/{id}/heartbeat"), &format!("tasks/{id}/complete")]
            {
                let path = format!("/v1/{call}");
                assert!(gateway.paths().contains(&path), "{language:?}: {path}: {:?}", gateway.paths());
            }
        }
    }
}

#[tokio::test]
async fn requests_to_a_domain_of_ones_own_are_signed_for_the_region_that_is_given() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let gateway = Gateway::start(&scene.endpoint, "eu-central-1/execute-api").await;
        let id = scene.schedule("until-go").await;
        let [key, secret, token] = CREDENTIALS;
        let variables = [key, secret, token, ("TICKOVER_REGION", "eu-central-1")];
        let worker = scene.worker_at(&format!("http://tasks.example.com:{}", gateway.port), 1, &variables);
        says(&worker, &format!("heartbeat {id} 200")).await;
        scene.go();
        scene.until_status(&id, "completed").await;
        assert!(gateway.paths().contains(&format!("/v1/tasks/{id}/complete")), "{language:?}");
    }
}

/// The token is of an issuer of one's own, and ends while the worker runs.
#[tokio::test]
async fn a_token_that_has_expired_is_replaced_while_the_worker_runs() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let (accepted, printed) = (scene.file("accepted"), scene.file("printed"));
        // In one moment: others read it.
        let set = |file: &Path, token: &str| {
            std::fs::write(scene.file("new"), token).expect("a file");
            std::fs::rename(scene.file("new"), file).expect("a file");
        };
        set(&accepted, "first");
        set(&printed, "first\n");
        let gateway = Gateway::with_token(&scene.endpoint, accepted.clone()).await;
        let id = scene.schedule("until-go").await;
        let command = format!("cat '{}'", printed.display());
        let variables = [("TICKOVER_TOKEN_COMMAND", command.as_str())];
        let worker = scene.worker_at(&format!("http://tasks.example.com:{}", gateway.port), 1, &variables);
        says(&worker, &format!("heartbeat {id} 200")).await;

        set(&printed, "second\n");
        set(&accepted, "second");
        scene.go();
        scene.until_status(&id, "completed").await;
        assert!(!worker.stdout().contains(" 401 "), "{language:?}");

        // A new token that is refused as well ends it.
        set(&accepted, "third");
        let ended = worker.ended().await.expect("an end");
        assert_eq!(ended.status.code(), Some(1), "{language:?}: {ended:?}");
        assert!(ended.stderr.contains("claim work 401"), "{language:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn a_worker_whose_credentials_are_refused_ends_with_an_error() {
    for language in Language::ALL {
        let scene = Scene::start(language).await;
        let gateway = Gateway::start(&scene.endpoint, "eu-central-1/execute-api").await;
        let host = "abc123.execute-api.eu-central-1.amazonaws.com";
        let [key, _, token] = CREDENTIALS;
        let wrong = [key, ("AWS_SECRET_ACCESS_KEY", "another-secret"), token];
        let worker = scene.worker_at(&format!("http://{host}:{}", gateway.port), 60, &wrong);
        let ended = worker.ended().await.expect("an end");
        assert_eq!(ended.status.code(), Some(1), "{language:?}: {ended:?}");
        assert!(ended.stderr.contains("claim work 403"), "{language:?}: {}", ended.stderr);
        assert!(gateway.paths().is_empty(), "{language:?}");
    }
}
