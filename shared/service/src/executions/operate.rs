//! The operations of operators on executions.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{Command, EndedWith, Given, Rerun};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, required_expiry};
use tickover_core::id::{ExecutionId, QueueName, StepName};
use tickover_core::limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};

use super::close::Share;
use super::drive::is_closing;
use super::kept::{RUN_WAS_UNDONE, begun_from, is_failure, is_undoing, preserved, step_of, was_undone};
use super::remote::remote_id;
use crate::drive::Known;
use crate::drive::operated::Operated;
use crate::error::ServiceError;
use crate::service::Service;
use crate::tasks::operate::CancelReply;
use crate::tick::outgoing;

/// How long an operator's call waits until an execution that had ended can continue.
pub(super) const REOPENED_WITHIN: Millis = Millis::from_secs(10);
/// After this long, what a call may have left behind is looked after: as long as a worker's lease.
const LOOKED_AFTER: Millis = Millis::from_secs(60);
/// Why a step takes no input from an operator.
const OF_CODE: &str =
    "is the code's, unless the step has run as a task: rerun the execution with another input";

/// What a new run of an execution takes from the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// Steps and children that run again although they completed. Those that failed always do.
    pub steps: Vec<StepName>,
    /// A step or child that runs again, with all that began after it.
    pub from: Option<StepName>,
    /// Whether the results of all others are kept. If not, only captured values are.
    pub preserve: bool,
    /// Another input than the last run's.
    pub input: Option<Json>,
}

impl Service {
    /// Asks an execution to end: its code stops at its next step, and its undo steps run. If no code runs and nothing has to
    /// be undone, it ends at once.
    pub async fn cancel_execution(&self, id: &ExecutionId) -> Result<(Execution, CancelReply), ServiceError> {
        self.end(id, Command::Cancel).await
    }

    pub async fn terminate(&self, id: &ExecutionId) -> Result<(Execution, CancelReply), ServiceError> {
        self.end(id, Command::Terminate).await
    }

    async fn end(
        &self,
        id: &ExecutionId,
        command: Command,
    ) -> Result<(Execution, CancelReply), ServiceError> {
        let found = self.load_execution(id).await?;
        if let Some(execution) = &found
            && execution.closed().is_none()
            && (execution.open_steps > 0
                || execution.parent.is_some()
                || execution.is_run_of_cron()
                || execution.undoes
                || execution.on_cancel.is_some())
        {
            self.foretell(execution).await;
        }
        let known = found.map_or(Known::Unread, |execution| Known::Record(Box::new(execution)));
        let (execution, changed) = self.change_known(id, known, command).await?;
        let reply = CancelReply::of(execution.closed().is_some(), changed);
        Ok((execution, reply))
    }

    /// Sends a message that looks after the end of an execution with steps, children, a parent, a cron, or code that runs
    /// then. No message brings the call itself again, so without this one the tick's backstop would find what a process
    /// leaves behind that dies during it.
    pub(super) async fn foretell(&self, execution: &Execution) {
        if self.has_timers() {
            let timer = Timer::beforehand(execution.id.clone().into(), self.now());
            let messages: Vec<_> = outgoing(&Wake::Timer(timer), LOOKED_AFTER).into_iter().collect();
            self.send(&QueueName::timers(), &messages).await;
        }
    }

    /// Pauses an execution: it starts nothing new, but its deadlines keep running. Returns whether that changed
    /// anything.
    pub async fn pause(&self, id: &ExecutionId) -> Result<(Execution, bool), ServiceError> {
        self.change(id, Command::Pause).await
    }

    /// Resumes a paused execution, with its remote steps. Returns whether that changed anything.
    pub async fn resume(&self, id: &ExecutionId) -> Result<(Execution, bool), ServiceError> {
        // Their time stops before the pause is over: then it starts afresh, whatever process dies on the way.
        if let Some(paused) = self.load_execution(id).await?.filter(|execution| execution.paused) {
            self.hold_steps(&paused).await?;
        }
        let (execution, changed) = self.change(id, Command::Resume).await?;
        // Also if nothing has changed: this may be the same call, repeated.
        self.unpark_steps(&execution).await?;
        if let Some((gate, _)) = execution.waiting().item(self.now()) {
            // Nobody called it while it was paused.
            self.came_to_line(&gate, vec![]).await;
        }
        Ok((execution, changed))
    }

