//! What others are told of a task: events on their queue, lines in the log, metrics.

mod canary;
mod events;
mod executions;
mod lines;
mod measures;
mod recurring;
mod scrape;
mod stage;
mod trace;
mod trouble;
