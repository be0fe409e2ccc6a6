//! Writes as parts of a transaction that the user's own code sends.

use aws_sdk_dynamodb::types::TransactWriteItem;
use tickover_core::decision::Write;
use tickover_service::ports::StoreError;

use crate::error::unbuildable;
use crate::store::DynamoStore;
use crate::write::statement;

impl DynamoStore {
    /// The writes of prepared work, one item each and in their order, for a `TransactWriteItems` of the caller's. Each
    /// brings its condition and asks for the item that it fails on. Of the hundred that a transaction can have, an
    /// execution takes one, and a task with an idempotency key takes two.
    pub fn transact_items(&self, writes: &[Write]) -> Result<Vec<TransactWriteItem>, StoreError> {
        writes
            .iter()
            .map(|write| statement(write)?.in_transaction(self.table()).map_err(|error| unbuildable(&error)))
            .collect()
    }
}
