//! A limit that an operator sets.

use serde::{Deserialize, Serialize};

use crate::ConcurrencyLimit;

/// A key's limit, whatever tasks ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitRequest {
    /// At most so many run at once: 1 to 1,000. A lower limit takes no place away.
    pub limit: ConcurrencyLimit,
}
