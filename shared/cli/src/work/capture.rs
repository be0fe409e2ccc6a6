//! One output stream of a running command: it is read as it is written, and partly kept. Lines that report progress are
//! taken out.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::sign::{Reports, Signs};

const CHUNK_BYTES: usize = 8 * 1024;

/// Which part of a stream is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keep {
    /// All of it, up to this many bytes. If there are more, reading ends.
    All(usize),
    /// The last bytes, this many. Everything is also written to our own standard error.
    Tail(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Open,
    Ended,
    TooLarge,
}

/// A stream that is being read. Dropping it stops the reading.
#[derive(Debug)]
pub(super) struct Capture {
    kept: Arc<Mutex<Kept>>,
    reading: watch::Receiver<Reading>,
    reader: AbortHandle,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Capture {
    /// Starts reading.
    pub(super) fn of(
        stream: impl AsyncRead + Unpin + Send + 'static,
        keep: Keep,
        signs: Arc<watch::Sender<Signs>>,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (sender, reading) = watch::channel(Reading::Open);
        let shared = Arc::clone(&kept);
        let reader = tokio::spawn(async move {
            sender.send_replace(read(stream, keep, &shared, &signs).await);
        });
        Self { kept, reading, reader: reader.abort_handle() }
    }

    /// Waits until the stream or the reading of it has ended.
    pub(super) async fn ended(&self) {
        // An error means that the reader task is gone, which is an end too.
        drop(self.reading.clone().wait_for(|reading| *reading != Reading::Open).await);
    }

    /// Waits until there are more bytes than may be kept. If that doesn't happen, it never resolves.
    pub(super) async fn overflowed(&self) {
        if self.reading.clone().wait_for(|reading| *reading == Reading::TooLarge).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether there were more bytes than may be kept.
    pub(super) fn is_too_large(&self) -> bool {
        *self.reading.borrow() == Reading::TooLarge
    }

    /// The bytes kept so far.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes.clone()
    }

    /// The bytes kept so far, as text. A tail starts with a whole character.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_middle = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        // A UTF-8 character has at most three bytes after its first.
        let start = if kept.is_cut { kept.bytes.iter().take(3).take_while(is_middle).count() } else { 0 };
        String::from_utf8_lossy(&kept.bytes[start..]).into_owned()
    }
}

async fn read(
    mut stream: impl AsyncRead + Unpin,
    keep: Keep,
    kept: &Mutex<Kept>,
    signs: &watch::Sender<Signs>,
) -> Reading {
    let (mut chunk, mut reports) = (vec![0; CHUNK_BYTES], Reports::default());
    loop {
        // A read error counts as the end of the stream.
        let Ok(length @ 1..) = stream.read(&mut chunk).await else {
            let rest = reports.rest(signs);
            return if keep_bytes(rest, keep, kept).await { Reading::Ended } else { Reading::TooLarge };
        };
        let output = reports.take(&chunk[..length], signs);
        if !keep_bytes(output, keep, kept).await {
            return Reading::TooLarge;
        }
    }
}

/// Keeps these bytes of the output. Returns whether they may be kept.
async fn keep_bytes(output: Vec<u8>, keep: Keep, kept: &Mutex<Kept>) -> bool {
    if let Keep::Tail(_) = keep {
        copy_to_stderr(output.clone()).await;
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.bytes.extend(output);
    match keep {
        Keep::All(most) => kept.bytes.len() <= most,
        Keep::Tail(most) => {
            let surplus = kept.bytes.len().saturating_sub(most);
            kept.is_cut |= surplus > 0;
            kept.bytes.drain(..surplus);
            true
        }
    }
}

async fn copy_to_stderr(chunk: Vec<u8>) {
    // On a blocking thread: a slow reader of our standard error must not delay the heartbeats. An error is ignored:
    // there is no other place to report it.
    drop(tokio::task::spawn_blocking(move || std::io::stderr().write_all(&chunk)).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tail_begins_with_a_whole_character() {
        let text = "é".repeat(100);
        let capture = Capture::of(std::io::Cursor::new(text.into_bytes()), Keep::Tail(7), Arc::default());
        capture.ended().await;
        assert_eq!(capture.text(), "ééé");
    }

    #[tokio::test]
    async fn reading_ends_where_too_much_comes() {
        let capture = Capture::of(tokio::io::repeat(b'y'), Keep::All(100_000), Arc::default());
        capture.overflowed().await;
        assert!(capture.is_too_large());
        assert!(capture.bytes().len() <= 100_000 + CHUNK_BYTES);
    }

    #[tokio::test]
    async fn what_fits_exactly_is_kept_whole() {
        let capture = Capture::of(std::io::Cursor::new(vec![b'x'; 50]), Keep::All(50), Arc::default());
        capture.ended().await;
        assert_eq!((capture.bytes().len(), capture.is_too_large()), (50, false));
    }
}
