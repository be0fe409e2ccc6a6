//! The options of attributes. Every text is checked by the rules of the core, so what compiles here is accepted at run
//! time.

use proc_macro2::TokenStream;
use syn::{Error, Ident, LitStr, Path, Result};
use tickover_core::batch::Batch;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskKind};
use tickover_core::limits::SPAN_MAX;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::OnTimeout;

use crate::attribute::{Attribute, Entry};
use crate::flow::Flow;

const STEP_KEYS: &[&str] = &[
    "retry",
    "non_retryable",
    "timeout",
    "scope",
    "attempt_timeout",
    "heartbeat",
    "schedule_to_start",
    "on_timeout",
    "remote",
    "queue",
    "at_most_once",
    "concurrency",
    "rate",
    "priority",
    "fairness_key",
    "requires",
    "batch",
];

const WORKFLOW_KEYS: &[&str] = &[
    "timeout",
    "run_timeout",
    "retry",
    "non_retryable",
    "queue",
    "on_failure",
    "on_failure_timeout",
    "on_cancel",
    "on_cancel_timeout",
    "patches",
    "on_drift",
    "concurrency",
    "rate",
    "priority",
    "fairness_key",
];

const RETRY_FORMS: &str = "none, fixed(retries, delay), exponential(retries, base) or \
                           exponential(retries, base, max_delay)";

/// The shortest timeout of an execution, a run, `on_failure` or `on_cancel`.
const WORKFLOW_TIMEOUT_MIN: Millis = Millis::from_secs(1);

/// The options of a step's attribute.
#[derive(Default)]
pub(crate) struct StepOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) is_per_attempt: bool,
    pub(crate) attempt_timeout: Option<Millis>,
    pub(crate) heartbeat: Option<Millis>,
    pub(crate) schedule_to_start: Option<Millis>,
    pub(crate) on_timeout: OnTimeout,
    pub(crate) place: Place,
    pub(crate) at_most_once: bool,
    pub(crate) flow: Flow,
    pub(crate) batch: Option<Batch>,
}

/// Where a step runs.
#[derive(Default)]
pub(crate) enum Place {
    /// In the workflow's worker.
    #[default]
    Inline,
    /// On any worker of the workflow's queue.
    Anywhere,
    /// On any worker of this queue.
    Queue(LitStr),
}

/// The options of a workflow's attribute.
#[derive(Default)]
pub(crate) struct WorkflowOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) run_timeout: Option<Millis>,
    pub(crate) retry: Option<LitStr>,
    pub(crate) non_retryable: Vec<LitStr>,
    pub(crate) queue: Option<LitStr>,
    pub(crate) on_failure: Option<Path>,
    pub(crate) on_failure_timeout: Option<Millis>,
    pub(crate) on_cancel: Option<Path>,
    pub(crate) on_cancel_timeout: Option<Millis>,
    pub(crate) patches: Vec<LitStr>,
    pub(crate) goes_on_after_drift: bool,
    pub(crate) flow: Flow,
}

impl StepOptions {
    pub(crate) fn read(arguments: TokenStream) -> Result<Self> {
        let attribute = Attribute::read(arguments, STEP_KEYS)?;
        let mut options = Self { name: attribute.name, ..Self::default() };
        check_name(options.name.as_ref())?;
        let mut non_retryable = None;
        for entry in &attribute.entries {
            match entry.key.to_string().as_str() {
                "retry" => options.retry = Some(retry(entry)?),
                "non_retryable" => non_retryable = Some((&entry.key, entry.list("Declined")?)),
                "timeout" => options.timeout = Some(duration(entry)?),
                "scope" => options.is_per_attempt = is_per_attempt(entry)?,
                "attempt_timeout" => options.attempt_timeout = Some(duration(entry)?),
                "heartbeat" => options.heartbeat = Some(duration(entry)?),
                "schedule_to_start" => options.schedule_to_start = Some(duration(entry)?),
                "on_timeout" => options.on_timeout = on_timeout(entry)?,
                "remote" => {
                    entry.flag()?;
                    // A queue has precedence, before or after this key.
                    if matches!(options.place, Place::Inline) {
                        options.place = Place::Anywhere;
                    }
                }
                "queue" => options.place = Place::Queue(queue(entry)?),
                "at_most_once" => options.at_most_once = entry.flag()?,
                "batch" => options.batch = Some(crate::flow::batch(entry)?),
                _ if options.flow.read(entry)? => {}
                _ => return Err(unhandled(&entry.key)),
            }
        }
        if let Some((key, codes)) = non_retryable {
            let retry = options.retry.get_or_insert_with(RetryPolicy::none);
            retry.non_retryable = codes.iter().map(LitStr::value).collect();
            retry.check().map_err(|error| Error::new(key.span(), error))?;
        }
        options.check_pairs(&attribute.entries)?;
        if let (Place::Inline, Some(key)) = (&options.place, options.flow.first()) {
            let message = format!(
                "`{key}` orders or limits the starts of tasks, and an inline step starts with its turn: add `remote`"
            );
            return Err(Error::new(key.span(), message));
        }
        let waits = attribute.entries.iter().find(|entry| entry.key == "schedule_to_start");
        if let (Place::Inline, Some(entry)) = (&options.place, waits) {
            let message = "`schedule_to_start` limits how long a task waits for a worker, and an inline step starts with \
                           its turn: add `remote`";
            return Err(Error::new(entry.key.span(), message));
        }
        let batch = attribute.entries.iter().find(|entry| entry.key == "batch");
        if let (Place::Inline, Some(entry)) = (&options.place, batch) {
            let message = "`batch` is for tasks, which a worker takes together; an inline step runs in its turn: add \
                           `remote`";
            return Err(Error::new(entry.key.span(), message));
        }
        Ok(options)
    }

