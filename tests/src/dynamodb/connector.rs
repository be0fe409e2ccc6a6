//! The SDK's transport: takes the request that it would have sent, and gives back the answer that it would have
//! received.

use std::fmt;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;

use super::dispatch::{self, Answer};

const TARGET_HEADER: &str = "x-amz-target";
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// Runs requests on their callers' threads, one at a time: there is no disk to wait for.
#[derive(Clone)]
pub(super) struct Connector {
    database: Database,
}

impl Connector {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }

    fn respond(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let body = request.body().bytes().ok_or_else(|| ConnectorError::user(StreamingBody.into()))?;
        let target = request.headers().get(TARGET_HEADER).unwrap_or_default();
        let Answer { status, body } = dispatch::answer(&self.database, target, body);

        let status = StatusCode::try_from(status).map_err(|bad| ConnectorError::other(bad.into(), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(body));
        response.headers_mut().insert("content-type", CONTENT_TYPE);
        Ok(response)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::ready(self.respond(&request))
    }
}

/// `DynamoDB` has no streaming operations, so the SDK never sends such a body.
#[derive(Debug, thiserror::Error)]
#[error("a request with a streaming body is not a DynamoDB request")]
struct StreamingBody;
