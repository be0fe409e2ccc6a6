//! The report that follows from a command's end.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use tickover::client::ClientError;
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_wire::request::FailError;
use tickover_wire::{FailureCode, Verbatim};

use super::report::Report;

/// The code of the failure that replaces one whose content is refused.
const ERROR_REFUSED: &str = "error_refused";

/// The report for a command that exited.
pub(super) fn report(status: ExitStatus, stdout: &[u8], stderr_tail: &str) -> Report {
    if !status.success() {
        return Report::Fail(exit_failure(status, stderr_tail));
    }
    match output(stdout) {
        Ok(output) => Report::Complete(output),
        Err(failure) => Report::Fail(failure),
    }
}

/// The failure of a command that wrote too much output.
pub(super) fn too_large() -> FailError {
    let most = Limits::default().payload_bytes;
    let message = format!("the command's output is larger than a result may be: {most} bytes");
    failure("output_too_large", message)
}

/// The failure of a command whose end the system couldn't report.
pub(super) fn lost(error: &std::io::Error) -> FailError {
    failure("process_lost", error.to_string())
}

/// The failure that is reported instead of what the server refuses for its content. No repetition would help, and without a
/// report the task would run again and again, without its policy.
pub(super) fn instead_of(report: &Report, refusal: &ClientError) -> Option<FailError> {
    let is_of_content = refusal.problem().is_some_and(|problem| [400, 413, 422].contains(&problem.status));
    let plain = |code: &str| failure(code, refusal.to_string());
    match report {
        _ if !is_of_content => None,
        Report::Complete(_) if refusal.code() == Some("limit_exceeded") => Some(plain("output_too_large")),
        Report::Complete(_) => Some(plain("output_refused")),
        Report::Fail(refused) if refused.code.0 == ERROR_REFUSED => None,
        Report::Fail(refused) => Some(FailError { retryable: refused.retryable, ..plain(ERROR_REFUSED) }),
        Report::Release => None,
    }
}

/// The result from standard output: a single JSON value verbatim, any other text as a string, no output as no result.
fn output(stdout: &[u8]) -> Result<Option<Verbatim>, FailError> {
    let text = String::from_utf8_lossy(stdout);
    let value = text.trim();
    if value.is_empty() {
        return Ok(None);
    }
    if let Some(json) = Json::parse(value) {
        return Ok(Some(json.into()));
    }
    // As with a shell's `$(…)`, line ends at the end of the output aren't part of the text.
    let json = Json::string(text.trim_end_matches(['\r', '\n']));
    // Quotes and escapes make the string longer than the text.
    if json.len() > Limits::default().payload_bytes { Err(too_large()) } else { Ok(Some(json.into())) }
}

fn exit_failure(status: ExitStatus, stderr_tail: &str) -> FailError {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit_{code}"),
        (None, Some(signal)) => format!("signal_{signal}"),
        (None, None) => "exit_unknown".to_owned(),
    };
    let message = match stderr_tail.trim() {
        "" => format!("the command ended with {status} and said nothing"),
        tail => tail.to_owned(),
    };
    failure(&code, message)
}

/// An error that is retryable.
fn failure(code: &str, message: String) -> FailError {
    FailError { code: FailureCode(code.to_owned()), message: Some(message), retryable: Some(true) }
}

#[cfg(test)]
mod tests {
    use tickover_wire::answer::Problem;

    use super::*;

    fn text(stdout: &[u8]) -> Option<String> {
        output(stdout).expect("small enough").map(|json| json.as_str().to_owned())
    }

    #[test]
    fn json_is_kept_verbatim_other_text_becomes_a_string_and_nothing_is_nothing() {
        for (stdout, expected) in [
            ("", None),
            (" \n", None),
            ("{\"b\": 1.50}\n", Some("{\"b\": 1.50}")),
            ("null\n", Some("null")),
            ("42", Some("42")),
            ("hello\n", Some("\"hello\"")),
            ("{} {}\n", Some("\"{} {}\"")),
            ("  two\nlines\n\n", Some("\"  two\\nlines\"")),
        ] {
            assert_eq!(text(stdout.as_bytes()).as_deref(), expected, "{stdout:?}");
        }
        assert_eq!(text(b"\xff").as_deref(), Some("\"\u{fffd}\""));
    }

    #[test]
    fn a_string_that_only_its_escapes_make_too_large_is_a_failure() {
        let quotes = "\"".repeat(Limits::default().payload_bytes / 2);
        assert_eq!(output(quotes.as_bytes()).unwrap_err().code.0, "output_too_large");
    }

    #[test]
    fn what_is_refused_for_its_content_is_replaced_once() {
        let refusal = |status, code: &'static str| {
            ClientError::Refused(Box::new(Problem { status, code: code.into(), ..Problem::default() }))
        };
        let (invalid, large) = (refusal(400, "invalid_request"), refusal(413, "limit_exceeded"));
        let error = FailError { retryable: Some(false), ..failure("exit_1", "text".to_owned()) };
        let fail = Report::Fail(error);
        let plain = instead_of(&fail, &invalid).unwrap();
        assert_eq!((plain.code.0.as_str(), plain.retryable), (ERROR_REFUSED, Some(false)));
        assert_eq!(instead_of(&Report::Fail(plain), &invalid), None);
        assert_eq!(instead_of(&Report::Complete(None), &invalid).unwrap().code.0, "output_refused");
        assert_eq!(instead_of(&Report::Complete(None), &large).unwrap().code.0, "output_too_large");
        // The lease is lost: another report would be refused as well.
        assert_eq!(instead_of(&fail, &refusal(409, "lease_lost")), None);
    }

    #[test]
    fn exits_and_signals_have_codes_of_their_own() {
        let exited = exit_failure(ExitStatus::from_raw(3 << 8), " no such host\n");
        assert_eq!((exited.code.0.as_str(), exited.message.as_deref()), ("exit_3", Some("no such host")));
        let killed = exit_failure(ExitStatus::from_raw(9), "");
        assert_eq!(killed.code.0, "signal_9");
        assert!(killed.message.unwrap().contains("said nothing"));
    }
}
