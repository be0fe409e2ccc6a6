//! Queues that are found by their names: a pattern makes a queue's URL from its name, and those of its class queues.

use tickover_core::flow::Priority;
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
    /// only letters, digits, `-` and `_`, and names that end as those of class queues are kept for them.
    pub fn url(&self, queue: &QueueName) -> Option<String> {
        self.class_url(queue, Priority::Normal)
    }

    /// The URL of the queue for the messages of a priority, if it exists. That of the normal ones is the queue itself.
    pub fn class_url(&self, queue: &QueueName, class: Priority) -> Option<String> {
        let name = queue.as_str();
        let is_possible = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let is_class = || split_class(name).1 != Priority::Normal;
        let possible = !queue.is_reserved() && name.chars().all(is_possible) && !is_class();
        possible.then(|| self.with(&format!("{name}{}", suffix(class))))
    }

    /// The queue and the class of a URL, or of a URL's last part, which is also the last part of the queue's ARN.
    pub fn queue(&self, url: &str) -> Option<(QueueName, Priority)> {
        let url = url.trim_end_matches('/');
        let before = if url.contains('/') { &self.before } else { self.before.rsplit('/').next()? };
        let name = url.strip_prefix(before)?.strip_suffix(self.after.trim_end_matches('/'))?;
        let (name, class) = split_class(name);
        let queue = QueueName::parse(name).ok()?;
        self.url(&queue).map(|_| (queue, class))
    }

    /// What the names of all its queues begin with in SQS.
    pub fn prefix(&self) -> &str {
        self.before.rsplit('/').next().unwrap_or_default()
    }

    /// The URL with any text in place of the name.
    pub(super) fn with(&self, name: &str) -> String {
        format!("{}{name}{}", self.before, self.after)
    }
}

/// What is added to a queue's name for the class queue of a priority.
const fn suffix(class: Priority) -> &'static str {
    match class {
        Priority::High => "__high",
        Priority::Normal => "",
        Priority::Low => "__low",
    }
}

/// The queue's name and the class of the name of a queue in SQS.
fn split_class(name: &str) -> (&str, Priority) {
    let of = |class| name.strip_suffix(suffix(class)).map(|queue| (queue, class));
    of(Priority::High).or_else(|| of(Priority::Low)).unwrap_or((name, Priority::Normal))
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
            assert_eq!(pattern.queue(text), Some((name("e-mails"), Priority::Normal)), "{text}");
        }
        assert_eq!(pattern.prefix(), "shop-work-");
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
    fn a_class_queue_has_a_name_that_no_queue_of_tasks_has() {
        let pattern = QueuePattern::parse("http://q/1/shop-work-{name}").unwrap();
        for class in Priority::ALL {
            let url = pattern.class_url(&name("e_mails"), class).unwrap();
            assert_eq!(pattern.queue(&url), Some((name("e_mails"), class)), "{url}");
            let taken = name(url.strip_prefix("http://q/1/shop-work-").unwrap());
            assert_eq!(pattern.url(&taken).is_some(), class == Priority::Normal, "{taken}");
        }
        for text in ["http://q/1/shop-work-__low", "shop-work-a__low__high"] {
            assert_eq!(pattern.queue(text), None, "{text}");
        }
        assert_eq!(pattern.class_url(&QueueName::timers(), Priority::High), None);
    }

    #[test]
    fn a_pattern_is_a_url_with_a_place_for_the_name() {
        for text in ["", "http://q/1/work", "shop-work-{name}"] {
            assert_eq!(QueuePattern::parse(text), None, "{text}");
        }
    }
}
