//! A function that does nothing: what the others' cold starts are measured against.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(|event: LambdaEvent<Box<RawValue>>| async move { Ok::<_, Error>(event.payload) })).await
}
