//! Maps an operation's name and its JSON body to the engine's call, and the engine's result to `DynamoDB`'s JSON and
//! status. It is a pure mapping: no HTTP, no threads.
//!
//! The engine's own request types parse the wire format, and its own errors write it, so no field of an operation is
//! declared here.

use dynoxide::actions::transact_write_items::TransactWriteItemsRequest;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The prefix of every operation's target: the service and its API version.
const TARGET_PREFIX: &str = "DynamoDB_20120810.";

/// The JSON of an error that the engine has no type for.
const UNKNOWN_OPERATION: &str = concat!(
    r#"{"__type":"com.amazon.coral.service#UnknownOperationException","#,
    r#""message":"the embedded database does not have this operation"}"#,
);

/// The idempotency token that the SDK adds if the caller gave none.
///
/// By default it is a random token for each `TransactWriteItems`, for the SDK's own retries, which are off. The engine
/// would keep each of them for ten minutes and scan all of them at every transaction, so a busy process's cost would
/// grow with the square of its load. A token that the caller chose is used.
pub(super) const NO_TOKEN: &str = "tickover-embedded-no-token";

/// The answer to the SDK.
pub(super) struct Answer {
    pub(super) status: u16,
    /// A JSON object.
    pub(super) body: Vec<u8>,
}

/// Answers one request; `target` is the value of `X-Amz-Target`.
pub(super) fn answer(database: &Database, target: &str, body: &[u8]) -> Answer {
    let operation = target.strip_prefix(TARGET_PREFIX).unwrap_or_default();
    let Some(result) = dispatch(database, operation, body) else {
        return Answer { status: 400, body: UNKNOWN_OPERATION.into() };
    };
    match result {
        Ok(body) => Answer { status: 200, body },
        Err(error) => Answer { status: error.status_code(), body: error.to_json().into_bytes() },
    }
}

/// `None` for an operation the engine doesn't have.
fn dispatch(db: &Database, operation: &str, body: &[u8]) -> Option<dynoxide::Result<Vec<u8>>> {
    Some(match operation {
        "UpdateItem" => call(body, |request| db.update_item(request)),
        "GetItem" => call(body, |request| db.get_item(request)),
        "PutItem" => call(body, |request| db.put_item(request)),
        "DeleteItem" => call(body, |request| db.delete_item(request)),
        "Query" => call(body, |request| db.query(request)),
        "Scan" => call(body, |request| db.scan(request)),
        "TransactWriteItems" => {
            call(body, |request| db.transact_write_items(without_filled_in_token(request)))
        }
        "TransactGetItems" => call(body, |request| db.transact_get_items(request)),
        "BatchWriteItem" => call(body, |request| db.batch_write_item(request)),
        "BatchGetItem" => call(body, |request| db.batch_get_item(request)),
        "CreateTable" => call(body, |request| db.create_table(request)),
        "UpdateTable" => call(body, |request| db.update_table(request)),
        "DescribeTable" => call(body, |request| db.describe_table(request)),
        "DeleteTable" => call(body, |request| db.delete_table(request)),
        "ListTables" => call(body, |request| db.list_tables(request)),
        "UpdateTimeToLive" => call(body, |request| db.update_time_to_live(request)),
        "DescribeTimeToLive" => call(body, |request| db.describe_time_to_live(request)),
        _ => return None,
    })
}

fn call<Request: DeserializeOwned, Response: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Request) -> dynoxide::Result<Response>,
) -> dynoxide::Result<Vec<u8>> {
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let response = operation(request)?;
    serde_json::to_vec(&response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Malformed JSON is a serialisation error. JSON that isn't a valid request (a number that isn't one, an empty set, a
/// missing field) is invalid input. The engine's HTTP server distinguishes them by the text of its messages; here the
/// kind of the error does.
fn unreadable(error: &serde_json::Error) -> DynoxideError {
    if error.is_data() {
        DynoxideError::ValidationException(error.to_string())
    } else {
        DynoxideError::SerializationException(error.to_string())
    }
}

fn without_filled_in_token(mut request: TransactWriteItemsRequest) -> TransactWriteItemsRequest {
    request.client_request_token.take_if(|token| token == NO_TOKEN);
    request
}
