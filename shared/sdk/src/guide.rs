//! The guide: how to write, test, change and operate workflows.
//!
//! Start with [`first_workflow`]. You can read each other page by itself. Every example that can run without AWS is a
//! test of this crate.
//!
//! | question | page |
//! |---|---|
//! | How do I write a workflow, run it and start it? | [`first_workflow`] |
//! | How is a step retried, limited in time, given a connection, run elsewhere, undone? | [`steps`] |
//! | By when does work end? | [`deadlines`] |
//! | How does a workflow wait for a time, an event, another execution? | [`events_and_timers`] |
//! | How do I run many steps or children at once? | [`fan_out`] |
//! | How do I test it? | [`testing`] |
//! | How do I change the code while executions are open? | [`versions`] |
//! | How do I start, watch, stop and repair executions? | [`operating`] |
//! | Which errors exist, and what follows from each? | [`errors`] |
//! | How do I use tasks without a workflow? | [`tasks`] |
//! | How do I limit how many run, how fast they start, and which come first? | [`flow_control`] |
//!
//! Each function has its own reference: see [`Ctx`](crate::Ctx), [`Step`](crate::Step), [`Client`](crate::Client),
//! [`serve`](crate::serve()), and the attributes [`step`](macro@crate::step) and [`workflow`](macro@crate::workflow).
//!
//! This module holds documentation only.

#[doc = include_str!("guide/first_workflow.md")]
pub mod first_workflow {}

#[doc = include_str!("guide/steps.md")]
pub mod steps {}

#[doc = include_str!("guide/deadlines.md")]
pub mod deadlines {}

#[doc = include_str!("guide/events_and_timers.md")]
pub mod events_and_timers {}

#[doc = include_str!("guide/fan_out.md")]
pub mod fan_out {}

#[doc = include_str!("guide/testing.md")]
pub mod testing {}

#[doc = include_str!("guide/versions.md")]
pub mod versions {}

#[doc = include_str!("guide/operating.md")]
pub mod operating {}

#[doc = include_str!("guide/errors.md")]
pub mod errors {}

#[doc = include_str!("guide/tasks.md")]
pub mod tasks {}

#[doc = include_str!("guide/flow_control.md")]
pub mod flow_control {}
