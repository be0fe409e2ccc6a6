//! What a running step can ask about itself.

use std::future::Future;

tokio::task_local! {
    static INFO: StepInfo;
}

/// The attempt that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepInfo {
    /// The same for all attempts of this step in this run and different from every other step's: for outside
    /// services that take such a key, so that an attempt that is repeated has one effect.
    pub idempotency_key: String,
    /// Counts from 1.
    pub attempt: u32,
    /// The step's name in the run.
    pub name: String,
    /// The trace that the work belongs to, as in a `traceparent` header: for calls to others, and for spans of one's
    /// own. `None` where traces aren't carried, or nobody named one.
    pub traceparent: Option<String>,
}

/// What is known of the step that calls this. `None` outside of a step, and in what a step has spawned.
pub fn step_info() -> Option<StepInfo> {
    INFO.try_with(Clone::clone).ok()
}

impl StepInfo {
    /// Runs an attempt that is told this about itself.
    pub(crate) async fn scope<F: Future>(self, attempt: F) -> F::Output {
        INFO.scope(self, attempt).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_step_sees_itself_and_nobody_else_does() {
        let (key, name) = ("k".to_owned(), "charge".to_owned());
        let info = StepInfo { idempotency_key: key, attempt: 2, name, traceparent: None };
        let seen = info.clone().scope(async { step_info() }).await;
        assert_eq!(seen, Some(info));
        assert_eq!(step_info(), None);
    }
}
