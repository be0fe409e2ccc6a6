//! The HTTP API: what callers may say, what they are told, and how each answer looks.
//!
//! [`calls`] are the operations without a transport: bytes in, an [`Answer`] or a [`Problem`] out. The functions use
//! them directly. With the feature `http`, a router puts them behind HTTP. The JSON is that of `tickover-wire`; here
//! are the rules across fields and the ways from records to answers. This crate never decides what happens to a task,
//! and it never logs a payload.

pub mod calls;
pub mod view;

mod answer;
mod body;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod layers;
mod name;
#[cfg(feature = "http")]
mod openapi;
mod problem;
mod request;
#[cfg(feature = "http")]
mod routes;

pub use answer::Answer;
pub use body::{BODY_BYTES_MAX, check};
#[cfg(feature = "http")]
pub use openapi::document;
pub use problem::Problem;
#[cfg(feature = "http")]
pub use routes::router;
