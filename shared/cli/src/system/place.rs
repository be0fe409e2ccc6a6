//! How a worker reaches its system: for its messages, and for the calls of its commands.

use std::fmt;

use tickover_core::id::QueueName;

/// The system that a worker claims from.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Over HTTP.
    Endpoint { url: String },
    /// The table and the queues of a stack on AWS.
    #[cfg(feature = "aws")]
    Stack { stack: String, region: Option<String>, profile: Option<String> },
}

impl Place {
    /// The variables with which the tool, run by a worker's command, calls the same system.
    pub(crate) fn variables(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Endpoint { url } => vec![("TICKOVER_ENDPOINT", url)],
            #[cfg(feature = "aws")]
            Self::Stack { stack, region, profile } => {
                let chosen = [("AWS_REGION", region), ("AWS_PROFILE", profile)].into_iter();
                let chosen = chosen.filter_map(|(name, value)| Some((name, value.as_deref()?)));
                [("TICKOVER_STACK", stack.as_str())].into_iter().chain(chosen).collect()
            }
        }
    }

    /// What to print while there is no such queue.
    pub(crate) fn no_queue(&self, queue: &QueueName) -> String {
        match self {
            Self::Endpoint { .. } => {
                format!("no task was ever scheduled on queue {queue}: waiting for the first one")
            }
            #[cfg(feature = "aws")]
            Self::Stack { stack, .. } => format!(
                "there is no queue {queue}: waiting until SQS has one with the name {stack}-work-{queue}"
            ),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint { url } => formatter.write_str(url),
            #[cfg(feature = "aws")]
            Self::Stack { stack, .. } => write!(formatter, "the table and the queues of the stack {stack}"),
        }
    }
}
