//! Executions: start, describe, list, operate, and send events.

mod events;
mod operate;
mod values;

pub use events::{clear_events, event, events, send_event};
pub use operate::{cancel, pause, rerun, restart, resume, retry_step, terminate};
pub use values::{value, values};

use std::collections::BTreeMap;

use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::id::ExecutionId;
use tickover_service::executions::{Described, StartRequest, Started, UnrecordedEnds};
use tickover_service::ports::ExecutionCount;
use tickover_service::transact::Prepared;
use tickover_service::{Service, ServiceError};

use super::Call;
use super::turns::stored;
use tickover_wire::answer::{
    EXPORT_FORMAT, ExecutionAnswer, ExecutionView, ExecutionsAnswer, ExportAnswer, RunsAnswer,
    TimelineAnswer, WorkflowView, WorkflowsAnswer,
};
use tickover_wire::request::{DescribeQuery, ExportQuery, TimelineQuery};
use tickover_wire::{Cursor, read};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, request, view};

/// Starts an execution: 201 for a new one, 200 if the id exists.
pub async fn start(service: &Service, call: impl Into<Call<'_>>) -> Result<Answer, Problem> {
    let Call { body, trace } = call.into();
    let request = request::start(body::read(body)?)?;
    let request = StartRequest { trace: request.trace.or(trace), ..request };
    let (input, labels, memo) = (request.input.clone(), request.labels.clone(), request.memo.clone());
    let Started { execution, existed } = service.start(request).await?;
    // A caller that repeats a start may want the result, so the payloads are read. The input, labels and memo of the
    // existing execution may differ from the request's.
    let described = if existed {
        service.execution_with_payloads(execution).await?
    } else {
        Described { input, labels, memo, output: None, ..Described::inline(execution) }
    };
    let execution = view::execution(&described, None, service.now());
    Answer::new(if existed { 200 } else { 201 }, &ExecutionAnswer { execution })
}

/// The writes that start an execution as a part of the caller's transaction, and the messages to send after they are
/// committed. The body is that of [`start`].
pub async fn prepare(service: &Service, body: &[u8]) -> Result<Prepared<ExecutionId>, Problem> {
    Ok(service.prepare_start(request::start(body::read(body)?)?).await?)
}

/// An execution with its payloads, what it waits for, and what happens next. With `wait` in the query, the call answers
/// when the execution has ended or when that time has passed. The status is 202 if it hasn't ended. With the `run` of an
/// earlier run, the answer is as the execution was at the end of that.
pub async fn describe(service: &Service, id: &str, query: &[(String, String)]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let DescribeQuery { wait, run } = read::query(query)?;
    if let Some(run) = run {
        if wait.is_some() {
            return Err(Reject::field("wait", "expected none together with `run`").into());
        }
        let found = service.execution_in_run(&id, run.into()).await?;
        let (described, end) = found.ok_or(Reject::NoExecution)?;
        if let Some(end) = end {
            return Answer::ok(&ExecutionAnswer { execution: view::execution_of_run(&described, &end) });
        }
    }
    let described = match wait {
        Some(wait) => service.wait_for_execution(&id, wait.into()).await?,
        None => service.execution(&id).await?,
    };
    let Some(described) = described else { return Err(Reject::NoExecution.into()) };
    let is_live = described.execution.closed().is_none();
    let journal = if is_live { Some(service.journal_of(&described.execution).await?) } else { None };
    let execution = view::execution(&described, journal.as_deref(), service.now());
    Answer::new(if is_live && wait.is_some() { 202 } else { 200 }, &ExecutionAnswer { execution })
}

