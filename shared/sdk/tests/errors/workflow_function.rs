//! Functions that can't be workflows.

#[tickover::workflow]
fn not_async(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn no_arguments() -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn no_context(order: u32) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn borrowed_context(ctx: &tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn two_inputs(ctx: tickover::Ctx, order: u32, amount: u32) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn borrowed(ctx: tickover::Ctx, name: &str) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn state(ctx: tickover::Ctx, #[state] shop: &Shop) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn generic<T>(ctx: tickover::Ctx, order: T) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow]
async fn returns_nothing(ctx: tickover::Ctx) {}

#[tickover::workflow]
async fn cannot_fail(ctx: tickover::Ctx) -> Vec<u32> {
    Vec::new()
}

fn main() {}
