//! What each function's role may do, and that it may do nothing else of what the functions together can do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::policies;
use crate::system::System;
use crate::target::{Check, Target, aws};

/// What a function's role may do: actions, each with what it may do it with. Everything else is denied.
pub(super) struct Role {
    pub(super) function: &'static str,
    may: &'static [(&'static str, &'static [&'static str])],
}

const ALL_WORK: &[&str] = &["work-orders", "work-emails"];
const SENT: &[&str] = &["work-orders", "work-emails", "timers"];
const LISTED: &[&str] = &["task", "exec", "queue"];
const DECIDED_AND_GATE: &[&str] = &["task", "exec", "queue", "key", "gate"];
const DECIDED_GATE_AND_BLOB: &[&str] = &["task", "exec", "queue", "key", "gate", "blob"];
/// What waits at a limit is deleted when it has its place. The time to live deletes everything else.
const DELETED: (&str, &[&str]) = ("dynamodb:DeleteItem", &["gate"]);
const CHANGED: &[&str] = &["task", "exec", "join", "blob"];
/// The secret of callbacks. A worker may read it only with `Callbacks=on`.
const CALLBACKS: &str = "callbacks";
/// A secret of somebody else in the account.
const FOREIGN_SECRET: &str = "foreign-secret";
const ALL: &[&str] = &["task", "exec", "queue", "key", "cron", "op", "join", "gate", "tick", "blob"];

/// As `infra/SECURITY.md` says in words.
pub(super) const ROLES: [Role; 6] = [
    Role {
        function: "schedule",
        may: &[
            ("dynamodb:GetItem", DECIDED_GATE_AND_BLOB),
            ("dynamodb:BatchGetItem", LISTED),
            ("dynamodb:PutItem", DECIDED_GATE_AND_BLOB),
            ("dynamodb:UpdateItem", CHANGED),
            DELETED,
            ("dynamodb:Query", &["exec", "gate", "list:queue"]),
            ("sqs:SendMessage", SENT),
            ("sqs:ReceiveMessage", &["ingress"]),
            ("sqs:DeleteMessage", &["work-orders", "work-emails", "ingress"]),
            ("sqs:GetQueueAttributes", &["work-orders", "work-emails", "ingress"]),
            ("sqs:ListQueues", &["*"]),
            ("logs:CreateLogStream", &["log:schedule"]),
            ("logs:PutLogEvents", &["log:schedule"]),
        ],
    },
    Role {
        function: "claim",
        may: &[
            ("dynamodb:GetItem", DECIDED_GATE_AND_BLOB),
            ("dynamodb:BatchGetItem", LISTED),
            ("dynamodb:PutItem", &["queue", "gate"]),
            ("dynamodb:UpdateItem", CHANGED),
            DELETED,
            ("dynamodb:Query", &["gate"]),
            ("sqs:SendMessage", SENT),
            ("sqs:ReceiveMessage", ALL_WORK),
            ("sqs:DeleteMessage", ALL_WORK),
            ("sqs:ChangeMessageVisibility", ALL_WORK),
            ("sqs:GetQueueAttributes", ALL_WORK),
            ("logs:CreateLogStream", &["log:claim"]),
            ("logs:PutLogEvents", &["log:claim"]),
        ],
    },
    Role {
        function: "complete",
        may: &[
            ("dynamodb:GetItem", DECIDED_AND_GATE),
            ("dynamodb:BatchGetItem", LISTED),
            ("dynamodb:PutItem", &["blob", "gate"]),
            ("dynamodb:UpdateItem", CHANGED),
            DELETED,
            ("dynamodb:Query", &["gate"]),
            ("sqs:SendMessage", SENT),
            ("sqs:ReceiveMessage", &["completions"]),
            ("sqs:DeleteMessage", &["work-orders", "work-emails", "completions"]),
            ("sqs:ChangeMessageVisibility", ALL_WORK),
            ("sqs:GetQueueAttributes", &["completions"]),
            ("logs:CreateLogStream", &["log:complete"]),
            ("logs:PutLogEvents", &["log:complete"]),
        ],
    },
    Role {
        function: "tick",
        may: &[
            ("dynamodb:GetItem", &["task", "exec", "queue", "key", "cron", "op", "gate", "tick", "blob"]),
            ("dynamodb:BatchGetItem", LISTED),
            ("dynamodb:PutItem", &["task", "exec", "queue", "key", "cron", "op", "gate", "tick", "blob"]),
            ("dynamodb:UpdateItem", &["task", "exec", "join", "key", "blob"]),
            DELETED,
            (
                "dynamodb:Query",
                &["exec", "gate", "due:0", "list:queue", "list:wf", "list:dead", "all:failed"],
            ),
            ("sqs:SendMessage", SENT),
            ("sqs:ReceiveMessage", &["timers"]),
            ("sqs:DeleteMessage", &["timers"]),
            ("sqs:GetQueueAttributes", &["work-orders", "work-emails", "timers"]),
            ("sqs:ListQueues", &["*"]),
            ("logs:CreateLogStream", &["log:tick"]),
            ("logs:PutLogEvents", &["log:tick"]),
        ],
    },
    Role {
        function: "gateway",
        may: &[
            ("dynamodb:GetItem", ALL),
            ("dynamodb:BatchGetItem", ALL),
            ("dynamodb:PutItem", ALL),
            ("dynamodb:UpdateItem", CHANGED),
            DELETED,
            (
                "dynamodb:Query",
                &[
                    "task",
                    "exec",
                    "queue",
                    "key",
                    "cron",
                    "op",
                    "join",
                    "gate",
                    "tick",
                    "blob",
                    "due:0",
                    "list:queue",
                    "list:wf",
                    "list:dead",
                    "list:op",
                    "all:failed",
                ],
            ),
            ("dynamodb:Scan", &["table"]),
            ("sqs:SendMessage", SENT),
            ("sqs:ReceiveMessage", ALL_WORK),
            ("sqs:DeleteMessage", ALL_WORK),
            ("sqs:ChangeMessageVisibility", ALL_WORK),
            ("sqs:GetQueueAttributes", ALL_WORK),
            ("sqs:ListQueues", &["*"]),
            ("secretsmanager:GetSecretValue", &[CALLBACKS]),
            ("logs:CreateLogStream", &["log:gateway"]),
            ("logs:PutLogEvents", &["log:gateway"]),
        ],
    },
    Role {
        function: "worker-orders",
        may: &[
            ("dynamodb:GetItem", DECIDED_GATE_AND_BLOB),
            ("dynamodb:BatchGetItem", LISTED),
            ("dynamodb:PutItem", DECIDED_GATE_AND_BLOB),
            ("dynamodb:UpdateItem", CHANGED),
            DELETED,
            ("dynamodb:Query", &["exec", "gate", "list:queue"]),
            ("sqs:SendMessage", SENT),
            ("sqs:ReceiveMessage", &["work-orders"]),
            ("sqs:DeleteMessage", &["work-orders"]),
            ("sqs:ChangeMessageVisibility", &["work-orders"]),
            ("sqs:GetQueueAttributes", ALL_WORK),
            ("logs:CreateLogStream", &["log:worker-orders"]),
            ("logs:PutLogEvents", &["log:worker-orders"]),
        ],
    },
];

