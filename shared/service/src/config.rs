//! Configuration from the environment: the one file that reads it. All problems are reported at once.

mod aws;
mod callbacks;
mod pattern;
mod process;

use std::collections::BTreeMap;
use std::fmt;

use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::{LEASE_RANGE, Limits, SPAN_MAX};

use crate::ports::Listed;
use crate::telemetry::{self, Targets};

pub use aws::AwsEnvironment;
pub use pattern::QueuePattern;
pub use process::{LOCAL, ProcessEnvironment};

const TABLE: &str = "TICKOVER_TABLE";
const QUEUES: &str = "TICKOVER_QUEUES";
const QUEUE_URLS: &str = "TICKOVER_QUEUE_URLS";
const TIMERS: &str = "TICKOVER_TIMERS";
const EVENTS: &str = "TICKOVER_EVENTS";
const TRACE: &str = "TICKOVER_TRACE";
const METRICS: &str = "TICKOVER_METRICS";
const LISTS: &str = "TICKOVER_LISTS";
const CALLBACK_SECRET_ID: &str = "TICKOVER_CALLBACK_SECRET_ID";
const CALLBACK_URL: &str = "TICKOVER_CALLBACK_URL";
/// The value of `TICKOVER_QUEUES` that means every queue of the pattern.
const ANY: &str = "*";
/// The value of `TICKOVER_EVENTS` and of the variables of callbacks that means that there is none. Some places for values,
/// such as a parameter of AWS Systems Manager, can't be empty.
const NONE: &str = "none";

/// The configuration of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `TICKOVER_TABLE`: the table's name.
    pub table: String,
    /// `TICKOVER_QUEUES`: logical name to URL, as `emails=https://…,reports=https://…`. Names alone are enough where
    /// `TICKOVER_QUEUE_URLS` gives the pattern of their URLs, as `https://…/tickover-work-{name}`.
    pub queues: BTreeMap<QueueName, String>,
    /// The pattern in `TICKOVER_QUEUE_URLS`, if `TICKOVER_QUEUES` is `*` or not set: then every queue in SQS whose URL
    /// has this form is a queue of tasks, also one that is created later.
    pub any_queue: Option<QueuePattern>,
    /// `TICKOVER_TIMERS`: URL of the timers queue, which makes deadlines precise to a second.
    pub timers: String,
    /// `TICKOVER_EVENTS`: URL of the queue for lifecycle events. Optional.
    pub events: Option<String>,
    /// `AWS_LAMBDA_FUNCTION_NAME`, which Lambda sets: the function of the metrics.
    pub function: Option<String>,
    /// `TICKOVER_TICK_BUDGET`: how long a tick lasts at most; less where the function's own time is shorter.
    pub tick_budget: Millis,
    /// `TICKOVER_LOG`: which log lines are written, `info` by default.
    pub log: Targets,
    /// `TICKOVER_METRICS`: whether all metrics are recorded (`all`), or only those of the alarms and the dashboard
    /// (`essential`, the default).
    pub all_metrics: bool,
    /// `TICKOVER_LISTS`: which executions of all workflows are listed. `failed` (the default), or `all`, which costs each
    /// execution a write.
    pub listed: Listed,
    /// `TICKOVER_CALLBACK_SECRET_ID`: the name or the ARN of the secret in AWS Secrets Manager that signs the tokens of
    /// callbacks. Without it, or with `none`, callbacks are off.
    pub callback_secret_id: Option<String>,
    /// `TICKOVER_CALLBACK_URL`: the address of the HTTP API for callers without credentials. Optional, or `none`.
    pub callback_url: Option<String>,
    /// Limits, from `TICKOVER_LEASE`, `TICKOVER_RETENTION`, `TICKOVER_DUE_SHARDS`, `TICKOVER_PAYLOAD_BYTES`,
    /// `TICKOVER_BATCH`, `TICKOVER_MAX_LOSSES` and `TICKOVER_TRACE`, which is `off` by default, or `carry`.
    pub limits: Limits,
}

/// All problems of the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// One sentence for each problem.
    pub problems: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment is not set up: {}", self.problems.join("; "))
    }
}

