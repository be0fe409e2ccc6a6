//! Scenarios of crons. Each goes through [`decide()`](super::decide()) as the service does.

mod calendar;
mod crashes;
mod fixture;
mod life;
mod missed;
mod overlap;
mod set_back;
mod size;
