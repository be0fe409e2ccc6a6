//! The calls of the HTTP API: one entry each, for the server, the clients and the document.

#[cfg(feature = "schema")]
use super::document::{Documented, documented};
#[cfg(feature = "schema")]
use crate::{answer, request};

routes! {
    /// Schedule a task.
    ///
    /// `id` or `idempotency_key` makes the call idempotent: repeating the same request answers with the task that it
    /// scheduled the first time.
    Schedule: POST "/v1/tasks" in tasks takes ScheduleRequest {
        201 TaskAnswer = "The task is scheduled.",
        200 TaskAnswer = "The same request had scheduled it before.",
    }

    /// List tasks.
    ///
    /// Nothing that happens to a task moves it in the list: a walk over the pages finds it once. A local server lists the
    /// latest scheduled first. On AWS, live tasks are listed by id and failed or timed-out ones by when they were scheduled,
    /// each through an index; for other statuses, for both together, or without `status`, the call scans the whole table, in
    /// no order.
    List: GET "/v1/tasks" in tasks finds TasksQuery {
        200 ListAnswer = "A page of tasks.",
    }

    /// Schedule many tasks.
    ///
    /// Each entry succeeds or fails on its own. `results` has one result for each, in order.
    ScheduleBatch: POST "/v1/tasks/batch" in tasks takes ScheduleBatchRequest {
        200 BatchAnswer = "One result for each entry.",
    }

    /// Describe a task.
    ///
    /// The answer has its payloads, its last attempts, all its instants, what happens next without any call, and when.
    Describe: GET "/v1/tasks/{id}" in tasks {
        200 TaskAnswer = "The task.",
    }

    /// Cancel a task.
    ///
    /// A task that waits ends at once. If a worker runs it, the answer to the worker's next heartbeat says that it is to be
    /// cancelled.
    Cancel: POST "/v1/tasks/{id}/cancel" in tasks may take CancelRequest {
        200 CancelAnswer = "What became of it.",
    }

    /// Retry a task that ended without a result. Its old deadline is cleared, and its timeout is of each attempt from then on.
    Retry: POST "/v1/tasks/{id}/retry" in tasks may take Nothing for operators {
        200 TaskAnswer = "The task waits again.",
    }

    /// Claim tasks from a queue.
    Claim: POST "/v1/queues/{queue}/claim" in workers may take ClaimRequest {
        200 ClaimAnswer = "Tasks; none if there are none.",
    }

    /// Claim one task by id.
    ///
    /// It is for workers that receive the queue's messages themselves. `max`, `wait`, `same_key` and `fill` have no
    /// effect here.
    ClaimById: POST "/v1/tasks/{id}/claim" in workers may take ClaimRequest {
        200 ClaimAnswer = "The task; none if it can't be had now.",
    }

    /// Report a result.
    Complete: POST "/v1/tasks/{id}/complete" in workers takes CompleteRequest {
        200 TaskAnswer = "The result is recorded.",
    }

    /// Report many results.
    ///
    /// Each entry succeeds or fails on its own. `results` has one result for each, in order.
    CompleteBatch: POST "/v1/tasks/complete" in workers takes CompleteBatchRequest {
        200 BatchAnswer = "One result for each entry.",
    }

    /// Report that an attempt failed.
    ///
    /// The task's retry policy decides whether there is another attempt, unless the error says that it isn't retryable.
    Fail: POST "/v1/tasks/{id}/fail" in workers takes FailRequest {
        200 TaskAnswer = "The failure is recorded.",
    }

    /// Send a heartbeat.
    ///
    /// It says that the worker and its work are alive: it extends the lease and restarts the heartbeat timeout. A worker that
    /// sends heartbeats by a timer sets `worker_only`: they extend the lease alone, so work that hangs is found. The answer has the time that is left and whether the task is to be
    /// cancelled. It never moves the deadline.
    Heartbeat: POST "/v1/tasks/{id}/heartbeat" in workers takes HeartbeatRequest {
        200 HeartbeatAnswer = "The lease is renewed.",
    }

    /// Release a task without a result. The attempt doesn't count, and another worker may claim the task at once.
    Release: POST "/v1/tasks/{id}/release" in workers takes ReleaseRequest {
        200 TaskAnswer = "The task waits again.",
    }

    /// Claim work of a queue for a program that runs workflows: tasks, and turns of executions.
    ///
    /// A turn comes with the run's journal, its input, and what its open steps and children have come to. Records and
    /// entries are as they are stored: `docs/workers.md` describes them. Every call of a turn has its lease.
    ClaimWork: POST "/v1/queues/{queue}/work/claim" in turns may take WorkRequest {
        200 WorkAnswer = "Work; none if there is none.",
    }

    /// Record what a turn has done, and extend its lease or end it.
    ///
    /// With `suspend`, the answer has the journal if the turn goes on: something has happened that the worker hasn't seen.
    /// `503 contended` means that others have written before the entries: the worker reads the journal again.
    WriteTurn: POST "/v1/executions/{id}/turn" in turns takes TurnWriteRequest {
        200 TurnAnswer = "It is recorded.",
    }

    /// Read the record of a turn, its journal from an entry on, outcomes, and large payloads.
    ReadTurn: POST "/v1/executions/{id}/turn/read" in turns takes TurnReadRequest {
        200 TurnAnswer = "What was asked for.",
    }

    /// Start remote steps and children of a turn. The worker records them afterwards.
    StartSteps: POST "/v1/executions/{id}/turn/start" in turns takes TurnStartRequest {
        200 TurnStartAnswer = "What exists now.",
    }

    /// Cancel remote steps that a turn no longer waits for.
    CancelSteps: POST "/v1/executions/{id}/turn/cancel" in turns takes TurnCancelRequest {
        200 TurnCancelAnswer = "None of them runs any more.",
    }

    /// Store a large payload of a turn. Entries then point to it.
    StorePayload: POST "/v1/executions/{id}/turn/payload" in turns takes TurnPayloadRequest {
        200 TurnPayloadAnswer = "The payload as entries have it.",
    }

    /// Make the token with which a wait of a turn ends.
    CreateWaitCallback: POST "/v1/executions/{id}/turn/callback" in turns takes TurnCallbackRequest {
        200 CallbackAnswer = "The token.",
    }

    /// Make a token with which somebody else ends the attempt.
    ///
    /// It needs no credentials, if the deployment allows callbacks. It is valid until the attempt's deadline, at most 30 days.
    CreateCallback: POST "/v1/tasks/{id}/callback" in workers takes CallbackRequest {
        200 CallbackAnswer = "The token.",
    }

    /// Report a result by callback.
    ///
    /// Every token that isn't valid gets the same answer, whatever is wrong with it: 404, `unknown_callback`.
    CompleteCallback: POST "/v1/callbacks/{token}/complete" in callbacks takes CallbackResult {
        200 ReceivedAnswer = "The result is recorded.",
    }

    /// Report an error by callback.
    FailCallback: POST "/v1/callbacks/{token}/fail" in callbacks takes CallbackFailure {
        200 ReceivedAnswer = "The error is recorded.",
    }

    /// Report by callback that somebody still works on it.
    CallbackHeartbeat: POST "/v1/callbacks/{token}/heartbeat" in callbacks takes Nothing {
        200 ReceivedAnswer = "It is recorded.",
    }

    /// List all queues with their depth.
    Queues: GET "/v1/queues" in queues {
        200 QueuesAnswer = "The queues, by name.",
    }

    /// List all queues with their workers.
    ///
    /// A worker is known by the calls in which it asks for work. It costs what the list of queues costs.
    Workers: GET "/v1/workers" in queues {
        200 WorkersAnswer = "The queues, by name.",
    }

    /// How much waits, runs, is late, needs somebody and has failed; and the queues.
    ///
    /// A local server counts all of it. On AWS it reads at most 2,000 open
    /// tasks, 500 failed ones, 500 failed executions, and the latest 1,000 executions, or without `TICKOVER_LISTS=all` the
    /// latest 100 of each of 20 workflows: at most 5,000 records, each 1.3 read units. A count says whether there may be more.
    /// An answer is used again for ten times as long as it took to make.
    Overview: GET "/v1/overview" in queues {
        200 OverviewAnswer = "The overview.",
    }

    /// What has failed or timed out, in groups: by kind or workflow, and by error.
    ///
    /// A local server counts all that is kept. On AWS it reads at most 5,000 tasks and 5,000 executions, those that were
    /// scheduled or started last, each 1.3 read units; `read_max` says so.
    Failures: GET "/v1/failures" in queues finds FailuresQuery {
        200 FailuresAnswer = "The groups, the largest first.",
    }

    /// What the queues did in the last day, in parts of five minutes.
    ///
    /// A local server keeps that in its file, of the first 50 queues by name. A deployment on AWS answers 501: the
    /// command-line tool and its dashboard read its metrics instead.
    History: GET "/v1/history" in queues finds HistoryQuery {
        200 HistoryAnswer = "The parts of the day.",
    }

    /// Describe a queue: its depth and its oldest waiting task.
    Queue: GET "/v1/queues/{queue}" in queues {
        200 QueueAnswer = "The queue.",
    }

    /// Pause a queue.
    ///
    /// Its tasks are not leased to workers until it is resumed. Their deadlines still apply.
    Pause: POST "/v1/queues/{queue}/pause" in queues may take Nothing for operators {
        200 QueueAnswer = "The queue is paused.",
    }

    /// Resume a queue.
    Resume: POST "/v1/queues/{queue}/resume" in queues may take Nothing for operators {
        200 QueueAnswer = "The queue is handed out again.",
    }

    /// List the kinds of a queue that have defaults.
    Kinds: GET "/v1/queues/{queue}/kinds" in queues {
        200 KindsAnswer = "The kinds, by name.",
    }

    /// Describe the defaults of a kind.
    Kind: GET "/v1/queues/{queue}/kinds/{kind}" in queues {
        200 KindAnswer = "The kind.",
    }

    /// Set the defaults of a kind, instead of those that it had.
    ///
    /// They count for tasks that are scheduled afterwards, within 5 s everywhere, or within a minute if the queue had no
    /// defaults before. What a task's own request gives goes before them. All kinds of a queue take at most 3 KiB together.
    SetKind: PUT "/v1/queues/{queue}/kinds/{kind}" in queues takes KindDefaults for operators {
        200 KindAnswer = "The kind has these defaults.",
    }

    /// Remove the defaults of a kind. Tasks that exist are not changed.
    DeleteKind: DELETE "/v1/queues/{queue}/kinds/{kind}" in queues for operators {
        200 DeletedKindAnswer = "The kind has no defaults.",
    }

    /// List the keys at which tasks or executions wait for a place.
    ///
    /// At most 50, each with its numbers. It costs some reads for each of them. A key with free places isn't listed.
    Limits: GET "/v1/limits" in limits {
        200 LimitsAnswer = "The limits.",
    }

    /// Show a key's limit: who has its places, and who waits.
    ///
    /// A key that no task has needed for an hour has no limit and nobody who waits.
    Limit: GET "/v1/limits/{key}" in limits {
        200 LimitAnswer = "The limit.",
    }

    /// Set a key's limit, whatever tasks ask for.
    ///
    /// It counts from the next place that is taken or given on. A lower limit takes no place away.
    SetLimit: PUT "/v1/limits/{key}" in limits takes LimitRequest for operators {
        200 LimitAnswer = "The limit is set.",
    }

    /// Give a key's limit back to the tasks: the latest task's limit counts again.
    UnsetLimit: DELETE "/v1/limits/{key}" in limits for operators {
        200 LimitAnswer = "The limit is no longer set.",
    }

    /// Take its place at a key from a task or an execution.
    ///
    /// The next one gets it. A task that had it loses its attempt at its next heartbeat, unless a place is free by then.
    ReleasePlace: DELETE "/v1/limits/{key}/holders/{holder}" in limits for operators {
        200 LimitAnswer = "The place is free, or the next one has it.",
    }

    /// Forget all starts by a key's rate: the next one comes at once.
    ///
    /// Whoever has a start reserved comes at its instant as before, and gets another one then.
    ResetRate: DELETE "/v1/limits/{key}/rate" in limits for operators {
        200 LimitAnswer = "Nothing of the rate is used.",
    }

    /// Start an execution.
    ///
    /// `id` makes the call idempotent: if an execution with this id exists, it is the answer, unless `policy` says
    /// otherwise.
    Start: POST "/v1/executions" in executions takes StartRequest {
        201 ExecutionAnswer = "The execution is started.",
        200 ExecutionAnswer = "There is one of this id.",
    }

    /// List executions of a workflow, latest first.
    ListExecutions: GET "/v1/executions" in executions finds ExecutionsQuery {
        200 ExecutionsAnswer = "A page of executions.",
    }

    /// List all workflows with the number of executions of each status.
    ///
    /// A local server counts all of them. A deployment on AWS with `TICKOVER_LISTS=all` reads its latest 1,000 executions for
    /// each answer, 1,320 read units, and `complete` says whether those are all. Without that option it has no list to
    /// read: 501.
    Workflows: GET "/v1/workflows" in executions {
        200 WorkflowsAnswer = "The workflows, by name.",
    }

    /// Describe an execution.
    ///
    /// The answer has its payloads, all its instants, what it waits for, what happens next without any call, and when. With
    /// `wait`, the call answers when the execution has its outcome or when that time has passed.
    DescribeExecution: GET "/v1/executions/{id}" in executions finds DescribeQuery {
        200 ExecutionAnswer = "The execution.",
        202 ExecutionAnswer = "It was waited for and hasn't ended yet.",
    }

    /// Cancel an execution.
    ///
    /// Its code stops at its next step, its undo steps run, and then its `on_cancel`. An execution that sleeps or waits and has
    /// nothing to undo ends at once. Code that handles a failure goes on.
    CancelExecution: POST "/v1/executions/{id}/cancel" in executions may take Nothing {
        200 ExecutionCancelAnswer = "What became of it.",
    }

    /// Terminate an execution: it ends at once, even while its code runs.
    Terminate: POST "/v1/executions/{id}/terminate" in executions may take Nothing for operators {
        200 ExecutionCancelAnswer = "What became of it.",
    }

    /// Pause an execution.
    ///
    /// It starts nothing new until it is resumed. Its deadlines still apply.
    PauseExecution: POST "/v1/executions/{id}/pause" in executions may take Nothing for operators {
        200 ExecutionChangeAnswer = "It is paused.",
    }

    /// Resume a paused execution.
    ResumeExecution: POST "/v1/executions/{id}/resume" in executions may take Nothing for operators {
        200 ExecutionChangeAnswer = "It goes on.",
    }

    /// Restart an execution that has ended: a new run with the same input and new deadlines.
    Restart: POST "/v1/executions/{id}/restart" in executions may take Nothing for operators {
        200 ExecutionAnswer = "Its new run waits.",
    }

    /// Rerun an execution that has ended, with results of its last run.
    ///
    /// It starts a new run with new deadlines. Steps that failed run again, and so do the steps that the request names.
    Rerun: POST "/v1/executions/{id}/rerun" in executions may take RerunRequest for operators {
        200 ExecutionAnswer = "Its new run waits.",
    }

    /// Retry the step because of which an execution failed.
    ///
    /// It goes on in the same run, and the results of other steps stay. A remote step may get another input. The call is rejected if the execution's own
    /// deadline has passed.
    RetryStep: POST "/v1/executions/{id}/steps/{name}/retry" in executions may take RetryStepRequest for operators {
        200 ExecutionAnswer = "The run goes on.",
    }

    /// Export a run of an execution, the current one by default, so that its code can be replayed elsewhere.
    ///
    /// The answer has the record and the journal as they are stored. The command-line tool joins its parts to one file.
    Export: GET "/v1/executions/{id}/export" in executions finds ExportQuery {
        200 ExportAnswer = "A part of the export.",
    }

    /// Show what happened to an execution.
    ///
    /// The answer has its start, the steps, sleeps, waits, events, fan-outs and children of a run, the current one by
    /// default, and its end.
    Timeline: GET "/v1/executions/{id}/timeline" in executions finds TimelineQuery {
        200 TimelineAnswer = "What happened.",
    }

    /// List the earlier runs of an execution, latest first.
    ///
    /// `continue_as_new`, a restart and a rerun each start another run. An earlier run is kept for as long as the execution
    /// would have been kept if it had ended then.
    Runs: GET "/v1/executions/{id}/runs" in executions finds PageQuery {
        200 RunsAnswer = "Its earlier runs.",
    }

    /// List what an execution's code has published: the last value of each name, through all runs.
    Values: GET "/v1/executions/{id}/values" in executions {
        200 ValuesAnswer = "The values, in the order of their names.",
    }

    /// Read a value that an execution has published (if none, `404 unknown_value`), or wait for a later version.
    Value: GET "/v1/executions/{id}/values/{name}" in executions finds ValueQuery {
        200 ValueAnswer = "The value. After a wait in vain, its version is the caller's.",
    }

    /// List and count an execution's pending events.
    Events: GET "/v1/executions/{id}/events" in executions finds PageQuery {
        200 EventsAnswer = "A page of events, oldest first.",
    }

    /// Send an event to an execution.
    ///
    /// The event is stored until the execution takes it. Events of one name are taken in the order in which they were sent.
    SendEvent: POST "/v1/executions/{id}/events/{name}" in executions finds EventQuery may take EventRequest {
        200 SendEventAnswer = "The event waits; or it is answered.",
        202 SendEventAnswer = "The event waits, and has no answer yet.",
    }

    /// Clear an execution's pending events of a name.
    ClearEvents: DELETE "/v1/executions/{id}/events/{name}" in executions {
        200 ClearEventsAnswer = "So many are gone.",
    }

    /// Create a cron.
    ///
    /// `id` makes the call idempotent: repeating the same request answers with the cron that it created the first time.
    CreateCron: POST "/v1/crons" in crons takes CronRequest for operators {
        201 CronAnswer = "The cron is made.",
        200 CronAnswer = "The same request had made it before.",
    }

    /// List crons.
    ListCrons: GET "/v1/crons" in crons finds PageQuery {
        200 CronsAnswer = "A page of crons.",
    }

    /// Describe a cron: what it starts, what happens next, and the statuses of its last runs.
    DescribeCron: GET "/v1/crons/{id}" in crons {
        200 CronAnswer = "The cron.",
    }

    /// Create or replace a cron.
    ///
    /// The work that it has started goes on, and its counts stay. Occurrences that wait for the end of an open run are
    /// dropped if the cron's instants or its runs' ids change.
    ReplaceCron: PUT "/v1/crons/{id}" in crons takes CronRequest for operators {
        201 CronAnswer = "The cron is made.",
        200 CronAnswer = "The cron is as asked for.",
    }

    /// Delete a cron. The work that it has started is not changed.
    DeleteCron: DELETE "/v1/crons/{id}" in crons for operators {
        200 DeletedAnswer = "The cron is deleted.",
    }

    /// Pause a cron. It starts no planned runs until it is resumed, and those in between not later either.
    PauseCron: POST "/v1/crons/{id}/pause" in crons may take Nothing for operators {
        200 CronAnswer = "The cron is paused.",
    }

    /// Resume a cron with its next occurrence.
    ResumeCron: POST "/v1/crons/{id}/resume" in crons may take Nothing for operators {
        200 CronAnswer = "The cron goes on.",
    }

    /// Start a run of a cron now, whatever runs are open. It doesn't count as a planned run.
    TriggerCron: POST "/v1/crons/{id}/trigger" in crons may take Nothing for operators {
        200 TriggerAnswer = "The run is started.",
    }

    /// Do the same with many executions or tasks.
    ///
    /// The operation is recorded and carried out page by page, also if processes die. `id` makes the call idempotent:
    /// repeating the same request answers with the operation that it started the first time.
    StartOperation: POST "/v1/operations" in operations takes OperationRequest for operators {
        201 OperationAnswer = "The operation is recorded.",
        200 OperationAnswer = "The same request had started it before.",
    }

    /// List operations, latest first. They are kept for seven days after their end.
    ListOperations: GET "/v1/operations" in operations finds PageQuery {
        200 OperationsAnswer = "A page of operations.",
    }

    /// Describe an operation: what it does, and how far it has come.
    DescribeOperation: GET "/v1/operations/{id}" in operations {
        200 OperationAnswer = "The operation.",
    }

    /// Stop an operation. The page that is under way is its last one (until then it is `stopping`); nothing is undone.
    StopOperation: POST "/v1/operations/{id}/stop" in operations may take Nothing for operators {
        200 OperationChangeAnswer = "The operation ends, or is over.",
    }

    /// Let an operation go on that was stopped or has failed, with the page after its last one. Others aren't changed.
    ResumeOperation: POST "/v1/operations/{id}/resume" in operations may take Nothing for operators {
        200 OperationChangeAnswer = "The operation goes on, or has completed.",
    }

    /// Check that the server answers.
    ///
    /// It doesn't read the store: a throttled table must not make a supervisor restart the server. It lists the names of
    /// records that couldn't be read at the start, and says why a local server's disk refuses writes.
    Health: GET "/healthz" in system {
        200 HealthAnswer = "It does.",
    }

    /// This document.
    Document: GET "/openapi.json" in system {
        200 = "The API in OpenAPI 3.1.",
    }
}
