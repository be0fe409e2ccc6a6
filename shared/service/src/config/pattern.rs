//! Queues that are found by their names: a pattern makes a queue's URL from its name.

use tickover_core::id::QueueName;

/// Placeholder for a queue's name.
pub(super) const NAME: &str = "{name}";

/// The URL of every queue of tasks, with `{name}` in place of the queue's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePattern {
    before: String,
    after: String,
}

impl QueuePattern {
    /// `None` if it isn't a URL, or has no place for a name.
    pub fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.split_once(NAME)?;
        super::is_url(text).then(|| Self { before: before.to_owned(), after: after.to_owned() })
    }

    /// The URL that a queue has, if it exists. `None` for a name that no queue of tasks in SQS can have: SQS allows
    /// only letters, digits, `-` and `_`.
    pub fn url(&self, queue: &QueueName) -> Option<String> {
        let is_possible = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let possible = !queue.is_reserved() && queue.as_str().chars().all(is_possible);
        possible.then(|| self.with(queue.as_str()))
    }

    /// The queue of a URL, or of a URL's last part, which is also the last part of the queue's ARN.
    pub fn queue(&self, url: &str) -> Option<QueueName> {
        let url = url.trim_end_matches('/');
        let before = if url.contains('/') { &self.before } else { self.before.rsplit('/').next()? };
        let name = url.strip_prefix(before)?.strip_suffix(self.after.trim_end_matches('/'))?;
        let queue = QueueName::parse(name).ok()?;
        self.url(&queue).map(|_| queue)
    }

    /// The URL with any text in place of the name.
    pub(super) fn with(&self, name: &str) -> String {
        format!("{}{name}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::parse(text).unwrap()
    }

    #[test]
    fn a_name_becomes_a_url_and_a_url_or_its_end_becomes_the_name() {
        let pattern = QueuePattern::parse("http://q/1/shop-work-{name}").unwrap();
        assert_eq!(pattern.url(&name("e-mails")).unwrap(), "http://q/1/shop-work-e-mails");
        for text in ["http://q/1/shop-work-e-mails", "http://q/1/shop-work-e-mails/", "shop-work-e-mails"] {
            assert_eq!(pattern.queue(text), Some(name("e-mails")), "{text}");
        }
        for text in ["http://q/2/shop-work-e", "shop-timers", "shop-work-", "shop-work-a.fifo", "shop"] {
            assert_eq!(pattern.queue(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_that_no_queue_of_sqs_can_have_has_no_url() {
        let pattern = QueuePattern::parse("http://q/1/shop-work-{name}").unwrap();
        for queue in [name("a.b"), name("a:b"), QueueName::timers(), QueueName::events()] {
            assert_eq!(pattern.url(&queue), None, "{queue}");
        }
    }

    #[test]
    fn a_pattern_is_a_url_with_a_place_for_the_name() {
        for text in ["", "http://q/1/work", "shop-work-{name}"] {
            assert_eq!(QueuePattern::parse(text), None, "{text}");
        }
    }
}
