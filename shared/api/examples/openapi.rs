//! Prints the `OpenAPI` document that the routes generate: the content of `shared/api/openapi.json`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().lock().write_all(tickover_api::document().as_bytes())
}
