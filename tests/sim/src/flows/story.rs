//! An execution of an example workflow: its start, the event that it waits for, and its result without faults.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tickover::test::TestEnv;
use tickover::{AsWorkflow, Millis};
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::id::{EventId, ExecutionId, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::executions::StartRequest;

use super::import::Import;
use super::mail::{LETTER, Letter, mail};
use super::order::{Order, Shipment, fulfil, print_label};
use super::trip::Trip;
use super::{archive, fan_out, import, library, reminder, trip};
use crate::dice::Dice;
use crate::world::queue;

/// The timeout of the code that runs after a failure.
const ON_FAILURE: Millis = Millis::from_secs(15 * 60);
/// Within this time of its start, an event comes if it is the only one.
const MINUTES: Millis = Millis::from_secs(20 * 60);
/// Within this time of its start, all letters come.
const SECONDS: Millis = Millis::from_secs(20);
/// The length of a letter: just short enough to be stored in the record, so that a few of them fill it.
const LETTER_LENGTH: usize = 160;

/// One of the eight workflows, with its input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Story {
    /// An order with this many boxes, each with a list of contents of this length.
    Order {
        boxes: usize,
        /// The length of each list.
        length: usize,
    },
    /// A survey that is answered.
    Survey,
    Trip {
        /// Whether the hotel has a free room.
        has_room: bool,
    },
    /// Pictures in so many sizes; some can't be made.
    Gallery { sizes: u32 },
    /// Books, which are shelved in batches; some can't be.
    Library { books: u32 },
    /// A list of this many pages.
    Import { pages: u32 },
    /// Files, in pages; some are lost.
    Archive { files: u32 },
    /// Large letters, all within seconds.
    Mail { letters: u32 },
}

/// An event that a story waits for.
pub struct Awaited {
    pub event: &'static str,
    pub id: Option<EventId>,
    pub payload: Json,
    /// It comes within this time of the start.
    pub within: Millis,
}

/// The result of each story in its first run without faults: it is the same each time.
static UNDISTURBED: Mutex<BTreeMap<Story, Value>> = Mutex::new(BTreeMap::new());

impl Story {
    /// A random story.
    pub fn of(dice: &Dice) -> Self {
        match dice.between(0, 8) {
            0 => Self::Order { boxes: small(dice.pick([0, 2, 4])), length: small(dice.pick([5, 150, 400])) },
            1 => Self::Survey,
            2 => Self::Trip { has_room: dice.chance(500) },
            3 => Self::Gallery { sizes: dice.pick([2, 5, 12, 25]) },
            4 => Self::Library { books: dice.pick([1, 5, 25]) },
            5 => Self::Import { pages: dice.pick([1, 2, 4]) },
            6 => Self::Archive { files: dice.pick([1, 5, 12]) },
            // More often than others: it is the only one whose events compete with its turn's writes.
            _ => Self::Mail { letters: dice.pick([3, 12, 20, 40]) },
        }
    }

    /// Whether it can't be started a second time under the same id: its children's ids are taken.
    pub const fn is_only_once(&self) -> bool {
        matches!(self, Self::Import { .. })
    }

    /// The request that starts it under an id.
    pub fn request(&self, id: &ExecutionId) -> StartRequest {
        let request = match self {
            Self::Order { boxes, length } => request(&fulfil, &order(*boxes, *length)),
            Self::Survey => request(&reminder::survey, &"How was it?"),
            Self::Trip { has_room } => request(&trip::book, &rome(*has_room)),
            Self::Gallery { sizes } => request(&fan_out::gallery, &widths(*sizes)),
            Self::Library { books } => request(&library::library, &shelf(*books)),
            Self::Import { pages } => request(&import::import, &list(id.to_string(), *pages)),
            Self::Archive { files } => request(&archive::archive, files),
            Self::Mail { letters } => request(&mail, letters),
        };
        let on_failure = matches!(self, Self::Order { .. } | Self::Trip { .. }).then_some(ON_FAILURE);
        StartRequest {
            id: Some(id.clone()),
            on_failure,
            timeouts: ExecutionTimeouts { execution: None, run: None },
            ..request
        }
    }

    /// The events that it waits for.
    pub fn events(&self) -> Vec<Awaited> {
        let one = |event, payload| vec![Awaited { event, id: None, payload, within: MINUTES }];
        match self {
            Self::Order { .. } => one("shipped", json(&shipment())),
            Self::Survey => one("answer", json(&"fine")),
            Self::Mail { letters } => (0..*letters).map(letter).collect(),
            Self::Trip { .. }
            | Self::Gallery { .. }
            | Self::Library { .. }
            | Self::Import { .. }
            | Self::Archive { .. } => vec![],
        }
    }

