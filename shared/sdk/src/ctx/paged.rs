//! A map over thousands of items: its chunks are executions of their own.
//!
//! Owns how items are divided into chunks, how many chunks run beside each other, and when the map has failed.

use std::collections::VecDeque;
use std::fmt::Display;
use std::future::{IntoFuture, pending};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::value::RawValue;
use tickover_core::execution::ParentClosePolicy;
use tickover_core::execution::journal::{END_PREFIX, PAGE_PREFIX};
use tickover_core::flow::FlowRequest;
use tickover_core::id::ExecutionId;
use tickover_service::ServiceError;

use super::Child;
use super::child::plain;
use super::chunk::{self, Chunk, Code, Outcomes, Raw};
use super::map::{Map, TooManyFailed};
use super::operation::Awaited;
use super::pages::{self, Count, PageOf, Pages};
use super::step::{StepOperation, Stored};
use crate::error::{Error, Failure};
use crate::step::{Step, StepError, step};
use crate::turn::shared::Shared;

/// The largest size of a page.
const PAGE_MAX: usize = 1_000;
/// How many chunks run beside each other, so that the last items of one don't leave workers idle.
const LANES: usize = 8;
/// The most items that run at once if the map says nothing.
const AT_ONCE: usize = 1_000;
/// The bytes of the inputs in one chunk. A chunk is an execution's input, which has at most 350 KiB.
const CHUNK_BYTES: usize = 200 * 1024;
/// A [`Map`] whose items run in child executions, one for each page; see [`Map::paged`].
///
/// Awaiting it returns [`Pages`], which read the outcomes page by page. The results of a page's items may have 350 KiB
/// together. The map fails when more items have failed than it tolerates: at the latest when the page that
/// exceeds the number has ended. Then its other pages are ended.
#[must_use = "it does nothing unless it is awaited"]
pub struct Paged<T, E> {
    map: Map<T, E>,
    size: usize,
}

impl<T, E> Paged<T, E> {
    pub(super) const fn new(map: Map<T, E>, size: usize) -> Self {
        Self { map, size }
    }
}

impl<T: Stored, E: Stored + Display> IntoFuture for Paged<T, E> {
    type Output = Result<Pages<T, E>, TooManyFailed<E>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { map, size } = self;
        let tolerance = map.checked_tolerance().and_then(|tolerance| match size {
            1..=PAGE_MAX => Ok(tolerance),
            _ => Err(format!("paged: a page has 1 to {PAGE_MAX} items, not {size}")),
        });
        let (shared, label, of) = (Arc::clone(&map.shared), map.label.clone(), map.steps.len());
        let prepared = tolerance.and_then(|tolerance| {
            let own_key = |flow: &FlowRequest| shared.lock().facts.own_key(flow);
            let chunks = chunks(&map.label, &map.steps, size, own_key)?;
            Ok((tolerance.most(of), chunks))
        });
        let at_once = map.at_once.min(AT_ONCE);
        async move {
            let error = match prepared {
                Ok((most, chunks)) => {
                    match (Mapped { shared: &shared, label: &label, of, most }).run(chunks, at_once).await {
                        Ok(ended) => return ended,
                        Err(error) => error,
                    }
                }
                Err(problem) => Error::new("invalid_step", format!("{label}: {problem}")),
            };
            shared.lock().fail(error);
            pending().await
        }
        .boxed()
    }
}

/// Divides the steps into chunks of at most `size` items and [`CHUNK_BYTES`].
///
/// The chunks' own executions have no places, so only here can be seen that an item asks for a place of the map's.
fn chunks<T, E>(
    label: &str,
    steps: &[Step<T, E>],
    size: usize,
    own_key: impl Fn(&FlowRequest) -> Option<String>,
) -> Result<VecDeque<Chunk>, String>
where
    E: Display,
{
    let (mut chunks, mut bytes) = (VecDeque::<Chunk>::new(), 0);
    for (index, step) in steps.iter().enumerate() {
        if let Some(problem) = step.problem().or_else(|| own_key(&step.options.flow)) {
            return Err(format!("item {index}: {problem}"));
        }
        let input = step.input().map_err(|_| {
            format!(
                "item {index}: its input can't be written as JSON; a paged map needs steps with the attribute"
            )
        })?;
        bytes += input.len();
        let is_full = chunks.back().is_none_or(|chunk| chunk.items.len() == size || bytes > CHUNK_BYTES);
        if is_full {
            bytes = input.len();
            let (label, codes, items) = (label.to_owned(), vec![], vec![]);
            chunks.push_back(Chunk { label, first: index, at_once: 1, tolerated: 0, codes, items });
        }
        let Some(chunk) = chunks.back_mut() else { continue };
        let (kind, type_name, options) = (step.kind.clone(), step.type_name.to_owned(), step.options.clone());
        let code = Code { kind, type_name, options };
        if chunk.codes.last() != Some(&code) {
            chunk.codes.push(code);
        }
        let raw = RawValue::from_string(input.as_str().to_owned()).map_err(|error| error.to_string())?;
        chunk.items.push((chunk.codes.len() - 1, Raw(raw)));
    }
    Ok(chunks)
}

