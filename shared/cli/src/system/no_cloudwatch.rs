//! A build without AWS reads no metrics.

use tickover::client::ClientError;
use tickover_wire::answer::HistoryAnswer;
use tickover_wire::request::HistoryQuery;

/// There are none.
pub(crate) enum Metrics {}

impl Metrics {
    #[expect(clippy::unused_async, reason = "with the feature it asks AWS")]
    pub(crate) async fn history(&self, _: &HistoryQuery) -> Result<HistoryAnswer, ClientError> {
        match *self {}
    }
}
