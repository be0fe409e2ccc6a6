//! The sealed segments of journals, each an item beside its execution's record.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::id::{ExecutionId, Incarnation};
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::attribute::{FORMAT as FORMAT_NAME, PK, SK, TTL, row as field};
use crate::item::{Item, check_format, corrupt, seconds, string};
use crate::key::{Key, segment_key, segments_range};
use crate::store::DynamoStore;

/// Version of these items' formats. Readers refuse any other version and never rewrite the item.
const FORMAT: u8 = 1;

/// The item of a segment. Built manually, with its entries as one text: it is large, and only ever read as a whole.
fn of_segment(
    id: &ExecutionId,
    key: &SegmentKey,
    segment: &Segment,
    expires_at: Timestamp,
) -> Result<Item, StoreError> {
    let body = serde_json::to_string(segment)
        .map_err(|_| corrupt(format!("a segment of execution {id} can't be serialised")))?;
    let mut item = Key::segment(id, key).attributes();
    item.insert(FORMAT_NAME.to_owned(), AttributeValue::N(FORMAT.to_string()));
    item.insert(field::BODY.to_owned(), AttributeValue::S(body));
    item.insert(TTL.to_owned(), seconds(expires_at));
    Ok(item)
}

fn to_segment(
    id: &ExecutionId,
    incarnation: Incarnation,
    run: u32,
    item: &Item,
) -> Result<(SegmentKey, Segment), StoreError> {
    let key = string(item, SK).and_then(|sk| segment_key(sk, incarnation, run));
    let key = key.ok_or_else(|| corrupt(format!("a segment of execution {id} has another record's key")))?;
    let what = || format!("segment {} of run {run} of execution {id}", key.number);
    check_format(item, FORMAT, &what())?;
    let body = string(item, field::BODY).ok_or_else(|| corrupt(format!("{} has no body", what())))?;
    // As with records: serde's message may quote a payload.
    let segment =
        serde_json::from_str(body).map_err(|_| corrupt(format!("{} isn't of its own format", what())))?;
    Ok((key, segment))
}

impl DynamoStore {
    pub(crate) async fn write_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        // No condition: no other writer has the key, and a repeated write writes the same.
        self.put(of_segment(id, key, segment, expires_at)?).await
    }

    pub(crate) async fn read_segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        let (from, until) = segments_range(incarnation, run, after);
        let query = self.partition(id, from, until).consistent_read(true);
        let items = self.all_pages(query).await?;
        items.iter().map(|item| to_segment(id, incarnation, run, item)).collect()
    }

    fn partition(&self, id: &ExecutionId, from: String, until: String) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :until")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", AttributeValue::S(Key::execution(id).pk))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":until", AttributeValue::S(until))
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
    }
}

#[cfg(test)]
mod tests;
