//! The environment of a worker's or a local system's process.

use tickover_core::by::Caller;

use super::{CALLBACK_URL, NONE, QUEUES, Reader, TABLE, TIMERS, TRACE};

/// Who makes a call of which only the machine is known.
pub const LOCAL: &str = "local";

/// Where a worker's process runs, and the settings of a local system: all of it is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is its own variable")]
pub struct ProcessEnvironment {
    /// Whether `AWS_LAMBDA_RUNTIME_API` is set, which Lambda does.
    pub in_lambda: bool,
    /// `AWS_LAMBDA_FUNCTION_NAME`: the function, inside Lambda.
    pub function: Option<String>,
    /// `USER`, or on other systems `LOGNAME` or `USERNAME`: whose process it is.
    pub user: Option<String>,
    /// Whether `TICKOVER_TABLE`, `TICKOVER_QUEUES` or `TICKOVER_TIMERS` is set: then a [`Config`](super::Config) must be read, and
    /// nothing is local. If only one of them decided, a deployment that lacks that one would start a local system.
    pub on_aws: bool,
    /// `TICKOVER_SYSTEM`: the system on AWS for which a worker outside of Lambda works, whose table and queues it finds by
    /// this name instead of by those variables.
    pub system: Option<String>,
    /// `TICKOVER_DATA`: the file for the data of a local system; without it, the data are in memory.
    pub data: Option<String>,
    /// `TICKOVER_LISTEN`: the address on which a local system listens, such as `127.0.0.1:7070`.
    pub listen: Option<String>,
    /// `TICKOVER_ALLOW_HOST`: names and addresses, separated by commas, that callers may use for a local system beside
    /// `localhost` and the loopback addresses.
    pub allow_hosts: Vec<String>,
    /// `TICKOVER_CALLBACK_URL`: the address of a local system for whoever gets a callback; without it, its own.
    pub callback_url: Option<String>,
    /// `TICKOVER_LOG`: which log lines are written, not parsed.
    pub log: Option<String>,
    /// Whether `TICKOVER_TRACE` is `carry`: then a local system carries traces as well.
    pub carry_trace: bool,
    /// Whether `NO_COLOR` is set: then log lines have no colours on a terminal.
    pub no_color: bool,
    /// `TICKOVER_ENDPOINT`: the address of the system for a client, and for a worker that is no system of its own, such as
    /// `https://tasks.example.com`.
    pub endpoint: Option<String>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    /// The value, unless it says that there is none.
    pub(super) fn unless_none(&self, name: &str) -> Option<String> {
        self.optional(name).filter(|value| value != NONE)
    }
}

impl ProcessEnvironment {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn from_env() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads any environment. An empty value counts as not set.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let reader = Reader { lookup, problems: vec![] };
        Self {
            in_lambda: reader.optional("AWS_LAMBDA_RUNTIME_API").is_some(),
            function: reader.optional("AWS_LAMBDA_FUNCTION_NAME"),
            user: ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| reader.optional(name)),
            on_aws: [TABLE, QUEUES, TIMERS].into_iter().any(|name| reader.optional(name).is_some()),
            system: reader.optional("TICKOVER_SYSTEM"),
            data: reader.optional("TICKOVER_DATA"),
            listen: reader.optional("TICKOVER_LISTEN"),
            allow_hosts: reader.optional("TICKOVER_ALLOW_HOST").map_or(vec![], |hosts| listed(&hosts)),
            callback_url: reader.unless_none(CALLBACK_URL),
            log: reader.optional("TICKOVER_LOG"),
            carry_trace: reader.optional(TRACE).is_some_and(|mode| mode == "carry"),
            no_color: reader.optional("NO_COLOR").is_some(),
            endpoint: reader.optional("TICKOVER_ENDPOINT"),
        }
    }

    /// The address of the system that a worker works for, unless its own listens somewhere or has a file.
    pub fn worker_of(&self) -> Option<&str> {
        let is_a_system = self.listen.is_some() || self.data.is_some();
        self.endpoint.as_deref().filter(|_| !is_a_system)
    }

    /// Who makes the calls of a client in this process: the function, or the user of the operating system.
    pub fn caller(&self) -> Caller {
        match (&self.function, &self.user) {
            (Some(function), _) => Caller::new(&format!("function/{function}")),
            (None, Some(user)) => Caller::new(&format!("user/{user}")),
            (None, None) => Caller::new(LOCAL),
        }
    }
}

fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}
