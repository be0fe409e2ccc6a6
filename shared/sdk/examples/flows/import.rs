//! A long import, page by page. Each page is a child, and each run of the parent imports one page, so that no journal
//! grows.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

use crate::outside;

/// The progress of an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Import {
    /// Its name.
    pub(crate) name: String,
    /// The next page.
    pub(crate) page: u32,
    /// The number of pages.
    pub(crate) pages: u32,
    /// The rows imported so far.
    pub(crate) rows: u32,
}

/// Reads a page and returns its number of rows.
#[tickover::step]
pub(crate) async fn read_page(page: u32) -> Result<u32> {
    outside::call().await;
    Ok(page * 10)
}

/// Writes its rows.
#[tickover::step]
pub(crate) async fn write_rows(rows: u32) -> Result<u32> {
    outside::call().await;
    Ok(rows)
}

/// Imports one page.
#[tickover::workflow("import-page", timeout = "1h")]
pub(crate) async fn import_page(ctx: Ctx, page: u32) -> Result<u32> {
    let rows = ctx.step(read_page(page)).await?;
    Ok(ctx.step(write_rows(rows)).await?)
}

/// Imports all pages and returns the number of rows.
#[tickover::workflow("import", timeout = "30d")]
pub(crate) async fn import(ctx: Ctx, input: Import) -> Result<u32> {
    let Import { name, page, pages, rows } = input;
    let read = ctx.child(&import_page, page).id(format!("{name}-{page}")).await?;
    let rows = rows + read;
    if page == pages {
        return Ok(rows);
    }
    ctx.continue_as_new(Import { name, page: page + 1, pages, rows }).await
}
