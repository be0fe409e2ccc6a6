//! Pages of the indexes and of the table: due records, and operators' lists.

pub(crate) mod cursor;
pub(crate) mod list;

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use serde::Deserialize;
use tickover_core::due::DueKind;
use tickover_core::execution::FORMAT;
use tickover_core::execution::message::{HintedTurn, TurnHint};
use tickover_core::id::{ExecutionId, GateId, Incarnation, QueueName, RecordId, TaskId, WorkflowName};
use tickover_core::lane::Lane;
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::cursor as position;
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, Listed, Listing, Page, Sleeper, Store as _, StoreError,
};

use crate::attribute::{DUE_AT, DUE_INDEX, DUE_KIND, DUE_SHARD, PK, SK};
use crate::error::Failure;
use crate::item::record::from_item;
use crate::item::{Item, kind_named, millis, number, shard_value, string};
use crate::key::{Key, TASK_SK, line_gate, line_pk, line_range, record_id};
use crate::store::DynamoStore;
use cursor::Walk;
use list::List;

/// The most entries that one request asks for.
pub(crate) const LIMIT_MAX: usize = 1_000;

impl DynamoStore {
    pub(crate) async fn due_page(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        let query = self
            .query(DUE_INDEX)
            .key_condition_expression("#shard = :shard AND #at BETWEEN :from AND :until")
            .expression_attribute_names("#shard", DUE_SHARD)
            .expression_attribute_names("#at", DUE_AT)
            .expression_attribute_values(":shard", shard_value(range.shard))
            .expression_attribute_values(":from", millis(range.from))
            .expression_attribute_values(":until", millis(range.until));
        let (items, next) = self.page(query, range.shard, limit, cursor).await?;
        Ok(Page { items: items.iter().filter_map(due_entry).collect(), next })
    }

    pub(crate) async fn list_page(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        match listing {
            Listing::Live { shard } => self.live_page(shard, limit, cursor).await,
            Listing::Dead => self.list_ids(List::Dead, limit, cursor).await,
            Listing::All => {
                let (items, next) = self.walk(limit, cursor).await?;
                Ok(Page { items: items.iter().filter_map(record_of).collect(), next }.only())
            }
        }
    }

    /// Live tasks of a shard, by id. The shard is read whole: an entry of the due index moves whenever its record's next
    /// instant changes, so a walk along the index would leave out what moves behind it.
    async fn live_page(
        &self,
        shard: u16,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        let name = position::live(shard);
        let behind = cursor.map(|cursor| position::decode(&name, cursor)).transpose()?;
        let query = self
            .query(DUE_INDEX)
            .key_condition_expression("#shard = :shard")
            .expression_attribute_names("#shard", DUE_SHARD)
            .expression_attribute_values(":shard", shard_value(shard));
        let entries = self.all_pages(query).await?;
        let ids = entries.iter().filter_map(|entry| TaskId::try_from(record_of(entry)?).ok());
        let mut places: Vec<_> = ids.map(position::live_position).collect();
        places.retain(|place| behind.as_ref().is_none_or(|behind| place > behind));
        places.sort_unstable();
        // One that moves between two requests may be found twice.
        places.dedup();
        let has_more = places.len() > limit;
        places.truncate(limit);
        let next = places.last().filter(|_| has_more).map(|last| position::encode(&name, last));
        Ok(Page { items: places.into_iter().map(|place| place.record).collect(), next }.only())
    }

    /// Executions, latest start first.
    pub(crate) async fn execution_page(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.list_ids(List::Executions(workflow), limit, cursor).await
    }

    /// Executions of all workflows, latest start first.
    pub(crate) async fn executions_page(
        &self,
        listed: Listed,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        let list = match listed {
            Listed::Failed => List::Failed,
            Listed::All => List::All,
        };
        self.list_ids(list, limit, cursor).await
    }

    /// Records of a kind of which there are few.
    pub(crate) async fn collection_page(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        let (keys, next) = match of {
            Collection::Crons => self.listed(List::Crons, limit, cursor).await?,
            Collection::Operations => self.listed(List::Operations, limit, cursor).await?,
            Collection::Queues => {
                let mut keys = self.all_listed(List::Queues).await?;
                keys.sort_unstable();
                (keys, None)
            }
        };
        let ids: Vec<RecordId> = keys.iter().filter_map(|pk| record_id(pk)).collect();
        let found = self.records(&ids).await?.into_iter();
        let mut found: HashMap<RecordId, Record> = found.map(|record| (record.id(), record)).collect();
        Ok(Page { items: ids.iter().filter_map(|id| found.remove(id)).collect(), next })
    }

    /// The items of the first that wait in the line of a key, from behind this sort key on, read consistently.
    pub(crate) async fn waiters_page(
        &self,
        gate: &GateId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let pk = Key::in_line(gate, after).pk;
        let (from, until) = line_range(gate, after);
        self.line_page(pk, [from, until], limit, Consistency::Strong).await
    }

