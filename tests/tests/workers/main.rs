//! The example workers of `infra/examples` and a generated client, each as a real process against a real local server.
#![expect(clippy::expect_used, reason = "a test's helpers may fail it")]

mod attempts;
mod client;
mod gateway;
mod scene;
mod signature;
mod stopping;