impl Config {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// The same with these values in place of the environment's: names of variables with their values.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn from_env_and(values: &BTreeMap<&str, String>) -> Result<Self, ConfigError> {
        Self::read(|name| values.get(name).cloned().or_else(|| std::env::var(name).ok()))
    }

    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut reader = Reader { lookup, problems: vec![] };
        let defaults = Limits::default();
        let year = SPAN_MAX;
        let second = Millis::from_secs(1);
        let table = reader.required(TABLE);
        let (queues, any_queue) = reader.queues();
        let (timers, events) = reader.own_queues(&queues, any_queue.as_ref());
        let config = Self {
            table,
            queues,
            any_queue,
            timers,
            events,
            function: reader.optional("AWS_LAMBDA_FUNCTION_NAME"),
            tick_budget: reader.span("TICKOVER_TICK_BUDGET", Millis::from_secs(50), (second, year)),
            log: reader.log_filter("TICKOVER_LOG"),
            all_metrics: reader.is_second(METRICS, ["essential", "all"]),
            listed: if reader.is_second(LISTS, ["failed", "all"]) { Listed::All } else { Listed::Failed },
            callback_secret_id: reader.unless_none(CALLBACK_SECRET_ID),
            callback_url: reader.callback_url(),
            limits: Limits {
                lease: reader.span("TICKOVER_LEASE", defaults.lease, LEASE_RANGE),
                retention: reader.span("TICKOVER_RETENTION", defaults.retention, (second, year)),
                due_shards: reader.number("TICKOVER_DUE_SHARDS", defaults.due_shards, 1, 1_000),
                payload_bytes: reader.number(
                    "TICKOVER_PAYLOAD_BYTES",
                    defaults.payload_bytes,
                    1,
                    defaults.payload_bytes,
                ),
                batch: reader.number("TICKOVER_BATCH", defaults.batch, 1, 1_000),
                losses: reader.number("TICKOVER_MAX_LOSSES", defaults.losses, 0, 1_000),
                carry_trace: reader.is_second(TRACE, ["off", "carry"]),
                // A move in the due index costs two write units.
                short_lease: Millis::from_secs(60),
                ..defaults
            },
        };
        if reader.problems.is_empty() { Ok(config) } else { Err(ConfigError { problems: reader.problems }) }
    }

    /// The URLs of all queues: those of tasks, and Tickover's own under their reserved names.
    pub fn queue_urls(&self) -> BTreeMap<QueueName, String> {
        let mut urls = self.queues.clone();
        urls.insert(QueueName::timers(), self.timers.clone());
        urls.extend(self.events.clone().map(|url| (QueueName::events(), url)));
        urls
    }
}