    /// The result where nothing goes wrong.
    pub fn undisturbed(&self) -> Value {
        let known = UNDISTURBED.lock().unwrap_or_else(PoisonError::into_inner).get(self).cloned();
        known.unwrap_or_else(|| {
            let told = crate::block_on(self.told());
            UNDISTURBED.lock().unwrap_or_else(PoisonError::into_inner).insert(self.clone(), told.clone());
            told
        })
    }

    async fn told(&self) -> Value {
        let events = self.events();
        match self {
            Self::Order { boxes, length } => {
                let env = TestEnv::new().workflow(fulfil).step::<print_label>();
                end(&env, &fulfil, order(*boxes, *length), events).await
            }
            Self::Survey => {
                let env = TestEnv::new().workflow(reminder::survey);
                end(&env, &reminder::survey, "How was it?".to_owned(), events).await
            }
            Self::Trip { has_room } => {
                let env = TestEnv::new().workflow(trip::book);
                end(&env, &trip::book, rome(*has_room), events).await
            }
            Self::Gallery { sizes } => {
                let env = TestEnv::new().workflow(fan_out::gallery);
                end(&env, &fan_out::gallery, widths(*sizes), events).await
            }
            Self::Library { books } => {
                let env = TestEnv::new().workflow(library::library).step::<library::shelve>();
                end(&env, &library::library, shelf(*books), events).await
            }
            Self::Import { pages } => {
                let env = TestEnv::new().workflow((import::import, import::import_page));
                end(&env, &import::import, list("list".to_owned(), *pages), events).await
            }
            Self::Archive { files } => {
                let env = TestEnv::new().workflow(archive::archive);
                end(&env, &archive::archive, *files, events).await
            }
            Self::Mail { letters } => {
                let env = TestEnv::new().workflow(mail);
                end(&env, &mail, *letters, events).await
            }
        }
    }
}

#[expect(clippy::expect_used, reason = "without faults the examples complete: their own tests check that")]
async fn end<W>(env: &TestEnv, workflow: &W, input: W::Input, events: Vec<Awaited>) -> Value
where
    W: AsWorkflow<Input: Serialize, Output: Serialize + DeserializeOwned + Send + 'static>,
{
    let run = env.start(workflow, input).await.expect("a start");
    for Awaited { event, payload, .. } in events {
        let payload: Value = serde_json::from_str(payload.as_str()).expect("JSON");
        run.send_event(event, payload).await.expect("it waits for it");
    }
    let result = run.result().await.expect("a result");
    serde_json::to_value(result).expect("JSON")
}

#[expect(clippy::expect_used, reason = "the examples' own names")]
fn request(workflow: &impl AsWorkflow, input: &impl Serialize) -> StartRequest {
    let workflow = workflow.as_workflow();
    let name = WorkflowName::parse(workflow.name()).expect("a workflow's name");
    StartRequest { input: Some(json(input)), ..StartRequest::new(name, queue(workflow.options().queue)) }
}

#[expect(clippy::expect_used, reason = "our own values")]
fn json(value: &impl Serialize) -> Json {
    Json::parse(serde_json::to_string(value).expect("JSON")).expect("JSON")
}

fn small(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn order(boxes: usize, length: usize) -> Order {
    Order { number: 7, boxes: (0..boxes).map(|number| format!("{number}{}", "x".repeat(length))).collect() }
}

fn shipment() -> Shipment {
    Shipment { carrier: "a bicycle".to_owned() }
}

fn rome(has_room: bool) -> Trip {
    Trip { to: "Rome".to_owned(), has_room }
}

/// Every fifth is too wide.
fn widths(sizes: u32) -> Vec<u32> {
    (1..=sizes).map(|number| if number % 5 == 0 { 5_000 } else { number * 100 }).collect()
}

fn shelf(books: u32) -> Vec<u32> {
    (1..=books).collect()
}

const fn list(name: String, pages: u32) -> Import {
    Import { name, page: 1, pages, rows: 0 }
}

#[expect(clippy::expect_used, reason = "our own id")]
fn letter(number: u32) -> Awaited {
    let letter = Letter { number, text: "x".repeat(LETTER_LENGTH) };
    let id = EventId::parse(format!("letter-{number}")).expect("an event's id");
    Awaited { event: LETTER, id: Some(id), payload: json(&letter), within: SECONDS }
}
