//! Lists of crons.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tickover_wire::Cursor;
use tickover_wire::answer::CronsAnswer as Crons;
use tickover_wire::request::PageQuery;

use crate::client::list::LIMIT_DEFAULT;
use crate::client::request::page;
use crate::client::{Client, ClientError};

/// A page of a list. Awaiting it makes the call.
#[must_use = "no call is made before it is awaited"]
#[derive(Debug)]
pub struct ListCrons {
    client: Client,
    limit: usize,
    cursor: Option<String>,
}

impl ListCrons {
    pub(in crate::client) const fn new(client: Client) -> Self {
        Self { client, limit: LIMIT_DEFAULT, cursor: None }
    }

    /// The number of crons on the page, at most: 1 to 500, 50 by default.
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Starts where an earlier page ended: the `cursor` of its answer.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

impl IntoFuture for ListCrons {
    type Output = Result<Crons, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { client, limit, cursor } = self;
            let query = PageQuery { limit: Some(page(limit)?), cursor: cursor.map(Cursor) };
            client.api.crons(&query).await
        })
    }
}
