//! A function that does nothing: the cold starts of the other functions are compared with its own.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(|event: LambdaEvent<Box<RawValue>>| async move { Ok::<_, Error>(event.payload) })).await
}
