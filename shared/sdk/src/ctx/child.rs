//! Other executions: children that this execution starts and waits for, and executions that it only waits for.

use std::fmt;
use std::fmt::Display;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::execution::command::{CodeTerms, StartPolicy};
use tickover_core::execution::journal::{CHILD_PREFIX, Happened, START_PREFIX};
use tickover_core::execution::replay::NameState;
use tickover_core::execution::{ExecutionTimeouts, Parent, ParentClosePolicy};
use tickover_core::flow::Priority;
use tickover_core::id::{ExecutionId, QueueName, StepName, WorkflowName};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::executions::StartRequest;

use super::operation::{Awaited, FirstPoll, Operation};
use super::step::{EndedBy, Stored, read_outcome};
use super::time::other_kind;
use crate::codec;
use crate::error::Failure;
use crate::options::IntoMillis;
use crate::options::asked::Asked;
use crate::step::StepError;
use crate::turn::need::Need;
use crate::turn::shared::Shared;
use crate::turn::state::{ClaimProblem, State};
use crate::workflow::Workflow;

/// A child execution that isn't started yet. Awaiting it starts it once and returns its result.
#[must_use = "a child is started when it is awaited"]
pub struct Child<O>(Awaited<ChildOperation<O>>);

impl<O: Stored> Child<O> {
    pub(super) fn new<I: Serialize>(shared: &Arc<Shared>, workflow: &Workflow<I, O>, input: &I) -> Self {
        let options = workflow.options();
        let CodeTerms { timeouts, on_failure, attempts: _ } =
            options.terms(workflow.failure_handler().is_some());
        let asked = workflow.asked(input);
        let input = codec::encode(input).map_err(|error| format!("its input can't be written: {error}"));
        let operation = ChildOperation {
            origin: Origin::Started {
                workflow: workflow.name(),
                queue: options.queue.to_owned(),
                input,
                timeouts,
                on_failure,
                policy: ParentClosePolicy::default(),
                asked: Box::new(asked),
            },
            id: None,
            label: None,
            name: None,
            _output: PhantomData,
        };
        Self(Awaited::new(shared, operation))
    }

    /// A copy of the operation, to wait for it in another way.
    pub(super) fn operation(&self) -> ChildOperation<O> {
        self.0.operation()
    }

    /// Sets the queue of its turns.
    pub(super) fn on_queue(mut self, chosen: &QueueName) -> Self {
        if let Origin::Started { queue, .. } = &mut self.0.operation.origin {
            chosen.as_str().clone_into(queue);
        }
        self
    }

    /// Sets the id of its execution, which is also its name if [`named`](Self::named) says no other. The same parent and
    /// workflow can start it again; an execution that anybody else has started makes the child fail with `id_conflict`.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.0.operation.id = Some(id.into());
        self
    }

    /// Sets its name in the run. Without an [`id`](Self::id), its id follows from this execution and this name.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn parcel(_: Ctx, number: u32) -> Result<u32> { Ok(number) }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, parcels: u32) -> Result<u32> {
    ///     let children = (0..parcels).map(|number| ctx.child(&parcel, number).named(format!("parcel[{number}]")));
    ///     Ok(ctx.join_children(children).await?.iter().sum())
    /// }
    /// # assert_eq!(tickover::test::outcome((order, parcel), &order, 4), 6);
    /// ```
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.0.operation.label = Some(name.into());
        self
    }

    /// Sets what happens to the child if it is still open when this execution closes. By default it continues.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// use tickover::ParentClosePolicy;
    /// use tickover::client::ExecutionStatus;
    ///
    /// # #[tickover::workflow]
    /// # async fn watch(ctx: Ctx, (): ()) -> Result<()> { ctx.sleep("watch", "30d").await }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, (): ()) -> Result<()> {
    ///     // The child ends with its parent.
    ///     ctx.child(&watch, ()).id("watch-7").policy(ParentClosePolicy::Terminate).start().await?;
    ///     ctx.sleep("work", "1h").await
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let env = TestEnv::new().workflow((order, watch));
    /// # env.start(&order, ()).await.unwrap().result().await.unwrap();
    /// let child = env.client().handle::<()>("watch-7").unwrap();
    /// assert_eq!(child.describe().await.unwrap().status, ExecutionStatus::Cancelled);
    /// # }
    /// ```
    pub fn policy(mut self, chosen: ParentClosePolicy) -> Self {
        if let Origin::Started { policy, .. } = &mut self.0.operation.origin {
            *policy = chosen;
        }
        self
    }
}

