//! Futures that are polled in random order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::witness::Witness;

/// A set of futures, any of which may be polled first, as in `tokio::select!`.
pub(crate) struct Pool {
    witness: Arc<Witness>,
    pieces: Vec<Option<BoxFuture<'static, u64>>>,
    /// The futures that were ready when they were first polled. The first poll is in their order, because counters in
    /// them would otherwise differ.
    early: Option<VecDeque<(usize, u64)>>,
}

impl Pool {
    pub(crate) fn new(witness: &Arc<Witness>, pieces: Vec<BoxFuture<'static, u64>>) -> Self {
        let pieces = pieces.into_iter().map(Some).collect();
        Self { witness: Arc::clone(witness), pieces, early: None }
    }

    /// The next future to end: its index and its result.
    pub(crate) async fn next(&mut self) -> Option<(usize, u64)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, u64)>> {
        let count = self.pieces.len();
        if self.early.is_none() {
            let early = (0..count).filter_map(|index| self.poll_one(index, context)).collect();
            self.early = Some(early);
        }
        if let Some(early) = self.early.as_mut().and_then(VecDeque::pop_front) {
            return Poll::Ready(Some(early));
        }
        let begin = self.witness.chance(count);
        let ended = (0..count).find_map(|step| self.poll_one((begin + step) % count, context));
        match ended {
            None if self.pieces.iter().any(Option::is_some) => Poll::Pending,
            ended => Poll::Ready(ended),
        }
    }

    fn poll_one(&mut self, index: usize, context: &mut Context<'_>) -> Option<(usize, u64)> {
        let piece = self.pieces[index].as_mut()?;
        let Poll::Ready(came) = piece.poll_unpin(context) else { return None };
        self.pieces[index] = None;
        Some((index, came))
    }
}
