//! Redrives dead letters, as operators do: each becomes a new message.

use tickover_service::ports::{Clock as _, Queue as _};

use crate::dice::Dice;
use crate::history::{Actor, Fault};
use crate::world::World;

/// Redrives until the run ends.
pub async fn redriver(world: &World) {
    let dice = Dice::new(world.seed, "redriver");
    loop {
        world.clock.sleep_until(world.now().plus(dice.secs(60, 900))).await;
        for name in world.messages.names() {
            let count = world.messages.redrive(&name).unwrap_or(0);
            if count > 0 {
                world.fault(Actor::World, Fault::Redriven(count));
            }
        }
    }
}
