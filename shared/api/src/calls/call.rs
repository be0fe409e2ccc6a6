//! What a call brings besides its names: a body, and what its transport says of the trace it belongs to.

use tickover_core::trace::TraceContext;

/// A body, and the trace that the transport named. One that the body names itself counts more.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The body.
    pub body: &'a [u8],
    /// From a header, or from a message's attribute.
    pub trace: Option<TraceContext>,
}

impl<'a> From<&'a [u8]> for Call<'a> {
    fn from(body: &'a [u8]) -> Self {
        Self { body, trace: None }
    }
}