    /// Starts a new run of an execution that has ended, with the same input and fresh deadlines.
    pub async fn restart(&self, id: &ExecutionId) -> Result<Execution, ServiceError> {
        self.restart_of(id, None).await
    }

    /// The same for an execution that had ended by then.
    pub(crate) async fn restart_of(
        &self,
        id: &ExecutionId,
        ended_by: Option<Timestamp>,
    ) -> Result<Execution, ServiceError> {
        let command = Command::Restart(Rerun::default());
        self.reopen(id, Known::Unread, self.operated(command).if_ended_by(ended_by)).await
    }

    /// The same, with the results of the last run except those of these steps and of all steps that failed; without
    /// `preserve`, only captured values are kept.
    pub async fn rerun(
        &self,
        id: &ExecutionId,
        steps: &[StepName],
        preserve: bool,
    ) -> Result<Execution, ServiceError> {
        self.rerun_of(id, steps, preserve, None).await
    }

    /// The same for an execution that had ended by then.
    pub(crate) async fn rerun_of(
        &self,
        id: &ExecutionId,
        steps: &[StepName],
        preserve: bool,
        ended_by: Option<Timestamp>,
    ) -> Result<Execution, ServiceError> {
        let again = Again { steps: steps.to_vec(), preserve, from: None, input: None };
        self.run_again(id, again, ended_by).await
    }

    /// The same, from a step on, or with another input.
    pub async fn rerun_as(&self, id: &ExecutionId, again: Again) -> Result<Execution, ServiceError> {
        self.run_again(id, again, None).await
    }

    async fn run_again(
        &self,
        id: &ExecutionId,
        again: Again,
        ended_by: Option<Timestamp>,
    ) -> Result<Execution, ServiceError> {
        let Again { mut steps, preserve, from, input } = again;
        let Some(execution) = self.load_execution(id).await? else { return Err(Reject::NoExecution.into()) };
        let journal = self.journal_of(&execution).await?;
        let known = |name: &StepName| journal.iter().any(|entry| step_of(entry) == Some(name));
        if let Some(unknown) = steps.iter().chain(&from).find(|name| !known(name)) {
            return Err(Reject::UnknownStep { name: unknown.to_string() }.into());
        }
        if preserve && was_undone(&journal) {
            return Err(Reject::field("preserve", RUN_WAS_UNDONE).into());
        }
        // Whoever names steps, or all of them, wants them to be done once more.
        let is_same_work = preserve && steps.is_empty() && from.is_none() && input.is_none();
        steps.extend(from.iter().flat_map(|from| begun_from(&journal, from)));
        let preserved = preserved(&journal, &steps, preserve, is_same_work);
        let given = match input {
            Some(input) => Some(Box::new(self.given(&execution, input).await?)),
            None => None,
        };
        let command = Command::Restart(Rerun { preserved, is_same_work, given });
        let command = self.operated(command).if_ended_by(ended_by);
        self.reopen(id, Known::Record(Box::new(execution)), command).await
    }

    /// The payloads of a new run with another input: labels and memo stay.
    async fn given(&self, execution: &Execution, input: Json) -> Result<Given, ServiceError> {
        limits::check("input_bytes", input.len(), self.limits.payload_bytes)?;
        limits::check("json_depth", input.depth(), limits::JSON_DEPTH_MAX)?;
        let details = match &execution.details {
            Some(details) => Some(self.open(details).await?),
            None => None,
        };
        let blob_ids = [self.new_blob_id(), self.new_blob_id()];
        Ok(Given { input: Some(input), details, blob_ids })
    }

    /// Runs a step again in the same run, after the execution failed because of it.
    pub async fn retry_step(&self, id: &ExecutionId, name: StepName) -> Result<Execution, ServiceError> {
        self.retry_step_of(id, name, None, None).await
    }

    /// The same for a remote step, with another input.
    pub async fn retry_step_with(
        &self,
        id: &ExecutionId,
        name: StepName,
        input: Json,
    ) -> Result<Execution, ServiceError> {
        self.retry_step_of(id, name, Some(input), None).await
    }

