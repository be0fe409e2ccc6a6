//! A trip: the flight is cancelled if the hotel can't be booked.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

use crate::outside;

/// A trip.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trip {
    /// The place.
    pub(crate) to: String,
    /// Whether the hotel has a room.
    pub(crate) has_room: bool,
}

/// The result of the booking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Booked {
    /// Flight and hotel.
    Both(String, String),
    /// Nothing: the flight was cancelled.
    Nothing(String),
}

/// Books the flight.
#[tickover::step]
pub(crate) async fn book_flight(trip: Trip) -> Result<String> {
    outside::call().await;
    Ok(format!("flight to {}", trip.to))
}

/// Books the hotel, if there is a room.
#[tickover::step(retry = "fixed(2, 10s)")]
pub(crate) async fn book_hotel(trip: Trip) -> Result<String, Failure> {
    outside::call().await;
    if !trip.has_room {
        return Err(Failure::new("full", "no room is left"));
    }
    Ok(format!("hotel in {}", trip.to))
}

/// Cancels the flight.
#[tickover::step]
pub(crate) async fn cancel_flight(trip: Trip) -> Result<String> {
    outside::call().await;
    Ok(format!("flight to {} cancelled", trip.to))
}

/// Books both, or neither.
#[tickover::workflow("trip", timeout = "1d", on_failure = give_back, on_failure_timeout = "1h")]
pub(crate) async fn book(ctx: Ctx, trip: Trip) -> Result<Booked> {
    let flight = ctx.step(book_flight(trip.clone())).await?;
    let hotel = ctx.step(book_hotel(trip)).await?;
    Ok(Booked::Both(flight, hotel))
}

async fn give_back(ctx: Ctx, trip: Trip, failed: Cause) -> Result<Option<Booked>> {
    match failed {
        Cause::Step { name, .. } if name == "book_hotel" => {
            let cancelled = ctx.step(cancel_flight(trip)).await?;
            Ok(Some(Booked::Nothing(cancelled)))
        }
        Cause::Step { .. } | Cause::Body(_) | Cause::ExecutionDeadline | Cause::RunDeadline => Ok(None),
    }
}
