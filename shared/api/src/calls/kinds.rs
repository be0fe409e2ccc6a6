//! The defaults of kinds of tasks.

use tickover_core::id::{QueueName, TaskKind};
use tickover_core::kind::KindDefaults;
use tickover_service::Service;
use tickover_wire::Verbatim;
use tickover_wire::answer::{DeletedKindAnswer, KindAnswer, KindView, KindsAnswer};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, request, view};

/// The kinds of a queue that have defaults.
pub async fn kinds(service: &Service, queue: &str) -> Result<Answer, Problem> {
    let queue = name::queue(queue)?;
    let kinds = service.kinds(&queue).await?.into_iter();
    let kinds = kinds.map(|(kind, defaults)| shown(queue.clone(), kind, defaults)).collect();
    Answer::ok(&KindsAnswer { kinds })
}

/// The defaults of a kind.
pub async fn kind(service: &Service, queue: &str, kind: &str) -> Result<Answer, Problem> {
    let (queue, kind) = (name::queue(queue)?, name::kind(kind)?);
    let defaults = service.kind(&queue, &kind).await?;
    Answer::ok(&KindAnswer { kind: shown(queue, kind, defaults) })
}

/// Sets the defaults of a kind, instead of those that it had. They count for tasks that are scheduled afterwards.
pub async fn set_kind(service: &Service, queue: &str, kind: &str, body: &[u8]) -> Result<Answer, Problem> {
    let (queue, kind) = (name::queue(queue)?, name::kind(kind)?);
    let defaults = request::kind_defaults(body::read(body)?, queue.clone(), kind.clone())?;
    let defaults = service.set_kind(&queue, &kind, defaults).await?;
    Answer::ok(&KindAnswer { kind: shown(queue, kind, defaults) })
}

/// Removes the defaults of a kind. Tasks that exist keep theirs.
pub async fn delete_kind(service: &Service, queue: &str, kind: &str) -> Result<Answer, Problem> {
    let (queue, kind) = (name::queue(queue)?, name::kind(kind)?);
    service.delete_kind(&queue, &kind).await?;
    Answer::ok(&DeletedKindAnswer { queue, kind, deleted: true })
}

fn shown(queue: QueueName, kind: TaskKind, defaults: KindDefaults) -> KindView {
    let by = defaults.by.as_deref().map(view::by);
    KindView { queue, kind, defaults: Verbatim(defaults.given), by }
}
