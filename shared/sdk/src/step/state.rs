//! States: the values that steps get from their worker in addition to their arguments, such as connections, clients and
//! settings.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::StepHandler;
use crate::registry::ErasedStep;

/// One value of each type, for the steps that ask for it with `#[state]`. Cheap to clone.
#[derive(Clone, Default)]
pub struct States(Arc<HashMap<StateType, Arc<dyn Any + Send + Sync>>>);

/// A type that a step asks for.
#[derive(Clone, Copy, Debug)]
pub struct StateType {
    id: TypeId,
    name: &'static str,
}

/// The worker lacks a state that a step asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it needs a state of the type `{0}` that its worker wasn't given: add `.state(…)` to the worker")]
pub struct MissingState(StateType);

/// The code of a failed step, or of an execution that is stuck, because a state is missing.
pub(crate) const MISSING_STATE: &str = "missing_state";

/// A step of this program. Workers check the states of these before they start, and find the code of mapped steps by
/// their names.
#[doc(hidden)]
#[derive(Debug)]
pub struct LinkedStep {
    pub(crate) name: &'static str,
    pub(crate) states: fn() -> Vec<StateType>,
    type_name: fn() -> &'static str,
    code: fn() -> ErasedStep,
}

inventory::collect!(LinkedStep);

impl States {
    /// The value of this type.
    ///
    /// # Errors
    ///
    /// Fails if there is no such value.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, MissingState> {
        let wanted = StateType::of::<T>();
        let found = self.0.get(&wanted).cloned().and_then(|value| value.downcast().ok());
        found.ok_or(MissingState(wanted))
    }

    /// Adds a value. Returns whether it is the first of its type.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, value: T) -> bool {
        Arc::make_mut(&mut self.0).insert(StateType::of::<T>(), Arc::new(value)).is_none()
    }

    /// Fails if there is no value of this type.
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
    /// The state type for `T`.
    #[must_use]
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }
}

/// Compares the types: two types can have the same name.
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
    /// The entry of this handler.
    #[must_use]
    pub const fn of<H: StepHandler>() -> Self {
        Self { name: H::NAME, states: H::states, type_name: type_name::<H>, code: ErasedStep::new::<H> }
    }

    /// The code of the step with this name. Of several with the name, it is that of the type.
    pub(crate) fn code_of(name: &str, type_name: &str) -> Option<ErasedStep> {
        let named = || Self::all().filter(|step| step.name == name);
        let found = named().find(|step| (step.type_name)() == type_name).or_else(|| named().next())?;
        Some((found.code)())
    }

    /// All steps of this program.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>()
    }
}
