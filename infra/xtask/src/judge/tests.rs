use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

use super::*;

/// A call of each function, with the part of a template that allows it and a part that doesn't.
const PLANTED: [(&str, &str, [&str; 2]); 10] = [
    (
        "tickover-schedule",
        "core.yaml",
        ["\"task#*\", \"exec#*\", \"key#*\", \"blob#*\", \"queue#*\"", "\"exec#*\", \"key#*\""],
    ),
    ("tickover-claim", "core.yaml", ["dynamodb:PutItem, dynamodb:DeleteItem", "dynamodb:PutItem"]),
    ("tickover-complete", "core.yaml", ["[\"gate#*\"]", "[\"gates#*\"]"]),
    ("tickover-tick", "core.yaml", ["table/${System}/index/due", "table/${System}/index/list"]),
    ("tickover-gateway", "core.yaml", ["dynamodb:Query, dynamodb:Scan", "dynamodb:Query"]),
    (
        "tickover-worker-orders",
        "worker.yaml",
        ["sqs:DeleteMessage, sqs:ChangeMessageVisibility", "sqs:DeleteMessage"],
    ),
    ("tickover-worker-orders", "core.yaml", ["\"join#*\", ", ""]),
    (
        "tickover-claim",
        "core.yaml",
        [
            "- !Sub \"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${System}-work-*\"",
            "- !GetAtt TimersQueue.Arn",
        ],
    ),
    ("tickover-gateway", "core.yaml", ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"]),
    ("tickover-worker-orders", "worker.yaml", ["-callbacks-??????", "-tokens-??????"]),
];

fn key(kind: &str) -> Value {
    json!({"pk": {"S": format!("{kind}#a/b c")}, "sk": {"S": "x"}})
}

/// The calls of [`PLANTED`], in the same order.
fn calls() -> [(&'static str, Value); 10] {
    let table = "tickover";
    [
        ("DynamoDB_20120810.PutItem", json!({"TableName": table, "Item": key("task")})),
        ("DynamoDB_20120810.DeleteItem", json!({"TableName": table, "Key": key("gate")})),
        (
            "DynamoDB_20120810.TransactWriteItems",
            json!({"TransactItems": [
                {"Update": {"TableName": table, "Key": key("task")}}, {"Put": {"TableName": table, "Item": key("gate")}}]}),
        ),
        (
            "DynamoDB_20120810.Query",
            json!({"TableName": table, "IndexName": "due", "KeyConditionExpression": "due_shard = :s AND due_at <= :n",
                   "ExpressionAttributeValues": {":s": {"S": "due#1"}, ":n": {"N": "1"}}}),
        ),
        ("DynamoDB_20120810.Scan", json!({"TableName": table})),
        (
            "AmazonSQS.ChangeMessageVisibilityBatch",
            json!({"QueueUrl": "http://sqs/000000000000/tickover-work-orders__high"}),
        ),
        ("DynamoDB_20120810.UpdateItem", json!({"TableName": table, "Key": key("join")})),
        ("AmazonSQS.SendMessageBatch", json!({"QueueUrl": "http://sqs/000000000000/tickover-work-emails"})),
        ("secretsmanager.GetSecretValue", json!({"SecretId": "tickover-callbacks"})),
        (
            "secretsmanager.GetSecretValue",
            json!({"SecretId": "arn:aws:secretsmanager:us-east-1:000000000000:secret:tickover-callbacks-a1B2c3"}),
        ),
    ]
}

/// An emulator that answers everything with `{}`.
fn emulator() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The request is short, so it comes at once.
            let _ = stream.read(&mut [0; 8_192]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}").unwrap();
        }
    });
    address
}