impl<O: Stored> Child<O> {
    /// Lets at most `limit` executions and tasks of this key be in progress at once; up to three keys. The child has its
    /// place from its first turn until its outcome is final. Its parent must not have a place at the same key.
    pub fn concurrency(self, key: impl Display, limit: u16) -> Self {
        self.asking(|asked| asked.concurrency(key, limit))
    }

    /// Lets at most `limit` executions of this key start in each `per`, evenly spread.
    pub fn rate(self, key: impl Display, limit: u32, per: impl IntoMillis) -> Self {
        self.asking(|asked| asked.rate(key, limit, per))
    }

    /// Lets so many of the rate's executions start at once after a quiet time; by default one.
    pub fn burst(self, burst: u32) -> Self {
        self.asking(|asked| asked.burst(burst))
    }

    /// Sets which turns of its queue start first, instead of its parent's priority.
    pub fn priority(self, priority: Priority) -> Self {
        self.asking(|asked| asked.priority(priority))
    }

    /// Makes the executions of this key one tenant of their queue, instead of its parent's key.
    pub fn fairness_key(self, key: impl Display) -> Self {
        self.asking(|asked| asked.fairness_key(key))
    }

    fn asking(mut self, change: impl FnOnce(Asked) -> Asked) -> Self {
        if let Origin::Started { asked, .. } = &mut self.0.operation.origin {
            **asked = change(std::mem::take(asked));
        }
        self
    }

    /// Starts the child without waiting for its end. The future is ready when the start is stored or has failed. The
    /// result can be awaited later, or not at all.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn parcel(ctx: Ctx, number: u32) -> Result<u32> { ctx.sleep("transport", "2d").await?; Ok(number) }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, number: u32) -> Result<u32> {
    ///     let child = ctx.child(&parcel, number).start().await?;
    ///     ctx.sleep("invoice", "1h").await?; // while the child goes on
    ///     Ok(child.result().await?)
    /// }
    /// # assert_eq!(tickover::test::outcome((order, parcel), &order, 7), 7);
    /// ```
    pub fn start(self) -> StartChild<O> {
        let shared = Arc::clone(self.0.turn());
        let start = StartOperation { child: self.0.operation(), names: None };
        StartChild(Awaited::new(&shared, start), shared)
    }
}

/// A child that is being started; see [`Child::start`].
#[must_use = "a child is started when it is awaited"]
pub struct StartChild<O>(Awaited<StartOperation<O>>, Arc<Shared>);

impl<O: Stored> Future for StartChild<O> {
    type Output = Result<StartedChild<O>, StepError<Failure>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = Arc::clone(&self.1);
        self.0.poll_unpin(context).map(|started| {
            started.map(|child| {
                let id = child.id(&shared.lock());
                StartedChild { shared, child, id }
            })
        })
    }
}

/// A child that was started. It continues even if its result is never awaited.
pub struct StartedChild<O> {
    pub(super) shared: Arc<Shared>,
    child: ChildOperation<O>,
    id: String,
}

impl<O: Stored> StartedChild<O> {
    /// The id of its execution.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for its result.
    pub fn result(self) -> BoxFuture<'static, Result<O, StepError<Failure>>> {
        Awaited::new(&self.shared, self.child).boxed()
    }
}

impl<O> fmt::Debug for StartedChild<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StartedChild").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<O: Stored> Future for Child<O> {
    type Output = Result<O, StepError<Failure>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_unpin(context)
    }
}

/// Prefix of the name of an execution that this one didn't start.
const FOUND: &str = "execution:";
/// The most characters of a name in an id that follows from it.
const NAME_KEPT: usize = 20;

/// A wait for the end of another execution.
pub(super) struct ChildOperation<O> {
    origin: Origin,
    id: Option<String>,
    /// Its name, as the code says it.
    label: Option<String>,
    name: Option<StepName>,
    _output: PhantomData<fn() -> O>,
}

#[derive(Clone)]
enum Origin {
    /// This execution starts it.
    Started {
        workflow: &'static str,
        queue: String,
        input: Result<Json, String>,
        timeouts: ExecutionTimeouts,
        on_failure: Option<Millis>,
        policy: ParentClosePolicy,
        asked: Box<Asked>,
    },
    /// This execution doesn't start it.
    Found,
}

