//! The operations of SQS that the adapter uses, in their JSON form, over the queues in memory.

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{Outgoing, Queue as _, QueueError};

/// What the URL of a queue of tasks has before the queue's name.
const WORK: &str = "-work-";

/// The status and the body of the answer.
pub(super) async fn answer(queues: &MemoryQueue, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    match answered(queues, operation, &request).await {
        Ok(answer) => (200, answer.to_string().into_bytes()),
        Err(code) => (400, json!({"__type": format!("com.amazonaws.sqs#{code}")}).to_string().into_bytes()),
    }
}

async fn answered(queues: &MemoryQueue, operation: &str, request: &Value) -> Result<Value, &'static str> {
    let queue = queue(request).ok_or("QueueDoesNotExist")?;
    if !queues.knows(&queue) {
        return Err("QueueDoesNotExist");
    }
    let of_batch = || request["Entries"].as_array().into_iter().flatten();
    let done = || {
        let ids = of_batch().map(|entry| json!({"Id": entry["Id"], "MessageId": entry["Id"]}));
        json!({"Successful": ids.collect::<Vec<_>>(), "Failed": []})
    };
    match operation {
        "SendMessageBatch" => {
            let messages: Vec<Outgoing> = of_batch().map(outgoing).collect();
            queues.send(&queue, &messages).await.map_err(|error| refusal(&error))?;
            Ok(done())
        }
        "DeleteMessage" => {
            queues.delete(&queue, text(&request["ReceiptHandle"])).await.map_err(|error| refusal(&error))?;
            Ok(json!({}))
        }
        "DeleteMessageBatch" => {
            for entry in of_batch() {
                queues
                    .delete(&queue, text(&entry["ReceiptHandle"]))
                    .await
                    .map_err(|error| refusal(&error))?;
            }
            Ok(done())
        }
        "ChangeMessageVisibility" => {
            hide(queues, &queue, request).await?;
            Ok(json!({}))
        }
        "ChangeMessageVisibilityBatch" => {
            for entry in of_batch() {
                hide(queues, &queue, entry).await?;
            }
            Ok(done())
        }
        "GetQueueAttributes" => {
            let depth = queues.depth(&queue).await.map_err(|error| refusal(&error))?;
            Ok(json!({"Attributes": {
                "ApproximateNumberOfMessages": depth.visible.to_string(),
                "ApproximateNumberOfMessagesNotVisible": depth.in_flight.to_string(),
                "ApproximateNumberOfMessagesDelayed": depth.delayed.to_string(),
            }}))
        }
        _ => Err("UnsupportedOperation"),
    }
}

/// The queue of a URL. The queue of timers is no queue of tasks.
fn queue(request: &Value) -> Option<QueueName> {
    let name = text(&request["QueueUrl"]).rsplit('/').next()?;
    match name.split_once(WORK) {
        Some((_, name)) => QueueName::parse(name).ok(),
        None => name.ends_with("-timers").then(QueueName::timers),
    }
}

fn outgoing(entry: &Value) -> Outgoing {
    let delay = entry["DelaySeconds"].as_u64().unwrap_or_default();
    Outgoing::plain(text(&entry["MessageBody"]), Millis::from_secs(delay))
}

async fn hide(queues: &MemoryQueue, queue: &QueueName, entry: &Value) -> Result<(), &'static str> {
    let span = Millis::from_secs(entry["VisibilityTimeout"].as_u64().unwrap_or_default());
    queues
        .change_visibility(queue, text(&entry["ReceiptHandle"]), span)
        .await
        .map_err(|error| refusal(&error))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn refusal(error: &QueueError) -> &'static str {
    match error {
        QueueError::Unknown { .. } => "QueueDoesNotExist",
        QueueError::StaleReceipt => "ReceiptHandleIsInvalid",
        QueueError::Throttled | QueueError::Unavailable { .. } => "InternalError",
    }
}
