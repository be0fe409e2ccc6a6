//! The code that runs a random program, and what it leaves behind outside.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use serde::{Deserialize, Serialize};
use tickover::prelude::*;
use tickover::{Millis, step_info};

use super::plan::{Ending, Far, Piece};

/// The last step of a program that has to be mended.
pub(crate) const LAST: &str = "last";
/// A wait of nearly any length.
const LONG: &str = "30d";

/// What the steps have done outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    /// Their labels, in the order of their first effects.
    pub(crate) done: Vec<String>,
    /// By label: the idempotency keys with which it was done.
    pub(crate) keys: BTreeMap<String, BTreeSet<String>>,
    /// By label: how often it was done.
    pub(crate) times: BTreeMap<String, u32>,
    pub(crate) mended: bool,
    /// The tokens of callbacks.
    pub(crate) tokens: BTreeSet<String>,
}

thread_local! {
    static OUTSIDE: RefCell<Outside> = RefCell::default();
}

pub(crate) fn outside() -> Outside {
    OUTSIDE.with_borrow(Clone::clone)
}

pub(crate) fn begin_anew() {
    OUTSIDE.take();
}

pub(crate) fn mend() {
    OUTSIDE.with_borrow_mut(|outside| outside.mended = true);
}

/// An effect outside, by a step.
fn effect(label: String) {
    let key = step_info().unwrap().idempotency_key;
    OUTSIDE.with_borrow_mut(|outside| {
        *outside.times.entry(label.clone()).or_default() += 1;
        outside.keys.entry(label.clone()).or_default().insert(key);
        if !outside.done.contains(&label) {
            outside.done.push(label);
        }
    });
}

fn third_time_lucky() -> Result<()> {
    if step_info().unwrap().attempt < 3 { Err(Failure::new("busy", "try again").into()) } else { Ok(()) }
}

#[tickover::step]
async fn near(label: String) -> Result<u64> {
    effect(label);
    Ok(1)
}

#[tickover::step(retry = "fixed(3, 20s)")]
async fn flaky(label: String) -> Result<u64> {
    third_time_lucky()?;
    effect(label);
    Ok(1)
}

#[tickover::step(remote)]
pub(crate) async fn far(label: String) -> Result<u64> {
    effect(label);
    Ok(1)
}

#[tickover::step(remote, retry = "fixed(3, 20s)")]
pub(crate) async fn far_and_flaky(label: String) -> Result<u64> {
    third_time_lucky()?;
    effect(label);
    Ok(1)
}

#[tickover::step(retry = "none")]
async fn last(label: String) -> Result<u64> {
    if !outside().mended {
        return Err(Failure::new("broken", "it has to be mended").into());
    }
    effect(label);
    Ok(1)
}

/// The pieces that are still to be done. Their positions are their names, and labels are unique among executions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) of: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) from: usize,
    pub(crate) sum: u64,
    pub(crate) ending: Ending,
}

#[tickover::workflow]
pub(crate) async fn program(ctx: Ctx, part: Part) -> Result<u64> {
    let mut sum = part.sum;
    for (at, piece) in part.pieces.iter().enumerate().skip(part.from) {
        if *piece == Piece::NextRun {
            return ctx.continue_as_new(Part { from: at + 1, sum, ..part.clone() }).await;
        }
        sum += go(&ctx, &part.of, piece.clone(), at.to_string()).await?;
    }
    match part.ending {
        Ending::Returns => Ok(sum),
        Ending::Fails => Err(Failure::new("no", "it can't be done").into()),
        Ending::Mended(_) => Ok(sum + ctx.step(last(format!("{}/{LAST}", part.of)).named(LAST)).await?),
    }
}

#[tickover::workflow]
pub(crate) async fn sleeper(ctx: Ctx, minutes: u64) -> Result<u64> {
    ctx.sleep("nap", Millis::from_secs(60 * minutes)).await?;
    Ok(minutes)
}

fn go(ctx: &Ctx, of: &str, piece: Piece, at: String) -> BoxFuture<'static, Result<u64>> {
    let (ctx, label) = (ctx.clone(), format!("{of}/{at}"));
    async move {
        Ok(match piece {
            Piece::Near => ctx.step(near(label).named(at)).await?,
            Piece::Flaky => ctx.step(flaky(label).named(at)).await?,
            Piece::Far(Far::Free) => ctx.step(far(label).named(at)).await?,
            Piece::Far(Far::Flaky) => ctx.step(far_and_flaky(label).named(at)).await?,
            Piece::Far(Far::Alone) => ctx.step(far(label).named(at).concurrency("smtp", 1)).await?,
            Piece::Far(Far::Paced) => ctx.step(far(label).named(at).rate("api", 1, "10s")).await?,
            Piece::Undone { far: is_far } => {
                let name = format!("u{at}");
                let undo = format!("{label}/undo");
                let step = near(label).named(at);
                if is_far {
                    ctx.on_undo(name, far_and_flaky(undo));
                } else {
                    ctx.on_undo(name, near(undo));
                }
                ctx.step(step).await?
            }
            Piece::Child { limited, pieces } => {
                let part = Part { of: label, pieces, from: 0, sum: 0, ending: Ending::Returns };
                let child = ctx.child(&program, part).named(at);
                if limited { child.concurrency("children", 1).await? } else { child.await? }
            }
            Piece::Left { policy, minutes } => {
                ctx.child(&sleeper, minutes).named(at).policy(policy.into()).start().await?;
                minutes
            }
            Piece::Sleep { minutes } => {
                ctx.sleep(at, Millis::from_secs(60 * minutes)).await?;
                minutes
            }
            Piece::Event => ctx.wait_for_event::<u64>(format!("e{at}"), within(LONG)).await?,
            Piece::Callback => {
                let callback = ctx.callback(at, within(LONG)).await?;
                OUTSIDE.with_borrow_mut(|outside| outside.tokens.insert(callback.token().to_owned()));
                callback.result::<u64>().await?
            }
            Piece::Map { items, far: is_far, paged } => {
                let labels = (0..items).map(|item| format!("{label}/{item}"));
                let make = if is_far { far } else { near };
                let map = ctx.map(at, labels, make);
                if paged {
                    map.paged(2).await?.collect().await?.completed().map(|(_, one)| one).sum()
                } else {
                    map.concurrency(2).await?.completed().map(|(_, one)| one).sum()
                }
            }
            Piece::Join(pieces) => {
                let all = pieces.into_iter().enumerate();
                let all = all.map(|(nth, piece)| go(&ctx, of_label(&label), piece, format!("{at}.{nth}")));
                try_join_all(all.collect::<Vec<_>>()).await?.into_iter().sum()
            }
            Piece::NextRun => 0,
        })
    }
    .boxed()
}

/// The execution's own part of a label.
fn of_label(label: &str) -> &str {
    label.rsplit_once('/').map_or(label, |(of, _)| of)
}
