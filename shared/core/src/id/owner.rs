//! Who has a place at a key, or waits for one: a task or an execution.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ExecutionId, NameError, TaskId};

/// What an execution's text begins with. No name has this character.
const EXECUTION: char = '@';

/// A task or an execution, by its id. Its text is the id of a task as it is, or `@` and that of an execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Owner {
    Task(TaskId),
    Execution(ExecutionId),
}

impl Owner {
    /// The most characters of its text. Each is one byte.
    pub const MAX: usize = TaskId::MAX + 1;

    /// What it is, as a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Task(_) => "task",
            Self::Execution(_) => "execution",
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Task(id) => id.as_str(),
            Self::Execution(id) => id.as_str(),
        }
    }

    /// The task's id, if it is a task.
    pub const fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Task(id) => Some(id),
            Self::Execution(_) => None,
        }
    }

    /// The execution's id, if it is an execution.
    pub const fn execution(&self) -> Option<&ExecutionId> {
        match self {
            Self::Task(_) => None,
            Self::Execution(id) => Some(id),
        }
    }
}

impl From<TaskId> for Owner {
    fn from(id: TaskId) -> Self {
        Self::Task(id)
    }
}

impl From<ExecutionId> for Owner {
    fn from(id: ExecutionId) -> Self {
        Self::Execution(id)
    }
}

impl TryFrom<String> for Owner {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        match text.strip_prefix(EXECUTION) {
            Some(id) => ExecutionId::parse(id).map(Self::Execution),
            None => TaskId::parse(text).map(Self::Task),
        }
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Task(id) => id.into(),
            Owner::Execution(_) => owner.to_string(),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => write!(f, "{id}"),
            Self::Execution(id) => write!(f, "{EXECUTION}{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_and_an_execution_of_one_id_have_different_texts() {
        let task = Owner::from(TaskId::parse("order-7").unwrap());
        let execution = Owner::from(ExecutionId::parse("order-7").unwrap());
        for (owner, text) in [(&task, r#""order-7""#), (&execution, r#""@order-7""#)] {
            assert_eq!(serde_json::to_string(owner).unwrap(), text);
            assert_eq!(&serde_json::from_str::<Owner>(text).unwrap(), owner);
        }
        assert_ne!(task, execution);
        assert!(serde_json::from_str::<Owner>(r#""@@order-7""#).is_err());
    }
}