/// A map that runs.
struct Mapped<'a> {
    shared: &'a Arc<Shared>,
    label: &'a str,
    of: usize,
    /// How many items may fail.
    most: usize,
}

impl Mapped<'_> {
    async fn run<T: Stored, E: Stored>(
        &self,
        mut waiting: VecDeque<Chunk>,
        at_once: usize,
    ) -> Result<Result<Pages<T, E>, TooManyFailed<E>>, Error> {
        let lanes = at_once.min(LANES).min(waiting.len());
        let mut pages: Vec<Option<PageOf>> = waiting.iter().map(|_| None).collect();
        let (mut free, mut running) = ((0..lanes).collect::<VecDeque<usize>>(), FuturesUnordered::new());
        let (mut next, mut lost) = (0, 0);
        loop {
            while let Some(lane) = free.pop_front() {
                let Some(mut chunk) = waiting.pop_front() else { break };
                // The lanes' shares have the sum `at_once`.
                chunk.at_once = at_once / lanes + usize::from(lane < at_once % lanes);
                chunk.tolerated = self.most - lost;
                let (number, first) = (next, chunk.first);
                next += 1;
                let child = self.child(number, &chunk);
                running.push(child.map(move |ended| (lane, number, first, ended)));
            }
            let Some((lane, number, first, ended)) = running.next().await else { break };
            let page = match ended {
                Ok(page) => page,
                Err(error) => {
                    drop(running);
                    self.end(next).await?;
                    return Err(Error::of_chunk(self.label, number, error));
                }
            };
            lost += page.failed;
            if let Some(place) = pages.get_mut(number) {
                *place = Some(PageOf { first, ..page });
            }
            if lost > self.most {
                drop(running);
                self.end(next).await?;
                return Ok(Err(self.too_many(pages.into_iter().flatten()).await?));
            }
            free.push_back(lane);
        }
        Ok(Ok(Pages::new(self.shared, pages.into_iter().flatten().collect())))
    }

    fn child(&self, number: usize, chunk: &Chunk) -> Awaited<Count> {
        let name = format!("{PAGE_PREFIX}{}[{number}]", self.label);
        let child = Child::new(self.shared, &chunk::workflow(), chunk).named(name).id(self.id(number));
        let queue = self.shared.lock().facts.queue.clone();
        Awaited::new(self.shared, Count::of(&child.on_queue(&queue).policy(ParentClosePolicy::Terminate)))
    }

    /// The id of a chunk's execution. It differs in each run, but for one that repeats the work of another.
    fn id(&self, number: usize) -> String {
        let identity = self.shared.lock().facts.identity(&format!("{PAGE_PREFIX}{}", self.label));
        format!("{}-{identity}-{number}", plain(self.label))
    }

    /// Ends the chunks that are open. It is a step, so that a replay doesn't repeat it.
    async fn end(&self, started: usize) -> Result<(), Error> {
        let ids: Vec<String> = (0..started).map(|number| self.id(number)).collect();
        let service = self.shared.service();
        let ends = step(format!("{END_PREFIX}{}", self.label), move || {
            let (service, ids) = (service.clone(), ids.clone());
            async move {
                for id in ids.into_iter().filter_map(|id| ExecutionId::parse(id).ok()) {
                    match service.terminate(&id).await {
                        // A chunk that has ended, or hasn't started, needs nothing.
                        Ok(()) | Err(ServiceError::Rejected(_)) => {}
                        Err(error) => return Err(Failure::new("unavailable", error.to_string())),
                    }
                }
                Ok(())
            }
        });
        Ok(Awaited::new(self.shared, StepOperation::new(ends.retry("exponential(6, 1s)"))).await?)
    }

    /// Reads the errors of the pages that have ended, one page after the other.
    async fn too_many<E: Stored>(
        &self,
        pages: impl Iterator<Item = PageOf> + Send,
    ) -> Result<TooManyFailed<E>, Error> {
        let (mut completed, mut failed) = (0, vec![]);
        for page in pages {
            completed += page.completed;
            let PageOf { first, failed: some, .. } = page;
            let Outcomes(items) = if some > 0 { page.outcomes(self.shared).await? } else { continue };
            for (index, item) in (first..).zip(&items).filter(|(_, item)| matches!(item, Some(Err(_)))) {
                if let Err(error) = pages::read::<serde_json::Value, E>(index, item)? {
                    failed.push((index, error));
                }
            }
        }
        Ok(TooManyFailed { label: self.label.to_owned(), of: self.of, completed, failed })
    }
}

impl Error {
    /// The error of a chunk's execution itself: a result that is too large, a cancellation, a name that is used twice.
    fn of_chunk(label: &str, number: usize, error: StepError<Failure>) -> Self {
        let error = Self::from(error);
        let message = format!("page {number} of the map `{label}`: {}", error.message());
        Self::new(error.code(), message)
    }
}