/// What only administrators may do, with the kind of resource.
const NOBODY: [(&str, &str); 19] = [
    ("secretsmanager:PutSecretValue", CALLBACKS),
    ("secretsmanager:GetSecretValue", FOREIGN_SECRET),
    ("dynamodb:BatchWriteItem", "table"),
    ("dynamodb:UpdateTable", "table"),
    ("dynamodb:DeleteTable", "table"),
    ("dynamodb:UpdateTimeToLive", "table"),
    ("dynamodb:ExportTableToPointInTime", "table"),
    ("sqs:CreateQueue", "work-orders"),
    ("sqs:DeleteQueue", "work-orders"),
    ("sqs:PurgeQueue", "work-orders"),
    ("sqs:SetQueueAttributes", "work-orders"),
    ("lambda:InvokeFunction", "*"),
    ("lambda:UpdateFunctionCode", "*"),
    ("iam:PassRole", "*"),
    ("sts:AssumeRole", "*"),
    ("ssm:GetParameters", "*"),
    ("kms:Decrypt", "*"),
    ("s3:GetObject", "*"),
    ("logs:CreateLogGroup", "*"),
];

/// Everything that is asked for each role: kinds of resources, each with actions.
fn questions(has_callbacks: bool) -> Vec<(String, Vec<&'static str>)> {
    let items = [
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:Query",
    ];
    let mut questions: Vec<(String, Vec<&'static str>)> =
        ALL.iter().map(|kind| ((*kind).to_owned(), items.to_vec())).collect();
    for index in ["due:0", "list:queue", "list:wf", "list:dead", "list:op", "all:failed"] {
        questions.push((index.to_owned(), vec!["dynamodb:Query"]));
    }
    questions.push(("table".to_owned(), vec!["dynamodb:Scan"]));
    questions.push(("*".to_owned(), vec!["sqs:ListQueues"]));
    if has_callbacks {
        questions.push((CALLBACKS.to_owned(), vec!["secretsmanager:GetSecretValue"]));
    }
    for queue in ["work-orders", "work-emails", "ingress", "completions", "timers", "events", "dead-ingress"]
    {
        let actions = [
            "sqs:SendMessage",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueAttributes",
        ];
        questions.push((queue.to_owned(), actions.to_vec()));
    }
    for role in &ROLES {
        let log = format!("log:{}", role.function);
        questions.push((log, vec!["logs:CreateLogStream", "logs:PutLogEvents", "logs:GetLogEvents"]));
    }
    for (action, resource) in NOBODY {
        questions.push((resource.to_owned(), vec![action]));
    }
    questions
}

/// A resource beside a function: its ARN, and the key of the record that a call is about.
fn resource(system: &str, function_arn: &str, kind: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = function_arn.split(':').collect();
    let arn =
        |service: &str, name: &str| format!("arn:{}:{service}:{}:{}:{name}", parts[1], parts[3], parts[4]);
    let table = arn("dynamodb", &format!("table/{system}"));
    match kind.split_once(':') {
        Some(("log", function)) => {
            let stream =
                format!("log-group:/aws/lambda/{system}-{function}:log-stream:2026/11/01/[$LATEST]0");
            (arn("logs", &stream), None)
        }
        Some((index, key)) => (format!("{table}/index/{index}"), Some(format!("{key}#1"))),
        None if kind == "*" => ("*".to_owned(), None),
        None if kind == CALLBACKS => (arn("secretsmanager", &format!("secret:{system}-{kind}-a1B2c3")), None),
        None if kind == FOREIGN_SECRET => (arn("secretsmanager", "secret:another-a1B2c3"), None),
        None if kind == "table" => (table, None),
        None if ALL.contains(&kind) => (table, Some(format!("{kind}#1"))),
        None => (arn("sqs", &format!("{system}-{kind}")), None),
    }
}

#[tokio::test]
async fn each_role_may_do_what_its_function_does_and_nothing_else() {
    let system = System::deployed().await;
    let target = Target::here();
    let (is_asked, has_callbacks) = (target.shows(Check::Roles), target.has_callbacks());
    let functions = ROLES.map(|role| format!("{}-{}", system.name, role.function));
    let found = functions
        .iter()
        .map(|name| json!(["lambda", "get_function_configuration", {"FunctionName": name}]))
        .chain([json!(["lambda", "list_functions", {}])]);
    let mut found = aws(found.collect()).await;
    let listed = found.pop().unwrap();
    let listed: BTreeSet<&str> = listed["Functions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|function| function["FunctionName"].as_str())
        .filter(|name| name.starts_with(&format!("{}-", system.name)) && !name.contains("-again-"))
        // A project's worker is of the same template.
        .filter(|name| !name.ends_with("-worker-shop"))
        .collect();
    assert_eq!(listed, functions.iter().map(String::as_str).collect(), "each function's role has its row");

    let mut wrong = vec![];
    for (role, function) in ROLES.iter().zip(&found) {
        let arn = function["Role"].as_str().unwrap();
        let beside = function["FunctionArn"].as_str().unwrap();
        let questions = questions(has_callbacks);
        let decided = if is_asked {
            simulated(arn, &system.name, beside, &questions).await
        } else {
            let documents = policies::of(arn.rsplit('/').next().unwrap()).await;
            let calls = questions.iter().flat_map(|(kind, actions)| {
                let (resource, key) = resource(&system.name, beside, kind);
                actions.iter().map(move |action| (*action, resource.clone(), key.clone()))
            });
            let mut decided = policies::decide(&documents, &calls.collect::<Vec<_>>()).await.into_iter();
            questions.iter().map(|(_, actions)| decided.by_ref().take(actions.len()).collect()).collect()
        };
        for ((kind, actions), decided) in questions.iter().zip(decided) {
            for (action, is_allowed) in actions.iter().zip(decided) {
                let may = role.may.iter().find(|(named, _)| named == action);
                let is_expected = may.is_some_and(|(_, kinds)| kinds.contains(&kind.as_str()));
                if is_allowed != is_expected {
                    let said = if is_allowed { "may" } else { "may not" };
                    wrong.push(format!("{} {said} {action} with {kind}", role.function));
                }
            }
        }
        // A row that no question covers couldn't fail.
        for (action, kinds) in role.may {
            for kind in *kinds {
                let is_covered = (*kind == CALLBACKS && !has_callbacks)
                    || questions.iter().any(|(asked, actions)| asked == kind && actions.contains(action));
                assert!(is_covered, "{}: nobody asks for {action} with {kind}", role.function);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// AWS's own decisions on the questions.
async fn simulated(
    role: &str,
    system: &str,
    beside: &str,
    questions: &[(String, Vec<&'static str>)],
) -> Vec<Vec<bool>> {
    let calls = questions.iter().map(|(kind, actions)| {
        let (resource, key) = resource(system, beside, kind);
        let keys = key.iter().map(|key| {
            json!({"ContextKeyName": "dynamodb:LeadingKeys", "ContextKeyType": "stringList",
                   "ContextKeyValues": [key]})
        });
        json!(["iam", "simulate_principal_policy", {
            "PolicySourceArn": role, "ActionNames": actions, "ResourceArns": [resource],
            "ContextEntries": keys.collect::<Vec<_>>(),
        }])
    });
    let answers = aws(calls.collect()).await;
    let decided = |(answer, (_, actions)): (&Value, &(String, Vec<&str>))| {
        let results = answer["EvaluationResults"].as_array().unwrap();
        let decision = |action: &&str| {
            let result = results.iter().find(|result| result["EvalActionName"] == *action);
            result.unwrap_or_else(|| panic!("no decision on {action}: {answer}"))["EvalDecision"] == "allowed"
        };
        actions.iter().map(decision).collect()
    };
    answers.iter().zip(questions).map(decided).collect()
}
