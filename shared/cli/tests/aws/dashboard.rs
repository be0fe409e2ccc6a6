//! The dashboard of a deployment: the calls of its page are signed and passed on.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::server::Server;
use crate::{REGION, caller, ok, sigv4, ssm_for, tool};

const NO_QUEUES: &str = r#"{"queues":[]}"#;

/// A running dashboard of the stack `prod`. It ends with the test.
pub(crate) struct Dashboard {
    process: Child,
    /// Host and port.
    address: String,
}

impl Dashboard {
    fn start(ssm: &Server, more: &[&str]) -> Self {
        Self::of(&caller(&ssm.url), more)
    }

    pub(crate) fn of(variables: &[(&str, &str)], more: &[&str]) -> Self {
        let args = [&["dashboard", "--port", "0", "--stack", "prod"], more].concat();
        let mut process = tool(&args, variables).stdout(Stdio::piped()).spawn().expect("a process");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("listening on http://").expect("its address").to_owned();
        Self { process, address }
    }

    /// Sends a request as the page does; returns the status and the body of the answer.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }
}

#[test]
fn the_calls_of_a_deployments_page_are_signed_and_their_answers_passed_back() {
    let api = Server::start(vec![ok(NO_QUEUES), (409, "", r#"{"code":"already_terminal"}"#.to_owned())]);
    let ssm = ssm_for(&api);
    let dashboard = Dashboard::start(&ssm, &[]);
    let (status, page) = dashboard.send("GET", "/", "");
    assert!(status == 200 && page.contains("<title>"), "{status} {page}");
    assert_eq!(api.requests().len(), 0);

    assert_eq!(dashboard.send("GET", "/v1/queues?limit=2", ""), (200, NO_QUEUES.to_owned()));
    let (status, problem) = dashboard.send("POST", "/v1/tasks/mail%3A7/cancel", "{}");
    assert!(status == 409 && problem.contains("already_terminal"), "{status} {problem}");
    let [read, change] = &api.requests()[..] else { panic!("two calls") };
    assert_eq!((read.method.as_str(), read.target.as_str()), ("GET", "/v1/queues?limit=2"));
    assert_eq!((change.method.as_str(), change.target.as_str()), ("POST", "/v1/tasks/mail%3A7/cancel"));
    assert_eq!(change.body, b"{}");
    for call in [read, change] {
        sigv4::check(call, "execute-api", REGION);
    }
}

#[test]
fn a_read_only_dashboard_of_a_deployment_signs_reads_and_passes_no_changes_on() {
    let api = Server::start(vec![ok(NO_QUEUES)]);
    let ssm = ssm_for(&api);
    let dashboard = Dashboard::start(&ssm, &["--read-only"]);
    for method in ["POST", "PUT", "DELETE"] {
        let (status, problem) = dashboard.send(method, "/v1/crons/nightly", "{}");
        assert!(status == 403 && problem.contains("read_only"), "{method}: {status} {problem}");
    }
    assert_eq!(api.requests().len(), 0);
    assert_eq!(dashboard.send("GET", "/v1/queues", ""), (200, NO_QUEUES.to_owned()));
    let [read] = &api.requests()[..] else { panic!("one call") };
    sigv4::check(read, "execute-api", REGION);
}
