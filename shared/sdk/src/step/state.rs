//! What steps get from their worker beside their arguments: connections, clients, settings.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::StepHandler;

/// One value of each type, for the steps that ask for it with `#[state]`. Cheap to clone.
#[derive(Clone, Default)]
pub struct States(Arc<HashMap<StateType, Arc<dyn Any + Send + Sync>>>);

/// A type of which a step needs a value.
#[derive(Clone, Copy, Debug)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

/// A step's worker wasn't given a value of a type that the step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it needs a state of the type `{0}` that its worker wasn't given: add `.state(…)` where the worker is put together"
)]
pub struct MissingState(StateType);

/// The code of a step's failure, or of the reason why an execution is stuck, for want of a state.
pub(crate) const MISSING_STATE: &str = "missing_state";

/// A step of this program that asks for states: what a worker checks before it begins.
#[doc(hidden)]
#[derive(Debug)]
pub struct LinkedStep {
    pub(crate) name: &'static str,
    pub(crate) states: fn() -> Vec<StateType>,
}

inventory::collect!(LinkedStep);

impl States {
    /// The value of this type.
    ///
    /// # Errors
    ///
    /// That there is none.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, MissingState> {
        let wanted = StateType::of::<T>();
        let found = self.0.get(&wanted).cloned().and_then(|value| value.downcast().ok());
        found.ok_or(MissingState(wanted))
    }

    /// Adds a value; whether it is the first of its type.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, value: T) -> bool {
        Arc::make_mut(&mut self.0).insert(StateType::of::<T>(), Arc::new(value)).is_none()
    }

    /// Whether there is a value of a type.
    pub(crate) fn check(&self, wanted: StateType) -> Result<(), MissingState> {
        if self.0.contains_key(&wanted) { Ok(()) } else { Err(MissingState(wanted)) }
    }
}

impl fmt::Debug for States {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys().map(|state| state.name)).finish()
    }
}

impl StateType {
    /// The type as it is asked for.
    #[must_use]
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }
}

/// By the type itself: its name may not be the only one of its kind.
impl PartialEq for StateType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for StateType {}

impl std::hash::Hash for StateType {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.id.hash(hasher);
    }
}

impl fmt::Display for StateType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl LinkedStep {
    /// The step of this type.
    #[must_use]
    pub const fn of<H: StepHandler>() -> Self {
        Self { name: H::NAME, states: H::states }
    }

    /// All steps of this program that ask for states.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>()
    }
}
