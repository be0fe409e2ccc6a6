//! A story that must end in the same way whenever the system dies.

use std::fmt;

use super::TestEnv;

/// Runs a story in a new system without a death. Then it runs the story once for each write, with a death after that
/// write. All runs must return the same value, which this function returns.
///
/// ```
/// # use tickover::prelude::*;
/// use tickover::test::{TestEnv, with_each_death};
/// # #[tickover::step]
/// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
/// # #[tickover::workflow]
/// # async fn order(ctx: Ctx, cents: u32) -> Result<u32> { Ok(ctx.step(charge(cents)).await?) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let story = async |env: &TestEnv| env.start(&order, 5).await.unwrap().result().await.unwrap();
/// assert_eq!(with_each_death(|| TestEnv::new().workflow(order), story).await, 5);
/// # }
/// ```
///
/// # Panics
/// If a story with a death returns another value. The message names the write after which the system died.
pub async fn with_each_death<R: PartialEq + fmt::Debug>(
    env: impl Fn() -> TestEnv,
    story: impl AsyncFn(&TestEnv) -> R,
) -> R {
    let undisturbed = env();
    let expected = story(&undisturbed).await;
    for write in 1..=undisturbed.writes() {
        let env = env();
        env.kill_after_write(write);
        let found = story(&env).await;
        assert!(found == expected, "death after write {write}: {found:?} instead of {expected:?}");
    }
    expected
}
