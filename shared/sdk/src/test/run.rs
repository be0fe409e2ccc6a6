//! An execution in a test.

use std::future::IntoFuture as _;
use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::TestEnv;
use crate::client::{ClientError, ExecutionError, Handle, Offered};

/// An execution in a test. Whatever a [`Handle`] can do, it can do as well.
#[derive(Debug)]
pub struct Run<'e, O> {
    env: &'e TestEnv,
    handle: Handle<O>,
}

impl<'e, O> Run<'e, O> {
    pub(super) const fn new(env: &'e TestEnv, handle: Handle<O>) -> Self {
        Self { env, handle }
    }

    /// The same execution for what takes a handle.
    pub const fn handle(&self) -> &Handle<O> {
        &self.handle
    }

    /// Lets time pass until it has ended, and gives its result. If nothing can happen any more that would end it, that
    /// is an error which shows the timeline.
    pub async fn result(&self) -> Result<O, ExecutionError>
    where
        O: DeserializeOwned,
    {
        self.env.ended(self.handle.id()).await?;
        self.handle.result().await
    }

    /// Offers it an event. It is taken once time is let pass or something is waited for.
    pub async fn offer(&self, event: &str, payload: impl Serialize) -> Result<Offered, ClientError> {
        self.env.run(self.handle.offer(event, payload).into_future()).await?
    }

    /// What happened to it so far, one line each.
    pub async fn timeline(&self) -> Result<String, ClientError> {
        self.env.timeline(self.handle.id().as_str()).await
    }
}

impl<O> Deref for Run<'_, O> {
    type Target = Handle<O>;

    fn deref(&self) -> &Handle<O> {
        &self.handle
    }
}
