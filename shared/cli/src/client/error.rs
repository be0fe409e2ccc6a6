//! Why a call has no result, and whether repeating it can help.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use serde::Deserialize;

/// Characters of a foreign answer that an error repeats.
const EXCERPT_CHARS: usize = 200;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The server said no, or that it can't just now.
    #[error("{code}: {detail}")]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// The stable code, or `http_502` where something else answered in the server's place.
        code: String,
        /// For people.
        detail: String,
        /// How long to wait before the next try, where the server says so.
        retry_after: Option<Duration>,
    },
    /// No answer, or half of one.
    #[error("no answer from {endpoint}")]
    Unreachable {
        /// Who was called.
        endpoint: Url,
        /// Why.
        source: reqwest::Error,
    },
    /// An answer that isn't Tickover's.
    #[error("{endpoint} gave an answer that can't be read: is it a Tickover endpoint?")]
    Malformed {
        /// Who was called.
        endpoint: Url,
        /// Why.
        source: serde_json::Error,
    },
}

/// What errors look like on the wire (RFC 9457).
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: Option<String>,
    title: Option<String>,
}

impl CallError {
    /// The error that an answer with this status and body means.
    pub(super) fn refused(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        if let Ok(Problem { code, detail, title }) = serde_json::from_slice(body) {
            let detail = detail.or(title).unwrap_or_else(|| status.to_string());
            return Self::Refused { status, code, detail, retry_after };
        }
        // A gateway's or a proxy's own page.
        let detail = match String::from_utf8_lossy(body).trim() {
            "" => status.to_string(),
            text => text.chars().take(EXCERPT_CHARS).collect(),
        };
        Self::Refused { status, code: format!("http_{}", status.as_u16()), detail, retry_after }
    }

    /// The stable code, if the server gave one.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Unreachable { .. } | Self::Malformed { .. } => None,
        }
    }

    /// Whether the same call may be answered well later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Refused { status, .. } => {
                let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
                status.is_server_error() || busy.contains(status)
            }
            Self::Unreachable { .. } => true,
            Self::Malformed { .. } => false,
        }
    }

    /// Whether there is nothing of that id.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == Some("not_found")
    }

    /// Whether the attempt is over for this worker: it holds the task no more.
    pub(crate) fn ends_attempt(&self) -> bool {
        let over = ["lease_lost", "already_terminal", "deadline_exceeded", "not_found"];
        self.code().is_some_and(|code| over.contains(&code))
    }

    /// Whether the server won't have what was sent, however often it is sent.
    pub(crate) fn refuses_content(&self) -> bool {
        let refusals =
            [StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNPROCESSABLE_ENTITY];
        matches!(self, Self::Refused { status, .. } if refusals.contains(status))
    }

    /// How long the server wants to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Unreachable { .. } | Self::Malformed { .. } => None,
        }
    }
}

/// The header's form in seconds; its other form, a date, is of no use without a common clock.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_code_and_detail() {
        let body = br#"{"type":"about:blank","status":409,"code":"lease_lost","detail":"the lease is lost"}"#;
        let error = CallError::refused(StatusCode::CONFLICT, None, body);
        assert_eq!(error.to_string(), "lease_lost: the lease is lost");
        assert!(error.ends_attempt() && !error.is_transient());
    }

    #[test]
    fn a_page_of_somebody_else_is_quoted_and_cut() {
        let body = "<html>".repeat(100);
        let error = CallError::refused(StatusCode::BAD_GATEWAY, None, body.as_bytes());
        assert!(error.to_string().starts_with("http_502: <html><html>"));
        assert!(error.to_string().len() <= "http_502: ".len() + EXCERPT_CHARS);
        assert!(error.is_transient());
        let empty = CallError::refused(StatusCode::SERVICE_UNAVAILABLE, None, b"");
        assert_eq!(empty.to_string(), "http_503: 503 Service Unavailable");
    }
}
