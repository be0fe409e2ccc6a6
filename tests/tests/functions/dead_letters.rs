//! Messages that can't be processed: they become dead letters, by a real redrive policy.

use std::time::Duration;

use serde_json::json;
use tickover_tests::emulator::aws_config;

use crate::deployment::{Deployment, waiting_task};

/// How long two receives, a second apart, may take in all.
const BOUND: Duration = Duration::from_mins(1);
const BAD: &str = r#"{"v":1,"task":"seagull"}"#;

#[tokio::test]
async fn a_malformed_hint_becomes_a_dead_letter_and_does_not_block_its_batch() {
    let deployment = Deployment::new().await;
    let dead_letters = deployment.dead_letters(2).await;
    let [schedule, claim, complete] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
    ];
    let sqs = aws_sdk_sqs::Client::new(&aws_config().await);
    sqs.send_message().queue_url(deployment.emails()).message_body(BAD).send().await.unwrap();
    for id in ["first", "second"] {
        waiting_task(&schedule, id, json!({})).await;
    }

    let work = async {
        let mut done = Vec::new();
        loop {
            let request =
                json!({"queue": "emails", "worker": "worker-1", "max": 10, "lease": "1s", "wait": "1s"});
            let claimed = claim.invoke(request).await.unwrap();
            for task in claimed["tasks"].as_array().unwrap() {
                let report = json!({"id": task["id"], "lease": task["lease"]});
                let completed = complete.invoke(report).await.unwrap();
                assert_eq!(completed["task"]["status"], "completed", "{completed}");
                done.push(task["id"].clone());
            }
            let dead = sqs.receive_message().queue_url(&dead_letters).send().await.unwrap();
            if let Some(message) = dead.messages().first() {
                return (done, message.body().map(str::to_owned));
            }
        }
    };
    let (mut done, dead) = tokio::time::timeout(BOUND, work).await.unwrap();
    done.sort_by_key(ToString::to_string);
    assert_eq!(done, ["first", "second"]);
    assert_eq!(dead.as_deref(), Some(BAD), "its body is unchanged");

    let logs = claim.logs();
    let said = logs.lines().filter(|line| line.contains("malformed hint")).collect::<Vec<_>>();
    assert_eq!(said.len(), 2, "one line for each receive: {logs}");
    assert!(said.iter().all(|line| line.contains("not a hint: Data error at line 1")), "{said:?}");
    assert!(!logs.contains("seagull"), "a message's body is logged: {logs}");
}
