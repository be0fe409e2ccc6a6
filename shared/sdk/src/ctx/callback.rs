//! Callbacks: waits that somebody without credentials ends with a token.
//!
//! A callback is a wait for an event whose name nobody else uses: it has the number of the run in it. The token isn't
//! stored. It is made again in each replay, from the instant at which it expires, which is.

use futures::future::pending;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::execution::journal::CALLBACK_PREFIX;
use tickover_core::limits::SPAN_MAX;
use tickover_core::time::Timestamp;
use tickover_service::callbacks::{CALLBACK_NAME_MAX, event_of};
use tickover_service::error::ServiceError;

use super::{Ctx, EventError, Within, within};
use crate::codec;
use crate::error::{Error, Result};
use crate::options::IntoMillis;
use crate::turn::state::Verdict;

/// A wait that somebody ends with its token.
#[derive(Clone)]
pub struct Callback {
    ctx: Ctx,
    name: String,
    event: String,
    made: tickover_service::callbacks::Callback,
    heartbeat: Option<Millis>,
}

/// Why a callback has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackError {
    /// It expired first.
    #[error("callback `{name}` expired")]
    Expired {
        /// The callback's name.
        name: String,
    },
    /// No heartbeat came in time.
    #[error("callback `{name}` had no heartbeat within {within}")]
    Silent {
        /// The callback's name.
        name: String,
        /// The longest time between two heartbeats.
        within: Millis,
    },
    /// Whoever had the token reported an error.
    #[error("callback `{name}` failed: {code}: {message}")]
    Failed {
        /// The callback's name.
        name: String,
        /// The kind of error.
        code: String,
        /// For people.
        message: String,
    },
    /// The result doesn't fit the type that the code expects.
    #[error("the result of callback `{name}` doesn't fit: {problem}")]
    Unreadable {
        /// The callback's name.
        name: String,
        /// What doesn't fit.
        problem: String,
    },
}

/// What arrives for a callback.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Arrived {
    Output(serde_json::Value),
    Error { code: String, message: String },
    Alive {},
}

impl Ctx {
    /// Makes a callback: its token lets somebody without credentials end this wait, over HTTP, with a result or an error.
    /// The token is for this run of this execution and this name, and expires after the time given, after a year at most.
    ///
    /// The name has at most 40 characters, and is for one callback of the run.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn approval(ctx: Ctx, (): ()) -> Result<String> {
    ///     let callback = ctx.callback("approval", within("3d")).await?;
    ///     let link = callback.path().to_owned();
    ///     ctx.step(tickover::step("mail", move || { let link = link.clone(); async move { send_mail(&link) } })).await?;
    ///     match callback.result::<bool>().await {
    ///         Ok(true) => Ok("approved".to_owned()),
    ///         Ok(false) => Ok("refused".to_owned()),
    ///         Err(tickover::CallbackError::Expired { .. }) => Ok("nobody answered".to_owned()),
    ///         Err(error) => Err(error.into()),
    ///     }
    /// }
    /// # fn send_mail(link: &str) -> Result<usize> { Ok(link.len()) }
    /// # assert_eq!(tickover::test::outcome(approval, &approval, ()), "nobody answered");
    /// ```
    pub async fn callback(&self, name: impl Into<String>, until: Within) -> Result<Callback> {
        let name = name.into();
        let valid =
            until.length().unwrap_or(Ok(SPAN_MAX)).map_err(|error| invalid(&name, &error.to_string()))?;
        let asked_at = self.now(format!("{CALLBACK_PREFIX}{name}")).await?;
        let expires_at = asked_at.plus(valid.min(SPAN_MAX));
        let (execution, incarnation, event) = {
            let state = self.shared.lock();
            let facts = &state.facts;
            let run = facts.run_of_callbacks;
            let event = event_of(run, &name).and_then(|event| match facts.prefix.as_str() {
                "" => Some(event),
                // What runs after a failure has callbacks of its own.
                _ => event_of(run, &facts.identity(&format!("{CALLBACK_PREFIX}{name}"))),
            });
            (facts.execution.clone(), facts.incarnation, event)
        };
        let event = event.ok_or_else(|| {
            invalid(&name, &format!("it has at most {CALLBACK_NAME_MAX} characters of A-Z a-z 0-9 . _ : -"))
        })?;
        let text = event.as_str().to_owned();
        let made = self.shared.service().callback_of_wait(&execution, incarnation, event, expires_at).await;
        let made = match made {
            Ok(made) => made,
            Err(ServiceError::Rejected(reject)) => return Err(Error::new(reject.code(), reject.to_string())),
            Err(error) => {
                self.shared.lock().verdict.get_or_insert(Verdict::Broken(error));
                return pending().await;
            }
        };
        Ok(Callback { ctx: self.clone(), name, event: text, made, heartbeat: None })
    }
}

