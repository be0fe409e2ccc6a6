//! The input of a call beside the names in its path: a body, and the trace that the transport names.

use tickover_core::trace::TraceContext;

/// A body, and the trace that the transport names. A trace that the body names takes precedence.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub body: &'a [u8],
    /// From a header or from a message attribute.
    pub trace: Option<TraceContext>,
}

impl<'a> From<&'a [u8]> for Call<'a> {
    fn from(body: &'a [u8]) -> Self {
        Self { body, trace: None }
    }
}
