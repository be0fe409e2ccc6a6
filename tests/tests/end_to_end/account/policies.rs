//! The deployed policies of a role, read and evaluated here, where AWS can't be asked for its own decision.

use serde_json::{Value, json};

use crate::target::aws;

/// The only condition of our policies: the beginnings of the keys of records.
const KEYS: (&str, &str) = ("ForAllValues:StringLike", "dynamodb:LeadingKeys");

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

/// Whether one of the documents allows the call. A key is that of the record, if the call is about one.
pub(super) fn allow(documents: &[Value], action: &str, resource: &str, key: Option<&str>) -> bool {
    let statements = documents.iter().flat_map(|document| list(&document["Statement"]));
    statements.into_iter().any(|statement| {
        assert_eq!(statement["Effect"], "Allow", "our policies deny nothing: {statement}");
        let is_like = |field: &str, text: &str| {
            list(&statement[field]).iter().any(|pattern| like(pattern.as_str().unwrap(), text))
        };
        is_like("Action", action) && is_like("Resource", resource) && condition(&statement, key)
    })
}

fn condition(statement: &Value, key: Option<&str>) -> bool {
    let Some(condition) = statement.get("Condition") else { return true };
    let patterns = &condition[KEYS.0][KEYS.1];
    assert!(patterns.is_array(), "a condition that isn't known here: {statement}");
    // As AWS does, if the call has no key.
    key.is_none_or(|key| list(patterns).iter().any(|pattern| like(pattern.as_str().unwrap(), key)))
}

/// IAM writes one entry with or without a list.
fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_else(|| vec![value.clone()])
}

/// Whether a text matches a pattern, in which `*` stands for any text.
fn like(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    (0..=rest.len()).any(|at| rest.is_char_boundary(at) && like(after, &rest[at..]))
}

#[test]
fn patterns_and_conditions_are_read_as_iam_reads_them() {
    for (pattern, text, matches) in [
        ("sqs:SendMessage", "sqs:SendMessage", true),
        ("sqs:SendMessage", "sqs:SendMessageBatch", false),
        ("arn:*:a-work-*", "arn:aws:sqs:a-work-orders", true),
        ("arn:*:a-work-*", "arn:aws:sqs:a-dead-orders", false),
        ("*", "", true),
    ] {
        assert_eq!(like(pattern, text), matches, "{pattern} {text}");
    }
    let documents = [json!({"Statement": {
        "Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": "table/a",
        "Condition": {KEYS.0: {KEYS.1: ["task#*"]}},
    }})];
    assert!(allow(&documents, "dynamodb:GetItem", "table/a", Some("task#1")));
    assert!(!allow(&documents, "dynamodb:GetItem", "table/a", Some("blob#1")));
    assert!(!allow(&documents, "dynamodb:GetItem", "table/b", Some("task#1")));
    assert!(!allow(&documents, "dynamodb:PutItem", "table/a", Some("task#1")));
}
