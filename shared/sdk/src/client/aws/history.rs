//! The last day of a deployment, from `CloudWatch`: the metrics that its functions write, and those of its queues in SQS.
//!
//! Each question is a search by the system's name, as in the dashboard of `infra/core.yaml`. A search finds a name also as a
//! part of another system's. So each series says of which function or queue it is, and those of others are left out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_service::history::{KEPT_FOR, SAMPLE_LENGTH, beginning};
use tickover_service::metric;
use tickover_wire::answer::{HistoryAnswer, HistoryPartView};

use super::json::Operation;
use super::{Aws, AwsError};

const GET_METRIC_DATA: Operation = Operation {
    service: "monitoring",
    version: "1.0",
    target: "GraniteServiceVersion20100801.GetMetricData",
    refused: |code, message| AwsError::Metrics { code, message },
};
/// Most searches of a question, by `CloudWatch`'s limit.
const SEARCHES_MAX: usize = 5;
/// Most pages of an answer that are read: each has up to 100,800 values, which are those of 350 series.
const PAGES_MAX: usize = 20;
/// What `CloudWatch` calls a series that it gives as far as it can; a partial one goes on in the next page.
const READ: [&str; 3] = ["Complete", "PartialData", ""];
/// The functions of a core, how the names of its workers' go on, and those of its queues of tasks.
const FUNCTIONS: [&str; 5] = ["schedule", "claim", "complete", "tick", "gateway"];
const WORKER: &str = "worker-";
const WORK: &str = "work-";
/// Parts that a system's name doesn't have after its first one, by the pattern in `infra/core.yaml`.
const RESERVED: [&str; 3] = ["dead", "work", "worker"];

/// What the values of a search are in a part of the day.
#[derive(Clone, Copy)]
enum Figure {
    /// A part with a tick has begun while the system ran.
    Ticks,
    Completed,
    Failed,
    Late,
    Waiting,
    Oldest,
    Running,
}

/// All searches: a metric, and what its values are. Their places are their ids in a question.
const SEARCHES: [(&str, Figure); 10] = [
    (metric::TICKS, Figure::Ticks),
    (metric::TASKS_ENDED, Figure::Completed),
    (metric::EXECUTIONS_ENDED, Figure::Completed),
    (metric::TASKS_ENDED, Figure::Failed),
    (metric::EXECUTIONS_ENDED, Figure::Failed),
    (metric::START_LATENESS, Figure::Late),
    (metric::TURN_LATENESS, Figure::Late),
    ("ApproximateNumberOfMessagesVisible", Figure::Waiting),
    ("ApproximateAgeOfOldestMessage", Figure::Oldest),
    ("ApproximateNumberOfMessagesNotVisible", Figure::Running),
];

impl Figure {
    /// Whether SQS has the metric, not the functions.
    const fn is_of_queues(self) -> bool {
        match self {
            Self::Ticks | Self::Completed | Self::Failed | Self::Late => false,
            Self::Waiting | Self::Oldest | Self::Running => true,
        }
    }

