//! The calls about tasks, but for claims, which also find turns: scheduling, reporting, operating, reading.

pub mod describe;
pub mod operate;
mod paced;
pub mod schedule;
pub(crate) mod single;
pub mod work;
