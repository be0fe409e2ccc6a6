//! What a worker can run: workflows by name, and steps for other workers by kind.
//!
//! Owns the checks of workflows and steps that were made without an attribute: the attributes check the same at compile
//! time. Problems are collected until [`Registry::check`], so that a worker can be built in one expression.

mod erased;
mod together;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

#[cfg(feature = "test")]
use futures::future::BoxFuture;
use tickover_core::duration::Millis;
use tickover_core::id::{NameError, QueueName, TaskKind, WorkflowName};
use tickover_core::limits::SPAN_MAX;
use tickover_core::policy::PolicyError;
use tickover_service::WorkflowTerms;
use tickover_service::queues::routes::Routes;

#[cfg(feature = "test")]
pub(crate) use erased::INVALID_INPUT;
pub use erased::{ErasedStep, ErasedWorkflow, StepFailed};

use crate::ctx::{CHUNK, chunk_workflow};
use crate::step::{LinkedStep, StateType, States, StepHandler};
use crate::workflow::Workflow;

/// The shortest execution and run timeout.
pub const TIMEOUT_MIN: Millis = Millis::from_secs(1);

/// Runs the items of one chunk of a map. Every worker has it.
static CHUNKS: LazyLock<ErasedWorkflow> = LazyLock::new(|| ErasedWorkflow::new(chunk_workflow()));

/// Everything that a worker can run.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    workflows: BTreeMap<String, ErasedWorkflow>,
    steps: BTreeMap<String, ErasedStep>,
    /// Mocks that run instead of the steps of the same kind, inline and remote.
    mocks: Arc<BTreeMap<String, ErasedStep>>,
    /// The states for steps.
    states: States,
    /// The types of states that no step on this worker asks for.
    unneeded: Vec<StateType>,
    problems: Vec<RegistryError>,
}

/// Why a worker can't be built from a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two workflows have the same name, so the workflow of an execution would be ambiguous.
    #[error("two workflows are named `{name}`")]
    DuplicateWorkflow {
        /// The name.
        name: String,
    },
    /// Two steps have the same name.
    #[error("two steps are named `{name}`")]
    DuplicateStep {
        /// The name.
        name: String,
    },
    /// Two states have the same type, so the state of a step would be ambiguous.
    #[error("two states are of the type `{state}`: give one of them a type of its own")]
    DuplicateState {
        /// The type.
        state: StateType,
    },
    /// A step asks for a state that the worker lacks.
    #[error(
        "step `{step}` needs a state of the type `{state}`: add `.state(…)`, or `.without_state::<{state}>()` to a \
         worker that never runs that step"
    )]
    MissingState {
        /// The step.
        step: &'static str,
        /// The type.
        state: StateType,
    },
    /// A name of a workflow or step isn't valid.
    #[error("{what} {name:?}: the name {problem}")]
    Name {
        /// What has the name: `workflow` or `step`.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: NameError,
    },
    /// The name of a workflow's queue isn't valid.
    #[error("workflow `{workflow}`, queue {queue:?}: the name {problem}")]
    Queue {
        /// The workflow.
        workflow: String,
        /// The queue's name.
        queue: String,
        /// What is wrong with it.
        problem: NameError,
    },
    /// The retry policy of a workflow isn't valid.
    #[error("workflow `{workflow}`, retry: {problem}")]
    Retry {
        /// The workflow.
        workflow: String,
        /// What is wrong with it.
        problem: PolicyError,
    },
    /// A timeout is too short or too long.
    #[error(
        "workflow `{workflow}`: the {which} timeout must be at least {TIMEOUT_MIN} and at most {SPAN_MAX}, \
         not {timeout}"
    )]
    Timeout {
        /// The workflow.
        workflow: String,
        /// `execution`, `run`, `on_failure` or `on_cancel`.
        which: &'static str,
        /// The timeout.
        timeout: Millis,
    },
}

