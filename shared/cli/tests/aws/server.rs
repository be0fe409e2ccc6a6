//! A server that gives fixed answers, one after the other, and keeps the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map_or_else(|| panic!("no header {name} in {self:?}"), |(_, value)| value)
    }
}

/// A status, the type of an error (or nothing) and a body.
pub(crate) type Answer = (u16, &'static str, String);

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// The last answer is repeated.
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut answers = answers.iter().peekable();
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let answer = (*answers.peek().expect("an answer")).clone();
                if answers.len() > 1 {
                    answers.next();
                }
                kept.lock().expect("a lock").push(read(&stream));
                write(&mut stream, &answer);
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("a lock").clone()
    }
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    };
    let first = line();
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
    let mut headers = vec![];
    loop {
        let line = line();
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut request = Request { method, target, headers, body: vec![] };
    if let Some((_, length)) = request.headers.iter().find(|(name, _)| name == "content-length") {
        request.body = vec![0; length.parse().expect("a length")];
        reader.read_exact(&mut request.body).expect("a body");
    }
    request
}

fn write(stream: &mut TcpStream, (status, error_type, body): &Answer) {
    let error_type =
        if error_type.is_empty() { String::new() } else { format!("x-amzn-errortype: {error_type}\r\n") };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\n{error_type}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .expect("an answer");
}
