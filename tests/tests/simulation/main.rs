//! A thousand runs in which everything goes wrong that can, and the proof that a bug in there would be found.

mod bugs;
mod flood;
mod itself;
mod limits;
mod seeds;
