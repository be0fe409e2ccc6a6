//! The values that the code publishes. A replay publishes the same ones again, so a write of the turn brings them only if
//! they differ from what is stored, and only once the replay is complete.

use std::collections::BTreeMap;

use tickover_core::execution::Execution;
use tickover_core::execution::values::{VALUES_MAX, Values, bytes};
use tickover_core::id::StepName;
use tickover_core::limits::JSON_DEPTH_MAX;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;

use super::drive::Driver;
use crate::backend::Backend;
use crate::error::Error;

/// The values of a run.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// What the record has.
    stored: Values,
    /// As it has it.
    known: Option<Payload>,
    /// The last value of each name that the code of this run has published.
    by_code: BTreeMap<StepName, Json>,
    /// What the write brings that is in progress.
    under_way: Option<Values>,
}

impl Published {
    /// Publishes a value. What is refused doesn't depend on what is stored, so it is the same in each replay.
    pub(crate) fn publish(&mut self, name: &str, value: Json, bytes_max: usize) -> Result<(), Error> {
        let problem = |problem: String| Error::new("invalid_value", format!("publish {name:?}: {problem}"));
        let parsed = StepName::parse(name).map_err(|error| problem(format!("the name {error}")))?;
        if value.depth() > JSON_DEPTH_MAX {
            return Err(problem(format!("it is nested more than {JSON_DEPTH_MAX} levels deep")));
        }
        let others = || self.by_code.iter().filter(|(name, _)| **name != parsed);
        if others().count() >= VALUES_MAX {
            return Err(problem(format!("an execution publishes at most {VALUES_MAX} names")));
        }
        let size = others().map(|(name, value)| bytes(name, value)).sum::<usize>() + bytes(&parsed, &value);
        if size > bytes_max {
            return Err(problem(format!("all values together have more than {bytes_max} bytes")));
        }
        self.by_code.insert(parsed, value);
        Ok(())
    }

    /// What a write of the turn brings, if it differs from what is stored.
    fn begin_write(&mut self, now: Timestamp, bytes_max: usize) -> Option<Json> {
        let values = self.stored.with(&self.by_code, now, bytes_max);
        let document = values.document().filter(|_| values != self.stored)?;
        self.under_way = Some(values);
        Some(document)
    }

    /// A write has returned this record.
    pub(super) fn written(&mut self, record: &Execution) {
        if let Some(values) = self.under_way.take() {
            self.stored = values;
        }
        self.known.clone_from(&record.values);
    }

    /// A write has failed. The next one brings the same.
    pub(super) fn not_written(&mut self) {
        self.under_way = None;
    }

    /// Whether the record has what was read last. Only the expiry of a blob changes otherwise.
    fn knows(&self, record: &Execution) -> bool {
        match (&self.known, &record.values) {
            (Some(Payload::Blob(known)), Some(Payload::Blob(at))) => known.id == at.id,
            (known, values) => known == values,
        }
    }

    /// About how many bytes it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.by_code.iter().map(|(name, value)| bytes(name, value)).sum()
    }
}

impl Driver {
    /// Reads what the record has, before the code runs.
    pub(super) async fn read_published(&mut self) -> Result<(), ServiceError> {
        if self.shared.lock().published.knows(&self.record) {
            return Ok(());
        }
        let values = self.service.values_of(&self.record).await?;
        let mut state = self.shared.lock();
        state.published.stored = values;
        state.published.known.clone_from(&self.record.values);
        Ok(())
    }

    /// What the next write brings. Nothing as long as the code is replayed: it publishes older values meanwhile.
    pub(super) fn to_publish(&self) -> Option<Json> {
        let (now, bytes_max) = (self.service.now(), self.service.limits().payload_bytes);
        let mut state = self.shared.lock();
        self.is_replayed.then(|| state.published.begin_write(now, bytes_max)).flatten()
    }
}

/// The values of a write, which are too large for the record or not.
pub(super) async fn kept(service: &Backend, values: Option<Json>) -> Result<Option<Payload>, ServiceError> {
    match values {
        Some(values) => service.store_payload(values).await.map(Some),
        None => Ok(None),
    }
}