impl<O> Clone for ChildOperation<O> {
    fn clone(&self) -> Self {
        let (origin, id) = (self.origin.clone(), self.id.clone());
        Self { origin, id, label: self.label.clone(), name: self.name.clone(), _output: PhantomData }
    }
}

impl<O> ChildOperation<O> {
    pub(super) fn found(id: String) -> Self {
        Self { origin: Origin::Found, id: Some(id), label: None, name: None, _output: PhantomData }
    }

    /// Its name in the journal, without the failure handler's prefix.
    fn text(&self) -> String {
        let said = self.label.as_deref().or(self.id.as_deref());
        match &self.origin {
            Origin::Started { workflow, .. } => format!("{CHILD_PREFIX}{}", said.unwrap_or(workflow)),
            Origin::Found => format!("{FOUND}{}", said.unwrap_or_default()),
        }
    }

    /// The id of its execution: what the code says, or what follows from this execution and the name.
    fn id(&self, state: &State) -> String {
        self.id.clone().unwrap_or_else(|| {
            let text = self.text();
            let name = text.strip_prefix(CHILD_PREFIX).unwrap_or_default();
            format!("{}-{}", plain(name), state.facts.identity_in_all_runs(&text))
        })
    }

    /// Its name in the journal, once it has claimed it.
    pub(super) const fn name(&self) -> Option<&StepName> {
        self.name.as_ref()
    }

    fn invalid(&self, problem: impl Display) -> StepError<Failure> {
        StepError::Invalid { step: self.text(), problem: problem.to_string() }
    }

    fn start(&self, state: &State, name: &StepName) -> Result<StartRequest, StepError<Failure>> {
        let Origin::Started { workflow, queue, input, timeouts, on_failure, policy, asked } = &self.origin
        else {
            return Err(self.invalid("this execution doesn't start it"));
        };
        let id =
            ExecutionId::parse(self.id(state)).map_err(|error| self.invalid(format!("the id {error}")))?;
        let workflow = WorkflowName::parse(*workflow).map_err(|error| self.invalid(error))?;
        let queue = QueueName::parse(queue.as_str()).map_err(|error| self.invalid(error))?;
        let input = input.clone().map_err(|problem| self.invalid(problem))?;
        let flow = asked.checked().map_err(|(_, problem)| self.invalid(problem))?;
        if let Some(problem) = state.facts.own_key(flow) {
            return Err(self.invalid(problem));
        }
        let parent = Parent {
            execution: state.facts.execution.clone(),
            incarnation: state.facts.incarnation,
            run: state.facts.run,
            again: state.replay.times_reopened(name),
            slot: None,
            step: None,
            work: None,
            on_close: *policy,
        };
        Ok(StartRequest {
            id: Some(id),
            input: Some(input),
            timeouts: *timeouts,
            on_failure: *on_failure,
            parent: Some(parent),
            lane: asked.lane_within(state.facts.lane),
            flow: Box::new(flow.clone()),
            policy: StartPolicy::UseExisting,
            ..StartRequest::new(workflow, queue)
        })
    }

    /// Its name. The first call claims it.
    fn claimed(&mut self, state: &mut State) -> Result<StepName, FirstPoll<StepError<Failure>>> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        match state.claim(&self.text()) {
            Ok(name) => {
                if let Origin::Started { input, .. } = &self.origin {
                    state.note_input(|| input.clone().ok());
                }
                Ok(self.name.insert(name).clone())
            }
            Err(ClaimProblem::Refused(problem)) => Err(FirstPoll::Ready(self.invalid(problem))),
            Err(ClaimProblem::Over) => Err(FirstPoll::Over),
        }
    }

    /// What it needs if the journal has nothing about it.
    fn first(&self, state: &mut State, now: Timestamp, name: StepName) -> Result<Need, StepError<Failure>> {
        match &self.origin {
            Origin::Started { policy, .. } => {
                let policy = *policy;
                let start = Box::new(self.start(state, &name)?);
                Ok(Need::Child { name, start, policy, started: None })
            }
            Origin::Found => {
                let id = ExecutionId::parse(self.id(state));
                let execution = id.map_err(|error| self.invalid(format!("the id {error}")))?;
                let (of, policy) = (name.clone(), ParentClosePolicy::Abandon);
                let what = Happened::Child { name: of, execution, policy, left: false, was_left: false };
                state.replay.push(now, what);
                state.needs_read = true;
                Ok(probe_later(name, now, now))
            }
        }
    }
}

