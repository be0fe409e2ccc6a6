//! Lists, page by page.

use tickover::client::ClientError;
use tickover_wire::{Cursor, PageLimit};

use crate::show::say;

/// A page's entries, and where the next one begins.
pub(crate) type Page<T> = (Vec<T>, Option<Cursor>);

/// The first entries of a list, at most so many. Says where there are more.
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
