//! Other executions: children that are started and waited for, and those that somebody else started.

use std::fmt::Display;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::replay::Standing;
use tickover_core::execution::{ExecutionTimeouts, Parent, ParentClosePolicy};
use tickover_core::id::{ExecutionId, QueueName, StepName, WorkflowName};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::executions::StartRequest;

use super::operation::{Awaited, Look, Operation};
use super::step::{Stored, read_outcome};
use crate::codec;
use crate::error::Failure;
use crate::step::StepError;
use crate::turn::ON_FAILURE;
use crate::turn::state::{ClaimProblem, Need, Shared, State};
use crate::workflow::Workflow;

/// A child execution: started once, waited for by whoever awaits it.
#[must_use = "a child is started when it is awaited"]
pub struct Child<O>(Awaited<ChildOperation<O>>);

impl<O: Stored> Child<O> {
    pub(super) fn new<I: Serialize>(
        shared: &Arc<Shared>,
        workflow: &Workflow<I, O>,
        id: String,
        input: &I,
    ) -> Self {
        let options = workflow.options();
        let input = codec::encode(input).map_err(|error| format!("its input can't be written: {error}"));
        let operation = ChildOperation {
            what: What::Started {
                workflow: workflow.name(),
                queue: options.queue.to_owned(),
                input,
                timeouts: ExecutionTimeouts {
                    execution: options.execution_timeout,
                    run: options.run_timeout,
                },
                on_failure: workflow
                    .failure_handler()
                    .map(|_| options.on_failure_timeout.unwrap_or(ON_FAILURE)),
                policy: ParentClosePolicy::default(),
            },
            id,
            name: None,
            began: false,
            _output: PhantomData,
        };
        Self(Awaited::new(shared, operation))
    }

    /// What becomes of the child if it is still open when this execution closes. By default it goes on.
    pub fn policy(mut self, chosen: ParentClosePolicy) -> Self {
        if let What::Started { policy, .. } = &mut self.0.operation.what {
            *policy = chosen;
        }
        self
    }
}

impl<O: Stored> Future for Child<O> {
    type Output = Result<O, StepError<Failure>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_unpin(context)
    }
}

/// What the name of a child begins with.
const STARTED: &str = "child:";
/// What the name of an execution begins with that somebody else started.
const FOUND: &str = "execution:";

/// Whether the execution that this name stands for was started as a child here.
pub(crate) fn is_ours(name: &StepName, id: &ExecutionId) -> bool {
    let before = name.as_str().strip_suffix(id.as_str());
    // The code that deals with a failure has a prefix of its own before that.
    before.is_some_and(|before| before.ends_with(STARTED))
}

/// Another execution's end.
pub(super) struct ChildOperation<O> {
    what: What,
    id: String,
    name: Option<StepName>,
    began: bool,
    _output: PhantomData<fn() -> O>,
}

enum What {
    /// Started by this one.
    Started {
        workflow: &'static str,
        queue: String,
        input: Result<Json, String>,
        timeouts: ExecutionTimeouts,
        on_failure: Option<Millis>,
        policy: ParentClosePolicy,
    },
    /// Started by somebody else.
    Found,
}

impl<O> ChildOperation<O> {
    pub(super) fn found(id: String) -> Self {
        Self { what: What::Found, id, name: None, began: false, _output: PhantomData }
    }

    /// What stands for it in the journal.
    fn text(&self) -> String {
        match &self.what {
            What::Started { .. } => format!("{STARTED}{}", self.id),
            What::Found => format!("{FOUND}{}", self.id),
        }
    }

    fn invalid(&self, problem: impl Display) -> StepError<Failure> {
        StepError::Invalid { step: self.text(), problem: problem.to_string() }
    }

    fn start(&self, state: &State) -> Result<StartRequest, StepError<Failure>> {
        let What::Started { workflow, queue, input, timeouts, on_failure, policy } = &self.what else {
            return Err(self.invalid("it isn't ours to start"));
        };
        let id =
            ExecutionId::parse(self.id.as_str()).map_err(|error| self.invalid(format!("the id {error}")))?;
        let workflow = WorkflowName::parse(*workflow).map_err(|error| self.invalid(error))?;
        let queue = QueueName::parse(queue.as_str()).map_err(|error| self.invalid(error))?;
        let input = input.clone().map_err(|problem| self.invalid(problem))?;
        let parent = Parent {
            execution: state.facts.execution.clone(),
            incarnation: state.facts.incarnation,
            run: state.facts.run,
            slot: None,
            on_close: *policy,
        };
        Ok(StartRequest {
            id: Some(id),
            input: Some(input),
            timeouts: *timeouts,
            on_failure: *on_failure,
            parent: Some(parent),
            policy: StartPolicy::UseExisting,
            ..StartRequest::new(workflow, queue)
        })
    }

    fn begin(
        &mut self,
        state: &mut State,
        now: Timestamp,
        name: StepName,
    ) -> Result<Need, StepError<Failure>> {
        match &self.what {
            What::Started { policy, .. } => {
                let policy = *policy;
                Ok(Need::Child { name, start: Box::new(self.start(state)?), policy })
            }
            What::Found => {
                let id = ExecutionId::parse(self.id.as_str());
                let execution = id.map_err(|error| self.invalid(format!("the id {error}")))?;
                let policy = ParentClosePolicy::Abandon;
                state.replay.push(now, Happened::Child { name, execution, policy });
                Ok(elsewhere(now, now))
            }
        }
    }
}

/// A look now and then: the longer it has been waited for, the more seldom.
pub(crate) fn elsewhere(since: Timestamp, now: Timestamp) -> Need {
    const SOONEST: Millis = Millis::from_secs(2);
    const LATEST: Millis = Millis::from_secs(300);
    let waited = now.since(since).as_u64();
    let after = Millis::new(waited / 4).clamp(SOONEST, LATEST);
    Need::Elsewhere { since, look_at: now.plus(after) }
}

impl<O: Stored> Operation for ChildOperation<O> {
    type Output = Result<O, StepError<Failure>>;

    fn look(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output> {
        let text = self.text();
        let name = match &self.name {
            Some(name) => name.clone(),
            None => match state.claim(&text) {
                Ok(name) => name,
                Err(ClaimProblem::Refused(problem)) => return Look::Ready(Err(self.invalid(problem))),
                Err(ClaimProblem::Over) => return Look::Waits,
            },
        };
        self.name = Some(name.clone());
        match state.replay.standing(&name).clone() {
            Standing::Ended { outcome, attempts } => {
                read_outcome(state, &text, &outcome, attempts.unwrap_or(1))
            }
            _ if std::mem::replace(&mut self.began, true) => Look::Waits,
            Standing::Child { since, .. } => match self.what {
                What::Started { .. } => Look::Needs(Need::Outcome { name }),
                What::Found => Look::Needs(elsewhere(since, now)),
            },
            Standing::Fresh => match self.begin(state, now, name) {
                Ok(need) => {
                    state.look |= matches!(need, Need::Elsewhere { .. });
                    Look::Needs(need)
                }
                Err(error) => Look::Ready(Err(error)),
            },
            other => {
                let problem = format!("the run remembers {} of that name", other.kind());
                Look::Ready(Err(self.invalid(problem)))
            }
        }
    }
}
