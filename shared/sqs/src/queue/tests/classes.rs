//! Queues with class queues.

use tickover_core::lane::Lane;

use super::*;

const HIGH: &str = "https://sqs/1/shop-work-emails__high";
const NORMAL: &str = "https://sqs/1/shop-work-emails";
const LOW: &str = "https://sqs/1/shop-work-emails__low";

/// A queue by its name, in a process that owes no class a turn. A new process draws whom it asks first.
fn found(script: &Script) -> SqsQueue {
    let queue = script.queue().finding(QueuePattern::parse("https://sqs/1/shop-work-{name}"));
    for class in Priority::ALL {
        queue.classes.note_given(&emails(), class, 0);
    }
    queue
}

fn emails() -> QueueName {
    QueueName::parse("emails").unwrap()
}

fn of(priority: Priority) -> Outgoing {
    Outgoing {
        lane: Lane { priority, ..Lane::default() },
        ..Outgoing::plain(priority.as_str(), Millis::ZERO)
    }
}

fn sent(ids: &[&str]) -> (u16, Value) {
    (200, json!({"Successful": ids.iter().map(|id| ok(id)).collect::<Vec<_>>()}))
}

fn gone() -> (u16, Value) {
    (400, error("QueueDoesNotExist"))
}

fn given(receipts: &[&str]) -> (u16, Value) {
    let message = |receipt: &&str| json!({"Body": "b", "ReceiptHandle": receipt});
    (200, json!({"Messages": receipts.iter().map(message).collect::<Vec<_>>()}))
}

fn urls(script: &Script) -> Vec<String> {
    script.requests().iter().map(|request| request["QueueUrl"].as_str().unwrap().to_owned()).collect()
}

async fn receipts(queue: &SqsQueue, max: usize, wait: Millis) -> Vec<String> {
    let received = queue.receive(&emails(), max, Millis::from_secs(60), wait).await.unwrap();
    received.into_iter().map(|message| message.receipt).collect()
}