/// What can be registered with a worker: a workflow, an array of workflows of one type, a tuple of up to eight.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow, nor an array or tuple of workflows",
    note = "a workflow is a function with the attribute `#[tickover::workflow]`",
    note = "workflows of different types go into a tuple: `(first, second)`, or one by one: `serve(first).workflow(second)`"
)]
pub trait Register {
    /// Adds itself to the registry.
    fn register(self, registry: &mut Registry);
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one or more workflows.
    #[must_use]
    pub fn with(mut self, workflows: impl Register) -> Self {
        workflows.register(&mut self);
        self
    }

    /// Adds a step that this worker runs for workflows on other workers.
    #[must_use]
    pub fn with_step<S: StepHandler>(mut self) -> Self {
        self.add_step(ErasedStep::new::<S>());
        self
    }

    /// Passes this value to all steps that ask for a state of its type.
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        if !self.states.add(state) {
            self.problems.push(RegistryError::DuplicateState { state: StateType::of::<T>() });
        }
        self
    }

    /// Declares that this worker never runs a step that asks for a state of this type, so that the state may be
    /// missing.
    #[must_use]
    pub fn without_state<T: 'static>(mut self) -> Self {
        self.unneeded.push(StateType::of::<T>());
        self
    }

    /// Replaces the workflows of the same names.
    #[cfg(feature = "test")]
    pub(crate) fn replacing(mut self, workflows: impl Register) -> Self {
        let Self { workflows, problems, .. } = Self::new().with(workflows);
        self.workflows.extend(workflows);
        self.problems.extend(problems);
        self
    }

    /// Runs other code for a step, inline and remote.
    #[cfg(feature = "test")]
    pub(crate) fn with_mock<S: StepHandler>(
        mut self,
        mock: impl Fn(S::Input) -> BoxFuture<'static, Result<S::Output, S::Error>> + Send + Sync + 'static,
    ) -> Self {
        let mock = ErasedStep::running::<S>(move |input, _| Ok(mock(input)));
        Arc::make_mut(&mut self.mocks).insert(S::NAME.to_owned(), mock);
        self
    }

    pub(crate) fn mocks(&self) -> Arc<BTreeMap<String, ErasedStep>> {
        Arc::clone(&self.mocks)
    }

    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// The workflow of this name.
    pub fn workflow(&self, name: &str) -> Option<&ErasedWorkflow> {
        self.workflows.get(name).or_else(|| (name == CHUNK).then(|| &*CHUNKS))
    }

    /// The step of this kind.
    pub fn step(&self, kind: &str) -> Option<&ErasedStep> {
        self.mocks.get(kind).or_else(|| self.steps.get(kind))
    }

    /// All workflows, by name.
    pub fn workflows(&self) -> impl Iterator<Item = &ErasedWorkflow> {
        self.workflows.values()
    }

    /// All steps that this worker runs for other workers, by kind.
    pub fn steps(&self) -> impl Iterator<Item = &ErasedStep> {
        self.steps.values()
    }

    /// The terms of each workflow's executions.
    pub(crate) fn terms(&self) -> BTreeMap<WorkflowName, WorkflowTerms> {
        let terms =
            |workflow: &ErasedWorkflow| Some((WorkflowName::parse(workflow.name).ok()?, workflow.known()));
        self.workflows().filter_map(terms).collect()
    }

    /// The queues of its workflows. A worker that is set to other queues than a workflow's own one serves only starts that
    /// name those queues.
    pub(crate) fn routes(&self, queues: &[QueueName]) -> Routes {
        let route = |workflow: &ErasedWorkflow| {
            let own = QueueName::parse(workflow.options.queue).ok().filter(|own| queues.contains(own))?;
            Some((WorkflowName::parse(workflow.name).ok()?, own))
        };
        self.workflows().filter_map(route).collect()
    }

    /// Returns the first problem, if there is one.
    pub fn check(&self) -> Result<(), RegistryError> {
        if let Some(problem) = self.problems.first() {
            return Err(problem.clone());
        }
        let offered = self.steps.values().filter(|step| !self.mocks.contains_key(step.kind));
        self.check_states(offered.map(|step| (step.kind, step.states.clone())))
    }

    /// The same, and checks that all steps of this program have their states. The steps that a workflow runs inline are
    /// known only when it runs.
    pub(crate) fn check_all(&self) -> Result<(), RegistryError> {
        self.check()?;
        self.check_states(LinkedStep::all().map(|step| (step.name, (step.states)())))
    }

    fn check_states(
        &self,
        steps: impl Iterator<Item = (&'static str, Vec<StateType>)>,
    ) -> Result<(), RegistryError> {
        for (step, states) in steps {
            let missing =
                |state: &&StateType| self.states.check(**state).is_err() && !self.unneeded.contains(state);
            if let Some(state) = states.iter().find(missing) {
                return Err(RegistryError::MissingState { step, state: *state });
            }
        }
        Ok(())
    }

    fn add_workflow(&mut self, workflow: ErasedWorkflow) {
        let name = workflow.name;
        let options = workflow.options;
        self.check_name("workflow", name, WorkflowName::parse(name).err());
        if let Err(problem) = QueueName::parse(options.queue) {
            let (workflow, queue) = (name.to_owned(), options.queue.to_owned());
            self.problems.push(RegistryError::Queue { workflow, queue, problem });
        }
        if let Err(problem) = options.retry_policy() {
            self.problems.push(RegistryError::Retry { workflow: name.to_owned(), problem });
        }
        for (which, timeout) in [
            ("execution", options.execution_timeout),
            ("run", options.run_timeout),
            ("on_failure", options.on_failure_timeout),
            ("on_cancel", options.on_cancel_timeout),
        ] {
            if let Some(timeout) = timeout.filter(|timeout| !(TIMEOUT_MIN..=SPAN_MAX).contains(timeout)) {
                let workflow = name.to_owned();
                self.problems.push(RegistryError::Timeout { workflow, which, timeout });
            }
        }
        if self.workflows.insert(name.to_owned(), workflow).is_some() || name == CHUNK {
            self.problems.push(RegistryError::DuplicateWorkflow { name: name.to_owned() });
        }
    }

    fn add_step(&mut self, step: ErasedStep) {
        let kind = step.kind;
        self.check_name("step", kind, TaskKind::parse(kind).err());
        if self.steps.insert(kind.to_owned(), step).is_some() {
            self.problems.push(RegistryError::DuplicateStep { name: kind.to_owned() });
        }
    }

    fn check_name(&mut self, what: &'static str, name: &str, problem: Option<NameError>) {
        if let Some(problem) = problem {
            self.problems.push(RegistryError::Name { what, name: name.to_owned(), problem });
        }
    }
}

