//! Signs of life of a running command: whatever it writes, and the lines by which it reports how far it is.

use tickover_core::limits::DETAILS_MAX;
use tickover_core::payload::Json;
use tickover_wire::Verbatim;
use tokio::sync::watch;

/// How a line begins that reports progress, such as `::progress 0.4`.
const PROGRESS: &[u8] = b"::progress ";
/// How a line begins that reports details of the progress, such as `::details {"processed": 120}`.
const DETAILS: &[u8] = b"::details ";
/// The longest line that can be a report.
const LINE_MAX: usize = DETAILS.len() + DETAILS_MAX + 2;

/// All signs of a command until now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Signs {
    /// How often it has written something.
    pub(super) number: u64,
    /// The last progress that it reported, from 0 to 1.
    pub(super) progress: Option<f64>,
    /// The last details that it reported.
    pub(super) details: Option<Verbatim>,
}

/// What a line reports.
#[derive(Debug, PartialEq)]
enum Report {
    Progress(f64),
    Details(Json),
}

/// Takes the lines with reports out of a stream. Other bytes pass at once.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The beginning of a line that may become a report.
    held: Vec<u8>,
    /// Whether the rest of the line is known to be no report.
    passes: bool,
}

impl Reports {
    /// Returns the bytes that aren't reports, and notes the sign of life.
    pub(super) fn take(&mut self, chunk: &[u8], signs: &watch::Sender<Signs>) -> Vec<u8> {
        let (mut output, mut reports) = (Vec::with_capacity(chunk.len()), vec![]);
        for byte in chunk {
            if self.passes {
                output.push(*byte);
                self.passes = *byte != b'\n';
                continue;
            }
            self.held.push(*byte);
            if *byte == b'\n' {
                match report_of(&self.held) {
                    Some(report) => reports.push(report),
                    None => output.extend_from_slice(&self.held),
                }
                self.held.clear();
            } else if !may_be_report(&self.held) {
                output.append(&mut self.held);
                self.passes = true;
            }
        }
        note(signs, reports);
        output
    }

    /// The rest of the stream at its end: a last line may have no line end.
    pub(super) fn rest(&mut self, signs: &watch::Sender<Signs>) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        match report_of(&held) {
            Some(report) => {
                note(signs, vec![report]);
                vec![]
            }
            None => held,
        }
    }
}

fn note(signs: &watch::Sender<Signs>, reports: Vec<Report>) {
    signs.send_modify(|signs| {
        signs.number += 1;
        for report in reports {
            match report {
                Report::Progress(progress) => signs.progress = Some(progress),
                Report::Details(details) => signs.details = Some(details.into()),
            }
        }
    });
}

fn may_be_report(line: &[u8]) -> bool {
    let begins = |mark: &[u8]| line.starts_with(mark) || mark.starts_with(line);
    line.len() <= LINE_MAX && (begins(PROGRESS) || begins(DETAILS))
}

/// What a line reports. A line that has no valid value is output like any other.
fn report_of(line: &[u8]) -> Option<Report> {
    let text = |mark: &[u8]| Some(std::str::from_utf8(line.strip_prefix(mark)?).ok()?.trim());
    if let Some(number) = text(PROGRESS) {
        let progress = number.parse().ok().filter(|progress| (0.0..=1.0).contains(progress))?;
        return Some(Report::Progress(progress));
    }
    let details = Json::parse(text(DETAILS)?)?;
    (details.len() <= DETAILS_MAX).then_some(Report::Details(details))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What of these chunks is output, and the signs.
    fn read(chunks: &[&str]) -> (String, Signs) {
        let (sender, receiver) = watch::channel(Signs::default());
        let mut reports = Reports::default();
        let mut output: Vec<u8> =
            chunks.iter().flat_map(|chunk| reports.take(chunk.as_bytes(), &sender)).collect();
        output.extend(reports.rest(&sender));
        let signs = receiver.borrow().clone();
        (String::from_utf8(output).expect("text"), signs)
    }

    #[test]
    fn lines_with_progress_and_details_are_no_output() {
        let (output, signs) = read(&["a\n::progress 0.4\nb\n::details {\"processed\": 120}\nc"]);
        assert_eq!((output.as_str(), signs.progress), ("a\nb\nc", Some(0.4)));
        assert_eq!(signs.details.expect("details").as_str(), r#"{"processed": 120}"#);
        let (output, signs) = read(&["a\n", "::pro", "gress 0", ".5\r", "\n:", "b\n::progress 1"]);
        assert_eq!((output.as_str(), signs.progress), ("a\n:b\n", Some(1.0)));
    }

    #[test]
    fn other_lines_are_output_and_each_chunk_is_a_sign_of_life() {
        let long = format!("::details \"{}\"\n", "x".repeat(DETAILS_MAX));
        for line in ["::progress 40 %\n", "::progress 2\n", " ::progress 0.5\n", "::", "::details {\n", &long]
        {
            let (output, signs) = read(&["x", "\n", line]);
            assert_eq!((output, signs.progress, signs.details), (format!("x\n{line}"), None, None));
            assert_eq!(signs.number, 3);
        }
    }
}