#[tokio::test]
async fn a_message_is_sent_to_the_queue_of_its_class() {
    let script = Script::new([sent(&["0"]), sent(&["0"]), sent(&["0", "1"])]);
    let messages = [of(Priority::Normal), of(Priority::Low), of(Priority::High), of(Priority::Normal)];
    let results = found(&script).send(&emails(), &messages).await.unwrap();
    assert!(results.len() == 4 && results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(urls(&script), [HIGH, LOW, NORMAL]);
    let bodies = |request: &Value| {
        request["Entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["MessageBody"].clone())
            .collect::<Vec<_>>()
    };
    let bodies: Vec<_> = script.requests().iter().map(bodies).collect();
    assert_eq!(bodies, [vec!["high"], vec!["low"], vec!["normal", "normal"]]);
}

#[tokio::test]
async fn each_message_has_the_result_of_its_own_class() {
    let refused = json!({"Failed": [failed("0", "InvalidMessageContents", true)]});
    let script = Script::new([(200, refused), sent(&["0"])]);
    let messages = [of(Priority::Normal), of(Priority::Low)];
    let results = found(&script).send(&emails(), &messages).await.unwrap();
    assert!(matches!(results[..], [Ok(()), Err(QueueError::Unavailable { .. })]), "{results:?}");
}

#[tokio::test]
async fn without_class_queues_one_call_finds_that_out_and_all_messages_go_to_the_queue() {
    let script = Script::new([gone(), sent(&["0", "1"]), sent(&["0"]), given(&["r"])]);
    let queue = found(&script);
    let results = queue.send(&emails(), &[of(Priority::High), of(Priority::Low)]).await.unwrap();
    assert!(results.len() == 2 && results.iter().all(Result::is_ok), "{results:?}");
    queue.send(&emails(), &[of(Priority::High)]).await.unwrap();
    assert_eq!(receipts(&queue, 1, Millis::ZERO).await, ["r"]);
    assert_eq!(urls(&script), [HIGH, NORMAL, NORMAL, NORMAL]);
}

#[tokio::test]
async fn normal_messages_and_queues_in_a_list_need_no_such_call() {
    let script = Script::new([sent(&["0"]), sent(&["0"]), given(&["r"])]);
    let queue = found(&script);
    queue.send(&emails(), &[of(Priority::Normal)]).await.unwrap();
    queue.send(&work(), &[of(Priority::High)]).await.unwrap();
    queue.receive(&work(), 1, Millis::ZERO, Millis::ZERO).await.unwrap();
    assert!(urls(&script)[1..].iter().all(|url| url.ends_with("/work")), "{:?}", urls(&script));
}

#[tokio::test]
async fn a_role_without_permission_for_class_queues_uses_the_queue_alone() {
    let script = Script::new([(403, error("AccessDenied")), given(&["r"]), given(&["s"])]);
    let queue = found(&script);
    assert_eq!(receipts(&queue, 1, Millis::ZERO).await, ["r"]);
    assert_eq!(receipts(&queue, 1, Millis::ZERO).await, ["s"]);
    assert_eq!(urls(&script)[1..], [NORMAL, NORMAL]);
}

/// Answers 400 receives of one message each, from all classes.
#[tokio::test]
async fn high_comes_first_and_of_ten_received_one_is_low_and_one_normal() {
    let script = Script::new((0..400).map(|_| given(&["r"])));
    let queue = found(&script);
    for _ in 0..400 {
        assert_eq!(receipts(&queue, 1, Millis::ZERO).await.len(), 1);
    }
    let asked = urls(&script);
    for ten in asked.windows(10) {
        assert!([LOW, NORMAL].iter().all(|class| ten.iter().any(|url| url == class)), "{ten:?}");
        assert!(ten.iter().filter(|url| *url == HIGH).count() >= 7, "{ten:?}");
    }
}

#[tokio::test]
async fn a_class_without_enough_messages_leaves_its_place_to_those_behind_it() {
    let script = Script::new([given(&["a", "b"]), given(&[]), given(&["c"])]);
    assert_eq!(receipts(&found(&script), 10, Millis::from_secs(20)).await, ["high:a", "high:b", "low:c"]);
    let asked = |request: &Value| (request["QueueUrl"].clone(), request["MaxNumberOfMessages"].clone());
    let asked: Vec<_> = script.requests().iter().map(asked).collect();
    assert_eq!(asked, [(json!(HIGH), json!(10)), (json!(NORMAL), json!(8)), (json!(LOW), json!(8))]);
}

#[tokio::test]
async fn while_nothing_waits_the_high_class_is_asked_by_a_long_poll_and_the_others_each_second() {
    let script = Script::new((0..30).map(|_| given(&[])));
    assert_eq!(receipts(&found(&script), 1, Millis::new(2_500)).await, [""; 0]);
    let asked: Vec<_> = script.requests().iter().map(|request| request["WaitTimeSeconds"].clone()).collect();
    assert_eq!(asked, [0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]);
    assert_eq!(urls(&script), [HIGH, NORMAL, LOW].repeat(4));
}

#[tokio::test]
async fn a_receipt_leads_back_to_the_queue_of_its_class() {
    let done = || (200, json!({"Successful": [], "Failed": []}));
    let script = Script::new([(200, json!({})), (200, json!({})), done(), done(), done(), done()]);
    let queue = found(&script);
    queue.delete(&emails(), "low:r").await.unwrap();
    queue.change_visibility(&emails(), "high:r", Millis::from_secs(9)).await.unwrap();
    let receipts = ["old", "high:a", "low:b", "low:c"].map(str::to_owned);
    queue.delete_all(&emails(), &receipts).await.unwrap();
    queue.hide_all(&emails(), &receipts[1..2], Millis::ZERO).await.unwrap();
    let requests = script.requests();
    assert_eq!(urls(&script), [LOW, HIGH, HIGH, NORMAL, LOW, HIGH]);
    assert!(requests[..2].iter().all(|request| request["ReceiptHandle"] == "r"), "{requests:?}");
    assert_eq!(entry_ids(&requests[4]), ["0", "1"]);
}

#[tokio::test]
async fn messages_that_went_with_their_class_queue_are_no_trouble() {
    let script = Script::new((0..6).map(|_| gone()));
    let queue = found(&script);
    queue.delete(&emails(), "low:r").await.unwrap();
    let changed = queue.change_visibility(&emails(), "low:r", Millis::ZERO).await;
    assert!(matches!(changed, Err(QueueError::StaleReceipt)), "{changed:?}");
    queue.delete_all(&emails(), &["low:r".to_owned()]).await.unwrap();
    queue.hide_all(&emails(), &["low:r".to_owned()], Millis::ZERO).await.unwrap();
    // A list without class queues, and old receipts.
    queue.delete(&work(), "low:r").await.unwrap();
    let changed = queue.change_visibility(&work(), "low:r", Millis::ZERO).await;
    assert!(matches!(changed, Err(QueueError::StaleReceipt)), "{changed:?}");
    let deleted = queue.delete(&emails(), "r").await;
    assert!(matches!(deleted, Err(QueueError::Unknown { .. })), "{deleted:?}");
}

fn depth_of(visible: u64) -> (u16, Value) {
    let attributes = json!({
        "ApproximateNumberOfMessages": visible.to_string(),
        "ApproximateNumberOfMessagesNotVisible": "1",
        "ApproximateNumberOfMessagesDelayed": "2",
    });
    (200, json!({ "Attributes": attributes }))
}

#[tokio::test]
async fn a_depth_is_that_of_all_classes_and_each_class_has_its_own() {
    let script = Script::new([4, 5, 6, 7, 8].map(depth_of));
    let queue = found(&script);
    let all = Depth { visible: 15, in_flight: 3, delayed: 6 };
    assert_eq!(queue.depth(&emails()).await.unwrap(), all);
    let low = queue.class_depth(&emails(), Priority::Low).await.unwrap();
    assert_eq!((low.depth.visible, low.apart), (7, true));
    let normal = queue.class_depth(&emails(), Priority::Normal).await.unwrap();
    assert_eq!((normal.depth.visible, normal.apart), (8, false));
    assert_eq!(urls(&script), [NORMAL, HIGH, LOW, LOW, NORMAL]);
}

#[tokio::test]
async fn a_class_that_waits_with_the_others_has_their_depth() {
    let script = Script::new([gone(), depth_of(4), depth_of(4)]);
    let queue = found(&script);
    let high = queue.class_depth(&emails(), Priority::High).await.unwrap();
    assert_eq!((high.depth.visible, high.apart), (4, false));
    assert_eq!(queue.depth(&emails()).await.unwrap().visible, 4);
    assert_eq!(urls(&script), [HIGH, NORMAL, NORMAL]);
}

#[tokio::test]
async fn a_class_queue_is_no_queue_of_its_own() {
    let queue = found(&Script::new([]));
    for name in ["emails__high", "emails__low"] {
        let name = QueueName::parse(name).unwrap();
        assert!(!queue.knows(&name) && !queue.open(&name).await.unwrap(), "{name}");
    }
    assert_eq!([queue.class_of("high:r"), queue.class_of("r")], [Priority::High, Priority::Normal]);
}
