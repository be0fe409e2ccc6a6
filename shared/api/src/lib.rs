//! The HTTP API: what callers may say, what they are told, and how each answer looks.
//!
//! [`calls`] are the operations without a transport: bytes in, an [`Answer`] or a [`Problem`] out. The functions
//! use them directly, [`router`] puts them behind HTTP. This crate never decides what happens to a task, and it
//! never logs a payload.

pub mod calls;
pub mod request;
pub mod view;

mod answer;
mod body;
mod http;
mod layers;
mod openapi;
mod parse;
mod problem;
mod routes;

pub use answer::Answer;
pub use body::{BODY_BYTES_MAX, check};
pub use openapi::document;
pub use problem::Problem;
pub use routes::router;
