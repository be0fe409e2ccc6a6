//! The one table: its schema, and how it is created. On AWS the infrastructure's template creates the same table.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, DisplayErrorContext};
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, GlobalSecondaryIndexDescription, IndexStatus,
    KeySchemaElement, KeyType, PointInTimeRecoverySpecification, Projection, ProjectionType,
    ScalarAttributeType, TableDescription, TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
};

use crate::attribute::{
    ALL_INDEX, ALL_KEY, DUE_AT, DUE_INDEX, DUE_KIND, DUE_PROJECTION, DUE_SHARD, LIST_AT, LIST_INDEX,
    LIST_KEY, PK, SK, TTL,
};
use crate::error::TableError;

/// How often a table that is being created is read: for about a minute.
const READS_MAX: u32 = 70;
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Every key attribute with its type.
const KEYS: [(&str, ScalarAttributeType); 7] = [
    (PK, ScalarAttributeType::S),
    (SK, ScalarAttributeType::S),
    (DUE_SHARD, ScalarAttributeType::S),
    (DUE_AT, ScalarAttributeType::N),
    (LIST_KEY, ScalarAttributeType::S),
    (LIST_AT, ScalarAttributeType::N),
    (ALL_KEY, ScalarAttributeType::S),
];

/// Each index with its two keys.
const INDEXES: [(&str, [&str; 2]); 3] =
    [(DUE_INDEX, [DUE_SHARD, DUE_AT]), (LIST_INDEX, [LIST_KEY, LIST_AT]), (ALL_INDEX, [ALL_KEY, LIST_AT])];

/// A table to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    /// Whether to keep its history for 35 days. Left out where it isn't available (emulators).
    pub point_in_time_recovery: bool,
}

impl Table {
    /// A table of this name, without recovery.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), point_in_time_recovery: false }
    }

    /// Makes sure that the table exists and is ready. Repeated and concurrent calls are harmless.
    pub async fn create(&self, client: &Client) -> Result<(), TableError> {
        self.create_unless_there(client).await?;
        let description = self.wait_until_active(client).await?;
        if let Some(difference) = difference(&description) {
            return Err(TableError::Mismatch { table: self.name.clone(), difference });
        }
        self.expire_items(client).await?;
        self.keep_history(client).await;
        Ok(())
    }

    async fn create_unless_there(&self, client: &Client) -> Result<(), TableError> {
        let request = client
            .create_table()
            .table_name(&self.name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_attribute_definitions(Some(definitions().map_err(|error| self.failed("creating", &error))?))
            .set_key_schema(Some(keys([PK, SK]).map_err(|error| self.failed("creating", &error))?))
            .set_global_secondary_indexes(Some(indexes().map_err(|error| self.failed("creating", &error))?));
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error)
                if error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(self.failed("creating", &error)),
        }
    }

    async fn wait_until_active(&self, client: &Client) -> Result<TableDescription, TableError> {
        let mut wait = FIRST_WAIT;
        for _ in 0..READS_MAX {
            match client.describe_table().table_name(&self.name).send().await {
                Ok(output) => {
                    if let Some(table) = output.table.filter(is_active) {
                        return Ok(table);
                    }
                }
                // A new table may not be visible everywhere at once.
                Err(error)
                    if error
                        .as_service_error()
                        .is_some_and(DescribeTableError::is_resource_not_found_exception) => {}
                Err(error) => return Err(self.failed("describing", &error)),
            }
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
        Err(TableError::NotReady { table: self.name.clone() })
    }

    async fn expire_items(&self, client: &Client) -> Result<(), TableError> {
        if self.is_expiring(client).await? {
            return Ok(());
        }
        let specification = TimeToLiveSpecification::builder().attribute_name(TTL).enabled(true).build();
        let specification =
            specification.map_err(|error| self.failed("setting the time to live of", &error))?;
        let request = client.update_time_to_live().table_name(&self.name);
        match request.time_to_live_specification(specification).send().await {
            Ok(_) => Ok(()),
            // Another process may have set it at the same moment.
            Err(_) if self.is_expiring(client).await? => Ok(()),
            Err(error) => Err(self.failed("setting the time to live of", &error)),
        }
    }

    async fn is_expiring(&self, client: &Client) -> Result<bool, TableError> {
        let request = client.describe_time_to_live().table_name(&self.name).send();
        let output = request.await.map_err(|error| self.failed("describing the time to live of", &error))?;
        let Some(description) = output.time_to_live_description else {
            return Ok(false);
        };
        let on = [TimeToLiveStatus::Enabled, TimeToLiveStatus::Enabling];
        let is_on = description.time_to_live_status().is_some_and(|status| on.contains(status));
        match description.attribute_name() {
            Some(other) if is_on && other != TTL => Err(TableError::Mismatch {
                table: self.name.clone(),
                difference: format!("its items expire by {other:?}, not by {TTL:?}"),
            }),
            Some(_) | None => Ok(is_on),
        }
    }

    async fn keep_history(&self, client: &Client) {
        if !self.point_in_time_recovery {
            return;
        }
        let specification =
            PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build();
        let Ok(specification) = specification else { return };
        let request = client.update_continuous_backups().table_name(&self.name);
        if let Err(error) = request.point_in_time_recovery_specification(specification).send().await {
            let reason = DisplayErrorContext(&error).to_string();
            tracing::warn!(table = %self.name, reason, "no point-in-time recovery");
        }
    }

    fn failed(&self, action: &'static str, error: &(impl std::error::Error + 'static)) -> TableError {
        let reason = DisplayErrorContext(error).to_string();
        TableError::Failed { action, table: self.name.clone(), reason }
    }
}

