//! How many writes the hottest keys take, and which rate that allows.

use anyhow::Result;
use serde_json::json;
use tickover_tests::keys::{self, Load, Work};

use crate::{float, print, rounded};

/// The write units that `DynamoDB` allows for one key in a second.
const KEY_UNITS: f64 = 1_000.0;
/// Tasks or executions that the load starts in one second.
const PER_SECOND: usize = 5_000;

/// Runs the loads with two numbers of shards.
pub(crate) async fn run(name: &str) -> Result<()> {
    for due_shards in [16, 64] {
        for (work, what, count) in [
            (Work::Tasks, "task lives", 200_000),
            (Work::TimedTasks, "task lives with an attempt's timeout", 50_000),
            (Work::Executions, "executions of one workflow", 50_000),
        ] {
            for hottest in keys::run(Load { work, count, per_second: PER_SECOND, due_shards }).await? {
                let (units, all) = (hottest.units, hottest.all);
                let per_life = float(usize::try_from(units)?) / float(count);
                print(&json!({
                    "bench": name,
                    "what": what,
                    "count": count,
                    "due_shards": due_shards,
                    "keys_of": format!("{:?}", hottest.target).to_lowercase(),
                    "units": all,
                    "hottest": hottest.key,
                    "its_units": units,
                    "its_share": rounded(float(usize::try_from(units)?) / float(usize::try_from(all)?), 4),
                    "its_share_of_one_second_at_most": rounded(hottest.share, 4),
                    "per_s_at_1000_units": (KEY_UNITS / per_life).floor(),
                }));
            }
        }
    }
    Ok(())
}
