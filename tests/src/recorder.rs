//! AWS in this process, with a record of every request: `DynamoDB` as in [`dynamodb`](crate::dynamodb), and SQS over the
//! queues in memory. Adapters reach it by ordinary clients of the SDK, so what is recorded is what they would send.

mod sqs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::config::SharedCredentialsProvider;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use tickover_service::memory::MemoryQueue;

use crate::dynamodb::LocalDynamo;

/// A host that can't exist (RFC 2606), should a request ever escape the connector.
const ENDPOINT: &str = "http://aws.invalid";
const TARGET: &str = "x-amz-target";
const TABLES: &str = "DynamoDB_20120810.";
const QUEUES: &str = "AmazonSQS.";

/// How many requests there were of each operation, such as `AmazonSQS.SendMessageBatch`.
pub type Requests = BTreeMap<String, u64>;

/// The recorder, and what is behind it. Clones share both.
#[derive(Clone)]
pub struct Recorder {
    dynamodb: LocalDynamo,
    queues: Arc<MemoryQueue>,
    requests: Arc<Mutex<Requests>>,
}

impl Recorder {
    /// Over an empty database and these queues.
    ///
    /// # Errors
    ///
    /// If the database can't be made.
    pub fn new(queues: Arc<MemoryQueue>) -> anyhow::Result<Self> {
        Ok(Self { dynamodb: LocalDynamo::memory()?, queues, requests: Arc::default() })
    }

    /// The configuration of clients whose requests are recorded.
    pub fn config(&self) -> SdkConfig {
        let credentials = Credentials::new("test", "test", None, None, "tickover-tests");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .endpoint_url(ENDPOINT)
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(self.clone())
            .retry_config(RetryConfig::disabled())
            .build()
    }

    /// A client of the database that isn't recorded.
    pub fn unrecorded(&self) -> aws_sdk_dynamodb::Client {
        self.dynamodb.client()
    }

    /// The requests since the last call.
    pub fn take(&self) -> Requests {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn answer(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get(TARGET).unwrap_or_default().to_owned();
        let body = request.body().bytes().unwrap_or_default();
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(target.clone()).or_default() += 1;
        let (status, body) = if target.starts_with(TABLES) {
            self.dynamodb.answer(&target, body)
        } else {
            let operation = target.strip_prefix(QUEUES).unwrap_or_default();
            sqs::answer(&self.queues, operation, body).await
        };
        let status = StatusCode::try_from(status).map_err(|bad| ConnectorError::other(bad.into(), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(body));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        Ok(response)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl HttpClient for Recorder {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Recorder {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().answer(request))
    }
}
