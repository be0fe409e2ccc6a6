mod classes;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use aws_sdk_sqs::config::http::{HttpRequest, HttpResponse};
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tickover_core::limits::WAIT_MAX;

use super::*;

/// A service that returns its scripted answers in order, and records the requests.
#[derive(Clone, Debug, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let asked = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        self.requests.lock().unwrap().push(asked);
        let (status, body) = self.answers.lock().unwrap().pop_front().expect("a further answer");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(
            status.try_into().unwrap(),
            SdkBody::from(body.to_string()),
        )))
    }
}

impl Script {
    fn new(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }

    fn queue(&self) -> SqsQueue {
        let connector = SharedHttpConnector::new(self.clone());
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
            .retry_config(RetryConfig::disabled())
            .http_client(http_client_fn(move |_, _| connector.clone()))
            .build();
        let url = "https://sqs.us-east-1.amazonaws.com/123456789012/work".to_owned();
        SqsQueue::new(Client::from_conf(config), BTreeMap::from([(work(), url)]))
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn work() -> QueueName {
    QueueName::parse("work").unwrap()
}

fn messages(count: usize) -> Vec<Outgoing> {
    (0..count).map(|n| Outgoing::plain(n.to_string(), Millis::ZERO)).collect()
}

fn error(code: &str) -> Value {
    json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": "a text that nobody reads"})
}

fn ok(id: &str) -> Value {
    json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "d"})
}

fn failed(id: &str, code: &str, sender_fault: bool) -> Value {
    json!({"Id": id, "Code": code, "SenderFault": sender_fault, "Message": "why"})
}

fn entry_ids(request: &Value) -> Vec<&str> {
    request["Entries"].as_array().unwrap().iter().filter_map(|entry| entry["Id"].as_str()).collect()
}

#[tokio::test]
async fn only_messages_that_sqs_failed_to_take_are_sent_again() {
    let script = Script::new([
        (
            200,
            json!({
                "Successful": [ok("0")],
                "Failed": [failed("1", "InvalidMessageContents", true), failed("2", "InternalError", false)],
            }),
        ),
        (200, json!({"Successful": [ok("2"), ok("3")]})),
    ]);
    let results = script.queue().send(&work(), &messages(4)).await.unwrap();
    assert!(
        matches!(results[..], [Ok(()), Err(QueueError::Unavailable { .. }), Ok(()), Ok(())]),
        "{results:?}"
    );
    let requests = script.requests();
    assert_eq!(
        requests.iter().map(entry_ids).collect::<Vec<_>>(),
        [vec!["0", "1", "2", "3"], vec!["2", "3"]]
    );
}

#[tokio::test]
async fn sending_again_ends_after_three_attempts() {
    let failing = json!({"Failed": [failed("0", "ThrottlingException", false)]});
    let script = Script::new((0..3).map(|_| (200, failing.clone())));
    let results = script.queue().send(&work(), &messages(1)).await.unwrap();
    assert!(matches!(results[..], [Err(QueueError::Throttled)]), "{results:?}");
    assert_eq!(script.requests().len(), 3);
}

#[tokio::test]
async fn a_refused_request_fails_its_own_messages_only() {
    let ids: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    let whole: Vec<_> = ids.iter().map(|id| ok(id)).collect();
    let script = Script::new([
        (200, json!({"Successful": whole})),
        (400, error("RequestThrottled")),
        (200, json!({"Successful": [ok("0")]})),
    ]);
    let results = script.queue().send(&work(), &messages(21)).await.unwrap();
    assert_eq!(results.len(), 21);
    assert!(results[..10].iter().all(Result::is_ok), "{results:?}");
    let throttled = results[10..20].iter().all(|result| matches!(result, Err(QueueError::Throttled)));
    assert!(throttled && results[20].is_ok(), "{results:?}");
}

