//! Callbacks.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// A callback of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallbackAnswer {
    /// The token. Whoever has it can end the attempt, until it expires.
    pub token: String,
    /// The path of the callback's calls: `/complete`, `/fail` or `/heartbeat` follows.
    pub path: String,
    /// The address of the callback's calls, if the deployment says where callers without credentials reach the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Until when the token is valid.
    pub expires_at: Instant,
}

/// The answer to a report by callback. It says nothing about the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReceivedAnswer {
    /// Always true.
    pub received: bool,
}
