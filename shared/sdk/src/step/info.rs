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
        let info = StepInfo { idempotency_key: "k".to_owned(), attempt: 2, name: "charge".to_owned() };
        let seen = info.clone().scope(async { step_info() }).await;
        assert_eq!(seen, Some(info));
        assert_eq!(step_info(), None);
    }
}