#[tokio::test]
async fn refusals_are_told_apart_by_code_and_status() {
    let answer = async |status, code: &str| Script::new([(status, error(code))]).queue().depth(&work()).await;
    for code in ["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "InvalidAddress"] {
        let depth = answer(400, code).await;
        assert!(matches!(&depth, Err(QueueError::Unknown { queue }) if queue == "work"), "{depth:?}");
    }
    for (status, code) in [(400, "RequestThrottled"), (400, "OverLimit"), (429, "Whatever")] {
        let depth = answer(status, code).await;
        assert!(matches!(depth, Err(QueueError::Throttled)), "{depth:?}");
    }
    for (status, code) in [(500, "InternalError"), (503, "ServiceUnavailable"), (403, "AccessDenied")] {
        let depth = answer(status, code).await;
        let named = matches!(&depth, Err(QueueError::Unavailable { reason }) if reason.contains(code));
        assert!(named, "{depth:?}");
    }
}

#[tokio::test]
async fn a_refusal_that_will_not_pass_says_what_to_do() {
    for (code, advice) in [
        ("AccessDenied", "the caller's role may not do this with the queue \"work\""),
        ("AccessDeniedException", "the caller's role may not do this with the queue \"work\""),
        ("KMS.AccessDeniedException", "may not use the key that the queue \"work\" is encrypted with"),
        ("InvalidClientTokenId", "the credentials are wrong or no longer valid"),
        ("ExpiredToken", "the credentials are wrong or no longer valid"),
    ] {
        let depth = Script::new([(403, error(code))]).queue().depth(&work()).await;
        let Err(QueueError::Unavailable { reason }) = depth else { panic!("{code}: {depth:?}") };
        assert!(reason.starts_with(code) && reason.contains(advice), "{reason}");
    }
    let passing = Script::new([(500, error("InternalError"))]).queue().depth(&work()).await;
    assert!(
        matches!(&passing, Err(QueueError::Unavailable { reason }) if !reason.contains(';')),
        "{passing:?}"
    );
}

#[tokio::test]
async fn a_bad_receipt_is_stale_for_a_change_and_nothing_to_a_deletion() {
    for code in ["ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue"] {
        let script = Script::new([(400, error(code)), (400, error(code))]);
        let queue = script.queue();
        let changed = queue.change_visibility(&work(), "receipt", Millis::new(1_500)).await;
        assert!(matches!(changed, Err(QueueError::StaleReceipt)), "{code}: {changed:?}");
        assert_eq!(script.requests()[0]["VisibilityTimeout"], 2);
        assert!(queue.delete(&work(), "receipt").await.is_ok(), "{code}");
    }
    let refused = Script::new([(403, error("AccessDenied"))]).queue().delete(&work(), "receipt").await;
    assert!(matches!(refused, Err(QueueError::Unavailable { .. })), "{refused:?}");
}

#[tokio::test]
async fn receiving_asks_for_counts_and_for_no_more_than_sqs_gives() {
    let message = json!({"Body": "b", "ReceiptHandle": "r", "Attributes": {"ApproximateReceiveCount": "3"}});
    let script = Script::new([(200, json!({"Messages": [message]}))]);
    let year = Millis::from_days(365);
    let received = script.queue().receive(&work(), 50, year, year).await.unwrap();
    let expected = Received { body: "b".to_owned(), receipt: "r".to_owned(), receive_count: 3 };
    assert_eq!(received, [expected]);
    let request = &script.requests()[0];
    assert_eq!(request["MaxNumberOfMessages"], 10);
    assert_eq!(request["VisibilityTimeout"], 43_200);
    assert_eq!(request["WaitTimeSeconds"], 20);
    assert_eq!(request["MessageSystemAttributeNames"], json!(["ApproximateReceiveCount"]));
}

