//! The defaults of kinds of tasks: set by operators, and filled in where a task is scheduled.

use std::collections::BTreeMap;

use tickover_core::error::Reject;
use tickover_core::id::{QueueName, TaskKind};
use tickover_core::kind::{self, KindDefaults, Policies, Policy};
use tickover_core::queue::QueueRecord;

use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// Sets the defaults of a kind on a queue. They count for tasks that are scheduled afterwards: in this process at
    /// once, in others within 5 s, or within a minute if the queue had no defaults before. All kinds of a queue take at most
    /// [`KINDS_BYTES_MAX`](kind::KINDS_BYTES_MAX) bytes together. Returns them as they are stored.
    pub async fn set_kind(
        &self,
        queue: &QueueName,
        kind: &TaskKind,
        defaults: KindDefaults,
    ) -> Result<KindDefaults, ServiceError> {
        self.open_queue(queue).await?;
        let defaults = KindDefaults { by: self.by.as_deref().cloned().map(Box::new), ..defaults };
        let with = |record: &QueueRecord| {
            let mut kinds = record.kinds.clone();
            kinds.insert(kind.clone(), defaults.clone());
            kinds
        };
        let known = self.fresh_record(queue).await?;
        let blank = QueueRecord::new(queue.clone(), self.new_nonce());
        kind::check(&with(known.as_ref().unwrap_or(&blank)))?;
        let is_same =
            |known: &KindDefaults| (&known.given, &known.policies) == (&defaults.given, &defaults.policies);
        let is_set = |record: &QueueRecord| record.kinds.get(kind).is_some_and(is_same);
        let change = |record: &QueueRecord| {
            // If another process has used up the room meanwhile, nothing is written.
            let kinds = with(record);
            (!is_set(record) && kind::check(&kinds).is_ok()).then(|| QueueRecord { kinds, ..record.clone() })
        };
        if self.write_queue(queue, change).await?.is_some() {
            return Ok(defaults);
        }
        let record = self.record(queue).await?.unwrap_or(blank);
        kind::check(&with(&record))?;
        Ok(record.kinds.get(kind).cloned().unwrap_or(defaults))
    }

    /// The defaults of all kinds of a queue that have any.
    pub async fn kinds(&self, queue: &QueueName) -> Result<BTreeMap<TaskKind, KindDefaults>, ServiceError> {
        self.require_queue(queue).await?;
        Ok(self.fresh_record(queue).await?.map(|record| record.kinds).unwrap_or_default())
    }

    /// The defaults of a kind.
    pub async fn kind(&self, queue: &QueueName, kind: &TaskKind) -> Result<KindDefaults, ServiceError> {
        let mut kinds = self.kinds(queue).await?;
        kinds.remove(kind).ok_or_else(|| Reject::NotFound.into())
    }

    /// Removes the defaults of a kind. Without any, this changes nothing.
    pub async fn delete_kind(&self, queue: &QueueName, kind: &TaskKind) -> Result<(), ServiceError> {
        self.require_queue(queue).await?;
        let change = |record: &QueueRecord| {
            record.kinds.contains_key(kind).then(|| {
                let mut kinds = record.kinds.clone();
                kinds.remove(kind);
                QueueRecord { kinds, ..record.clone() }
            })
        };
        self.write_queue(queue, change).await.map(drop)
    }

    /// The policies of a task of this kind, completed by the kind's defaults.
    pub(crate) async fn with_defaults(
        &self,
        queue: &QueueName,
        kind: &TaskKind,
        own: Policies,
        given: &[Policy],
    ) -> Result<Policies, ServiceError> {
        Ok(own.or(&self.defaults(queue, kind).await?, given))
    }
}
