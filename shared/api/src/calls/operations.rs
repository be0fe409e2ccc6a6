//! Operations on many executions or tasks.

use tickover_core::payload::Payload;
use tickover_service::Service;
use tickover_service::operations::DescribedOperation;

use tickover_wire::answer::{OperationAnswer, OperationChangeAnswer, OperationView, OperationsAnswer};
use tickover_wire::{Cursor, read};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, request, view};

/// Starts an operation: 201 for a new one, 200 if the same request started it before.
pub async fn start_operation(service: &Service, body: &[u8]) -> Result<Answer, Problem> {
    let request = request::operation(body::read(body)?)?;
    let described = service.start_operation(request).await?;
    let status = if described.existing { 200 } else { 201 };
    let id = described.operation.id.clone();
    Ok(Answer::new(status, &OperationAnswer { operation: whole(described) })?.about(&id))
}

/// An operation with its counts so far.
pub async fn operation(service: &Service, id: &str) -> Result<Answer, Problem> {
    let described = service.operation(&name::operation_id(id)?).await?;
    Answer::ok(&OperationAnswer { operation: whole(described) })
}

/// A page of operations. The query is a list of names and values, already percent-decoded.
pub async fn operations(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let query = request::page(read::query(query)?);
    let page = service.operations(query.limit, query.cursor.as_deref()).await?;
    let short = |operation: tickover_core::operation::Operation| {
        let details = match &operation.details {
            Payload::Inline(json) => serde_json::from_str(json.as_str()).ok(),
            Payload::Blob(_) => None,
        };
        view::operation(operation, details)
    };
    let operations = page.items.into_iter().map(short).collect();
    Answer::ok(&OperationsAnswer { operations, cursor: page.next.map(Cursor) })
}

/// Stops an operation: the page that is under way is its last one.
pub async fn stop_operation(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::operation_id(id)?;
    body::read_nothing(body)?;
    let (described, changed) = service.stop_operation(&id).await?;
    Answer::ok(&OperationChangeAnswer { operation: whole(described), changed })
}

/// Lets an operation go on that was stopped or has failed.
pub async fn resume_operation(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::operation_id(id)?;
    body::read_nothing(body)?;
    let (described, changed) = service.resume_operation(&id).await?;
    Answer::ok(&OperationChangeAnswer { operation: whole(described), changed })
}

fn whole(described: DescribedOperation) -> OperationView {
    view::operation(described.operation, Some(described.details))
}
