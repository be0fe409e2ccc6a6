//! The output of a process, read as it arrives, so that its pipes never fill up.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;

/// One stream of a process, read as it arrives.
#[derive(Debug)]
pub(super) struct Output {
    text: Arc<Mutex<String>>,
    /// Whether the stream has ended; marked as changed with each line.
    is_ended: watch::Receiver<bool>,
}

impl Output {
    pub(super) fn follow(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (sender, is_ended) = watch::channel(false);
        let written = Arc::clone(&text);
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
                let mut text = written.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&String::from_utf8_lossy(&line));
                drop(text);
                line.clear();
                sender.send_replace(false);
            }
            sender.send_replace(true);
        });
        Self { text, is_ended }
    }

    pub(super) fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn line(&self, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut changes = self.is_ended.clone();
        loop {
            let is_last_look = *changes.borrow_and_update();
            let text = self.text();
            if let Some(line) =
                text.split_inclusive('\n').find(|line| line.ends_with('\n') && is_wanted(line))
            {
                return Some(line.trim_end().to_owned());
            }
            if is_last_look || changes.changed().await.is_err() {
                return None;
            }
        }
    }

    pub(super) async fn end(&self) {
        // An error means that the reader is gone: then the stream has ended too.
        drop(self.is_ended.clone().wait_for(|is_ended| *is_ended).await);
    }
}
