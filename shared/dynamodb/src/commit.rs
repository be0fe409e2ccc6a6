//! Commits the writes of one decision, together or not at all, and finds out whether they were committed before.

use aws_sdk_dynamodb::types::{
    CancellationReason, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure,
};
use tickover_core::decision::Write;
use tickover_core::id::Nonce;
use tickover_service::ports::StoreError;

use crate::error::{Failure, unavailable, unbuildable};
use crate::expression::{Action, Statement};
use crate::item::Item;
use crate::store::DynamoStore;
use crate::write::{current, is_already_applied, is_ours, nonce, statement};

/// What a failed condition costs at least: a write of an item of up to 1 KB, twice that in a transaction.
const SINGLE_UNITS: f64 = 1.0;
const TRANSACTED_UNITS: f64 = 2.0;

/// The reasons of a cancelled transaction.
mod reason {
    pub(super) const NONE: &str = "None";
    pub(super) const CONDITION: &str = "ConditionalCheckFailed";
    pub(super) const CONFLICT: &str = "TransactionConflict";
    pub(super) const THROUGHPUT: &str = "ProvisionedThroughputExceeded";
    pub(super) const THROTTLING: &str = "ThrottlingError";
}

impl DynamoStore {
    pub(crate) async fn commit_all(&self, writes: &[Write]) -> Result<(), StoreError> {
        let (mut ahead, mut decided, mut behind) = (vec![], vec![], vec![]);
        let (mut waiters, mut left) = (vec![], vec![]);
        for write in writes {
            match part(write) {
                CommitPhase::Extension => ahead.push(write),
                CommitPhase::Waiter => waiters.push(write),
                CommitPhase::Decided => decided.push(write),
                CommitPhase::Wake => behind.push(write),
                CommitPhase::Left => left.push(write),
            }
        }
        for extension in ahead {
            self.extend(extension).await?;
        }
        for waiter in waiters {
            self.send_unless_done(waiter).await?;
        }
        match decided.as_slice() {
            [] => {}
            [write] => self.commit_one(write).await?,
            together => self.commit_together(together).await?,
        }
        for wake in behind {
            self.wake(wake).await?;
        }
        for waiter in left {
            self.send_unless_done(waiter).await?;
        }
        Ok(())
    }

    /// A failed condition says that the item is as wanted.
    async fn send_unless_done(&self, write: &Write) -> Result<(), StoreError> {
        match self.send(statement(write, self.listed)?).await {
            Ok(()) | Err(Failure::Condition(_)) => Ok(()),
            Err(failure) => Err(failure.into_store_error()),
        }
    }

    /// An execution that was deleted, is closing or has ended needs no wake: a failed condition is no error.
    async fn wake(&self, write: &Write) -> Result<(), StoreError> {
        match self.send(statement(write, self.listed)?).await {
            Ok(()) => Ok(()),
            // A record that this build can't read is still an error.
            Err(Failure::Condition(old)) => match current(write, old.as_ref()) {
                Some(Err(error)) => Err(error),
                Some(Ok(_)) | None => Ok(()),
            },
            Err(failure) => Err(failure.into_store_error()),
        }
    }

    /// Extends the retention of an item. A retention that is as long already is fine. So is a missing item: an error
    /// would make its record unwritable for ever.
    async fn extend(&self, write: &Write) -> Result<(), StoreError> {
        match self.send(statement(write, self.listed)?).await {
            Ok(()) => Ok(()),
            Err(Failure::Condition(old)) => {
                if old.is_none_or(|old| old.is_empty()) {
                    tracing::warn!("the retention of an item can't be extended: it was deleted");
                }
                Ok(())
            }
            Err(failure) => Err(failure.into_store_error()),
        }
    }

    async fn commit_one(&self, write: &Write) -> Result<(), StoreError> {
        match self.send(statement(write, self.listed)?).await {
            Ok(()) => Ok(()),
            Err(Failure::Condition(old)) => {
                let done =
                    old.as_ref().is_some_and(|old| is_ours(write, old) || is_already_applied(write, old));
                if done { Ok(()) } else { Err(conflict([(write, old.as_ref())])) }
            }
            Err(failure) => Err(failure.into_store_error()),
        }
    }

    pub(crate) async fn send(&self, statement: Statement) -> Result<(), Failure> {
        let Statement { action, condition, placeholders } = statement;
        let (names, values) = placeholders.into_maps();
        self.meter.request();
        let sent = match action {
            Action::Put(item) => {
                let request = self.client.put_item().table_name(&self.table).set_item(Some(item));
                let request = request
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
                request.send().await.map(|output| output.consumed_capacity).map_err(Failure::from)
            }
            Action::Update { key, expression } => {
                let request = self.client.update_item().table_name(&self.table).set_key(Some(key));
                let request = request
                    .update_expression(expression)
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                    .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
                request.send().await.map(|output| output.consumed_capacity).map_err(Failure::from)
            }
            Action::Delete { key } => {
                let request = self.client.delete_item().table_name(&self.table).set_key(Some(key));
                let request = request
                    .condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
                request.send().await.map(|output| output.consumed_capacity).map_err(Failure::from)
            }
        };
        match sent {
            Ok(consumed) => {
                self.meter.written(&consumed);
                Ok(())
            }
            Err(failure) => {
                if matches!(failure, Failure::Condition(_)) {
                    self.meter.condition_failed(SINGLE_UNITS);
                }
                Err(failure)
            }
        }
    }