    /// The dimension that says of which function or queue a series is.
    const fn owner(self) -> &'static str {
        if self.is_of_queues() { "QueueName" } else { "function" }
    }

    const fn statistic(self) -> &'static str {
        match self {
            Self::Ticks | Self::Completed | Self::Failed => "Sum",
            Self::Late | Self::Waiting | Self::Oldest | Self::Running => "Maximum",
        }
    }

    /// The search for a metric of this system, or of one of its queues.
    fn search(self, metric: &str, stack: &str, queue: Option<&QueueName>) -> String {
        let ours = |labels: &str, terms: &str| {
            let queue = queue.map(|queue| format!(r#" queue="{queue}""#)).unwrap_or_default();
            (format!("{},function,{labels}", metric::NAMESPACE), format!("function={stack}{queue}{terms}"))
        };
        let (schema, terms) = match self {
            // They belong to no queue.
            Self::Ticks => {
                (format!("{},function,result", metric::NAMESPACE), format!(r#"function="{stack}-tick""#))
            }
            Self::Completed => ours("queue,outcome", r#" outcome="completed""#),
            Self::Failed => ours("queue,outcome", r#" outcome=("failed" OR "timed_out")"#),
            Self::Late => ours("queue", ""),
            Self::Waiting | Self::Oldest | Self::Running => {
                let one = |queue: &QueueName| {
                    let names = queues(stack, queue).map(|name| format!("{name:?}"));
                    format!("({})", names.join(" OR "))
                };
                (
                    "AWS/SQS,QueueName".to_owned(),
                    format!("QueueName={}", queue.map_or_else(|| stack.to_owned(), one)),
                )
            }
        };
        let (statistic, seconds) = (self.statistic(), SAMPLE_LENGTH.as_u64() / 1_000);
        format!(r#"SEARCH('{{{schema}}} {terms} MetricName="{metric}"', '{statistic}', {seconds})"#)
    }

    /// Whether a series is of this system. A name is of one system only, because none has a reserved part in its own.
    fn is_own(self, stack: &str, owner: &str) -> bool {
        let Some(rest) = owner.strip_prefix(stack).and_then(|rest| rest.strip_prefix('-')) else {
            return false;
        };
        if self.is_of_queues() {
            rest.starts_with(WORK)
        } else {
            FUNCTIONS.contains(&rest) || rest.starts_with(WORKER)
        }
    }

    fn add(self, part: &mut HistoryPartView, value: f64) {
        let millis = || whole(value * 1_000.0);
        match self {
            Self::Ticks => {}
            Self::Completed => part.completed += whole(value),
            Self::Failed => part.failed += whole(value),
            Self::Late => part.late_ms = part.late_ms.max(millis()),
            Self::Waiting => part.depth += whole(value),
            Self::Oldest => part.oldest_ms = part.oldest_ms.max(millis()),
            Self::Running => part.running += whole(value),
        }
    }
}

/// Whether a system can have this name, which becomes a part of searches.
fn is_possible(stack: &str) -> bool {
    stack.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
        && !stack.split('-').skip(1).any(|part| RESERVED.contains(&part))
}

/// The names of a queue in SQS: its own and those of its class queues.
fn queues(stack: &str, queue: &QueueName) -> [String; 3] {
    ["", "__low", "__high"].map(|class| format!("{stack}-{WORK}{queue}{class}"))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Question {
    start_time: i64,
    end_time: i64,
    scan_by: &'static str,
    metric_data_queries: Vec<Query>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Query {
    id: String,
    expression: String,
    label: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    metric_data_results: Vec<Series>,
    #[serde(default)]
    messages: Vec<Message>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Series {
    id: String,
    #[serde(default)]
    label: String,
    /// Seconds since 1970.
    #[serde(default)]
    timestamps: Vec<f64>,
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    status_code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    #[serde(default)]
    code: String,
    #[serde(default)]
    value: String,
}

impl Aws {
    /// What the queues of the deployment whose stack has this name did in the last day, or one of them, from `CloudWatch`. The
    /// caller's policy needs `cloudwatch:GetMetricData`, which has no resource. AWS bills $0.01 for 1,000 metrics that are
    /// read: about ten for each queue.
    ///
    /// # Errors
    ///
    /// [`AwsError::NoRegion`], [`AwsError::NoCredentials`], [`AwsError::Credentials`], [`AwsError::Metrics`] and
    /// [`AwsError::Unavailable`]; [`AwsError::NoStack`] if no system can have this name. One that doesn't exist has no metrics.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tickover::client::aws::AwsError> {
    /// let aws = tickover::client::aws::Aws::from_env().await?;
    /// for part in aws.history("tickover", None).await?.parts {
    ///     println!("{:?}: {} failed", part.at, part.failed);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn history(&self, stack: &str, queue: Option<&QueueName>) -> Result<HistoryAnswer, AwsError> {
        if !is_possible(stack) {
            let region = self.region().unwrap_or_default().to_owned();
            return Err(AwsError::NoStack { stack: stack.to_owned(), region });
        }
        let now = self.clock.now();
        let query = |(place, (metric, figure)): (usize, &(&str, Figure))| Query {
            id: format!("m{place}"),
            expression: figure.search(metric, stack, queue),
            label: format!("${{PROP('Dim.{}')}}", figure.owner()),
        };
        let mut queries: Vec<Query> = SEARCHES.iter().enumerate().map(query).collect();
        let mut day = Day::default();
        while !queries.is_empty() {
            let rest = queries.split_off(queries.len().min(SEARCHES_MAX));
            let mut question = Question {
                start_time: seconds(beginning(now.minus(KEPT_FOR))),
                end_time: seconds(now),
                scan_by: "TimestampAscending",
                metric_data_queries: std::mem::replace(&mut queries, rest),
                next_token: None,
            };
            for _ in 0..PAGES_MAX {
                let answer: Answer =
                    self.ask(&GET_METRIC_DATA, self.cloudwatch.as_deref(), &question).await?;
                question.next_token = answer.next_token;
                day.say(answer.messages);
                for series in answer.metric_data_results {
                    day.add(stack, series);
                }
                if question.next_token.is_none() {
                    break;
                }
            }
            if question.next_token.is_some() {
                day.said.insert("there is more than was read".to_owned());
            }
        }
        Ok(day.answer(stack))
    }
}

/// What was found so far.
#[derive(Default)]
struct Day {
    parts: BTreeMap<Timestamp, HistoryPartView>,
    /// What `CloudWatch` says about what it left out.
    said: BTreeSet<String>,
}

impl Day {
    fn say(&mut self, messages: Vec<Message>) {
        self.said.extend(messages.into_iter().map(|Message { code, value }| format!("{code}: {value}")));
    }

    fn add(&mut self, stack: &str, series: Series) {
        let place = series.id.strip_prefix('m').and_then(|place| place.parse::<usize>().ok());
        let Some((metric, figure)) = place.and_then(|place| SEARCHES.get(place)) else { return };
        if !READ.contains(&series.status_code.as_str()) {
            self.said.insert(format!("{metric}: {}", series.status_code));
        }
        if !figure.is_own(stack, &series.label) {
            return;
        }
        for (at, value) in series.timestamps.into_iter().zip(series.values) {
            let at = beginning(Timestamp::from_millis(signed(at * 1_000.0)));
            figure.add(self.parts.entry(at).or_insert_with(|| empty(at)), value);
        }
    }

    fn answer(self, stack: &str) -> HistoryAnswer {
        let mut note = format!(
            "From CloudWatch, which has the metrics of {stack} some minutes late. Gray: it has none."
        );
        if !self.said.is_empty() {
            note = format!(
                "{note} This is not all. CloudWatch says: {}.",
                self.said.into_iter().collect::<Vec<_>>().join("; ")
            );
        }
        HistoryAnswer {
            every: SAMPLE_LENGTH.into(),
            parts: self.parts.into_values().collect(),
            note: Some(note),
        }
    }
}

fn empty(at: Timestamp) -> HistoryPartView {
    HistoryPartView { at: at.into(), completed: 0, failed: 0, late_ms: 0, depth: 0, oldest_ms: 0, running: 0 }
}

fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and milliseconds are small, and a conversion of floats saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "instants of this century; a conversion of floats saturates"
)]
fn signed(value: f64) -> i64 {
    value.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_and_no_queue_is_of_two_systems() {
        let named = [
            "prod",
            "prod-again",
            "prod-tick",
            "prod-workers",
            "prod-worker",
            "prod-worker-mail",
            "prod-work",
            "prod-dead",
        ];
        let systems: Vec<&str> = named.into_iter().filter(|name| is_possible(name)).collect();
        assert_eq!(systems, named[..4]);
        let queues = ["mail", "tick", "worker-mail", "work-tick", "dead-work-mail", "again-tick"];
        for system in &systems {
            let functions = FUNCTIONS.map(str::to_owned).into_iter();
            let functions = functions.chain(queues.map(|queue| format!("worker-{queue}")));
            let all = functions.map(|name| (Figure::Failed, name));
            let all = all.chain(queues.map(|queue| (Figure::Waiting, format!("work-{queue}"))));
            for (figure, name) in all {
                let name = format!("{system}-{name}");
                let owners: Vec<_> = systems.iter().filter(|system| figure.is_own(system, &name)).collect();
                assert_eq!(owners, [system], "{name}");
            }
        }
        for other in ["prod-dead-work-mail", "prod-ingress", "prod-events", "production-tick", "tick"] {
            assert!(!Figure::Waiting.is_own("prod", other) && !Figure::Late.is_own("prod", other), "{other}");
        }
    }
}
