//! Many remote steps that run in batches. Some of them fail.

use tickover::prelude::*;

use super::outside;

/// Puts several books onto their shelves at once. Some are torn.
#[tickover::step(remote, batch(3, within = "3s"))]
pub(crate) async fn shelve(books: Vec<u32>) -> Vec<Result<u32, Failure>> {
    outside::call_for_all().await;
    let shelf = |book: u32| {
        if book.is_multiple_of(5) { Err(Failure::new("torn", book.to_string())) } else { Ok(book / 10) }
    };
    books.into_iter().map(shelf).collect()
}

/// Shelves all books, and says where each is.
#[tickover::workflow("library", timeout = "1h")]
pub(crate) async fn library(ctx: Ctx, books: Vec<u32>) -> Result<String> {
    let settled = ctx.join_all_settled("book", books.into_iter().map(shelve)).await;
    let shelves: Vec<_> = settled.completed().map(|(_, shelf)| *shelf).collect();
    Ok(format!("{shelves:?}, {} torn", settled.failed().count()))
}
