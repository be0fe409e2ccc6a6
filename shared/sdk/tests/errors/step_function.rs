//! Functions that can't be steps.

struct Order;
struct Shop;

#[tickover::step]
fn not_async(amount: u32) -> Result<u32, tickover::Failure> {
    Ok(amount)
}

impl Shop {
    #[tickover::step]
    async fn a_method(&self, amount: u32) -> Result<u32, tickover::Failure> {
        Ok(amount)
    }
}

#[tickover::step]
async fn generic<T>(amount: T) -> Result<T, tickover::Failure> {
    Ok(amount)
}

#[tickover::step]
async fn unknown_type(amount: impl Copy) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn borrowed(order: &Order) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn borrowed_text(names: Vec<&str>) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn borrowed_slice(amounts: &[u32]) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn owned_state(#[state] shop: Shop, amount: u32) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn changed_state(#[state] shop: &mut Shop) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn named_state(#[state("shop")] shop: &Shop) -> Result<(), tickover::Failure> {
    Ok(())
}

#[tickover::step]
async fn returns_nothing(amount: u32) {}

#[tickover::step]
async fn cannot_fail(amount: u32) -> u32 {
    amount
}

#[tickover::step]
async unsafe fn unsafe_step(amount: u32) -> Result<u32, tickover::Failure> {
    Ok(amount)
}

#[tickover::step]
async fn any_error(amount: u32) -> anyhow::Result<u32> {
    Ok(amount)
}

#[tickover::step]
async fn boxed_error(amount: u32) -> Result<u32, Box<dyn std::error::Error>> {
    Ok(amount)
}

#[tickover::step]
struct NoFunction;

fn main() {}
