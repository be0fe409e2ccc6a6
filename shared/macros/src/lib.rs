//! The attributes of Tickover: they turn async functions into steps and workflows.
//!
//! Owns parsing the attributes and generating code from them. It checks durations, retry policies and names at compile
//! time. It decides nothing that happens at run time. Users get the attributes from the crate `tickover`.
#![warn(missing_docs)]

mod attribute;
mod expand;
mod flow;
mod function;
mod options;

use proc_macro::TokenStream;

/// Turns an async function into a step. The result of a step is stored when it has ended.
///
/// The function keeps its arguments. Calling it makes a `Step`, which does nothing until a workflow's context runs it:
/// `ctx.step(charge(order)).await?`. A type of the same name identifies the step when a worker runs it for workflows on
/// other workers.
///
/// The types of the arguments are owned, implement serde's `Serialize` and `Deserialize`, and can be cloned, because
/// each attempt gets a copy. The function returns a `Result`. Its error implements `Serialize`, `Deserialize` and
/// `Display`.
///
/// | | |
/// |---|---|
/// | `"print-label"` | the step's name, which comes first; without it, the function's name |
/// | `retry = "exponential(3, 2s)"` | `none`, `fixed(retries, delay)`, `exponential(retries, base)`, `exponential(retries, base, max_delay)`; the first attempt isn't a retry |
/// | `non_retryable("Declined")` | codes of errors that are final; the code of an enum's variant is its name |
/// | `timeout = "5m"` | how long the step may take, over all attempts; final. It counts from the first attempt, and goes on if the worker is lost; of a remote step, it counts from its scheduling |
/// | `scope = "per_attempt"` | the timeout is final, but each attempt has its own; without it `"global"`: all attempts share it |
/// | `attempt_timeout = "30s"` | how long each attempt may take; another one follows if any are left |
/// | `heartbeat = "30s"` | how long an attempt may run without a sign of life from its code: `step_info()` has the calls for it |
/// | `schedule_to_start = "30s"` | how long each attempt of a remote step may wait for a worker; an inline step can't have it |
/// | `on_timeout = "terminal"` | what follows those three timeouts: `"retry"` (the default) if attempts are left, `"terminal"` ends the step, `"cancel"` ends it as cancelled |
/// | `remote` | the step runs as a task, on any worker of its queue |
/// | `queue = "labels"` | like `remote`, on this queue |
/// | `at_most_once` | no attempt follows one whose worker was lost or that timed out |
/// | `concurrency(key = "order.customer", limit = 5)` | at most so many tasks of the key run at once; the key is an expression of the arguments, or `constant = "smtp"`. Up to three times. This and the following are for remote steps |
/// | `rate(constant = "smtp", limit = 100, per = "1m", burst = 20)` | at most so many tasks of the key start in each period (1 s by default), `burst` (1 by default) of them at once after a quiet time |
/// | `priority = "high"` | which tasks start first: `"high"`, `"normal"` (the default) or `"low"` |
/// | `fairness_key = "order.customer"` | tasks of one key, an expression of the arguments, don't delay those of others |
/// | `requires("gpu")` | only workers that provide it run the step |
/// | `batch(50, within = "2s")` | a worker runs up to so many (1,000 at most) of its tasks of one fairness key together, and waits so long (20 s at most, 0 by default) for more of them: see below |
///
/// An argument with `#[state]` isn't stored, and no caller passes it: it is borrowed from the worker, which has one
/// value of its type for all its steps (`tickover::serve(…).state(prices)`), such as a connection or a client.
///
/// With `batch`, the function gets the inputs of several tasks, and returns a result for each, in their order:
/// `async fn index(docs: Vec<Doc>) -> Vec<Result<u32>>`, or `Result<Vec<Result<u32>>>` if all can fail together. A caller
/// passes one input, `index(doc)`, and gets its result. In an expression such as that of `fairness_key`, the argument's
/// name means one input.
///
/// Options of a call, such as `charge(order).timeout("1m")`, replace those of the attribute.
#[proc_macro_attribute]
pub fn step(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::step(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Turns an async function into a workflow. A worker is built with the function's name: `tickover::serve([fulfil])`.
///
/// The function takes its context and, if it needs one, an input: one owned type that implements `Deserialize`. It
/// returns a `Result` of a type that implements `Serialize`.
///
/// | | |
/// |---|---|
/// | `"order-fulfilment"` | the workflow's name, which comes first; without it, the function's name |
/// | `timeout = "30m"` | how long an execution may take over all its runs; at least 1 s. It and the other timeouts apply from the first turn, measured from the start, if the caller doesn't know them: over HTTP, by message, by a cron |
/// | `run_timeout = "10m"` | how long each run may take; at least 1 s |
/// | `retry = "exponential(3, 2s)"` | a run that fails is run again, with an empty journal: the same forms as for a step; without it, not at all |
/// | `non_retryable("Declined")` | codes of errors after which it isn't run again |
/// | `queue = "orders"` | the queue of its turns; without it, `"workflows"` |
/// | `on_failure = refund` | `async fn(Ctx, Input, Cause) -> Result<Option<Output>>`: runs when the workflow has failed; `Some` becomes its result |
/// | `on_failure_timeout = "5m"` | how long `on_failure` may take; at least 1 s |
/// | `on_cancel = release` | `async fn(Ctx, Input) -> Result<()>`: runs when the workflow was cancelled, after its undo steps |
/// | `on_cancel_timeout = "5m"` | how long `on_cancel` may take; at least 1 s |
/// | `patches("new-tax")` | names of code changes that executions may not know yet if they started before |
/// | `on_drift = "go_on"` | the execution continues if the code doesn't ask for a stored result, such as the result of a step that was renamed, which runs again; without it, `"stop"`: nothing new starts, and the execution waits for an operator |
/// | `concurrency(key = "order.customer", limit = 1)` | at most so many executions of the key are in progress at once; the key is an expression of the input, or `constant = "smtp"`. Up to three times |
/// | `rate(constant = "smtp", limit = 100, per = "1m", burst = 20)` | at most so many executions of the key start in each period (1 s by default), `burst` (1 by default) of them at once after a quiet time |
/// | `priority = "high"` | which turns of the queue start first, with those of its steps and children: `"high"`, `"normal"` or `"low"`; without it, a child has its parent's |
/// | `fairness_key = "order.customer"` | executions of one key, an expression of the input, don't delay those of others |
///
/// The last four are made of the input where the execution is started: by the client and as a child, also for a cron that
/// the client defines. A start over HTTP or by message says them itself. Options of a call, such as
/// `client.start(&order, input).priority(Priority::High)`, replace those of the attribute; another `concurrency` key is one
/// more.
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::workflow(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
