//! A successful answer: a status and a JSON body, the same over each transport.

use serde::Serialize;
use serde_json::value::RawValue;

use tickover_wire::answer::{BatchResult, TaskAnswer};

use crate::problem::Problem;

/// The answer to a call that succeeded.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status: 200, or 201 when the call created a record.
    pub status: u16,
    /// The body, one JSON object.
    pub body: Box<RawValue>,
    /// The id of the record that the call made, if the request may leave it open.
    pub(crate) id: Option<String>,
}

impl Answer {
    pub(crate) fn new<T: Serialize>(status: u16, body: &T) -> Result<Self, Problem> {
        match serde_json::value::to_raw_value(body) {
            Ok(body) => Ok(Self { status, body, id: None }),
            // Our own types always serialise. Only a stored payload that isn't JSON fails here.
            Err(error) => Err(Problem::corrupt(&error.to_string())),
        }
    }

    pub(crate) fn ok<T: Serialize>(body: &T) -> Result<Self, Problem> {
        Self::new(200, body)
    }

    /// The same, for the record with this id.
    pub(crate) fn about(self, id: &impl ToString) -> Self {
        Self { id: Some(id.to_string()), ..self }
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        self.body.get()
    }
}

/// The result of one entry of a batch, the same as if it had been sent alone.
pub(crate) fn result(answered: Result<(u16, TaskAnswer), Problem>) -> BatchResult {
    match answered {
        Ok((status, TaskAnswer { task, duplicate })) => {
            BatchResult { status, task: Some(Box::new(task)), duplicate, error: None }
        }
        Err(problem) => {
            let error = Some(Box::new(problem.answer().clone()));
            BatchResult { status: problem.status(), task: None, duplicate: None, error }
        }
    }
}
