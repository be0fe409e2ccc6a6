//! `tickover callback`: reports by a callback's token.

use anyhow::Context as _;
use tickover::Client;
use tickover_wire::request::{CallbackFailure, CallbackResult, FailError};

use crate::argument;
use crate::show;

/// Commands about callbacks.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum CallbackCommand {
    /// Report a result
    Complete {
        /// The token, or the URL that ends with it
        callback: String,
        /// The result as JSON; `-` reads it from standard input
        output: Option<String>,
    },
    /// Report an error
    Fail {
        /// The token, or the URL that ends with it
        callback: String,
        /// The kind of error
        code: String,
        /// For people
        message: Option<String>,
    },
    /// Report that somebody still works on it
    Heartbeat {
        /// The token, or the URL that ends with it
        callback: String,
    },
}

/// Reports.
pub(crate) async fn run(command: CallbackCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    let _received = match command {
        CallbackCommand::Complete { callback, output } => {
            let output = argument::json(output.as_deref(), "the output")?;
            api.complete_callback(token(&callback), &CallbackResult { output }).await?
        }
        CallbackCommand::Fail { callback, code, message } => {
            let code = argument::field("error.code", Some(&code))?.context("the code is missing")?;
            let error = FailError { code, message, retryable: None };
            api.fail_callback(token(&callback), &CallbackFailure { error }).await?
        }
        CallbackCommand::Heartbeat { callback } => api.callback_heartbeat(token(&callback)).await?,
    };
    show::print("received\n")
}

/// The token in a callback's address.
fn token(callback: &str) -> &str {
    callback.rsplit('/').next().unwrap_or(callback)
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn a_token_is_the_end_of_its_url() {
        for callback in ["AQ-_x", "/v1/callbacks/AQ-_x", "https://example.com/v1/callbacks/AQ-_x"] {
            assert_eq!(token(callback), "AQ-_x");
        }
    }
}
