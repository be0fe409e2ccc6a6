//! A store whose requests are recorded and answered from a script: for answers that no emulator can be made to give.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use crate::store::DynamoStore;

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Success, with this body.
    Done(Value),
    /// A refusal with this code and further fields.
    Refused(u16, &'static str, Value),
    /// The connection is lost.
    Lost,
}

/// The answers to come, the last of which repeats, and the requests so far: the operation and its body.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Script {
    /// All requests, in order.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
        self.requests.lock().unwrap().push((operation, body));
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let (status, body) = match answer.unwrap() {
            Answer::Lost => return Err(ConnectorError::io("the connection was reset".into())),
            Answer::Done(body) => (200, body),
            Answer::Refused(status, code, mut body) => {
                body["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{code}"));
                (status, body)
            }
        };
        let mut response =
            HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::from(body.to_string()));
        response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
        Ok(response)
    }
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::ready(self.answer(&request))
    }
}

impl HttpClient for Script {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

/// A client with answers from a script.
pub(crate) fn client(answers: impl IntoIterator<Item = Answer>) -> (Client, Script) {
    let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
    let script = Script { answers, requests: Arc::default() };
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .endpoint_url("http://dynamodb.invalid")
        .http_client(script.clone())
        .allow_no_auth()
        .retry_config(RetryConfig::disabled())
        .build();
    (Client::from_conf(config), script)
}

/// A store over the table `tasks` with answers from a script.
pub(crate) fn store(answers: impl IntoIterator<Item = Answer>) -> (DynamoStore, Script) {
    let (client, script) = client(answers);
    (DynamoStore::new(client, "tasks"), script)
}
