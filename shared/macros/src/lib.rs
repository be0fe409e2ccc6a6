//! The attributes of Tickover: they turn async functions into steps and workflows.
//!
//! Owns the reading of attributes and the code that is made of them, and checks at compile time what it can:
//! durations, retry policies, names. It decides nothing that happens at run time. Users get the attributes
//! from the crate `tickover`.
#![warn(missing_docs)]

mod attribute;
mod expand;
mod function;
mod options;

use proc_macro::TokenStream;

/// Turns an async function into a step, whose result is remembered once it has run.
///
/// The function keeps its arguments, and calling it makes a `Step`, which does nothing until it is handed to a
/// workflow's context: `ctx.step(charge(order)).await?`. A type of the same name stands for the step where a
/// worker offers it to workflows that run elsewhere.
///
/// ```
/// use tickover::prelude::*;
///
/// #[tickover::step("print-label", retry = "fixed(3, 10s)", timeout = "5m")]
/// async fn print_label(address: String, copies: u32) -> Result<Vec<String>> {
///     Ok((1..=copies).map(|copy| format!("{address} ({copy} of {copies})")).collect())
/// }
///
/// let step: Step<Vec<String>, Error> = print_label("1 Main Street".to_owned(), 2).timeout("1m");
/// ```
///
/// Arguments are owned types that serde can write and read, and that can be cloned, because each attempt gets
/// them anew. The function returns a `Result` whose error serde can write and read as well, and `Display`
/// shows.
///
/// | | |
/// |---|---|
/// | `"print-label"` | the step's name, first; the function's name without it |
/// | `retry = "exponential(3, 2s)"` | `none`, `fixed(retries, delay)`, `exponential(retries, base)`, `exponential(retries, base, max_delay)`; retries count without the first attempt |
/// | `non_retryable("Declined")` | codes of errors that are final; an enum's variant has its name as code |
/// | `timeout = "5m"` | how long it may take, over all attempts; final |
/// | `scope = "per_attempt"` | the timeout is final, and starts anew for each attempt; `"global"`, shared by all, without it |
/// | `attempt_timeout = "30s"` | how long each attempt may take; another one follows while any are left |
/// | `heartbeat = "30s"` | how long an attempt of a remote step may go without a heartbeat; refused for a step in place |
/// | `on_timeout = "terminal"` | what those two do: `"retry"` (without it) while attempts are left, `"terminal"` ends the step, `"cancel"` ends it as cancelled |
/// | `remote` | as a task of its own, on whatever worker claims it |
/// | `queue = "labels"` | as `remote`, on this queue |
/// | `at_most_once` | an attempt whose worker was lost, or which timed out, isn't started again |
/// | `durable_timeout` | the timeouts fire though the worker is lost |
///
/// An argument under `#[state]` isn't stored, and no caller gives it: it is borrowed from the worker, which has one value
/// of its type for all its steps (`tickover::serve(…).state(prices)`), such as a connection or a client.
///
/// What a call says, such as `charge(order).timeout("1m")`, replaces what the attribute says.
#[proc_macro_attribute]
pub fn step(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::step(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Turns an async function into a workflow, which a worker is given by the function's name:
/// `tickover::serve([fulfil])`.
///
/// The function takes its context and, if it needs one, an input: one owned type that serde can read. It
/// returns a `Result` of a type that serde can write.
///
/// | | |
/// |---|---|
/// | `"order-fulfilment"` | the workflow's name, first; the function's name without it |
/// | `timeout = "30m"` | how long an execution may take over all its runs; at least 1 s |
/// | `run_timeout = "10m"` | how long each run may take; at least 1 s |
/// | `queue = "orders"` | the queue its turns are handed out on; `"workflows"` without it |
/// | `on_failure = refund` | `async fn(Ctx, Input, Cause) -> Result<Option<Output>>`: runs when it failed; `Some` is its result after all |
/// | `on_failure_timeout = "5m"` | how long that may take; at least 1 s |
/// | `patches("new-tax")` | changes of the code that running executions may not know yet |
/// | `on_drift = "stop"` | nothing new begins where the code doesn't ask for what a run remembers, such as the result of a step that was renamed: the execution waits for an operator; `"go_on"` without it |
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::workflow(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
