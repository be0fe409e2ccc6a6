//! Reports by somebody with the token of a callback.

use serde::{Deserialize, Serialize};

use super::FailError;
use crate::verbatim::present;
use crate::{LeaseToken, Verbatim};

/// A request for the token of a callback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallbackRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
}

/// The result of a callback.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallbackResult {
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
}

/// The failure of a callback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallbackFailure {
    /// What went wrong. `retryable` counts for tasks only.
    pub error: FailError,
}
