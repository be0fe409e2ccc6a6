//! The workflows of these tests: between them they do all that a workflow can.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tickover::Registry;
use tickover::prelude::*;

use crate::scene::lock;

/// How often each step's code ran.
#[derive(Clone, Default)]
pub(crate) struct Ran(Arc<Mutex<BTreeMap<String, u32>>>);

impl Ran {
    pub(crate) fn add(&self, name: &str) {
        *lock(&self.0).entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn times(&self) -> BTreeMap<String, u32> {
        lock(&self.0).clone()
    }
}

#[tickover::step]
async fn near(#[state] ran: &Ran, name: String) -> Result<String> {
    ran.add(&name);
    Ok(name)
}

/// Its result is larger than a journal's entry may be.
#[tickover::step]
async fn large(#[state] ran: &Ran, letter: char) -> Result<String> {
    ran.add(&format!("large-{letter}"));
    Ok(letter.to_string().repeat(1_000))
}

#[tickover::step(remote, queue = "far")]
pub(crate) async fn far(#[state] ran: &Ran, name: String) -> Result<String> {
    ran.add(&name);
    Ok(name.to_uppercase())
}

#[tickover::step(remote, queue = "far", retry = "fixed(1, 10ms)")]
pub(crate) async fn refuses(#[state] ran: &Ran, name: String) -> Result<String, Failure> {
    ran.add(&name);
    Err(Failure::new("no", "never"))
}

#[tickover::workflow("small", queue = "near")]
pub(crate) async fn small(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("doze", "5ms").await?;
    Ok(n * 2)
}

/// Steps here and elsewhere, a child, a sleep, an event, and two runs.
#[tickover::workflow("everything", queue = "near")]
pub(crate) async fn everything(ctx: Ctx, round: u32) -> Result<String> {
    let first = ctx.step(near(format!("first-{round}")).named("first")).await?;
    let letters = ctx.step(large('x')).await?;
    let both = ctx.join_all("far", (0..2).map(|n| far(format!("far-{round}-{n}")).remote())).await?.join(",");
    let doubled = ctx.child(&small, round + 20).await?;
    ctx.sleep("nap", "20ms").await?;
    let word: String = ctx.wait_for_event("word", forever()).await?;
    if round == 0 {
        return ctx.continue_as_new(1).await;
    }
    let id: String = ctx.capture("kept", || "y".repeat(500)).await?;
    Ok(format!("{first} {} {both} {doubled} {word} {}", letters.len(), id.len()))
}

/// Its second step fails, so the first one is undone.
#[tickover::workflow("undone", queue = "near")]
pub(crate) async fn undone(ctx: Ctx, (): ()) -> Result<String> {
    ctx.step(near("booked".to_owned()).named("book")).await?;
    ctx.on_undo("cancel", near("cancelled".to_owned()));
    Ok(ctx.step(refuses("refused".to_owned()).remote()).await?)
}

/// What a program that has all of it knows.
pub(crate) fn all(ran: &Ran) -> Registry {
    Registry::new()
        .with((everything, small, undone))
        .with_step::<far>()
        .with_step::<refuses>()
        .with_state(ran.clone())
}