/// A page of a workflow's executions. The query is a list of names and values, already percent-decoded.
pub async fn list(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let query = request::executions(read::query(query)?);
    let page = service.executions(&query.of, query.limit, query.cursor.as_deref()).await?;
    let mut executions = Vec::with_capacity(page.items.len());
    for execution in page.items {
        // Each queue is read once in some seconds.
        let in_paused_queue = service.is_held_by_queue(&execution).await?;
        let described = Described { in_paused_queue, ..Described::inline(execution) };
        executions.push(view::execution(&described, None, service.now()));
    }
    Answer::ok(&ExecutionsAnswer { executions, cursor: page.next.map(Cursor) })
}

/// All workflows, with the number of executions of each status.
pub async fn workflows(service: &Service) -> Result<Answer, Problem> {
    let Some(counted) = service.count_executions().await? else { return Err(Problem::no_index()) };
    let mut workflows: Vec<WorkflowView> = vec![];
    for ExecutionCount { workflow, status, count } in counted.counts {
        if workflows.last().is_none_or(|last| last.workflow != workflow) {
            workflows.push(WorkflowView { workflow, executions: BTreeMap::new() });
        }
        if let Some(last) = workflows.last_mut() {
            last.executions.insert(status.as_str().to_owned(), count);
        }
    }
    Answer::ok(&WorkflowsAnswer {
        workflows,
        complete: counted.is_complete,
        read: counted.read,
        as_of: counted.at.into(),
    })
}

/// A part of the export of a run.
pub async fn export(service: &Service, id: &str, query: &[(String, String)]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let ExportQuery { run, payloads, cursor } = read::query(query)?;
    let payloads = payloads == Some(true);
    let page = service
        .export(&id, run.map(Into::into), payloads, cursor.as_ref().map(|Cursor(cursor)| cursor.as_str()))
        .await?;
    let entries: Result<_, Problem> = page.entries.iter().map(stored).collect();
    Answer::ok(&ExportAnswer {
        format: EXPORT_FORMAT,
        exported_at: page.at.into(),
        payloads,
        execution: stored(&page.execution)?,
        entries: entries?,
        cursor: page.next.map(Cursor),
    })
}

/// The timeline of a run.
pub async fn timeline_of(service: &Service, id: &str, query: &[(String, String)]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let TimelineQuery { run } = read::query(query)?;
    let described = service.execution(&id).await?;
    let Some(Described { execution, output, .. }) = described else { return Err(Reject::NoExecution.into()) };
    let (execution, mut run) = service.run(execution, run.map(Into::into)).await?;
    let closed_at = execution.closed().map(|closed| closed.ended_at);
    let over_at = run.end.as_ref().and_then(|end| end.continued_at).or(closed_at);
    let UnrecordedEnds { entries, unread } =
        service.unrecorded_ends(&execution, &run.journal, over_at).await?;
    run.journal.extend(entries);
    let inline = Described::inline(execution);
    // Payloads of an earlier run in items of their own aren't read: they may have expired.
    let described = if run.end.is_some() { inline } else { Described { output, ..inline } };
    let entries = view::timeline(&described, &run, service.now());
    let unread = u32::try_from(unread).ok().filter(|unread| *unread > 0);
    Answer::ok(&TimelineAnswer { id, run: described.execution.run, entries, unread })
}

/// A page of the earlier runs of an execution.
pub async fn runs(service: &Service, id: &str, query: &[(String, String)]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let query = request::page(read::query(query)?);
    let (execution, page) = service.earlier_runs(&id, query.limit, query.cursor.as_deref()).await?;
    let runs = page.items.iter().map(view::run).collect();
    Answer::ok(&RunsAnswer { id, run: execution.run, runs, cursor: page.next.map(Cursor) })
}

/// Shows only the payloads that are inline in the record: a call that has taken effect must not fail because a payload
/// can't be read.
fn inline(service: &Service, execution: Execution) -> ExecutionView {
    view::execution(&Described::inline(execution), None, service.now())
}

fn answer(service: &Service, changed: Result<Execution, ServiceError>) -> Result<Answer, Problem> {
    Answer::ok(&ExecutionAnswer { execution: inline(service, changed?) })
}
