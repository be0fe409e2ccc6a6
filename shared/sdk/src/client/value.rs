//! The values that executions publish.

use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::id::StepName;
use tickover_core::limits::WAIT_MAX;
use tickover_core::time::Timestamp;
use tickover_wire::answer::ValueView;

use super::retries::Retries;
use super::{ClientError, Handle};
use crate::codec;

/// A value that an execution's code has published with [`Ctx::publish`](crate::Ctx::publish).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published<T> {
    /// How often the value of this name has changed, from 1.
    pub version: u32,
    /// When it was published.
    pub published_at: Timestamp,
    /// The value.
    pub value: T,
}

impl<O> Handle<O> {
    /// What its code has published under a name; `None` if nothing.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// if let Some(stage) = run.value::<String>("stage").await? {
    ///     println!("{} since {}", stage.value, stage.published_at.to_rfc3339());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn value<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
    ) -> Result<Option<Published<T>>, ClientError> {
        self.read_value(&name_of(name)?, 0, Millis::ZERO).await
    }

    /// Waits until its code has published a later version than this under a name, without a limit. `None` if the execution
    /// has ended without one. After version 0 it is the first one.
    pub async fn value_after<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        version: u32,
    ) -> Result<Option<Published<T>>, ClientError> {
        let name = name_of(name)?;
        let mut retries = Retries::default();
        loop {
            match self.read_value(&name, version, WAIT_MAX).await {
                Ok(Some(found)) if found.version > version => return Ok(Some(found)),
                Ok(_) => {
                    retries = Retries::default();
                    // It may have published its last one just before its end.
                    if !self.describe().await?.is_live() {
                        let last = self.read_value(&name, version, Millis::ZERO).await?;
                        return Ok(last.filter(|last| last.version > version));
                    }
                }
                Err(error) => retries.wait_or_fail(error, self.client()).await?,
            }
        }
    }

    /// All that its code has published, in the order of the names.
    pub async fn values(&self) -> Result<Vec<ValueView>, ClientError> {
        Ok(self.client().api.values(self.id()).await?.values)
    }

    async fn read_value<T: DeserializeOwned>(
        &self,
        name: &StepName,
        after: u32,
        wait: Millis,
    ) -> Result<Option<Published<T>>, ClientError> {
        let found = match self.client().api.value(self.id(), name, after, wait).await {
            Ok(found) => found.value,
            Err(ClientError::Refused(problem)) if problem.code == "unknown_value" => return Ok(None),
            Err(error) => return Err(error),
        };
        let value = codec::decode(&found.value);
        let value = value.map_err(|problem| ClientError::of_another_type(name.as_str(), problem))?;
        Ok(Some(Published { version: found.version, published_at: *found.published_at, value }))
    }
}

fn name_of(name: impl Into<String>) -> Result<StepName, ClientError> {
    StepName::parse(name).map_err(|problem| ClientError::invalid("name", problem))
}