impl<I, O> Register for Workflow<I, O>
where
    I: serde::de::DeserializeOwned + Send + 'static,
    O: serde::Serialize + Send + 'static,
{
    fn register(self, registry: &mut Registry) {
        registry.add_workflow(ErasedWorkflow::new(self));
    }
}

#[diagnostic::do_not_recommend]
impl<F, I, O> Register for F
where
    F: Fn() -> Workflow<I, O>,
    Workflow<I, O>: Register,
{
    fn register(self, registry: &mut Registry) {
        self().register(registry);
    }
}

impl<R: Register, const N: usize> Register for [R; N] {
    fn register(self, registry: &mut Registry) {
        for workflow in self {
            workflow.register(registry);
        }
    }
}

impl<R: Register> Register for Vec<R> {
    fn register(self, registry: &mut Registry) {
        for workflow in self {
            workflow.register(registry);
        }
    }
}

macro_rules! register_tuple {
    ($($part:ident)*) => {
        impl<$($part: Register),*> Register for ($($part,)*) {
            fn register(self, registry: &mut Registry) {
                #[expect(non_snake_case, reason = "the variables have the names of the type parameters")]
                let ($($part,)*) = self;
                $($part.register(registry);)*
            }
        }
    };
}

register_tuple!(A);
register_tuple!(A B);
register_tuple!(A B C);
register_tuple!(A B C D);
register_tuple!(A B C D E);
register_tuple!(A B C D E F);
register_tuple!(A B C D E F G);
register_tuple!(A B C D E F G H);

#[cfg(test)]
mod tests;
