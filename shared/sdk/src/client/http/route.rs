//! The method and the path of each call of the HTTP API.

use reqwest::Method;

use crate::client::call::Route;

impl Route {
    /// The method, and the path's segments.
    pub(super) fn address(&self) -> (Method, Vec<&str>) {
        let (method, path): (_, &[&str]) = match self {
            Self::Health => (Method::GET, &["healthz"]),

            Self::Schedule => (Method::POST, &["v1", "tasks"]),
            Self::Task(id) => (Method::GET, &["v1", "tasks", id.as_str()]),
            Self::Tasks => (Method::GET, &["v1", "tasks"]),
            Self::CancelTask(id) => (Method::POST, &["v1", "tasks", id.as_str(), "cancel"]),
            Self::RetryTask(id) => (Method::POST, &["v1", "tasks", id.as_str(), "retry"]),

            Self::Claim(queue) => (Method::POST, &["v1", "queues", queue.as_str(), "claim"]),
            Self::Heartbeat(id) => (Method::POST, &["v1", "tasks", id.as_str(), "heartbeat"]),
            Self::Complete(id) => (Method::POST, &["v1", "tasks", id.as_str(), "complete"]),
            Self::Fail(id) => (Method::POST, &["v1", "tasks", id.as_str(), "fail"]),
            Self::Release(id) => (Method::POST, &["v1", "tasks", id.as_str(), "release"]),

            Self::CreateCallback(id) => (Method::POST, &["v1", "tasks", id.as_str(), "callback"]),
            Self::CompleteCallback(token) => (Method::POST, &["v1", "callbacks", token, "complete"]),
            Self::FailCallback(token) => (Method::POST, &["v1", "callbacks", token, "fail"]),
            Self::CallbackHeartbeat(token) => (Method::POST, &["v1", "callbacks", token, "heartbeat"]),

            Self::Queues => (Method::GET, &["v1", "queues"]),
            Self::Queue(queue) => (Method::GET, &["v1", "queues", queue.as_str()]),
            Self::PauseQueue(queue) => (Method::POST, &["v1", "queues", queue.as_str(), "pause"]),
            Self::ResumeQueue(queue) => (Method::POST, &["v1", "queues", queue.as_str(), "resume"]),

            Self::Kinds(queue) => (Method::GET, &["v1", "queues", queue.as_str(), "kinds"]),
            Self::Kind(queue, kind) => {
                (Method::GET, &["v1", "queues", queue.as_str(), "kinds", kind.as_str()])
            }
            Self::SetKind(queue, kind) => {
                (Method::PUT, &["v1", "queues", queue.as_str(), "kinds", kind.as_str()])
            }
            Self::DeleteKind(queue, kind) => {
                (Method::DELETE, &["v1", "queues", queue.as_str(), "kinds", kind.as_str()])
            }

            Self::Start => (Method::POST, &["v1", "executions"]),
            Self::Execution(id) => (Method::GET, &["v1", "executions", id.as_str()]),
            Self::Executions => (Method::GET, &["v1", "executions"]),
            Self::Workflows => (Method::GET, &["v1", "workflows"]),
            Self::Timeline(id) => (Method::GET, &["v1", "executions", id.as_str(), "timeline"]),
            Self::Runs(id) => (Method::GET, &["v1", "executions", id.as_str(), "runs"]),
            Self::Export(id) => (Method::GET, &["v1", "executions", id.as_str(), "export"]),
            Self::Cancel(id) => (Method::POST, &["v1", "executions", id.as_str(), "cancel"]),
            Self::Terminate(id) => (Method::POST, &["v1", "executions", id.as_str(), "terminate"]),
            Self::Pause(id) => (Method::POST, &["v1", "executions", id.as_str(), "pause"]),
            Self::Resume(id) => (Method::POST, &["v1", "executions", id.as_str(), "resume"]),
            Self::Restart(id) => (Method::POST, &["v1", "executions", id.as_str(), "restart"]),
            Self::Rerun(id) => (Method::POST, &["v1", "executions", id.as_str(), "rerun"]),
            Self::RetryStep(id, step) => {
                (Method::POST, &["v1", "executions", id.as_str(), "steps", step.as_str(), "retry"])
            }
            Self::Events(id) => (Method::GET, &["v1", "executions", id.as_str(), "events"]),
            Self::SendEvent(id, name) => {
                (Method::POST, &["v1", "executions", id.as_str(), "events", name.as_str()])
            }
            Self::ClearEvents(id, name) => {
                (Method::DELETE, &["v1", "executions", id.as_str(), "events", name.as_str()])
            }

            Self::CreateCron => (Method::POST, &["v1", "crons"]),
            Self::ReplaceCron(id) => (Method::PUT, &["v1", "crons", id.as_str()]),
            Self::Cron(id) => (Method::GET, &["v1", "crons", id.as_str()]),
            Self::Crons => (Method::GET, &["v1", "crons"]),
            Self::PauseCron(id) => (Method::POST, &["v1", "crons", id.as_str(), "pause"]),
            Self::ResumeCron(id) => (Method::POST, &["v1", "crons", id.as_str(), "resume"]),
            Self::TriggerCron(id) => (Method::POST, &["v1", "crons", id.as_str(), "trigger"]),
            Self::DeleteCron(id) => (Method::DELETE, &["v1", "crons", id.as_str()]),

            Self::Limit(key) => (Method::GET, &["v1", "limits", key]),
            Self::SetLimit(key) => (Method::PUT, &["v1", "limits", key]),
            Self::UnsetLimit(key) => (Method::DELETE, &["v1", "limits", key]),
            Self::ResetRate(key) => (Method::DELETE, &["v1", "limits", key, "rate"]),
            Self::ReleasePlace(key, holder) => (Method::DELETE, &["v1", "limits", key, "holders", holder]),

            Self::StartOperation => (Method::POST, &["v1", "operations"]),
            Self::Operation(id) => (Method::GET, &["v1", "operations", id.as_str()]),
            Self::Operations => (Method::GET, &["v1", "operations"]),
            Self::StopOperation(id) => (Method::POST, &["v1", "operations", id.as_str(), "stop"]),
        };
        (method, path.to_vec())
    }
}
