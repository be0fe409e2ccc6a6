//! An execution's record as part of a state.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use tickover_core::execution::Execution;

/// A record that many states share, compared by its serialised form.
#[derive(Clone)]
pub struct Kept(Arc<(Execution, u64)>);

impl Kept {
    pub fn new(execution: Execution) -> Self {
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&execution).unwrap_or_default().hash(&mut hasher);
        Self(Arc::new((execution, hasher.finish())))
    }
}

impl Deref for Kept {
    type Target = Execution;

    fn deref(&self) -> &Execution {
        &self.0.0
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.0.1 == other.0.1
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.1.cmp(&other.0.1)
    }
}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.1.hash(hasher);
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::trace::execution::brief(self))
    }
}
