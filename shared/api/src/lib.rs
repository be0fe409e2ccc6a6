//! The HTTP API: its requests, its answers and its errors.
//!
//! [`calls`] are the calls without a transport: bytes in, an [`Answer`] or a [`Problem`] out. The functions use them
//! directly. With the feature `http`, a router serves them over HTTP; with `schema`, the `OpenAPI`
//! document can be generated. The JSON types are in `tickover-wire`. This crate
//! has the rules that concern several fields, and the conversions from records to answers. It never decides what
//! happens to a task, and it never logs a payload.

pub mod audit;
pub mod calls;
pub mod view;

mod answer;
mod body;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod layers;
mod name;
#[cfg(feature = "schema")]
mod openapi;
mod problem;
mod request;
#[cfg(feature = "http")]
mod routes;

pub use answer::Answer;
pub use body::{BODY_BYTES_MAX, check};
#[cfg(feature = "schema")]
pub use openapi::document;
pub use problem::Problem;
#[cfg(feature = "http")]
pub use routes::router;
pub use tickover_wire::OPERATORS_ROUTES;