struct Reader<F> {
    lookup: F,
    problems: Vec<String>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    fn optional(&self, name: &str) -> Option<String> {
        (self.lookup)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn required(&mut self, name: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.problems.push(format!("{name} is missing"));
            String::new()
        })
    }

    fn log_filter(&mut self, name: &str) -> Targets {
        let Some(text) = self.optional(name) else { return telemetry::default_filter() };
        telemetry::filter(&text).unwrap_or_else(|error| {
            self.problems
                .push(format!("{name} must be log directives such as \"info\", not {text:?}: {error}"));
            telemetry::default_filter()
        })
    }

    fn span(&mut self, name: &str, default: Millis, (least, most): (Millis, Millis)) -> Millis {
        let Some(text) = self.optional(name) else { return default };
        match Millis::parse(&text) {
            Ok(span) if (least..=most).contains(&span) => span,
            Ok(_) => {
                self.problems.push(format!("{name} must be between {least} and {most}, not {text:?}"));
                default
            }
            Err(error) => {
                self.problems.push(format!("{name}: {error}"));
                default
            }
        }
    }

    fn number<N>(&mut self, name: &str, default: N, least: N, most: N) -> N
    where
        N: std::str::FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(text) = self.optional(name) else { return default };
        match text.parse::<N>() {
            Ok(number) if number >= least && number <= most => number,
            Ok(_) | Err(_) => {
                self.problems.push(format!("{name} must be a number from {least} to {most}, not {text:?}"));
                default
            }
        }
    }

    /// Whether a variable with two possible values, of which the first is the default, has the second one.
    fn is_second(&mut self, name: &str, values: [&str; 2]) -> bool {
        let [first, second] = values;
        match self.optional(name).as_deref() {
            Some(text) if text == second => true,
            Some(text) if text != first => {
                self.problems.push(format!("{name} must be {first} or {second}, not {text:?}"));
                false
            }
            _ => false,
        }
    }

    /// The queues of tasks: a list, or a pattern for all of them.
    fn queues(&mut self) -> (BTreeMap<QueueName, String>, Option<QueuePattern>) {
        let pattern = self.url_pattern();
        match (self.optional(QUEUES), pattern) {
            (None, Some(pattern)) => (BTreeMap::new(), Some(pattern)),
            (Some(text), Some(pattern)) if text == ANY => (BTreeMap::new(), Some(pattern)),
            (Some(text), None) if text == ANY => {
                self.problems.push(format!("{QUEUES} is {ANY}, and {QUEUE_URLS} is missing"));
                (BTreeMap::new(), None)
            }
            (Some(text), pattern) => (self.listed(&text, pattern.as_ref()), None),
            (None, None) => {
                self.problems.push(format!("{QUEUES} is missing"));
                (BTreeMap::new(), None)
            }
        }
    }

    fn listed(&mut self, text: &str, pattern: Option<&QueuePattern>) -> BTreeMap<QueueName, String> {
        let mut queues = BTreeMap::new();
        if text.split(',').all(|entry| entry.trim().is_empty()) {
            self.problems.push(format!("{QUEUES} names no queue: {text:?}"));
        }
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let named = |pattern: &QueuePattern| (QueueName::parse(entry), pattern.with(entry));
            let parsed = match entry.split_once('=') {
                Some((queue, url)) => Some((QueueName::parse(queue.trim()), url.trim().to_owned())),
                None => pattern.map(named),
            };
            match parsed {
                Some((Ok(queue), url)) if is_url(&url) => {
                    if queues.insert(queue, url).is_some() {
                        self.problems.push(format!("{QUEUES} has the queue of {entry:?} twice"));
                    }
                }
                Some((Err(error), _)) => {
                    self.problems.push(format!("{QUEUES}: a queue's name {error}: {entry:?}"));
                }
                Some((Ok(_), _)) | None => {
                    self.problems.push(format!("{QUEUES} must be a list of name=URL, not {entry:?}"));
                }
            }
        }
        queues
    }

    /// The pattern of the URLs of queues that are only named, or not even that: an infrastructure template can list
    /// names, but can't write each name beside its URL.
    fn url_pattern(&mut self) -> Option<QueuePattern> {
        let text = self.optional(QUEUE_URLS)?;
        QueuePattern::parse(&text).or_else(|| {
            self.problems.push(format!(
                "{QUEUE_URLS} must be a queue's URL with {} in place of its name, not {text:?}",
                pattern::NAME
            ));
            // Avoids one more problem for each of the names.
            QueuePattern::parse(&format!("http://{}", pattern::NAME))
        })
    }

    /// The queues without tasks: the timers queue, and the events queue if there is one. Neither may share its URL with
    /// another queue: a timer that a worker receives, or a hint that is taken for a timer, would end in the dead-letter
    /// queue.
    fn own_queues(
        &mut self,
        of_tasks: &BTreeMap<QueueName, String>,
        any: Option<&QueuePattern>,
    ) -> (String, Option<String>) {
        let timers = self.url(TIMERS);
        if timers.is_none() {
            self.problems.push(format!(
                "{TIMERS} is missing: the URL of the timers queue, without which deadlines are enforced only once \
                 a minute"
            ));
        }
        let events = self.unless_none(EVENTS).and_then(|_| self.url(EVENTS));
        for (name, url) in [(TIMERS, timers.as_ref()), (EVENTS, events.as_ref())] {
            let taken = |url: &String| of_tasks.iter().find(|(_, other)| is_same_url(other, url));
            if let Some((queue, _)) = url.and_then(taken) {
                self.problems.push(format!(
                    "{name} must be a queue of its own, not that of {queue} in TICKOVER_QUEUES"
                ));
            }
            if let Some((queue, _)) = url.zip(any).and_then(|(url, any)| any.queue(url)) {
                self.problems.push(format!(
                    "{name} must be a queue of its own, not that of {queue} by TICKOVER_QUEUE_URLS"
                ));
            }
        }
        if let (Some(one), Some(other)) = (&timers, &events)
            && is_same_url(one, other)
        {
            self.problems.push(format!("{EVENTS} must be a queue of its own, not that of {TIMERS}"));
        }
        (timers.unwrap_or_default(), events)
    }

    /// One queue's URL, if it is set. A value that isn't a URL is a problem, and counts as set.
    fn url(&mut self, name: &str) -> Option<String> {
        let url = self.optional(name)?;
        if !is_url(&url) {
            self.problems.push(format!("{name} must be a queue's URL, not {url:?}"));
        }
        Some(url)
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("http")
}

