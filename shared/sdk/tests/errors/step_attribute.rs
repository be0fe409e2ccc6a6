//! Attributes of steps with invalid options.

#[tickover::step(retries = "fixed(3, 2s)")]
async fn unknown_key() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(retry = "sometimes")]
async fn no_policy() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(retry = "fixed(three, 2s)")]
async fn no_number() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(retry = 3)]
async fn no_text() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5 parsecs")]
async fn no_duration() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "0s")]
async fn no_time() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "2000d")]
async fn too_much_time() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5m", timeout = "6m")]
async fn twice() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5m", scope = "each")]
async fn no_scope() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(scope = "per_attempt")]
async fn scope_of_nothing() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(at_most_once = "yes")]
async fn flag_with_value() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(queue = "my labels")]
async fn no_queue() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step("print label")]
async fn no_name() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(remote, "print-label")]
async fn name_at_the_end() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(non_retryable = "Declined")]
async fn no_list() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(attempt_timeout = "5 parsecs")]
async fn no_time_of_an_attempt() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(remote, heartbeat = "0s")]
async fn no_time_between_heartbeats() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(attempt_timeout = "5s", on_timeout = "ignore")]
async fn nothing_that_follows() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5m", on_timeout = "terminal")]
async fn what_follows_nothing() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5m", scope = "per_attempt", on_timeout = "retry")]
async fn retry_of_what_is_final() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5m", scope = "per_attempt", attempt_timeout = "1m")]
async fn two_times_of_an_attempt() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(remote, concurrency(limit = 5))]
async fn no_key(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, concurrency(key = "order", limit = 1001))]
async fn too_many_at_once(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, concurrency(key = "order", constant = "all", limit = 1))]
async fn two_keys(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, concurrency("order"))]
async fn no_parts(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, rate(constant = "smtp", limit = 5, burst = 6))]
async fn burst_above_the_limit(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, rate(constant = "smtp", limit = 5, per = "2d"))]
async fn period_of_two_days(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, priority = "urgent")]
async fn no_priority(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, fairness_key = "the order")]
async fn no_expression(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(remote, requires("a gpu"))]
async fn no_capability(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(priority = "low")]
async fn inline_with_a_priority(order: u32) -> tickover::Result<u32> {
    Ok(order)
}

#[tickover::step(schedule_to_start = "30s")]
async fn inline_wait_for_a_worker() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(timeout = "5m", timeout_scope = "per_attempt")]
async fn name_of_another_system() -> tickover::Result<()> {
    Ok(())
}

#[tickover::step(retries = 3)]
async fn name_of_another_system_with_its_value() -> tickover::Result<()> {
    Ok(())
}

fn main() {}
