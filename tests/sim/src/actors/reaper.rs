//! Deletes expired items as `DynamoDB` does: some time after their expiry, never before, and in no order.

use tickover_core::duration::Millis;
use tickover_core::id::RecordId;
use tickover_service::memory::store::Item;

use crate::dice::Dice;
use crate::history::{Actor, Deleted, Fault};
use crate::world::World;

/// How often it checks for expired items.
const EVERY: Millis = Millis::from_secs(60);

/// Deletes until the run ends.
pub async fn reaper(world: &World) {
    use tickover_service::ports::Clock as _;
    let dice = Dice::new(world.seed, "reaper");
    let reaped = world.hardship.reaped;
    loop {
        world.clock.sleep_until(world.now().plus(EVERY)).await;
        for item in world.ledger.store.delete_expired(world.now(), |_| dice.chance(reaped)) {
            let deleted = match item {
                Item::Blob(id) => Deleted::Blob(id),
                Item::Segment(_, key) => Deleted::Segment(key),
                Item::Record(RecordId::Key(_)) => Deleted::Key,
                Item::Record(_) | Item::Waiter(..) => Deleted::Record,
                Item::Join(_) => Deleted::Join,
            };
            world.fault(Actor::World, Fault::Deleted(deleted));
        }
    }
}
