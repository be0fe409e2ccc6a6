//! Remote steps that the test answers itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::payload::Json;

use crate::codec;
use crate::error::Failure;

/// An answer without its types.
pub(super) type Answer = Arc<dyn Fn(&Json) -> Result<Json, Failure> + Send + Sync>;

/// Answers by kind of task.
#[derive(Default)]
pub(super) struct Answers(Mutex<BTreeMap<String, Answer>>);

impl Answers {
    pub(super) fn add<I, O, F>(&self, kind: String, answer: F)
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Fn(I) -> Result<O, Failure> + Send + Sync + 'static,
    {
        let erased: Answer = Arc::new(move |input| {
            let problem = |what: &str, error: &dyn std::fmt::Display| Failure::new(what, error.to_string());
            let input = codec::decode(input).map_err(|error| problem("invalid_input", &error))?;
            codec::encode(&answer(input)?).map_err(|error| problem("invalid_output", &error))
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, erased);
    }

    pub(super) fn of(&self, kind: &str) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }
}
