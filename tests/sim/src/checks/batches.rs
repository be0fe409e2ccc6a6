//! What must hold of tasks that were claimed as one batch: they have one kind and one tenant.

use std::collections::BTreeSet;

use super::answers::calls;
use super::story::Stories;
use crate::Run;
use crate::history::{Answer, Held, Request};
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let of_call = |call: super::answers::Call<'_>| {
        let (Request::ClaimTogether(..), Answer::Claimed(all)) = (call.request, call.answer) else {
            return None;
        };
        let task = |held: &Held| stories.task(held.incarnation).first().map(|step| step.after);
        let keys: BTreeSet<_> =
            all.iter().filter_map(task).map(|task| (&task.kind, task.lane().tenant)).collect();
        (keys.len() > 1)
            .then(|| Violation::new(Invariant::Batches, call.at, format!("{keys:?} in one batch")))
    };
    calls(run).into_iter().filter_map(of_call).collect()
}
