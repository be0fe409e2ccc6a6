//! Workflows as users write them, run in virtual time.

mod answered;
mod attributes;
mod children;
mod crashes;
mod exports;
mod map;
mod one_death;
mod published;
mod reruns;
mod telling;
mod test_kit;

// The example workflows import their outside world from `crate::outside`.
use crashes::outside;
