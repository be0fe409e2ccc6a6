//! What others can observe of a task: events on their queue, lines in the log, metrics.

mod audit;
mod canary;
mod crons;
mod events;
mod executions;
mod lines;
mod measures;
mod scrape;
mod stage;
mod trace;
mod trouble;
