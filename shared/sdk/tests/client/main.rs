//! The client in the service's own process, and what it steers.

mod callbacks;
mod crons;
mod executions;
mod limits_by_name;
mod operations;
mod tasks;
