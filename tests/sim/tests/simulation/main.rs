//! A thousand runs with every kind of fault, and the proof that they would find a bug.

mod bugs;
mod caught;
mod crossings;
mod deaths;
mod flood;
mod itself;
mod limits;
mod seeds;
mod sizes;
mod table;