fn definitions() -> Result<Vec<AttributeDefinition>, BuildError> {
    KEYS.into_iter()
        .map(|(name, kind)| AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build())
        .collect()
}

fn keys(names: [&str; 2]) -> Result<Vec<KeySchemaElement>, BuildError> {
    names
        .into_iter()
        .zip([KeyType::Hash, KeyType::Range])
        .map(|(name, kind)| KeySchemaElement::builder().attribute_name(name).key_type(kind).build())
        .collect()
}

fn indexes() -> Result<Vec<GlobalSecondaryIndex>, BuildError> {
    INDEXES
        .into_iter()
        .map(|(name, names)| {
            // What is due is needed without reading the record; a list needs the keys only.
            let projection = if name == DUE_INDEX {
                Projection::builder()
                    .projection_type(ProjectionType::Include)
                    .set_non_key_attributes(Some(DUE_PROJECTION.map(str::to_owned).to_vec()))
            } else {
                Projection::builder().projection_type(ProjectionType::KeysOnly)
            };
            GlobalSecondaryIndex::builder()
                .index_name(name)
                .set_key_schema(Some(keys(names)?))
                .projection(projection.build())
                .build()
        })
        .collect()
}

/// Whether the table and its indexes are ready.
fn is_active(table: &TableDescription) -> bool {
    let indexes = table.global_secondary_indexes().iter().map(GlobalSecondaryIndexDescription::index_status);
    table.table_status() == Some(&TableStatus::Active)
        && indexes.into_iter().flatten().all(|status| *status == IndexStatus::Active)
}

/// What a table lacks of this schema; it may have more.
fn difference(table: &TableDescription) -> Option<String> {
    if let Some(difference) = wrong_keys("its key", table.key_schema(), [PK, SK]) {
        return Some(difference);
    }
    for (name, names) in INDEXES {
        let found = table.global_secondary_indexes().iter().find(|index| index.index_name() == Some(name));
        let Some(index) = found else {
            return Some(format!("it has no index {name:?}"));
        };
        if let Some(difference) =
            wrong_keys(&format!("the key of its index {name:?}"), index.key_schema(), names)
        {
            return Some(difference);
        }
        if name == DUE_INDEX && !index.projection().is_some_and(projects_kind) {
            return Some(format!("its index {name:?} doesn't project {DUE_KIND:?}"));
        }
    }
    KEYS.into_iter().find_map(|(name, kind)| {
        let found = table.attribute_definitions().iter().find(|found| found.attribute_name() == name);
        match found {
            Some(found) if *found.attribute_type() == kind => None,
            Some(found) => Some(format!("{name:?} is of type {}, not {kind}", found.attribute_type())),
            None => Some(format!("{name:?} isn't defined")),
        }
    })
}

fn wrong_keys(what: &str, found: &[KeySchemaElement], expected: [&str; 2]) -> Option<String> {
    let of = |kind: &KeyType| {
        let element = found.iter().find(|element| element.key_type() == kind);
        element.map(KeySchemaElement::attribute_name)
    };
    let found = [of(&KeyType::Hash), of(&KeyType::Range)];
    let is_right = found == expected.map(Some);
    (!is_right).then(|| {
        let found: Vec<&str> = found.into_iter().flatten().collect();
        format!("{what} is {}, not {}", found.join(" + "), expected.join(" + "))
    })
}

fn projects_kind(projection: &Projection) -> bool {
    projection.projection_type() == Some(&ProjectionType::All)
        || projection.non_key_attributes().iter().any(|name| name == DUE_KIND)
}

#[cfg(test)]
mod tests;