/// A name as a part of an id.
pub(super) fn plain(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    plain.take(NAME_KEPT).collect()
}

/// A periodic probe of another execution. The interval is a quarter of the time waited so far, between 2 s and 300 s.
pub(crate) fn probe_later(name: StepName, since: Timestamp, now: Timestamp) -> Need {
    const SOONEST: Millis = Millis::from_secs(2);
    const LATEST: Millis = Millis::from_secs(300);
    let waited = now.since(since).as_u64();
    let after = Millis::new(waited / 4).clamp(SOONEST, LATEST);
    Need::Elsewhere { name, since, probe_at: now.plus(after) }
}

impl<O: Stored> Operation for ChildOperation<O> {
    type Output = Result<O, StepError<Failure>>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let name = match self.claimed(state) {
            Ok(name) => name,
            Err(poll) => return poll.map(Err),
        };
        if matches!(self.origin, Origin::Found) && self.id(state) == state.facts.execution.as_str() {
            return FirstPoll::Ready(Err(
                self.invalid("it is this execution, which can't end while it waits")
            ));
        }
        let need = match state.replay.name_state(&name) {
            NameState::Ended { .. } => Ok(Need::Outcome { name }),
            NameState::Child { since, .. } => Ok(match self.origin {
                Origin::Started { .. } => Need::Outcome { name },
                Origin::Found => probe_later(name, *since, now),
            }),
            NameState::Fresh => self.first(state, now, name),
            other => {
                let found = other.kind();
                return other_kind(state, &self.text(), found);
            }
        };
        match need {
            Ok(need) => FirstPoll::Needs(need),
            Err(error) => FirstPoll::Ready(Err(error)),
        }
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let NameState::Ended { outcome, attempts, expired, last_error } =
            state.replay.name_state(self.name.as_ref()?).clone()
        else {
            return Some(Err(self.invalid("the journal has no outcome of it")));
        };
        let ended = EndedBy { attempts: attempts.unwrap_or(1), expired, last_error };
        read_outcome(state, &self.text(), &outcome, ended)
    }
}

/// A wait for a child's start.
pub(super) struct StartOperation<O> {
    child: ChildOperation<O>,
    /// The names of the start and of the child.
    names: Option<(StepName, StepName)>,
}

impl<O> StartOperation<O> {
    fn names(&mut self, state: &mut State) -> Result<(StepName, StepName), FirstPoll<StepError<Failure>>> {
        // The child's name first: an error should have the name that people know.
        let child = self.child.claimed(state)?;
        let start = match state.claim(&format!("{START_PREFIX}{}", self.child.text())) {
            Ok(start) => start,
            Err(ClaimProblem::Refused(problem)) => return Err(FirstPoll::Ready(self.child.invalid(problem))),
            Err(ClaimProblem::Over) => return Err(FirstPoll::Over),
        };
        Ok((start, child))
    }
}

impl<O: Stored> Operation for StartOperation<O> {
    type Output = Result<ChildOperation<O>, StepError<Failure>>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let (start, child) = match self.names(state) {
            Ok(names) => names,
            Err(poll) => return poll.map(Err),
        };
        self.names = Some((start.clone(), child.clone()));
        if !state.replay.name_state(&start).is_fresh() {
            return FirstPoll::Needs(Need::Outcome { name: start });
        }
        match self.child.first(state, now, child) {
            Ok(Need::Child { name, start: request, policy, .. }) => {
                FirstPoll::Needs(Need::Child { name, start: request, policy, started: Some(start) })
            }
            Ok(_) => FirstPoll::Ready(Err(self.child.invalid("this execution doesn't start it"))),
            Err(error) => FirstPoll::Ready(Err(error)),
        }
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let (_, child) = self.names.as_ref()?;
        let text = self.child.text();
        match state.replay.name_state(child).clone() {
            // The start failed: only the entry of a failed start has a number of attempts.
            NameState::Ended { outcome, attempts: Some(attempts), expired, last_error } => {
                let by = EndedBy { attempts, expired, last_error };
                let ended: Result<O, _> = read_outcome(state, &text, &outcome, by)?;
                Some(ended.and_then(|_| Err(self.child.invalid("it wasn't started"))))
            }
            _ => Some(Ok(self.child.clone())),
        }
    }
}
