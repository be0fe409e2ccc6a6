//! Many steps at once: one picture in several sizes. Some sizes fail.

use tickover::prelude::*;

use crate::outside;

/// Makes a picture of this width.
#[tickover::step]
pub(crate) async fn resize(width: u32) -> Result<u32, Failure> {
    outside::call().await;
    if width > 4_000 {
        return Err(Failure::new("too_wide", format!("{width} is wider than the picture")));
    }
    Ok(width * 3 / 4)
}

/// Makes the index of all pictures.
#[tickover::step]
pub(crate) async fn index(heights: Vec<u32>) -> Result<String> {
    outside::call().await;
    Ok(format!("{heights:?}"))
}

/// All sizes, and an index of those that succeeded.
#[tickover::workflow("gallery", timeout = "1h")]
pub(crate) async fn gallery(ctx: Ctx, widths: Vec<u32>) -> Result<String> {
    let settled = ctx.join_all_settled("size", widths.into_iter().map(resize)).await;
    let heights = settled.completed().map(|(_, height)| *height).collect();
    let skipped = settled.failed().count();
    let index = ctx.step(index(heights)).await?;
    Ok(format!("{index}, {skipped} left out"))
}
