//! The deployed policies of a role, read here, and decided on by the judge where AWS can't be asked for its own decision.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::target::aws;

/// The variable in which `cargo xtask e2e` passes the judge's program for questions.
const DECIDE: &str = "TICKOVER_TEST_DECIDE";

/// The documents of all policies of a role.
pub(super) async fn of(role: &str) -> Vec<Value> {
    let named = |operation: &str| json!(["iam", operation, {"RoleName": role}]);
    let lists = aws(vec![named("list_attached_role_policies"), named("list_role_policies")]).await;
    let attached = lists[0]["AttachedPolicies"].as_array().unwrap();
    let arns: Vec<&Value> = attached.iter().map(|policy| &policy["PolicyArn"]).collect();
    let versions = arns.iter().map(|arn| json!(["iam", "get_policy", {"PolicyArn": arn}])).collect();
    let versions = aws(versions).await;
    let managed = versions.iter().zip(&arns).map(|(found, arn)| {
        let version = &found["Policy"]["DefaultVersionId"];
        json!(["iam", "get_policy_version", {"PolicyArn": arn, "VersionId": version}])
    });
    let inline = lists[1]["PolicyNames"].as_array().unwrap().iter();
    let inline = inline.map(|name| json!(["iam", "get_role_policy", {"RoleName": role, "PolicyName": name}]));
    let found = aws(managed.chain(inline).collect()).await;
    let document = |found: Value| match found.get("PolicyVersion") {
        Some(version) => version["Document"].clone(),
        None => found["PolicyDocument"].clone(),
    };
    found.into_iter().map(document).collect()
}

/// Whether the documents allow each of these calls, as the judge of all functions' calls decides. A call is an action, a
/// resource, and the key of the record, if it is about one.
pub(super) async fn decide(documents: &[Value], calls: &[(&str, String, Option<String>)]) -> Vec<bool> {
    let questions = calls.iter().map(|(action, resource, key)| {
        let mut question = json!({"action": action, "resource": resource});
        if let Some(key) = key {
            question["keys"] = json!([key]);
        }
        question
    });
    let asked = json!({"policies": documents, "questions": questions.collect::<Vec<_>>()});
    let program =
        std::env::var(DECIDE).unwrap_or_else(|error| panic!("{DECIDE}: {error}. Run `cargo xtask e2e`"));
    let mut node = Command::new("node");
    node.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = node.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(asked.to_string().as_bytes()).await.unwrap();
    drop(input);
    let ended = child.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    serde_json::from_slice(&ended.stdout).unwrap()
}
