//! Callbacks of waits over a store in memory: which reports count.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tickover_core::execution::command::Cleanup;
use tickover_core::execution::journal::{Entry, Happened};

use super::*;
use crate::executions::tests::scene::{Scene, event, id, name};

const DAY: Millis = Millis::from_secs(86_400);

fn approval() -> EventName {
    event_of(1, "approval").unwrap()
}

/// Secrets that are kept elsewhere: a text that can be changed and made unreadable.
#[derive(Clone, Debug, Default)]
struct Place {
    text: Arc<Mutex<Option<String>>>,
    reads: Arc<AtomicUsize>,
}

impl Place {
    /// With secrets that each repeat one of these letters.
    fn with(letters: &str) -> Self {
        let place = Self::default();
        place.put(letters);
        place
    }

    fn put(&self, letters: &str) {
        let secrets: Vec<String> =
            letters.chars().map(|letter| letter.to_string().repeat(SECRET_MIN)).collect();
        *self.text.lock().unwrap() = Some(secrets.join(","));
    }

    fn close(&self) {
        *self.text.lock().unwrap() = None;
    }

    /// A process of the deployment.
    fn process(&self, scene: &Scene) -> Service {
        scene.service.clone().with_callbacks(Secrets::Kept(Arc::new(self.clone())), None)
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl SecretKeeper for Place {
    async fn read(&self) -> Result<String, ServiceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.text.lock().unwrap().clone().ok_or_else(|| ServiceError::unavailable("closed"))
    }
}

/// Whether the secret of this letter has signed the token.
fn is_by(letter: &str, token: &str) -> bool {
    Secret::of(&letter.repeat(SECRET_MIN)).verify(token, Timestamp::EPOCH).is_some()
}

/// A token for the wait of the execution, made by a process.
async fn token(process: &Service, scene: &Scene) -> String {
    let execution = process.load_execution(&id("e")).await.unwrap().unwrap();
    let at = scene.now().plus(DAY);
    process.callback_of_wait(&id("e"), execution.incarnation, approval(), at).await.unwrap().token
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
async fn a_report_by_a_clock_that_is_behind_is_refused_once_its_wait_has_ended() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let token = token(&scene.service, &scene).await;
    let (wait, until) = (name("event:tickover.cb.1.approval"), scene.now().plus(Millis::from_secs(1)));
    let begun = Happened::Until { name: wait.clone(), until };
    let ended = Happened::Waited { name: wait, event: None };
    let entries = [begun, ended].map(|what| Entry { at: until, what }).to_vec();
    scene.suspend(&turn, entries).await;
    refused(&scene.service, &token, complete()).await;
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
    scene.started("e", None).await;
    let [old, both, new] = ["o", "no", "n"].map(|letters| Place::with(letters).process(&scene));
    let (by_old, by_new) = (token(&old, &scene).await, token(&both, &scene).await);
    refused(&old, &by_new, complete()).await;
    refused(&new, &by_old, complete()).await;
    both.call_back(&by_old, complete()).await.unwrap();
}

/// Each process knows what it has read, up to five minutes ago. First the new secret only verifies, then it signs.
#[tokio::test]
async fn no_token_is_refused_while_a_secret_is_replaced_in_two_steps() {
    let scene = Scene::new();
    scene.started("e", None).await;
    let place = Place::with("o");
    let (signs, verifies) = (place.process(&scene), place.process(&scene));
    let mut tokens = vec![];
    for letters in ["o", "on", "no"] {
        place.put(letters);
        for (seconds, reads_first) in [(0, &verifies), (150, &signs), (150, &verifies), (150, &signs)] {
            scene.advance(seconds);
            reads_first.renew_callback_secrets().await;
            signs.renew_callback_secrets().await;
            tokens.push(token(&signs, &scene).await);
            for token in &tokens {
                verifies.call_back(token, Report::Heartbeat).await.unwrap();
            }
        }
    }
    // The last ones are by the new secret.
    place.put("n");
    let newer = place.process(&scene);
    newer.call_back(tokens.last().unwrap(), Report::Heartbeat).await.unwrap();
    refused(&newer, &tokens[0], Report::Heartbeat).await;
}

#[tokio::test]
async fn secrets_are_read_when_they_are_needed_and_again_after_five_minutes() {
    let scene = Scene::new();
    scene.started("e", None).await;
    let place = Place::with("o");
    let process = place.process(&scene);
    assert_eq!(place.reads(), 0);
    let by_old = token(&process, &scene).await;
    scene.advance(299);
    place.put("n");
    process.call_back(&by_old, Report::Heartbeat).await.unwrap();
    assert_eq!(place.reads(), 1);
    scene.advance(1);
    // A workflow's code waits for no call.
    assert!(is_by("o", &token(&process, &scene).await));
    assert_eq!(place.reads(), 1);
    process.renew_callback_secrets().await;
    assert!(is_by("n", &token(&process, &scene).await));
    refused(&process, &by_old, Report::Heartbeat).await;
    assert_eq!(place.reads(), 2);
}

#[tokio::test]
async fn known_secrets_outlast_a_time_in_which_they_cannot_be_read() {
    let scene = Scene::new();
    scene.started("e", None).await;
    let place = Place::with("o");
    let known = place.process(&scene);
    let by_old = token(&known, &scene).await;
    place.close();
    scene.advance(300);
    for _ in 0..3 {
        known.call_back(&by_old, Report::Heartbeat).await.unwrap();
    }
    assert_eq!(place.reads(), 2, "it isn't tried again with each call");
    let new = place.process(&scene);
    assert!(new.call_back(&by_old, complete()).await.unwrap_err().is_retryable());
    place.put("o");
    new.call_back(&by_old, complete()).await.unwrap();
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

#[tokio::test]
async fn each_segment_of_a_journal_is_read_once_however_often_somebody_asks_about_an_event() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let mut execution = turn.execution.clone();
    for part in 0..4 {
        let mut entries = vec![];
        for nth in 0..25 {
            entries.push(scene.large_step(&format!("step[{}]", part * 25 + nth)).await);
        }
        scene.service.record_turn(&execution, turn.lease, entries, Cleanup::default()).await.unwrap();
        scene.service.send_event(&id("e"), event("go"), None, None).await.unwrap();
        execution = scene.execution("e").await;
        let asked = async || scene.service.about(&execution, &event("go")).await.unwrap().len();
        assert_eq!((asked().await, asked().await), (part + 1, part + 1));
    }
    assert_eq!(scene.segments_read(), u64::from(execution.sealed.unwrap().segments));
}
