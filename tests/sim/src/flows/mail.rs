//! Many large events that arrive between the writes of a turn, so that most of them are in segments when it next writes.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

use super::outside;

/// The name of a letter's event.
pub(crate) const LETTER: &str = "letter";

/// A letter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub(crate) number: u32,
    pub(crate) text: String,
}

/// Clears a box for a letter.
#[tickover::step]
async fn clear_box(number: u32) -> Result<u32> {
    outside::call().await;
    Ok(number)
}

/// Receives so many letters, in any order, and meanwhile clears a box for each, one after the other.
#[tickover::workflow("mail", timeout = "30d", queue = "orders")]
pub(crate) async fn mail(ctx: Ctx, letters: u32) -> Result<String> {
    let receive = async {
        let mut received = vec![];
        for _ in 0..letters {
            let letter: Letter = ctx.wait_for_event(LETTER, within("7d")).await?;
            received.push((letter.number, letter.text.len()));
        }
        received.sort_unstable();
        Ok::<_, Error>(received)
    };
    let clear = async {
        let mut cleared = vec![];
        for number in 0..letters {
            cleared.push(ctx.step(clear_box(number).named(format!("box[{number}]"))).await?);
        }
        Ok::<_, Error>(cleared)
    };
    let (received, cleared) = ctx.join(receive, clear).await;
    Ok(format!("{:?} in {:?}", received?, cleared?))
}
