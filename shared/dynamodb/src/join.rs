//! Items that count which steps of a fan-out have ended.

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};
use tickover_core::execution::{Parent, Slot};
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::attribute::{FORMAT as FORMAT_NAME, PK, TTL, row as field};
use crate::error::Failure;
use crate::expression::{Placeholders, assignment};
use crate::item::{Item, check_format, corrupt, seconds};
use crate::key::Key;
use crate::store::DynamoStore;

/// Version of the items' format. Readers refuse any other version and never rewrite the item.
const FORMAT: u8 = 1;
/// What a failed condition costs at least.
const FAILED_UNITS: f64 = 1.0;

impl DynamoStore {
    /// Adds a slot to the item's set, and creates the item if there is none. The size of the set is the number of its
    /// slots, however often each was added.
    ///
    /// - `attribute_not_exists(pk)`: there is no item yet;
    /// - `OR v = :format`: or this build knows its format.
    pub(crate) async fn mark_slot(
        &self,
        parent: &Parent,
        slot: Slot,
        expires_at: Timestamp,
    ) -> Result<u16, StoreError> {
        let mut with = Placeholders::default();
        let format = AttributeValue::N(FORMAT.to_string());
        let place = AttributeValue::Ns(vec![slot.place.to_string()]);
        let expression = format!(
            "SET {}, {} ADD {} {}",
            assignment(FORMAT_NAME, format, &mut with),
            assignment(TTL, seconds(expires_at), &mut with),
            with.name(field::PLACES),
            with.value("place", place),
        );
        let condition = format!("attribute_not_exists({}) OR #{FORMAT_NAME} = :{FORMAT_NAME}", with.name(PK));
        let (names, values) = with.into_maps();
        self.meter.request();
        let sent = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(Key::join(parent, slot).attributes()))
            .update_expression(expression)
            .condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .return_values(ReturnValue::UpdatedNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await;
        match sent.map_err(Failure::from) {
            Ok(output) => {
                self.meter.written(&output.consumed_capacity);
                marked(&output.attributes.unwrap_or_default(), parent)
            }
            Err(Failure::Condition(old)) => {
                self.meter.condition_failed(FAILED_UNITS);
                check_format(&old.unwrap_or_default(), FORMAT, &what(parent))?;
                Err(corrupt(format!("{} could not be added to", what(parent))))
            }
            Err(failure) => Err(failure.into_store_error()),
        }
    }
}

fn marked(item: &Item, parent: &Parent) -> Result<u16, StoreError> {
    match item.get(field::PLACES) {
        Some(AttributeValue::Ns(places)) => Ok(u16::try_from(places.len()).unwrap_or(u16::MAX)),
        Some(_) | None => Err(corrupt(format!("{} has no places", what(parent)))),
    }
}

fn what(parent: &Parent) -> String {
    format!("a join item of execution {}", parent.execution)
}

#[cfg(test)]
mod tests;