    fn has_attempt_timeouts(&self) -> bool {
        self.attempt_timeout.or(self.heartbeat).or(self.schedule_to_start).is_some()
    }

    /// Refuses a key that needs another key, or contradicts one.
    fn check_pairs(&self, entries: &[Entry]) -> Result<()> {
        let is_final = self.is_per_attempt && self.timeout.is_some();
        for Entry { key, .. } in entries {
            let problem = match key.to_string().as_str() {
                "scope" if self.timeout.is_none() => {
                    "`scope` says nothing without a timeout: add `timeout = \"5m\"`"
                }
                "attempt_timeout" if is_final => {
                    "`attempt_timeout` and a timeout with the scope `per_attempt` limit the same: give only one of them"
                }
                "on_timeout" if is_final && self.on_timeout != OnTimeout::Terminal => {
                    "a timeout with the scope `per_attempt` is always final; for one that is retried write \
                     `attempt_timeout` in place of `timeout` and `scope`"
                }
                "on_timeout" if !is_final && !self.has_attempt_timeouts() => {
                    "`on_timeout` is about the timeouts of an attempt: add `attempt_timeout = \"30s\"`, \
                     `heartbeat = \"30s\"` or `schedule_to_start = \"30s\"`"
                }
                _ => continue,
            };
            return Err(Error::new(key.span(), problem));
        }
        Ok(())
    }
}

impl WorkflowOptions {
    pub(crate) fn read(arguments: TokenStream) -> Result<Self> {
        let attribute = Attribute::read(arguments, WORKFLOW_KEYS)?;
        let mut options = Self { name: attribute.name, ..Self::default() };
        check_name(options.name.as_ref())?;
        let (mut policy, mut excluded) = (RetryPolicy::none(), None);
        for entry in &attribute.entries {
            match entry.key.to_string().as_str() {
                "timeout" => options.timeout = Some(workflow_timeout(entry, "execution")?),
                "run_timeout" => options.run_timeout = Some(workflow_timeout(entry, "run")?),
                "retry" => {
                    policy = retry(entry)?;
                    options.retry = Some(entry.text("exponential(3, 2s)")?.clone());
                }
                "non_retryable" => {
                    excluded = Some(&entry.key);
                    options.non_retryable = entry.list("Declined")?.to_vec();
                }
                "queue" => options.queue = Some(queue(entry)?),
                "on_failure" => options.on_failure = Some(entry.path()?.clone()),
                "on_failure_timeout" => {
                    options.on_failure_timeout = Some(workflow_timeout(entry, "on_failure")?);
                }
                "on_cancel" => options.on_cancel = Some(entry.path()?.clone()),
                "on_cancel_timeout" => {
                    options.on_cancel_timeout = Some(workflow_timeout(entry, "on_cancel")?);
                }
                "patches" => options.patches = patches(entry)?,
                "on_drift" => options.goes_on_after_drift = goes_on_after_drift(entry)?,
                _ if options.flow.read(entry)? => {}
                _ => return Err(unhandled(&entry.key)),
            }
        }
        if let Some(key) = excluded {
            if options.retry.is_none() {
                let message = "`non_retryable` needs a policy: add `retry = \"exponential(3, 2s)\"`";
                return Err(Error::new(key.span(), message));
            }
            policy.non_retryable = options.non_retryable.iter().map(LitStr::value).collect();
            policy.check().map_err(|error| Error::new(key.span(), error))?;
        }
        for (handler, given) in [("on_failure", &options.on_failure), ("on_cancel", &options.on_cancel)] {
            let limit = format!("{handler}_timeout");
            let unlimited = attribute.entries.iter().find(|entry| entry.key == limit);
            if let (Some(entry), None) = (unlimited, given) {
                let message = format!("`{limit}` needs something to limit: `{handler} = refund`");
                return Err(Error::new(entry.key.span(), message));
            }
        }
        Ok(options)
    }
}

