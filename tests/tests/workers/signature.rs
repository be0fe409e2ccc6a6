//! Requests to an address on AWS are signed.

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
