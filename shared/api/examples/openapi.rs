//! Prints the `OpenAPI` document as the routes make it: `shared/api/openapi.json`, anew.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().lock().write_all(tickover_api::document().as_bytes())
}
