//! A map in pages, which are executions of their own. Some items fail at first, and some for good.

use tickover::prelude::*;

use super::outside;

/// Copies a file. Every third fails at its first attempt, and every tenth is lost.
#[tickover::step(retry = "fixed(3, 2s)", non_retryable("lost"))]
async fn copy(file: u32) -> Result<u32, Failure> {
    let attempt = outside::call().await;
    if file.is_multiple_of(10) {
        return Err(Failure::new("lost", file.to_string()));
    }
    if file.is_multiple_of(3) && attempt == 1 {
        return Err(Failure::new("busy", file.to_string()));
    }
    Ok(file * 2)
}

/// Copies all files, three of them at once, and says where they are.
#[tickover::workflow("archive", timeout = "2h")]
pub(crate) async fn archive(ctx: Ctx, files: u32) -> Result<String> {
    let mut pages = ctx.map("file", 1..=files, copy).at_once(3).tolerate("50%").paged(4).await?;
    let all = pages.collect().await?;
    let places: Vec<_> = all.completed().map(|(_, place)| *place).collect();
    Ok(format!("{places:?}, {} lost", all.failed().count()))
}