/// The status of the judge's answer to a function's call.
fn status(judge: &Judge, function: Option<&str>, target: &str, body: &Value) -> u16 {
    let mut stream = TcpStream::connect(judge.address().trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    let token = function.map(|name| format!("X-Amz-Security-Token: {name}\r\n")).unwrap_or_default();
    let head =
        format!("POST / HTTP/1.1\r\nHost: aws\r\nConnection: close\r\nX-Amz-Target: {target}\r\n{token}");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(status == 400, answer.contains("AccessDeniedException"), "{answer}");
    status
}

/// A judge of templates in a new folder, with this change.
fn judge(folder: &Path, file: &str, [from, to]: [&str; 2]) -> Judge {
    for name in ["core.yaml", "worker.yaml"] {
        let text = fs::read_to_string(root().join("infra").join(name)).unwrap();
        assert!(name != file || text.contains(from), "{from}");
        let text = if name == file { text.replace(from, to) } else { text };
        fs::write(folder.join(name), text).unwrap();
    }
    Judge::over(folder, &folder.join("calls/test.json"), &emulator(), &["Callbacks=on"]).unwrap()
}

#[test]
fn a_permission_that_is_missing_is_refused_for_each_role() {
    let folder = tempfile::tempdir().unwrap();
    let whole = judge(folder.path(), "core.yaml", ["", ""]);
    for ((function, file, planted), (target, body)) in PLANTED.into_iter().zip(calls()) {
        assert_eq!(status(&whole, Some(function), target, &body), 200, "{function} {target}");
        let without = judge(folder.path(), file, planted);
        assert_eq!(status(&without, Some(function), target, &body), 400, "{function} {target}");
        let refused = without.conclude(false).unwrap_err().to_string();
        assert!(refused.contains(function.trim_start_matches("tickover-")), "{refused}");
    }
    whole.conclude(false).unwrap();
}

#[test]
fn only_functions_of_the_templates_may_call_and_only_their_own_system() {
    let folder = tempfile::tempdir().unwrap();
    let judge = judge(folder.path(), "core.yaml", ["", ""]);
    let get = |table: &str| json!({"TableName": table, "Key": key("task")});
    let status = |function, table| status(&judge, function, "DynamoDB_20120810.GetItem", &get(table));
    assert_eq!(status(Some("shop-tick"), "shop"), 200);
    assert_eq!(status(Some("shop-tick"), "tickover"), 400);
    assert_eq!(status(Some("shop-tock"), "shop"), 400);
    assert_eq!(status(None, "shop"), 400);
}

#[test]
fn what_nothing_needs_is_reported_after_all_tests_of_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut judge = judge(folder.path(), "core.yaml", ["", ""]);
    for ((function, ..), (target, body)) in PLANTED.iter().zip(calls()) {
        assert_eq!(status(&judge, Some(function), target, &body), 200);
    }
    let report = judge.report(true).unwrap();
    let is_unused = |permission: &str| report.unused.iter().any(|unused| unused.contains(permission));
    assert!(is_unused("TickRole: dynamodb:GetItem") && is_unused("gate#*"), "{:?}", report.unused);
    for needed in [
        "RecordsPolicy: dynamodb:DeleteItem",
        "index/due",
        "dynamodb:Scan arn:aws:dynamodb:us-east-1:000000000000:table/system ",
        "logs:",
        "kms:",
        "xray:",
    ] {
        assert!(!is_unused(needed), "{needed}: {:?}", report.unused);
    }
    assert!(report.needed.values().all(|needed| *needed > 0), "{:?}", report.needed);
}

/// The decisions on these questions, by a policy for the tasks of a table.
fn decided(questions: &Value) -> Value {
    let table = "arn:aws:dynamodb:us-east-1:000000000000:table/a";
    let policy = json!({"Version": "2012-10-17", "Statement": {
        "Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": table,
        "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["task#*"]}},
    }});
    let mut node = Command::new("node");
    node.arg(decider().unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = node.spawn().unwrap();
    let asked = json!({"policies": [policy], "questions": questions});
    child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn questions_about_policies_that_were_read_are_decided_as_calls_are() {
    let question = |action: &str, table: &str, key: &str| {
        let resource = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{table}");
        json!({"action": format!("dynamodb:{action}"), "resource": resource, "keys": [key]})
    };
    let questions = json!([
        question("GetItem", "a", "task#1"),
        question("GetItem", "a", "blob#1"),
        question("GetItem", "b", "task#1"),
        question("PutItem", "a", "task#1"),
        {"action": "iam:PassRole", "resource": "*"},
    ]);
    assert_eq!(decided(&questions), json!([true, false, false, false, false]));
}
