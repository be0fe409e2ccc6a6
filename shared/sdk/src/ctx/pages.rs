//! The outcomes of a map's pages. They stay in the store until the code asks for a page.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tickover_core::execution::replay::NameState;
use tickover_core::id::StepName;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

use super::Child;
use super::child::ChildOperation;
use super::chunk::{ItemOutcome, Outcomes};
use super::combine::Settled;
use super::operation::{Awaited, FirstPoll, Operation};
use super::step::{EndedBy, Stored, read_outcome};
use crate::codec;
use crate::error::{Error, Failure};
use crate::step::StepError;
use crate::turn::need::Need;
use crate::turn::shared::Shared;
use crate::turn::state::State;

/// The outcomes of a [`Paged`](super::Paged) map, by pages. Only their numbers are in memory: a page is read when the code
/// asks for it, one at a time.
pub struct Pages<T, E> {
    shared: Arc<Shared>,
    ended: Vec<PageOf>,
    _outcome: PhantomData<fn() -> (T, E)>,
}

impl<T, E> fmt::Debug for Pages<T, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pages").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<T: Stored, E: Stored> Pages<T, E> {
    pub(super) fn new(shared: &Arc<Shared>, ended: Vec<PageOf>) -> Self {
        Self { shared: Arc::clone(shared), ended, _outcome: PhantomData }
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        self.ended.len()
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.ended.iter().map(|page| page.items).sum()
    }

    /// Whether the map had no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items failed.
    pub fn failed(&self) -> usize {
        self.ended.iter().map(|page| page.failed).sum()
    }

    /// Reads the outcomes of one page, with indexes within the page. Fails if there is no such page, or if a result
    /// doesn't fit its type.
    pub async fn page(&mut self, number: usize) -> Result<Settled<T, E>, Error> {
        let Some(page) = self.ended.get(number) else {
            let pages = self.ended.len();
            return Err(Error::new("no_page", format!("page {number} of {pages}: pages count from 0")));
        };
        let Outcomes(items) = page.outcomes(&self.shared).await?;
        let read = |(index, item): (usize, &ItemOutcome)| read(index, item);
        Ok(Settled { outcomes: (page.first..).zip(&items).map(read).collect::<Result<_, _>>()? })
    }

    /// Reads the outcomes of all items into memory.
    pub async fn collect(&mut self) -> Result<Settled<T, E>, Error> {
        let mut outcomes = Vec::with_capacity(self.len());
        for number in 0..self.pages() {
            outcomes.extend(self.page(number).await?.outcomes);
        }
        Ok(Settled { outcomes })
    }
}

/// Reads the outcome of an item.
pub(super) fn read<T: Stored, E: Stored>(
    index: usize,
    item: &ItemOutcome,
) -> Result<Result<T, StepError<E>>, Error> {
    let unreadable = |error: codec::CodecError| {
        Error::new("unreadable", format!("the outcome of item {index} doesn't fit its type: {error}"))
    };
    match item {
        Some(Ok(output)) => codec::decode(&Json::from(output.0.clone())).map(Ok).map_err(unreadable),
        Some(Err(error)) => {
            let text = codec::encode(error).map_err(unreadable)?;
            codec::decode(&text).map(Err).map_err(unreadable)
        }
        None => Err(Error::new("unreadable", format!("item {index} has no outcome"))),
    }
}

/// A page that has ended.
#[derive(Clone, Debug)]
pub(super) struct PageOf {
    /// The index of its first item.
    pub(super) first: usize,
    pub(super) items: usize,
    pub(super) completed: usize,
    pub(super) failed: usize,
    /// The name of its child in the journal.
    pub(super) name: StepName,
}

impl PageOf {
    /// Reads its outcomes.
    pub(super) fn outcomes(&self, shared: &Arc<Shared>) -> Awaited<Reread> {
        Awaited::new(shared, Reread { name: self.name.clone() })
    }
}

/// A wait for the child of a page, of which only the counts stay in memory.
pub(super) struct Count(ChildOperation<Outcomes>);

impl Count {
    pub(super) fn of(child: &Child<Outcomes>) -> Self {
        Self(child.operation())
    }
}

impl Operation for Count {
    /// The index of its first item is unknown here.
    type Output = Result<PageOf, StepError<Failure>>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        match self.0.begin(state, now) {
            FirstPoll::Needs(need) => FirstPoll::Needs(need),
            FirstPoll::Ready(Err(error)) => FirstPoll::Ready(Err(error)),
            // The outcome of a child is never ready at the first poll.
            FirstPoll::Ready(Ok(_)) | FirstPoll::Over => FirstPoll::Over,
        }
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let ended = self.0.end(state)?;
        let name = self.0.name()?.clone();
        Some(ended.map(|Outcomes(items)| {
            let count =
                |is_wanted: fn(&ItemOutcome) -> bool| items.iter().filter(|item| is_wanted(item)).count();
            let completed = count(|item| matches!(item, Some(Ok(_))));
            let failed = count(|item| matches!(item, Some(Err(_))));
            PageOf { first: 0, items: items.len(), completed, failed, name }
        }))
    }
}

/// Reads a page again. Its entry is in the journal, so it ends in each replay at the same place.
pub(super) struct Reread {
    name: StepName,
}

impl Operation for Reread {
    type Output = Result<Outcomes, Error>;

    fn begin(&mut self, _: &mut State, _: Timestamp) -> FirstPoll<Self::Output> {
        FirstPoll::Needs(Need::Outcome { name: self.name.clone() })
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let NameState::Ended { outcome, .. } = state.replay.name_state(&self.name).clone() else {
            return Some(Err(Error::new(
                "unreadable",
                format!("the journal has no outcome of {}", self.name),
            )));
        };
        let by = EndedBy { attempts: 1, ..EndedBy::default() };
        let read = read_outcome::<Outcomes, Failure>(state, self.name.as_str(), &outcome, by);
        Some(read?.map_err(Error::from))
    }
}

#[cfg(all(test, feature = "test"))]
mod tests {
    use super::*;
    use crate as tickover;
    use crate::prelude::*;

    #[tickover::step("fill-a-page")]
    async fn fill(bytes: usize) -> Result<String> {
        Ok("x".repeat(bytes))
    }

    /// How many stored values are in memory after the map, and at most after a page was read.
    #[tickover::workflow("lazy")]
    async fn lazy(ctx: Ctx, pages: usize) -> Result<(usize, usize, usize)> {
        let shared = Arc::clone(&ctx.shared);
        let in_memory = || shared.lock().texts();
        let mut results = ctx.map("fill", (0..pages).map(|_| 20_000), fill).paged(1).await?;
        let (after, mut most, mut read) = (in_memory(), 0, 0);
        for number in 0..results.pages() {
            read += results.page(number).await?.completed().count();
            most = most.max(in_memory());
        }
        Ok((after, most, read))
    }

    #[test]
    fn the_pages_of_a_map_are_read_when_they_are_asked_for_and_not_kept_in_memory() {
        assert_eq!(tickover::test::outcome(lazy, &lazy, 60), (0, 0, 60));
    }
}
