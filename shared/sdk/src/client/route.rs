//! The method and the path of each call of the HTTP API.

use super::call::Route;

impl Route {
    /// The method, and the path's segments.
    pub(super) fn address(&self) -> (&'static str, Vec<&str>) {
        let (method, path): (_, &[&str]) = match self {
            Self::Health => ("GET", &["healthz"]),

            Self::Schedule => ("POST", &["v1", "tasks"]),
            Self::Task(id) => ("GET", &["v1", "tasks", id.as_str()]),
            Self::Tasks => ("GET", &["v1", "tasks"]),
            Self::CancelTask(id) => ("POST", &["v1", "tasks", id.as_str(), "cancel"]),
            Self::RetryTask(id) => ("POST", &["v1", "tasks", id.as_str(), "retry"]),

            Self::Claim(queue) => ("POST", &["v1", "queues", queue.as_str(), "claim"]),
            Self::Heartbeat(id) => ("POST", &["v1", "tasks", id.as_str(), "heartbeat"]),
            Self::Complete(id) => ("POST", &["v1", "tasks", id.as_str(), "complete"]),
            Self::Fail(id) => ("POST", &["v1", "tasks", id.as_str(), "fail"]),
            Self::Release(id) => ("POST", &["v1", "tasks", id.as_str(), "release"]),

            Self::CreateCallback(id) => ("POST", &["v1", "tasks", id.as_str(), "callback"]),
            Self::CompleteCallback(token) => ("POST", &["v1", "callbacks", token, "complete"]),
            Self::FailCallback(token) => ("POST", &["v1", "callbacks", token, "fail"]),
            Self::CallbackHeartbeat(token) => ("POST", &["v1", "callbacks", token, "heartbeat"]),

            Self::Queues => ("GET", &["v1", "queues"]),
            Self::Queue(queue) => ("GET", &["v1", "queues", queue.as_str()]),
            Self::PauseQueue(queue) => ("POST", &["v1", "queues", queue.as_str(), "pause"]),
            Self::ResumeQueue(queue) => ("POST", &["v1", "queues", queue.as_str(), "resume"]),

            Self::Kinds(queue) => ("GET", &["v1", "queues", queue.as_str(), "kinds"]),
            Self::Kind(queue, kind) => ("GET", &["v1", "queues", queue.as_str(), "kinds", kind.as_str()]),
            Self::SetKind(queue, kind) => ("PUT", &["v1", "queues", queue.as_str(), "kinds", kind.as_str()]),
            Self::DeleteKind(queue, kind) => {
                ("DELETE", &["v1", "queues", queue.as_str(), "kinds", kind.as_str()])
            }

            Self::Start => ("POST", &["v1", "executions"]),
            Self::Execution(id) => ("GET", &["v1", "executions", id.as_str()]),
            Self::Executions => ("GET", &["v1", "executions"]),
            Self::Workflows => ("GET", &["v1", "workflows"]),
            Self::Timeline(id) => ("GET", &["v1", "executions", id.as_str(), "timeline"]),
            Self::Runs(id) => ("GET", &["v1", "executions", id.as_str(), "runs"]),
            Self::Export(id) => ("GET", &["v1", "executions", id.as_str(), "export"]),
            Self::Cancel(id) => ("POST", &["v1", "executions", id.as_str(), "cancel"]),
            Self::Terminate(id) => ("POST", &["v1", "executions", id.as_str(), "terminate"]),
            Self::Pause(id) => ("POST", &["v1", "executions", id.as_str(), "pause"]),
            Self::Resume(id) => ("POST", &["v1", "executions", id.as_str(), "resume"]),
            Self::Restart(id) => ("POST", &["v1", "executions", id.as_str(), "restart"]),
            Self::Rerun(id) => ("POST", &["v1", "executions", id.as_str(), "rerun"]),
            Self::RetryStep(id, step) => {
                ("POST", &["v1", "executions", id.as_str(), "steps", step.as_str(), "retry"])
            }
            Self::Events(id) => ("GET", &["v1", "executions", id.as_str(), "events"]),
            Self::SendEvent(id, name) => {
                ("POST", &["v1", "executions", id.as_str(), "events", name.as_str()])
            }
            Self::ClearEvents(id, name) => {
                ("DELETE", &["v1", "executions", id.as_str(), "events", name.as_str()])
            }

            Self::CreateCron => ("POST", &["v1", "crons"]),
            Self::ReplaceCron(id) => ("PUT", &["v1", "crons", id.as_str()]),
            Self::Cron(id) => ("GET", &["v1", "crons", id.as_str()]),
            Self::Crons => ("GET", &["v1", "crons"]),
            Self::PauseCron(id) => ("POST", &["v1", "crons", id.as_str(), "pause"]),
            Self::ResumeCron(id) => ("POST", &["v1", "crons", id.as_str(), "resume"]),
            Self::TriggerCron(id) => ("POST", &["v1", "crons", id.as_str(), "trigger"]),
            Self::DeleteCron(id) => ("DELETE", &["v1", "crons", id.as_str()]),

            Self::Limit(key) => ("GET", &["v1", "limits", key]),
            Self::SetLimit(key) => ("PUT", &["v1", "limits", key]),
            Self::UnsetLimit(key) => ("DELETE", &["v1", "limits", key]),
            Self::ResetRate(key) => ("DELETE", &["v1", "limits", key, "rate"]),
            Self::ReleasePlace(key, holder) => ("DELETE", &["v1", "limits", key, "holders", holder]),

            Self::StartOperation => ("POST", &["v1", "operations"]),
            Self::Operation(id) => ("GET", &["v1", "operations", id.as_str()]),
            Self::Operations => ("GET", &["v1", "operations"]),
            Self::StopOperation(id) => ("POST", &["v1", "operations", id.as_str(), "stop"]),
        };
        (method, path.to_vec())
    }
}
