//! Callers that leave before they have their answer: what they asked for is done all the same, whole.

use axum::body::Body;
use axum::http::Request;
use futures::FutureExt as _;
use serde_json::json;
use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage};
use tickover_service::Service;
use tickover_service::claim::ClaimRequest;
use tickover_tests::scene::queue_name;
use tower::ServiceExt as _;

/// How many callers leave.
const CALLERS: usize = 20;

struct System {
    service: Service,
    _local: Local,
    _folder: tempfile::TempDir,
}

impl System {
    /// A system with its records in a file: while it writes, its calls wait.
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::File(folder.path().join("local.db"));
        let local = Local::open(&storage, Limits::default()).await.unwrap();
        let service = local.service().clone();
        service.open_queue(&queue_name("q")).await.unwrap();
        Self { service, _local: local, _folder: folder }
    }

    /// Every task has its message: a worker gets them all at once, without a tick.
    async fn gets_all(&self) {
        let (worker, lease, wait) = (None, Millis::from_secs(60), Millis::from_secs(20));
        let request = ClaimRequest { worker, max: 10, lease, wait, provides: vec![] };
        let mut got = 0;
        while got < CALLERS {
            let claimed = self.service.claim(&queue_name("q"), &request).await.unwrap();
            assert!(!claimed.is_empty(), "{got} of {CALLERS} tasks have a message");
            got += claimed.len();
        }
    }
}

#[tokio::test]
async fn a_task_of_a_caller_over_http_who_leaves_at_once_has_its_message() {
    let (system, mut left) = (System::start().await, 0);
    for _ in 0..CALLERS {
        let router = tickover_api::router(system.service.clone());
        let request = Request::post("/v1/tasks").header("content-type", "application/json");
        let request = request.body(Body::from(json!({"queue": "q", "kind": "k"}).to_string())).unwrap();
        let mut call = router.oneshot(request);
        left += usize::from((&mut call).now_or_never().is_none());
        drop(call);
    }
    assert!(left > 0, "some left while their call waited for its write");
    system.gets_all().await;
}

#[tokio::test]
async fn those_that_a_raised_limit_lets_in_come_although_its_caller_has_left() {
    // The thread that writes may be faster than the caller.
    for _ in 0..CALLERS {
        let (system, has_left) = raised_by_one_who_leaves().await;
        system.gets_all().await;
        if has_left {
            return;
        }
    }
    panic!("no caller has left while its call waited for its write");
}

/// A system in which somebody has raised the limit of a key for which many wait, and whether he left meanwhile. The key
/// has the name of the one call that isn't carried out.
async fn raised_by_one_who_leaves() -> (System, bool) {
    let system = System::start().await;
    let limits = json!([{"key": "claim", "limit": 1}]);
    let body = json!({"queue": "q", "kind": "k", "concurrency": limits}).to_string();
    let call = async |request: axum::http::request::Builder, body: &str| {
        let request = request.header("content-type", "application/json").body(Body::from(body.to_owned()));
        let answer = tickover_api::router(system.service.clone()).oneshot(request.unwrap()).await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    };
    call(Request::post("/v1/tasks"), &body).await;
    let (worker, lease, wait) = (None, Millis::from_secs(60), Millis::ZERO);
    let request = ClaimRequest { worker, max: 10, lease, wait, provides: vec![] };
    assert_eq!(system.service.claim(&queue_name("q"), &request).await.unwrap().len(), 1);
    for _ in 0..CALLERS {
        call(Request::post("/v1/tasks"), &body).await;
    }
    let raised = Request::put("/v1/limits/claim").header("content-type", "application/json");
    let raised = raised.body(Body::from(json!({"limit": 100}).to_string())).unwrap();
    let mut raising = tickover_api::router(system.service.clone()).oneshot(raised);
    let has_left = (&mut raising).now_or_never().is_none();
    drop(raising);
    (system, has_left)
}

#[tokio::test]
async fn a_task_of_a_caller_in_the_same_process_who_gives_up_has_its_message() {
    let (system, mut left) = (System::start().await, 0);
    let client = Client::from(system.service.clone());
    for _ in 0..CALLERS {
        let call = client.task::<()>("k", ()).queue("q").into_future();
        left += usize::from(call.now_or_never().is_none());
    }
    assert!(left > 0, "some left while their call waited for its write");
    system.gets_all().await;
}
