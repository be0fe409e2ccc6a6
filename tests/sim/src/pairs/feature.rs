//! The features of the product that may meet, and which of them can.

macro_rules! features {
    ($($feature:ident, $name:literal;)+) => {
        /// What a record can have in its life.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Feature {
            $(
                #[doc = $name]
                $feature,
            )+
        }

        impl Feature {
            /// All of them, in the order of the matrix.
            pub const ALL: &[Self] = &[$(Self::$feature),+];

            /// Its name in the matrix.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$feature => $name),+ }
            }
        }
    };
}

features! {
    Retry, "a retry";
    Deadline, "a deadline";
    StartTimeout, "a timeout before the start";
    AttemptTimeout, "a timeout of each attempt";
    HeartbeatTimeout, "a heartbeat timeout";
    TimedOut, "an end by a timeout";
    Delay, "a delay";
    Gate, "concurrency of a key";
    Gates, "concurrency of more than one key";
    Line, "a wait in a line";
    RunsInLine, "a run in a line";
    Rate, "a rate";
    PutOff, "a start that is put off";
    Ranked, "a priority";
    Fairness, "a fairness key";
    Remote, "a remote step";
    Join, "a fan-out that is joined";
    Lost, "a lost worker";
    Cancelled, "a cancellation";
    Terminated, "a termination";
    OperatorRetry, "an operator's retry";
    RemoteRetry, "an operator's retry of a remote step";
    ChangedInput, "such a retry with another input";
    QueuePause, "a pause of the queue";
    Blob, "a large payload";
    Sleep, "a sleep";
    Wait, "a wait for an event";
    Event, "an event";
    EventId, "an event with an id";
    FirstEvent, "an event with its start";
    Answered, "an answer to an event";
    Published, "published values";
    Callback, "a callback";
    Reported, "a report with a token";
    TimedAttempt, "a step with a window";
    Sealed, "a long journal";
    Kept, "a run in memory";
    Abandoned, "a child that goes on";
    AskedToStop, "a child that is asked to stop";
    EndedChild, "a child that is terminated";
    IsChild, "a parent";
    NextRun, "continue as new";
    RunRetry, "a retry of a run";
    OnFailure, "code after a failure";
    OnCancel, "code after a cancellation";
    Undo, "undo steps";
    Paused, "a pause";
    Restart, "a restart";
    Rerun, "a rerun";
    RerunFrom, "a rerun from a step";
    OtherInput, "a rerun with another input";
    Reason, "an operator's reason";
    RetryStep, "a retry of a step";
    RemoteAgain, "a retry of a step that is remote";
    Deployment, "a deployment";
    Drift, "code that doesn't fit the journal";
    Unique, "a unique key";
    Debounce, "a burst";
    Batch, "a claim together";
    Bulk, "an operation on many";
    BulkAgain, "an operation that goes on";
    CronRun, "a run of a cron";
}

impl Feature {
    /// Whether few runs have it.
    const fn is_rare(self) -> bool {
        matches!(
            self,
            Self::Line
                | Self::RunsInLine
                | Self::PutOff
                | Self::QueuePause
                | Self::IsChild
                | Self::AskedToStop
                | Self::EndedChild
                | Self::Abandoned
                | Self::NextRun
                | Self::RunRetry
                | Self::OnFailure
                | Self::OnCancel
                | Self::Undo
                | Self::Restart
                | Self::Rerun
                | Self::RerunFrom
                | Self::OtherInput
                | Self::RetryStep
                | Self::RemoteRetry
                | Self::ChangedInput
                | Self::RemoteAgain
                | Self::Deployment
                | Self::Drift
                | Self::Cancelled
                | Self::Terminated
                | Self::Unique
                | Self::Debounce
                | Self::Batch
                | Self::Bulk
                | Self::BulkAgain
                | Self::CronRun
        )
    }

    /// Whether the two may not meet within a thousand runs: both are rare, or it is a retry of a task that has ended after it
    /// was put aside in a pause, which few tasks do; or an operation that stops between two pages while an execution waits or
    /// is paused, or that says why; or an operator who acts on a child and says why; or a report with a token in a pause; or a
    /// retry with another input of a step of an execution that has waited, was paused, or was acted on by an operator who said
    /// why; or a retry of a step in an execution that has answered an event or whose callback was reported.
    pub fn rarely_meets(self, other: Self) -> bool {
        let are = |one, another| [(self, other), (other, self)].contains(&(one, another));
        (self.is_rare() && other.is_rare())
            || are(Self::OperatorRetry, Self::QueuePause)
            || are(Self::BulkAgain, Self::Wait)
            || are(Self::IsChild, Self::Reason)
            || are(Self::QueuePause, Self::Reported)
            || are(Self::BulkAgain, Self::Paused)
            || are(Self::BulkAgain, Self::Reason)
            || are(Self::ChangedInput, Self::Wait)
            || are(Self::ChangedInput, Self::Answered)
            || are(Self::ChangedInput, Self::Paused)
            || are(Self::ChangedInput, Self::Reason)
            || are(Self::RemoteRetry, Self::Answered)
            || are(Self::RemoteAgain, Self::Answered)
            || are(Self::RetryStep, Self::Reported)
            || are(Self::RemoteAgain, Self::Reported)
    }

    /// Whether only a task that is nobody's step has it.
    const fn is_of_tasks(self) -> bool {
        matches!(
            self,
            Self::Retry
                | Self::Deadline
                | Self::StartTimeout
                | Self::AttemptTimeout
                | Self::HeartbeatTimeout
                | Self::TimedOut
                | Self::Delay
                | Self::Gate
                | Self::Gates
                | Self::Line
                | Self::RunsInLine
                | Self::Rate
                | Self::PutOff
                | Self::Ranked
                | Self::Fairness
                | Self::Lost
                | Self::Cancelled
                | Self::Terminated
                | Self::OperatorRetry
                | Self::Blob
                | Self::Unique
                | Self::Debounce
                | Self::Batch
                | Self::Bulk
                | Self::BulkAgain
        )
    }

    /// Whether the simulation never lets these two meet: its operator retries only tasks that clients have scheduled, and
    /// calls only executions that clients have started (an operation on many finds others); and a child starts at once, and
    /// has no children.
    pub const fn never_meets(self, other: Self) -> bool {
        match (self, other) {
            // It doesn't retry from a paused queue, but somebody may pause that at the same time.
            (Self::OperatorRetry, Self::QueuePause) | (Self::QueuePause, Self::OperatorRetry) => false,
            (Self::OperatorRetry, other) | (other, Self::OperatorRetry) => !other.is_of_tasks(),
            (Self::IsChild, other) | (other, Self::IsChild) => matches!(
                other,
                Self::Delay
                    | Self::Unique
                    | Self::Debounce
                    | Self::Abandoned
                    | Self::AskedToStop
                    | Self::EndedChild
                    | Self::Paused
                    | Self::CronRun
                    | Self::FirstEvent
            ),
            // A request asks for one of them; a run of a cron has an id and no key; and clients send no event with the start of an
            // execution that has a key, and a cron has none.
            (Self::Unique | Self::Debounce, Self::CronRun | Self::FirstEvent)
            | (Self::CronRun | Self::FirstEvent, Self::Unique | Self::Debounce)
            | (Self::Unique, Self::Debounce)
            | (Self::Debounce, Self::Unique)
            | (Self::FirstEvent, Self::CronRun)
            | (Self::CronRun, Self::FirstEvent) => true,
            _ => false,
        }
    }
}
