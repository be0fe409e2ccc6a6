//! Lists that are read page by page.

use tickover::client::ClientError;
use tickover_wire::{Cursor, PageLimit};

use crate::show::say;

/// The items of a page, and the cursor of the next page.
pub(crate) type Page<T> = (Vec<T>, Option<Cursor>);

/// The first items of a list, at most `limit`. Prints a note if there are more.
pub(crate) async fn entries<T>(
    limit: usize,
    page: impl AsyncFn(PageLimit, Option<Cursor>) -> Result<Page<T>, ClientError>,
) -> anyhow::Result<Vec<T>> {
    let (mut entries, mut cursor) = (Vec::new(), None);
    while entries.len() < limit {
        let wanted = PageLimit((limit - entries.len()).min(PageLimit::MOST));
        let (found, next) = page(wanted, cursor.take()).await?;
        entries.extend(found);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    if cursor.is_some() {
        say(&format!("there are more than {limit}: --limit N shows them"));
    }
    Ok(entries)
}
