//! A limit that an operator sets.

use serde::{Deserialize, Serialize};

use crate::{ConcurrencyLimit, ShardCount};

/// A key's limit, whatever tasks ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitRequest {
    /// At most so many run at once: 1 to 1,000. A lower limit takes no place away.
    pub limit: ConcurrencyLimit,
    /// Among how many records it is divided, and at most the limit: as many as the latest request of the key has (default),
    /// or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardCount>,
}
