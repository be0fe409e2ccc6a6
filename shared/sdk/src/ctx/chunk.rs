//! The execution of one chunk of a map: it runs the items' steps, and returns their outcomes.
//!
//! Its steps have no types, so that one workflow runs the items of every map. Every worker has it.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickover_core::payload::Json;

use super::Ctx;
use super::combine::Steps;
use crate::codec;
use crate::error::{Error, Result};
use crate::options::StepOptions;
use crate::step::{LinkedStep, Step, StepError};
use crate::workflow::Workflow;

pub(crate) use tickover_core::execution::journal::PAGE_WORKFLOW as CHUNK;

/// JSON that is passed on as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Raw(pub(super) Box<RawValue>);

impl fmt::Display for Raw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.get())
    }
}

/// The outcome of one item. `None` if it hadn't ended when too many had failed.
pub(super) type ItemOutcome = Option<std::result::Result<Raw, StepError<Raw>>>;

/// What one item, or several in a row, have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Code {
    pub(super) kind: String,
    /// The type of the step's handler. It decides between several steps of one name in a program.
    pub(super) type_name: String,
    pub(super) options: StepOptions,
}

/// The input of a chunk's execution.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub(super) label: String,
    /// The index of its first item in the map.
    pub(super) first: usize,
    /// How many of its items may run at once.
    pub(super) at_once: usize,
    /// How many of its items may fail.
    pub(super) tolerated: usize,
    pub(super) codes: Vec<Code>,
    /// The inputs, each with the index of its code.
    pub(super) items: Vec<(usize, Raw)>,
}

/// The workflow of chunks.
pub(crate) fn chunk_workflow() -> Workflow<impl Serialize + for<'a> Deserialize<'a> + Send + 'static, Outcomes>
{
    workflow()
}

/// The result of a chunk's execution: the outcomes by index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Outcomes(pub(super) Vec<ItemOutcome>);

pub(super) fn workflow() -> Workflow<Chunk, Outcomes> {
    Workflow::new(CHUNK, run)
}

#[expect(clippy::needless_pass_by_value, reason = "a workflow's body has this signature")]
fn run(ctx: Ctx, chunk: Chunk) -> BoxFuture<'static, Result<Outcomes>> {
    let Chunk { label, first, at_once, tolerated, codes, items } = chunk;
    let found: Vec<_> = codes.iter().map(|code| LinkedStep::code_of(&code.kind, &code.type_name)).collect();
    let steps = items.into_iter().filter_map(move |(code, input)| {
        let (code, found) = (codes.get(code)?, found.get(code)?.clone());
        Some(Step::mapped(code.kind.clone(), code.options.clone(), Json::from(input.0), found))
    });
    let mut steps: Steps<Raw, Raw> = Steps::starting_at(first, &ctx.shared, label, steps);
    let most = ctx.shared.service().limits().payload_bytes;
    let mut failed = 0;
    let outcomes = poll_fn(move |context| poll_chunk(&mut steps, context, at_once, tolerated, &mut failed));
    outcomes.map(move |outcomes| within(first, outcomes, most)).boxed()
}

/// The outcomes of a page, if they fit into the result of its execution.
fn within(first: usize, outcomes: Outcomes, most: usize) -> Result<Outcomes> {
    let bytes = codec::encode(&outcomes).map_or(0, |text| text.len());
    if bytes <= most {
        return Ok(outcomes);
    }
    let items = outcomes.0.len();
    let last = first + items.saturating_sub(1);
    // A tenth less, because the results of other pages may be larger.
    let fits = (items * most * 9 / (bytes * 10)).max(1);
    let message = format!(
        "the results of items {first} to {last} have {bytes} bytes together, and those of a page can have at most \
         {most}: make the pages smaller, such as `paged({fits})`, or let the step store a large result elsewhere and \
         return where it is"
    );
    Err(Error::new("limit_exceeded", message))
}

fn poll_chunk(
    steps: &mut Steps<Raw, Raw>,
    context: &mut Context<'_>,
    at_once: usize,
    tolerated: usize,
    failed: &mut usize,
) -> Poll<Outcomes> {
    while let Some(is_failed) = std::task::ready!(steps.poll_next(context, at_once)) {
        *failed += usize::from(is_failed);
        if *failed > tolerated {
            steps.end_all();
            break;
        }
    }
    Poll::Ready(Outcomes(steps.take_all()))
}