#[tokio::test]
async fn a_depth_without_its_numbers_is_no_empty_queue() {
    let attributes = json!({"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "0"});
    let depth = Script::new([(200, json!({"Attributes": attributes}))]).queue().depth(&work()).await;
    assert!(matches!(depth, Err(QueueError::Unavailable { .. })), "{depth:?}");
}

#[tokio::test]
async fn a_queue_without_a_url_is_unknown_before_any_call() {
    let script = Script::new([]);
    let queue = script.queue();
    let other = QueueName::parse("other").unwrap();
    let sent = queue.send(&other, &messages(1)).await.map(drop);
    let answers = [sent, queue.delete(&other, "r").await, queue.depth(&other).await.map(drop)];
    for answer in answers {
        assert!(matches!(&answer, Err(QueueError::Unknown { queue }) if queue == "other"), "{answer:?}");
    }
    assert!(!queue.open(&other).await.unwrap());
    assert!(queue.open(&work()).await.unwrap());
    assert_eq!(script.requests(), [Value::Null; 0]);
}

#[tokio::test]
async fn a_queue_of_the_pattern_is_asked_for_until_it_exists_and_its_url_has_its_name() {
    let depth = json!({"Attributes": {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
    }});
    let script = Script::new([
        (400, error("QueueDoesNotExist")),
        (503, error("ServiceUnavailable")),
        (200, depth),
        (400, error("QueueDoesNotExist")),
    ]);
    let queue = script.queue().finding(QueuePattern::parse("https://sqs/1/shop-work-{name}"));
    let emails = QueueName::parse("emails").unwrap();
    assert!(queue.traits().finds_by_name && queue.knows(&emails));
    assert!(!queue.open(&emails).await.unwrap());
    assert!(matches!(queue.open(&emails).await, Err(QueueError::Unavailable { .. })));
    assert_eq!(queue.names(), [work()]);
    assert!(queue.open(&emails).await.unwrap() && queue.open(&emails).await.unwrap());
    assert_eq!(queue.names(), [emails.clone(), work()]);
    let sent = queue.send(&emails, &messages(1)).await;
    assert!(matches!(&sent, Err(QueueError::Unknown { queue }) if queue == "emails"), "{sent:?}");
    let requests = script.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request["QueueUrl"] == "https://sqs/1/shop-work-emails"));
}

#[tokio::test]
async fn queues_of_the_pattern_are_found_though_nobody_has_used_them() {
    let page = |names: &[&str], next: Value| {
        let urls: Vec<_> = names.iter().map(|name| format!("http://elsewhere/1/{name}")).collect();
        (200, json!({"QueueUrls": urls, "NextToken": next}))
    };
    let script = Script::new([
        page(&["shop-work-orders", "shop-work-orders__high", "shop-work-orders__low"], json!("more")),
        page(&["shop-work-emails", "shop-work-"], Value::Null),
    ]);
    let queue = script.queue().finding(QueuePattern::parse("https://sqs/1/shop-work-{name}"));
    let names = ["emails", "orders", "work"].map(|name| QueueName::parse(name).unwrap());
    assert_eq!(queue.discover().await.unwrap(), names);
    let requests = script.requests();
    assert!(requests.iter().all(|request| request["QueueNamePrefix"] == "shop-work-"), "{requests:?}");
    assert_eq!(requests[1]["NextToken"], "more");
}

#[tokio::test]
async fn a_listed_queue_and_an_impossible_name_are_not_asked_for() {
    let queue = Script::new([]).queue().finding(QueuePattern::parse("https://sqs/1/shop-work-{name}"));
    assert!(queue.open(&work()).await.unwrap());
    for name in [QueueName::parse("a.b").unwrap(), QueueName::events()] {
        assert!(!queue.knows(&name) && !queue.open(&name).await.unwrap(), "{name}");
    }
}

#[test]
fn only_receiving_may_take_as_long_as_a_long_poll() {
    let timeouts = TimeoutConfig::builder().operation_timeout(Duration::from_secs(10)).build();
    let config = aws_sdk_sqs::Config::builder().behavior_version(BehaviorVersion::latest());
    let queue = SqsQueue::new(Client::from_conf(config.timeout_config(timeouts).build()), BTreeMap::new());
    let timeout =
        |client: &Client| client.config().timeout_config().and_then(TimeoutConfig::operation_timeout);
    assert_eq!(timeout(&queue.client), Some(Duration::from_secs(10)));
    assert!(timeout(&queue.polling) > Some(WAIT_MAX.into()));
}