    async fn commit_together(&self, writes: &[&Write]) -> Result<(), StoreError> {
        let mut request = self
            .client
            .transact_write_items()
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            // The decision's nonce: DynamoDB answers a repetition within ten minutes without executing it again.
            .set_client_request_token(writes.iter().find_map(|write| nonce(write)).map(token));
        for write in writes {
            let item = statement(write, self.listed)?
                .in_transaction(&self.table)
                .map_err(|error| unbuildable(&error))?;
            request = request.transact_items(item);
        }
        self.meter.request();
        match request.send().await.map_err(Failure::from) {
            Ok(output) => {
                self.meter.written(output.consumed_capacity());
                Ok(())
            }
            Err(Failure::Cancelled(reasons)) => self.cancelled(writes, &reasons),
            Err(failure) => Err(failure.into_store_error()),
        }
    }

    fn cancelled(&self, writes: &[&Write], reasons: &[CancellationReason]) -> Result<(), StoreError> {
        let has = |code: &str| reasons.iter().any(|reason| reason.code() == Some(code));
        if has(reason::CONDITION) {
            let count = u32::try_from(writes.len()).unwrap_or(u32::MAX);
            self.meter.condition_failed(TRANSACTED_UNITS * f64::from(count));
        }
        if let Some(verdict) = verdict(writes, reasons) {
            return verdict;
        }
        // Another write of one of the items was in progress. That says nothing of the records. So the write is
        // repeated, and recognises a write that was applied before; a new decision would take it for another caller's
        // write.
        if has(reason::CONFLICT) || has(reason::THROUGHPUT) || has(reason::THROTTLING) {
            return Err(StoreError::Throttled);
        }
        let codes: Vec<&str> = reasons
            .iter()
            .filter_map(CancellationReason::code)
            .filter(|code| *code != reason::NONE)
            .collect();
        Err(unavailable(format!("the transaction was cancelled: {}", codes.join(", "))))
    }
}

/// The result of the failed conditions of a transaction; `None` if none failed.
///
/// One item with our nonce is enough: a transaction is applied as a whole, so all of it was, even if another item has
/// been changed since. (A due slot that already is as wanted proves nothing here: another call may have written it.)
fn verdict(writes: &[&Write], reasons: &[CancellationReason]) -> Option<Result<(), StoreError>> {
    let failed: Vec<(&Write, Option<&Item>)> = writes
        .iter()
        .zip(reasons)
        .filter(|(_, reason)| reason.code() == Some(reason::CONDITION))
        .map(|(write, reason)| (*write, reason.item()))
        .collect();
    if failed.iter().any(|(write, old)| old.is_some_and(|old| is_ours(write, old))) {
        return Some(Ok(()));
    }
    (!failed.is_empty()).then(|| Err(conflict(failed)))
}

/// The conflict, with the first current record among the items. A record that can't be read is an error of its own.
fn conflict<'a>(failed: impl IntoIterator<Item = (&'a Write, Option<&'a Item>)>) -> StoreError {
    match failed.into_iter().find_map(|(write, old)| current(write, old)) {
        None => StoreError::Conflict { current: None },
        Some(Ok(current)) => StoreError::Conflict { current: Some(current) },
        Some(Err(error)) => error,
    }
}

/// When a write is sent, relative to the transaction of its commit.
enum CommitPhase {
    /// Before the transaction, in which a payload of 100 KB would be billed twice. If the rest then fails, the payload
    /// is kept longer than needed, which is harmless.
    Extension,
    /// Before the transaction: who reads the key afterwards must find all that wait.
    Waiter,
    Decided,
    /// After the transaction, so that the woken execution finds the other writes.
    Wake,
    /// After the transaction: who waits must be found at the key before its item goes.
    Left,
}

fn part(write: &Write) -> CommitPhase {
    match write {
        Write::Extend { .. } => CommitPhase::Extension,
        Write::PutWaiter { .. } => CommitPhase::Waiter,
        Write::Wake { .. } => CommitPhase::Wake,
        Write::DeleteWaiter { .. } => CommitPhase::Left,
        Write::Put { .. } | Write::Rearm { .. } => CommitPhase::Decided,
    }
}

fn token(nonce: Nonce) -> String {
    format!("tickover-{nonce}")
}

#[cfg(test)]
mod tests;
