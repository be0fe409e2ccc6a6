//! Attributes of workflows with invalid options.

#[tickover::workflow(heartbeat = "fixed(3, 2s)")]
async fn unknown_key(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(timeout = "999ms")]
async fn short_execution(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(run_timeout = "999ms")]
async fn short_run(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(timeout = "half an hour")]
async fn no_duration(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(on_failure = "refund")]
async fn handler_in_quotes(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(on_failure_timeout = "5m")]
async fn limit_of_nothing(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(patches = "new-tax")]
async fn no_list(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(patches("new-tax", "new-tax"))]
async fn patch_twice(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(queue = "")]
async fn no_queue(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(name = "fulfil")]
async fn name_with_key(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(concurrency(key = "order.customer", limit = 0))]
async fn limit_of_zero(ctx: tickover::Ctx, order: String) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(fairness_key = "_order.customer")]
async fn key_of_no_field(_ctx: tickover::Ctx, _order: String) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(requires("gpu"))]
async fn capability(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(retry = "often")]
async fn no_policy(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

#[tickover::workflow(non_retryable("Declined"))]
async fn codes_of_no_policy(ctx: tickover::Ctx) -> tickover::Result<()> {
    Ok(())
}

fn main() {}
