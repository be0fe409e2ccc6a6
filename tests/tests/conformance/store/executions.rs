//! Executions: their records, the sealed segments of their journals, and the joins that count the ends of a fan-out.

mod fixture;
pub(super) mod found;
pub(super) mod joins;
pub(super) mod journals;
pub(super) mod moved;
pub(super) mod started;
pub(super) mod updated;
pub(super) mod woken;
