use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::scripted::{Answer, Script, store};

fn entry(at: i64, pk: &str) -> Value {
    json!({ "list_key": { "S": "dead#0" }, "list_at": { "N": at.to_string() }, "pk": { "S": pk }, "sk": { "S": "task" } })
}

fn page(entries: &[Value], more: bool) -> Answer {
    let last = entries.last().filter(|_| more).cloned();
    let mut body = json!({ "Items": entries, "Count": 0 });
    if let Some(last) = last {
        body["LastEvaluatedKey"] = last;
    }
    Answer::Done(body)
}

/// The queries' keys of the index, in order.
fn keys(script: &Script) -> Vec<String> {
    let requests = script.requests().into_iter();
    requests
        .map(|(_, body)| body["ExpressionAttributeValues"][":list"]["S"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_record_has_one_of_its_lists_keys_by_its_id() {
    let workflow = WorkflowName::parse("checkout").unwrap();
    let list = List::Executions(&workflow);
    assert_eq!(
        (list.key_of("order-7"), list.key_of("order-8")),
        ("wf#checkout#27".into(), "wf#checkout#2".into())
    );
    assert_eq!(workflow_in(&list.key_of("order-7")), Some("checkout"));
    assert_eq!((workflow_in("dead#27"), workflow_in("wf#checkout")), (None, None));
    let of_all: BTreeSet<String> = (0..1_000).map(|n| List::Dead.key_of(&format!("order-{n}"))).collect();
    assert_eq!(of_all, List::Dead.keys().collect());
}

#[tokio::test]
async fn an_execution_that_fails_while_the_list_of_all_is_read_is_found_once() {
    let found = |of: &str, at: i64, pk: &str| json!({ "all_key": { "S": of }, "list_at": { "N": at.to_string() }, "pk": { "S": pk }, "sk": { "S": "exec" } });
    let mut answers: Vec<Answer> = (0..2 * KEYS).map(|_| page(&[], false)).collect();
    answers[0] = page(&[found("rest#0", 9, "exec#a"), found("rest#0", 7, "exec#c")], false);
    answers[usize::from(KEYS)] =
        page(&[found("failed#0", 9, "exec#a"), found("failed#0", 8, "exec#b")], false);
    let (store, script) = store(answers);
    let (found, next) = store.listed(List::All, 9, None).await.unwrap();
    assert_eq!((found, next), (["exec#a", "exec#b", "exec#c"].map(str::to_owned).into(), None));
    let asked: BTreeSet<String> = keys(&script).into_iter().collect();
    assert_eq!((asked.len(), asked.contains("rest#31"), asked.contains("failed#31")), (64, true, true));
    assert!(script.requests().iter().all(|(_, body)| body["IndexName"] == json!("all")));
}

#[tokio::test]
async fn a_page_costs_one_query_of_each_key() {
    let (store, script) = store([page(&[], false)]);
    assert_eq!(store.listed(List::Dead, 1_000, None).await.unwrap(), (vec![], None));
    let asked = keys(&script);
    assert_eq!((asked.len(), asked.into_iter().collect()), (32, List::Dead.keys().collect::<BTreeSet<_>>()));
    // Twice its share, not the whole page.
    assert!(script.requests().iter().all(|(_, body)| body["Limit"] == json!(64)));
}

#[tokio::test]
async fn only_a_key_that_holds_more_of_the_page_is_asked_again() {
    let names =
        |range: std::ops::Range<i64>| range.map(|n| entry(9_000 - n, &format!("task#t{n}"))).collect();
    let (first, second): (Vec<_>, Vec<_>) = (names(0..16), names(16..48));
    let mut answers = vec![page(&first, true)];
    answers.extend((1..KEYS).map(|_| page(&[], false)));
    answers.push(page(&second, true));
    let (store, script) = store(answers);
    let (found, next) = store.listed(List::Dead, 20, None).await.unwrap();
    let expected: Vec<String> = (0..20).map(|n| format!("task#t{n}")).collect();
    assert_eq!(found, expected);
    assert!(next.is_some());
    assert_eq!(script.requests().len(), 33);
    assert_eq!(script.requests()[32].1["Limit"], json!(32));
}

#[tokio::test]
async fn records_of_one_instant_are_sorted_by_id() {
    let one = page(&[entry(5, "task#b"), entry(5, "task#d")], true);
    let rest = page(&[entry(5, "task#c"), entry(4, "task#z")], false);
    let other = page(&[entry(5, "task#a"), entry(5, "task#e")], false);
    let mut answers = vec![one, rest, other];
    answers.push(page(&[], false));
    let (store, script) = store(answers);
    let (found, next) = store.listed(List::Dead, 4, None).await.unwrap();
    assert_eq!(found, ["task#e", "task#d", "task#c", "task#b"]);
    let behind = cursor::decode_position("dead", &next.clone().unwrap()).unwrap();
    assert_eq!(behind, Position { at: 5, pk: "task#b".into() });
    // The next page starts in the middle of that instant.
    let before = script.requests().len();
    let (again, _) = store.listed(List::Dead, 4, next.as_deref()).await.unwrap();
    assert_eq!(again, Vec::<String>::new());
    let (_, body) = &script.requests()[before];
    assert_eq!(body["KeyConditionExpression"], json!("#list = :list AND #at <= :at"));
    assert_eq!(body["ExpressionAttributeValues"][":at"]["N"], json!("5"));
}