/// The error for a key that is in the list of known keys, but isn't read here.
fn unhandled(key: &Ident) -> Error {
    Error::new(key.span(), format!("`{key}` has no meaning yet"))
}

fn check_name(name: Option<&LitStr>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    TaskKind::parse(name.value())
        .map(|_| ())
        .map_err(|error| Error::new(name.span(), format!("a name {error}")))
}

fn queue(entry: &Entry) -> Result<LitStr> {
    let text = entry.text("orders")?;
    QueueName::parse(text.value())
        .map_err(|error| Error::new(text.span(), format!("a queue's name {error}")))?;
    Ok(text.clone())
}

fn duration(entry: &Entry) -> Result<Millis> {
    let text = entry.text("5m")?;
    let duration =
        Millis::parse(&text.value()).map_err(|error| Error::new(text.span(), error.to_string()))?;
    if duration > SPAN_MAX {
        let message = format!("`{}` can be at most {SPAN_MAX}, not {duration}", entry.key);
        return Err(Error::new(text.span(), message));
    }
    Ok(duration)
}

fn workflow_timeout(entry: &Entry, which: &str) -> Result<Millis> {
    let timeout = duration(entry)?;
    if timeout < WORKFLOW_TIMEOUT_MIN {
        let span = entry.text("5m")?.span();
        let message = format!("the {which} timeout must be at least {WORKFLOW_TIMEOUT_MIN}, not {timeout}");
        return Err(Error::new(span, message));
    }
    Ok(timeout)
}

fn retry(entry: &Entry) -> Result<RetryPolicy> {
    let text = entry.text("exponential(3, 2s)")?;
    RetryPolicy::parse(&text.value()).map_err(|error| {
        // If the whole text is wrong, the list of policies says enough.
        let problem = if error.found == text.value() {
            String::new()
        } else {
            format!(": expected {}, found `{}`", error.expected, error.found)
        };
        let message =
            format!("`{}` is not a retry policy{problem}; the policies are {RETRY_FORMS}", text.value());
        Error::new(text.span(), message)
    })
}

fn is_per_attempt(entry: &Entry) -> Result<bool> {
    let text = entry.text("per_attempt")?;
    match text.value().as_str() {
        "global" => Ok(false),
        "per_attempt" => Ok(true),
        other => {
            let message = format!(
                "`{other}` is not a scope: it is `global` (one timeout for all attempts) or `per_attempt`"
            );
            Err(Error::new(text.span(), message))
        }
    }
}

fn goes_on_after_drift(entry: &Entry) -> Result<bool> {
    let text = entry.text("go_on")?;
    match text.value().as_str() {
        "go_on" => Ok(true),
        "stop" => Ok(false),
        other => {
            let message = format!(
                "`{other}` is not an option for drift: it is `stop` (wait for an operator) or `go_on`"
            );
            Err(Error::new(text.span(), message))
        }
    }
}

fn on_timeout(entry: &Entry) -> Result<OnTimeout> {
    let text = entry.text("terminal")?;
    match text.value().as_str() {
        "retry" => Ok(OnTimeout::Retry),
        "terminal" => Ok(OnTimeout::Terminal),
        "cancel" => Ok(OnTimeout::Cancel),
        other => {
            let message = format!(
                "`{other}` cannot follow a timeout: it is `retry` (another attempt while any are left), `terminal` (the \
                 step has timed out) or `cancel` (it ends as cancelled)"
            );
            Err(Error::new(text.span(), message))
        }
    }
}

fn patches(entry: &Entry) -> Result<Vec<LitStr>> {
    let patches = entry.list("new-tax")?;
    for (index, patch) in patches.iter().enumerate() {
        check_name(Some(patch))?;
        if patches[..index].iter().any(|earlier| earlier.value() == patch.value()) {
            let message = format!("the patch `{}` is declared twice", patch.value());
            return Err(Error::new(patch.span(), message));
        }
    }
    Ok(patches.to_vec())
}
