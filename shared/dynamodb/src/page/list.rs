//! The lists of the list index: the keys over which each list is spread, and how they are read as one list.
//!
//! One key of an index takes 1,000 write units a second, and an index that is throttled refuses the write of the record
//! itself. So each list is spread over [`KEYS`] keys by its records' ids. The number is part of the stored format and
//! no setting: a record's key follows from its id alone, and every reader knows all possible keys.

mod lane;

use std::cmp::Ordering;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use tickover_core::due::shard_of_name;
use tickover_core::id::WorkflowName;
use tickover_service::ports::StoreError;

use crate::attribute::{ALL_INDEX, ALL_KEY, LIST_AT, LIST_INDEX, LIST_KEY, PK};
use crate::item::{Item, number, string};
use crate::page::LIMIT_MAX;
use crate::page::cursor;
use crate::store::DynamoStore;
use lane::Lane;

/// The number of index keys over which each list is spread: enough for 32,000 failures a second, or starts of one
/// workflow.
pub(crate) const KEYS: u16 = 32;
/// How many of them are read at the same time.
const AT_ONCE: usize = 8;

/// The prefix of a workflow's name in the name of its list.
const WORKFLOW: &str = "wf#";

/// Records that operators list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List<'a> {
    /// Tasks that failed or timed out, latest scheduled first.
    Dead,
    /// A workflow's executions, latest start first.
    Executions(&'a WorkflowName),
    /// Executions of all workflows that failed or timed out, latest start first.
    Failed,
    /// Executions of all workflows, latest start first. Those that failed or timed out have the keys of their own list,
    /// and the others have keys of this one.
    All,
    /// Crons, in the order of their creation.
    Crons,
    /// Queues that have a record, in no order.
    Queues,
    /// Operations, latest first.
    Operations,
}

/// A record's position in a list. No two records have the same position, so it says exactly how far a reader has come,
/// whichever key of the index the record has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The instant that the list is sorted by, in milliseconds.
    pub(crate) at: i64,
    /// The record's partition key.
    pub(crate) pk: String,
}

impl List<'_> {
    /// The list's name in cursors and in its own keys.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Dead => "dead".to_owned(),
            Self::Executions(workflow) => format!("{WORKFLOW}{workflow}"),
            Self::Failed => "failed".to_owned(),
            Self::All => "rest".to_owned(),
            Self::Crons => "cron".to_owned(),
            Self::Queues => "queue".to_owned(),
            Self::Operations => "op".to_owned(),
        }
    }

    /// The index's key for the record of this id.
    pub(crate) fn key_of(self, id: &str) -> String {
        self.key(shard_of_name(id, KEYS))
    }

    fn key(self, number: u16) -> String {
        format!("{}#{number}", self.name())
    }

    /// All keys that its records can have.
    fn keys(self) -> impl Iterator<Item = String> {
        let failed = matches!(self, Self::All).then_some(List::Failed);
        let lists = std::iter::once(self).chain(failed);
        lists.flat_map(|list| (0..KEYS).map(move |number| list.key(number)))
    }

    const fn is_latest_first(self) -> bool {
        match self {
            Self::Dead | Self::Executions(_) | Self::Failed | Self::All | Self::Operations => true,
            Self::Crons | Self::Queues => false,
        }
    }

    /// The index that has it, and the attribute with its key there.
    const fn index(self) -> (&'static str, &'static str) {
        match self {
            Self::Failed | Self::All => (ALL_INDEX, ALL_KEY),
            Self::Dead | Self::Executions(_) | Self::Crons | Self::Queues | Self::Operations => {
                (LIST_INDEX, LIST_KEY)
            }
        }
    }

    /// Compares two positions in the order of this list.
    fn compare(self, one: &Position, other: &Position) -> Ordering {
        let ascending = one.cmp(other);
        if self.is_latest_first() { ascending.reverse() } else { ascending }
    }
}

impl Position {
    fn of(entry: &Item) -> Option<Self> {
        Some(Self { at: number(entry, LIST_AT)?, pk: string(entry, PK)?.to_owned() })
    }
}

/// The workflow of this key of the index.
pub(crate) fn workflow_in(key: &str) -> Option<&str> {
    let (workflow, _) = key.strip_prefix(WORKFLOW)?.rsplit_once('#')?;
    Some(workflow)
}

impl DynamoStore {
    /// The partition keys of a list's next records in order, and the cursor after the last of them.
    ///
    /// A page costs one query for each of the list's keys. Each query asks for little more than its share, and only a
    /// key that has more records of the page is queried again.
    pub(crate) async fn listed(
        &self,
        list: List<'_>,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<(Vec<String>, Option<String>), StoreError> {
        let limit = limit.clamp(1, LIMIT_MAX);
        let behind = cursor.map(|cursor| cursor::decode_position(&list.name(), cursor)).transpose()?;
        let mut lanes: Vec<Lane> = list.keys().map(|key| Lane::new(key, limit)).collect();
        let mut found: Vec<Position> = Vec::with_capacity(limit);
        while found.len() < limit {
            self.fill(&mut lanes, list, behind.as_ref()).await?;
            let first = lanes.iter_mut().filter(|lane| lane.first().is_some());
            let first = first.min_by(|one, other| match (one.first(), other.first()) {
                (Some(one), Some(other)) => list.compare(one, other),
                (None, _) | (_, None) => Ordering::Equal,
            });
            let Some(next) = first.and_then(Lane::take) else { break };
            // An execution that fails between two queries may be found under both its keys.
            if found.last() != Some(&next) {
                found.push(next);
            }
        }
        let has_more = lanes.iter().any(|lane| !lane.is_over());
        let next = found.last().filter(|_| has_more);
        let next = next.and_then(|last| cursor::encode_position(&list.name(), last));
        Ok((found.into_iter().map(|place| place.pk).collect(), next))
    }

    pub(crate) async fn all_listed(&self, list: List<'_>) -> Result<Vec<String>, StoreError> {
        let pages = list.keys().map(|key| self.all_pages(self.list_query(list, &key)));
        let pages: Vec<Vec<Item>> = stream::iter(pages).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(pages.iter().flatten().filter_map(|item| string(item, PK).map(str::to_owned)).collect())
    }

    /// Fills each lane until it has its next record, or has ended.
    async fn fill(
        &self,
        lanes: &mut [Lane],
        list: List<'_>,
        behind: Option<&Position>,
    ) -> Result<(), StoreError> {
        let mut fills = Vec::new();
        for lane in lanes {
            if lane.is_dry() {
                fills.push(lane.fill(self, list, behind));
            }
        }
        stream::iter(fills).buffer_unordered(AT_ONCE).try_collect().await
    }

    fn list_query(&self, list: List<'_>, key: &str) -> QueryFluentBuilder {
        let (index, name) = list.index();
        self.query(index)
            .key_condition_expression("#list = :list")
            .expression_attribute_names("#list", name)
            .expression_attribute_values(":list", AttributeValue::S(key.to_owned()))
    }
}

#[cfg(test)]
mod tests;