    /// The same for an execution that had ended by then.
    pub(crate) async fn retry_step_of(
        &self,
        id: &ExecutionId,
        name: StepName,
        input: Option<Json>,
        ended_by: Option<Timestamp>,
    ) -> Result<Execution, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Err(Reject::NoExecution.into()) };
        let journal = self.journal_of(&execution).await?;
        let latest = journal.iter().rfind(|entry| step_of(entry) == Some(&name));
        let Some(latest) = latest else { return Err(Reject::UnknownStep { name: name.to_string() }.into()) };
        // The same call, repeated before anything has come of it: its hint is sent again.
        let is_repeated = execution.untouched_since().is_some_and(|(_, of)| of == Some(&name));
        if !is_failure(latest) && !is_repeated {
            return Err(Reject::field("step", "has not failed").into());
        }
        if !is_undoing(&name) && was_undone(&journal) {
            return Err(Reject::field("step", RUN_WAS_UNDONE).into());
        }
        let input = match input {
            Some(input) => Some(self.input_of_step(&execution, &journal, &name, input).await?),
            None => None,
        };
        let others = EndedWith::of(&execution, &journal, &name);
        let record = Known::Record(Box::new(execution));
        let command = self.operated(Command::RetryStep { name, input, others }).if_ended_by(ended_by);
        self.reopen(id, record, command).await
    }

    /// The stored input for a step that runs again with it. Only a remote step has one that the code doesn't give it.
    async fn input_of_step(
        &self,
        execution: &Execution,
        journal: &[Entry],
        name: &StepName,
        input: Json,
    ) -> Result<Payload, ServiceError> {
        let is_start = |entry: &Entry| matches!(&entry.what, Happened::Remote { name: of } if of == name);
        if !journal.iter().any(is_start) {
            return Err(Reject::field("input", OF_CODE).into());
        }
        if let Some(Entry { what: Happened::Reopened { name: of, input: Some(given), .. }, .. }) =
            journal.last()
            && of == name
            && self.payload(Some(given)).await?.as_ref() == Some(&input)
        {
            return Ok(given.clone());
        }
        // A task that goes on wouldn't take it. Without its record, the step begins anew.
        if self.load(&remote_id(execution, name)).await?.is_some_and(|task| task.ended().is_none()) {
            return Err(
                Reject::field("input", "the step's task hasn't ended: it was retried by itself").into()
            );
        }
        limits::check("input_bytes", input.len(), self.limits.payload_bytes)?;
        limits::check("json_depth", input.depth(), limits::JSON_DEPTH_MAX)?;
        self.store_payload(input).await
    }

    /// Continues an execution that may have ended. If needed, the retention of its segments and payloads is first
    /// extended; if that takes longer than the caller waits, repeating the call continues it.
    async fn reopen(
        &self,
        id: &ExecutionId,
        mut known: Known<Execution>,
        command: Operated<Command>,
    ) -> Result<Execution, ServiceError> {
        let stop_at = self.now().plus(REOPENED_WITHIN);
        if let Known::Unread = known
            && let Some(execution) = self.load_execution(id).await?
        {
            known = Known::Record(Box::new(execution));
        }
        // The process that closed it may have died before all of its steps and children had ended.
        if let Known::Record(execution) = &known
            && is_closing(execution)
        {
            let execution = self.finish(execution, stop_at, Share::Page).await?;
            known = Known::Record(Box::new(execution));
        }
        loop {
            let (execution, reply) = Box::pin(self.drive(id, known, &command)).await?.outcome?;
            let short = (reply == Reply::ExpiresTooSoon)
                .then(|| required_expiry(&execution, self.now(), &self.limits));
            let Some(to) = short.flatten() else { return Ok(execution) };
            let (kept, _) = self.extend_retention(execution, to, stop_at).await?;
            if self.now() >= stop_at {
                let reason =
                    "the retention of its results is still being extended; the same call continues that";
                return Err(ServiceError::unavailable(reason));
            }
            known = Known::Record(Box::new(kept));
        }
    }

    async fn change(&self, id: &ExecutionId, command: Command) -> Result<(Execution, bool), ServiceError> {
        self.change_known(id, Known::Unread, command).await
    }

    async fn change_known(
        &self,
        id: &ExecutionId,
        known: Known<Execution>,
        command: Command,
    ) -> Result<(Execution, bool), ServiceError> {
        let command = self.operated(command);
        let (execution, reply) = self.drive_to_close(id, known, &command, false).await?.outcome?;
        Ok((execution, reply != Reply::Changed { changed: false }))
    }
}
