//! Callbacks of waits over a store in memory: which reports count.

use super::*;
use crate::executions::tests::scene::{Scene, event, id};

const DAY: Millis = Millis::from_secs(86_400);

fn approval() -> EventName {
    event_of(1, "approval").unwrap()
}

fn secret(text: &str) -> Secret {
    Secret::of(&text.repeat(SECRET_MIN))
}

fn complete() -> Report {
    Report::Complete(Json::parse("7"))
}

/// An execution, and the token of a callback of its first run.
async fn waiting(scene: &Scene) -> String {
    let turn = scene.started("e", None).await;
    let at = scene.now().plus(DAY);
    let made = scene.service.callback_of_wait(&id("e"), turn.execution.incarnation, approval(), at).await;
    made.unwrap().token
}

async fn refused(service: &Service, token: &str, report: Report) {
    let error = service.call_back(token, report).await.unwrap_err();
    assert!(matches!(error, ServiceError::Rejected(Reject::UnknownCallback)), "{error:?}");
}

async fn arrived(scene: &Scene) -> Vec<String> {
    let events = scene.service.events(&id("e")).await.unwrap();
    events.into_iter().map(|event| event.payload.unwrap().as_str().to_owned()).collect()
}

#[tokio::test]
async fn the_first_result_of_a_token_counts_and_every_later_report_is_refused() {
    let scene = Scene::new();
    let token = waiting(&scene).await;
    scene.service.call_back(&token, complete()).await.unwrap();
    refused(&scene.service, &token, complete()).await;
    let error = Failure::new("late", "no");
    refused(&scene.service, &token, Report::Fail { error, retryable: true }).await;
    refused(&scene.service, &token, Report::Heartbeat).await;
    assert_eq!(arrived(&scene).await, [r#"{"output":7}"#]);
}

#[tokio::test]
async fn a_flood_of_heartbeats_leaves_one_event() {
    let scene = Scene::new();
    let token = waiting(&scene).await;
    for _ in 0..5 {
        scene.service.call_back(&token, Report::Heartbeat).await.unwrap();
    }
    assert_eq!(arrived(&scene).await, [r#"{"alive":{}}"#]);
    scene.service.call_back(&token, complete()).await.unwrap();
    assert_eq!(arrived(&scene).await.len(), 2);
}

#[tokio::test]
async fn a_token_is_refused_once_it_has_expired() {
    let scene = Scene::new();
    let token = waiting(&scene).await;
    scene.advance(86_400);
    refused(&scene.service, &token, complete()).await;
    assert!(arrived(&scene).await.is_empty());
}

#[tokio::test]
async fn a_token_of_another_run_or_another_execution_of_the_id_is_refused() {
    let scene = Scene::new();
    waiting(&scene).await;
    let at = scene.now().plus(DAY);
    let execution = scene.service.load_execution(&id("e")).await.unwrap().unwrap();
    let (now, before) = (execution.incarnation, Incarnation::from_bytes([9; Incarnation::LEN]));
    for (incarnation, event) in [
        (before, approval()),
        (now, event_of(2, "approval").unwrap()),
        (now, event_of(11, "approval").unwrap()),
        (now, event("approval")),
    ] {
        let made = scene.service.callback_of_wait(&id("e"), incarnation, event, at).await.unwrap();
        refused(&scene.service, &made.token, complete()).await;
        refused(&scene.service, &made.token, Report::Heartbeat).await;
    }
    let elsewhere = scene.service.callback_of_wait(&id("f"), now, approval(), at).await.unwrap();
    refused(&scene.service, &elsewhere.token, complete()).await;
    assert!(arrived(&scene).await.is_empty());
}

#[tokio::test]
async fn a_result_too_large_is_told_only_while_the_wait_is_open() {
    let scene = Scene::new();
    let token = waiting(&scene).await;
    let large = || Report::Complete(Some(Json::string(&"x".repeat(400_000))));
    let error = scene.service.call_back(&token, large()).await.unwrap_err();
    assert!(matches!(error, ServiceError::Rejected(Reject::LimitExceeded { .. })), "{error:?}");
    scene.service.call_back(&token, complete()).await.unwrap();
    refused(&scene.service, &token, large()).await;
}

#[tokio::test]
async fn an_event_of_a_callback_is_sent_with_its_token_only() {
    let scene = Scene::new();
    waiting(&scene).await;
    let error = scene.service.send_event(&id("e"), approval(), None, None).await.unwrap_err();
    assert!(matches!(error, ServiceError::Rejected(Reject::InvalidRequest { .. })), "{error:?}");
    assert!(arrived(&scene).await.is_empty());
}

#[tokio::test]
async fn a_replaced_secret_verifies_what_it_has_signed_until_it_is_taken_away() {
    let scene = Scene::new();
    let with = |secrets: Vec<Secret>| scene.service.clone().with_callbacks(Secrets::Given(secrets), None);
    let turn = scene.started("e", None).await;
    let (at, of) = (scene.now().plus(DAY), turn.execution.incarnation);
    let old = with(vec![secret("o")]);
    let token = old.callback_of_wait(&id("e"), of, approval(), at).await.unwrap().token;
    let both = with(vec![secret("n"), secret("o")]);
    let newer = both.callback_of_wait(&id("e"), of, approval(), at).await.unwrap().token;
    refused(&old, &newer, complete()).await;
    refused(&with(vec![secret("n")]), &token, complete()).await;
    both.call_back(&token, complete()).await.unwrap();
}

#[tokio::test]
async fn without_a_secret_no_token_is_made_and_none_is_valid() {
    let scene = Scene::new();
    let token = waiting(&scene).await;
    let off = scene.service.clone().with_callbacks(Secrets::Off, None);
    let execution = off.load_execution(&id("e")).await.unwrap().unwrap();
    let made = off.callback_of_wait(&id("e"), execution.incarnation, approval(), scene.now()).await;
    assert!(matches!(made, Err(ServiceError::Rejected(Reject::CallbacksOff))), "{made:?}");
    refused(&off, &token, complete()).await;
}

#[tokio::test]
async fn a_systems_own_secret_is_the_same_in_each_of_its_processes() {
    let scene = Scene::new();
    let token = waiting(&scene).await;
    let restarted = scene.service.clone().with_callbacks(Secrets::Own, Some("https://api.example.com/"));
    let execution = restarted.load_execution(&id("e")).await.unwrap().unwrap();
    let at = scene.now().plus(DAY);
    let made = restarted.callback_of_wait(&id("e"), execution.incarnation, approval(), at).await.unwrap();
    assert_eq!(made.token, token);
    assert_eq!(made.url.unwrap(), format!("https://api.example.com/v1/callbacks/{token}"));
    restarted.call_back(&token, complete()).await.unwrap();
}

#[test]
fn names_of_callbacks_have_a_bound_and_every_run_has_its_own_event() {
    let longest = "n".repeat(CALLBACK_NAME_MAX);
    assert!(event_of(u32::MAX, &longest).is_some_and(|event| is_reserved(&event)));
    assert_eq!(event_of(1, &format!("{longest}n")), None);
    assert_eq!((event_of(1, ""), event_of(1, "a b")), (None, None));
    assert!(!is_reserved(&event("approval")));
}

#[test]
fn a_heartbeat_is_written_after_a_tenth_of_the_time_that_it_gives() {
    let pause = |s: u64| heartbeat_pause(Millis::from_secs(s)).as_u64();
    assert_eq!((pause(3_600), pause(60), pause(10)), (360_000, 6_000, 1_000));
    assert_eq!((pause(4), pause(1)), (1_000, 500));
}