    /// The first key after this one that has a line in a part of the table.
    pub(crate) async fn line_after(
        &self,
        part: u8,
        after: Option<&GateId>,
    ) -> Result<Option<GateId>, StoreError> {
        let from = after.map(|gate| line_range(gate, "").1).unwrap_or_default();
        let found = self.line_page(line_pk(part), [from, "~".to_owned()], 1, Consistency::Eventual).await?;
        Ok(found.first().and_then(|item| string(item, SK)).and_then(line_gate))
    }

    async fn line_page(
        &self,
        pk: String,
        [from, until]: [String; 2],
        limit: usize,
        consistency: Consistency,
    ) -> Result<Vec<Item>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(consistency == Consistency::Strong)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :until")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":pk", AttributeValue::S(pk))
            .expression_attribute_values(":from", AttributeValue::S(behind(from)))
            .expression_attribute_values(":until", AttributeValue::S(until))
            .limit(bounded(limit));
        self.meter.request();
        let output = query.send().await.map_err(|error| Failure::from(error).into_store_error())?;
        self.meter.read(&output.consumed_capacity);
        Ok(output.items.unwrap_or_default())
    }

    async fn list_ids<T: TryFrom<RecordId>>(
        &self,
        list: List<'_>,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<T>, StoreError> {
        let (keys, next) = self.listed(list, limit, cursor).await?;
        Ok(Page { items: keys.iter().filter_map(|pk| record_id(pk)).collect(), next }.only())
    }

    /// All items of a query, over as many pages as needed.
    pub(crate) async fn all_pages(&self, query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            self.meter.request();
            let page = query.clone().set_exclusive_start_key(start);
            let output = page.send().await.map_err(|error| Failure::from(error).into_store_error())?;
            self.meter.read(&output.consumed_capacity);
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            if start.is_none() {
                return Ok(items);
            }
        }
    }

    pub(crate) fn query(&self, index: &str) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .index_name(index)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
    }

    async fn page(
        &self,
        query: QueryFluentBuilder,
        shard: u16,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<(Vec<Item>, Option<String>), StoreError> {
        let walk = Walk::Due { shard };
        let start = cursor.map(|cursor| cursor::decode(walk, cursor)).transpose()?;
        self.meter.request();
        let output = query
            .limit(bounded(limit))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| Failure::from(error).into_store_error())?;
        self.meter.read(&output.consumed_capacity);
        let next = output.last_evaluated_key().and_then(|last| cursor::encode(walk, last));
        Ok((output.items.unwrap_or_default(), next))
    }

    /// A scan of the whole table. A page may have few tasks or none without being the last one.
    async fn walk(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<(Vec<Item>, Option<String>), StoreError> {
        let start = cursor.map(|cursor| cursor::decode(Walk::Table, cursor)).transpose()?;
        self.meter.request();
        let output = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression("#sk = :task")
            .projection_expression("#pk")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_names("#sk", SK)
            .expression_attribute_values(":task", AttributeValue::S(TASK_SK.to_owned()))
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .limit(bounded(limit))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| Failure::from(error).into_store_error())?;
        self.meter.read(&output.consumed_capacity);
        let next = output.last_evaluated_key().and_then(|last| cursor::encode(Walk::Table, last));
        Ok((output.items.unwrap_or_default(), next))
    }
}

/// An entry of the due index; `None` for kinds of records that this build doesn't know.
fn due_entry(item: &Item) -> Option<DueEntry> {
    let record = record_of(item)?;
    let due_at = Timestamp::from_millis(number(item, DUE_AT)?);
    // A kind that only a newer build knows must not hide the entry, or other entries of the shard: to read the record
    // shows the error.
    let kind = item.get(DUE_KIND).and_then(kind_named).unwrap_or(DueKind::Instant);
    let sleeper = if kind == DueKind::Asleep { sleeper(item, &record) } else { None };
    Some(DueEntry { record, due_at, kind, sleeper })
}

fn record_of(item: &Item) -> Option<RecordId> {
    string(item, PK).and_then(record_id)
}

/// What the hint of an execution that sleeps needs; `None` if the index of an older table lacks it.
fn sleeper(item: &Item, record: &RecordId) -> Option<Box<Sleeper>> {
    /// The fields as the record has them.
    #[derive(Deserialize)]
    struct Fields {
        #[serde(rename = "q")]
        queue: QueueName,
        inc: Incarnation,
        #[serde(rename = "ln", default)]
        lane: Lane,
    }
    let RecordId::Execution(id) = record else { return None };
    let Fields { queue, inc, lane } = from_item(item.clone()).ok()?;
    let turn = HintedTurn { id: id.clone(), inc, at: None, lane };
    Some(Box::new(Sleeper { queue, hint: TurnHint { v: FORMAT, turn } }))
}

/// A limit for a request, within its bounds.
pub(crate) fn bounded(limit: usize) -> i32 {
    i32::try_from(limit.clamp(1, LIMIT_MAX)).unwrap_or(i32::MAX)
}

/// The first key after this one: a condition on a key has no other way to leave one out.
fn behind(mut key: String) -> String {
    key.push(' ');
    key
}