impl Callback {
    /// The token. It is a secret: don't log it.
    pub fn token(&self) -> &str {
        &self.made.token
    }

    /// The path of its calls on the system's HTTP API: `/complete`, `/fail` or `/heartbeat` follows.
    pub fn path(&self) -> String {
        format!("/v1/callbacks/{}", self.made.token)
    }

    /// The address of its calls: the [path](Self::path) after `TICKOVER_CALLBACK_URL`. Without such a variable it is the
    /// address of the local system that runs in this process, and `None` on AWS.
    pub fn url(&self) -> Option<&str> {
        self.made.url.as_deref()
    }

    /// Until when the token is valid.
    pub const fn expires_at(&self) -> Timestamp {
        self.made.expires_at
    }

    /// Ends the wait if no heartbeat comes for this long: at least 1 s. A heartbeat costs about as much as an event. One
    /// that comes sooner than a tenth of this time after the last, at least 1 s and at most half of the time, changes
    /// nothing and costs a read.
    pub fn heartbeat(mut self, within: impl IntoMillis) -> Result<Self> {
        let span =
            within.into_millis(ZeroRule::Reject).map_err(|error| invalid(&self.name, &error.to_string()))?;
        self.heartbeat = Some(span.max(Millis::from_secs(1)));
        Ok(self)
    }

    /// Waits for the result. Nothing runs meanwhile.
    pub async fn result<T: DeserializeOwned + Send + 'static>(self) -> Result<T, CallbackError> {
        loop {
            let left = self.made.expires_at.since(self.ctx.shared.now());
            let span = self.heartbeat.map_or(left, |heartbeat| heartbeat.min(left));
            let waited = self.ctx.wait_for_event::<Arrived>(self.event.clone(), within(span)).await;
            return match waited {
                Ok(Arrived::Alive {}) => continue,
                Ok(Arrived::Output(output)) => self.read(&output),
                Ok(Arrived::Error { code, message }) => {
                    Err(CallbackError::Failed { name: self.name, code, message })
                }
                Err(EventError::Timeout { .. }) => Err(self.late().await),
                Err(EventError::Unreadable { problem, .. } | EventError::Invalid { problem, .. }) => {
                    Err(CallbackError::Unreadable { name: self.name, problem })
                }
            };
        }
    }

    fn read<T: DeserializeOwned>(&self, output: &serde_json::Value) -> Result<T, CallbackError> {
        let unreadable = |problem: String| CallbackError::Unreadable { name: self.name.clone(), problem };
        let json = codec::encode(output).map_err(|error| unreadable(error.to_string()))?;
        codec::decode(&json).map_err(|error| unreadable(error.to_string()))
    }

    /// A heartbeat was missing, unless the callback has expired. The instant is recorded: a replay must see the same.
    async fn late(self) -> CallbackError {
        let Some(within) = self.heartbeat else { return CallbackError::Expired { name: self.name } };
        match self.ctx.now(format!("{CALLBACK_PREFIX}{}:late", self.name)).await {
            Ok(late_at) if late_at >= self.made.expires_at => CallbackError::Expired { name: self.name },
            Ok(_) => CallbackError::Silent { name: self.name, within },
            Err(error) => CallbackError::Unreadable { name: self.name, problem: error.to_string() },
        }
    }
}

impl std::fmt::Debug for Callback {
    /// Without the token, which is a secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Callback");
        shown.field("name", &self.name).field("expires_at", &self.made.expires_at).finish_non_exhaustive()
    }
}

fn invalid(name: &str, problem: &str) -> Error {
    Error::new("invalid_callback", format!("callback {name:?}: {problem}"))
}