fn is_same_url(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Config::read(lookup)
    }

    #[test]
    fn a_full_environment_is_read() {
        let config = read(&[
            ("TICKOVER_TABLE", "tickover"),
            ("TICKOVER_QUEUES", "emails=http://q/1/emails, reports=http://q/1/reports"),
            ("TICKOVER_TIMERS", "http://q/1/timers"),
            ("TICKOVER_LEASE", "5m"),
            ("TICKOVER_DUE_SHARDS", "32"),
            ("TICKOVER_TRACE", "carry"),
            ("TICKOVER_METRICS", "all"),
            ("TICKOVER_LISTS", "all"),
        ])
        .unwrap();
        assert_eq!(config.queues.len(), 2);
        assert_eq!((config.timers.as_str(), config.events), ("http://q/1/timers", None));
        assert_eq!(config.limits.lease, Millis::from_secs(300));
        assert_eq!(config.limits.due_shards, 32);
        assert!(config.limits.carry_trace && !Limits::default().carry_trace);
        let default = read_own("http://q/1/timers", "none").unwrap();
        assert!(config.all_metrics && !default.all_metrics);
        assert_eq!((config.listed, default.listed), (Listed::All, Listed::Failed));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let error = read(&[
            ("TICKOVER_QUEUES", "emails, b d=http://q, c=ftp://x"),
            ("TICKOVER_LEASE", "1 fortnight"),
            ("TICKOVER_RETENTION", "2y"),
            ("TICKOVER_DUE_SHARDS", "0"),
            ("TICKOVER_LOG", "tickover=loud"),
            ("TICKOVER_TRACE", "on"),
            ("TICKOVER_LISTS", "All"),
        ])
        .unwrap_err();
        assert_eq!(error.problems.len(), 11, "{error}");
        assert!(error.to_string().contains("TICKOVER_TRACE must be off or carry, not \"on\""));
        assert!(error.to_string().contains("TICKOVER_LISTS must be failed or all, not \"All\""));
        assert!(error.to_string().contains("TICKOVER_TABLE is missing"));
        assert!(error.to_string().contains("1 fortnight"));
        assert!(error.to_string().contains("tickover=loud"));
    }

    #[test]
    fn directives_about_spans_are_refused_and_not_taken_for_targets() {
        let error = read(&[("TICKOVER_LOG", "info,tickover[turn]=debug")]).unwrap_err();
        assert!(error.to_string().contains("not spans and fields"), "{error}");
    }

    #[test]
    fn a_list_without_a_queue_is_a_problem() {
        let timers = ("TICKOVER_TIMERS", "http://q/1/timers");
        let error = read(&[("TICKOVER_TABLE", "t"), ("TICKOVER_QUEUES", " , "), timers]).unwrap_err();
        assert_eq!(error.problems, [r#"TICKOVER_QUEUES names no queue: ",""#]);
    }

    #[test]
    fn queues_without_a_url_get_it_from_the_pattern() {
        let of = |queues, pattern| {
            let timers = ("TICKOVER_TIMERS", "http://q/1/timers");
            read(&[
                ("TICKOVER_TABLE", "t"),
                ("TICKOVER_QUEUES", queues),
                ("TICKOVER_QUEUE_URLS", pattern),
                timers,
            ])
        };
        let urls = of("emails, reports, bills=http://q/2/b", "http://q/1/work-{name}").unwrap().queues;
        let urls: Vec<_> = urls.iter().map(|(name, url)| format!("{name} {url}")).collect();
        let expected =
            ["bills http://q/2/b", "emails http://q/1/work-emails", "reports http://q/1/work-reports"];
        assert_eq!(urls, expected);
        let problems = of("emails,a b", "http://q/1/work").unwrap_err().problems;
        assert_eq!(
            problems[0],
            "TICKOVER_QUEUE_URLS must be a queue's URL with {name} in place of its name, not \"http://q/1/work\""
        );
        assert!(problems[1].starts_with("TICKOVER_QUEUES: a queue's name "), "{problems:?}");
    }

    #[test]
    fn a_pattern_without_a_list_is_every_queue_of_that_form() {
        let of = |queues, pattern, timers| {
            let queues = ("TICKOVER_QUEUES", queues);
            let pattern = ("TICKOVER_QUEUE_URLS", pattern);
            read(&[("TICKOVER_TABLE", "t"), queues, pattern, ("TICKOVER_TIMERS", timers)])
        };
        let form = "http://q/1/shop-work-{name}";
        for list in ["*", "", " "] {
            let config = of(list, form, "http://q/1/shop-timers").unwrap();
            assert_eq!((config.queues.len(), config.queue_urls().len()), (0, 1));
            assert_eq!(config.any_queue, QueuePattern::parse(form));
        }
        assert_eq!(of("emails", form, "http://q/1/shop-timers").unwrap().any_queue, None);
        let problems = |queues, pattern, timers| of(queues, pattern, timers).unwrap_err().problems;
        assert_eq!(
            problems("*", "", "http://q/1/shop-timers"),
            ["TICKOVER_QUEUES is *, and TICKOVER_QUEUE_URLS is missing"]
        );
        assert_eq!(
            problems("*", form, "http://q/1/shop-work-timers"),
            ["TICKOVER_TIMERS must be a queue of its own, not that of timers by TICKOVER_QUEUE_URLS"]
        );
        assert_eq!(problems("", "http://q/1/work", "http://q/1/shop-timers").len(), 1);
    }

    fn read_own(timers: &str, events: &str) -> Result<Config, ConfigError> {
        let queues = "emails=http://q/1/emails,reports=http://q/1/reports";
        let [timers, events] = [("TICKOVER_TIMERS", timers), ("TICKOVER_EVENTS", events)];
        read(&[("TICKOVER_TABLE", "t"), ("TICKOVER_QUEUES", queues), timers, events])
    }

    #[test]
    fn our_own_queues_have_reserved_names_among_the_urls() {
        let urls = read_own("http://q/1/timers", "http://q/1/events").unwrap().queue_urls();
        assert_eq!(urls.len(), 4);
        assert_eq!(urls[&QueueName::timers()], "http://q/1/timers");
        assert_eq!(urls[&QueueName::events()], "http://q/1/events");
        for none in [" ", "none"] {
            assert_eq!(read_own("http://q/1/timers", none).unwrap().queue_urls().len(), 3);
        }
    }

    #[test]
    fn own_queues_may_not_share_a_url_and_all_problems_are_reported_at_once() {
        let problems = |timers, events| read_own(timers, events).unwrap_err().problems.join("\n");
        let missing = problems("", "");
        assert!(
            missing.starts_with("TICKOVER_TIMERS is missing") && missing.contains("deadline"),
            "{missing}"
        );
        assert_eq!(
            problems("http://q/1/emails/", "http://q/1/reports"),
            "TICKOVER_TIMERS must be a queue of its own, not that of emails in TICKOVER_QUEUES\n\
             TICKOVER_EVENTS must be a queue of its own, not that of reports in TICKOVER_QUEUES"
        );
        assert_eq!(
            problems("http://q/1/own", "http://q/1/own"),
            "TICKOVER_EVENTS must be a queue of its own, not that of TICKOVER_TIMERS"
        );
        assert_eq!(
            problems("timers", "events"),
            "TICKOVER_TIMERS must be a queue's URL, not \"timers\"\n\
             TICKOVER_EVENTS must be a queue's URL, not \"events\""
        );
    }

    #[test]
    fn colours_can_be_refused() {
        let read = |value: &'static str| {
            ProcessEnvironment::read(|name| (name == "NO_COLOR").then(|| value.to_owned())).no_color
        };
        assert!(read("1") && !read("") && !ProcessEnvironment::read(|_| None).no_color);
    }
}
