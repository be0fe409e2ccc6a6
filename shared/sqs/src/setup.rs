//! Creates queues, for bootstraps and tests. In production the deployment creates them.

use std::collections::HashMap;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::create_queue::CreateQueueError;
use aws_sdk_sqs::types::QueueAttributeName;
use tickover_service::ports::QueueError;

use crate::error::{classify, unexpected};

/// Creates a queue with these attributes and returns its URL. An existing queue keeps its messages and gets the
/// attributes; its other attributes stay as they are.
pub async fn create_queue(
    client: &Client,
    name: &str,
    attributes: impl IntoIterator<Item = (QueueAttributeName, String)> + Send,
) -> Result<String, QueueError> {
    let attributes: HashMap<_, _> = attributes.into_iter().collect();
    let wanted = (!attributes.is_empty()).then(|| attributes.clone());
    let created = client.create_queue().queue_name(name).set_attributes(wanted).send().await;
    match created {
        Ok(created) => created.queue_url.ok_or_else(|| unexpected("a queue without a URL")),
        Err(error) if error.as_service_error().is_some_and(CreateQueueError::is_queue_name_exists) => {
            adjust_queue(client, name, attributes).await
        }
        Err(error) => Err(classify(name, &error)),
    }
}

async fn adjust_queue(
    client: &Client,
    name: &str,
    attributes: HashMap<QueueAttributeName, String>,
) -> Result<String, QueueError> {
    let found = client.get_queue_url().queue_name(name).send().await;
    let url = found
        .map_err(|error| classify(name, &error))?
        .queue_url
        .ok_or_else(|| unexpected("a queue without a URL"))?;
    let adjusted =
        client.set_queue_attributes().queue_url(&url).set_attributes(Some(attributes)).send().await;
    adjusted.map_err(|error| classify(name, &error))?;
    Ok(url)
}
