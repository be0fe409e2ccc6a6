//! The story of a random program: what people and other systems do while it runs, and what is there at its end.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use tickover::client::wire::request::CallbackResult;
use tickover::client::{Action, ClientError, ExecutionStatus, Handle, Rerun};
use tickover::test::{BEGINNING, TestEnv};
use tickover_core::id::{FlowKey, QueueName};

use super::LATER_AT_MOST_MS;
use super::code::{LAST, Outside, Part, begin_anew, far, far_and_flaky, mend, outside, program, sleeper};
use super::plan::{Deed, Ending, Piece, Plan, Policy, Repair};

/// Seconds between two looks of the outside world.
const LOOK_S: u64 = 20;
/// The most looks: six hours.
const LOOKS_MAX: u64 = 6 * 3_600 / LOOK_S;
/// Minutes between two events.
const EVENT_EACH_MIN: u64 = 4;
/// Minutes of a pause.
const PAUSE_MIN: u64 = 5;
/// Long enough for all children to have ended.
const AFTERWARDS: &str = "2h";

/// What there is after a story.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// By execution: its status, its result and the number of its run.
    pub(crate) outcomes: BTreeMap<String, (String, String, u32)>,
    pub(crate) outside: Outside,
    pub(crate) ended_after_ms: u64,
    /// What should have ended, or given up its place.
    pub(crate) left_open: Vec<String>,
    /// Events of which a repetition counted.
    pub(crate) counted_twice: Vec<String>,
    /// By child that was only started: its status an instant after its parent's end.
    pub(crate) left: BTreeMap<String, String>,
}

/// Tells it in a system whose process dies after this write; 0 for no death. Returns the number of writes as well.
pub(crate) async fn tell(plan: &Plan, death: u64) -> (Told, u64) {
    begin_anew();
    let env = TestEnv::new().workflow((program, sleeper)).step::<far>().step::<far_and_flaky>();
    env.kill_after_write(death);
    let told =
        Teller { env: &env, plan, counted_twice: vec![], asked: BTreeSet::new(), repaired: BTreeSet::new() }
            .tell()
            .boxed_local()
            .await;
    (told, env.writes())
}

struct Teller<'a> {
    env: &'a TestEnv,
    plan: &'a Plan,
    counted_twice: Vec<String>,
    /// The executions whose repair was asked for, and those that were repaired.
    asked: BTreeSet<String>,
    repaired: BTreeSet<String>,
}

impl Teller<'_> {
    fn runs(&self) -> Vec<Handle<u64>> {
        (0..self.plan.count).map(|nth| self.env.client().handle(format!("p{nth}")).unwrap()).collect()
    }

    async fn tell(mut self) -> Told {
        for nth in 0..self.plan.count {
            let of = format!("p{nth}");
            let Plan { pieces, ending, .. } = self.plan.clone();
            let part = Part { of: of.clone(), pieces, from: 0, sum: 0, ending };
            let start = self.env.client().start(&program, part).id(of);
            let start = if self.plan.alone { start.concurrency("customer", 1) } else { start };
            start.await.unwrap();
        }
        let mut ended_after_ms = 0;
        for look in 0..LOOKS_MAX {
            self.env.advance(format!("{LOOK_S}s")).await.unwrap();
            self.answer_callbacks().await;
            let minutes = (look * LOOK_S).is_multiple_of(60).then_some(look * LOOK_S / 60);
            if let Some(minute) = minutes {
                self.send_events(minute).await;
                self.operate(minute).await;
            }
            // What an operator has paused is resumed in any case.
            let last_deed = self.plan.deed.map_or(0, |(at, _)| at + PAUSE_MIN);
            let is_over = look * LOOK_S >= last_deed * 60 && self.is_over().await;
            if is_over && self.repair().await {
                continue;
            }
            if is_over {
                ended_after_ms = self.env.now().since(BEGINNING).as_u64();
                break;
            }
        }
        self.conclude(ended_after_ms).await
    }

    async fn answer_callbacks(&self) {
        for token in outside().tokens {
            let result = CallbackResult { output: serde_json::from_str("5").ok() };
            // A wait that has ended refuses it.
            drop(self.env.client().api().complete_callback(&token, &result).await);
        }
    }

    /// Each event is sent twice, with one id.
    async fn send_events(&mut self, minute: u64) {
        for run in self.runs() {
            for (nth, name) in events(&self.plan.pieces).into_iter().enumerate() {
                if minute != EVENT_EACH_MIN * (nth as u64 + 1) {
                    continue;
                }
                let id = format!("id-{name}");
                if run.send_event(&name, 3_u64).id(&id).await.is_ok() {
                    let again = run.send_event(&name, 3_u64).id(&id).await.unwrap();
                    if again.duplicate != Some(true) {
                        self.counted_twice.push(name);
                    }
                }
            }
        }
    }

    async fn operate(&self, minute: u64) {
        let Some((at, deed)) = self.plan.deed else { return };
        let (begins, ends) = (minute == at, minute == at + PAUSE_MIN);
        let queue = &QueueName::parse(program().options().queue).unwrap();
        match deed {
            Deed::PauseQueue if begins => drop(self.env.client().api().pause_queue(queue).await.unwrap()),
            Deed::PauseQueue if ends => drop(self.env.client().api().resume_queue(queue).await.unwrap()),
            _ => {
                for run in self.runs() {
                    // What has ended refuses it.
                    match deed {
                        Deed::Pause if begins => drop(run.pause().await),
                        Deed::Pause if ends => drop(run.resume().await),
                        Deed::Cancel if begins => drop(run.cancel().await),
                        _ => {}
                    }
                }
            }
        }
    }

    async fn is_over(&self) -> bool {
        for run in self.runs() {
            if run.describe().await.unwrap().ended_at.is_none() {
                return false;
            }
        }
        true
    }

    /// Mends what is broken, and repairs the executions that have failed of it. Returns whether there were any.
    async fn repair(&mut self) -> bool {
        let Ending::Mended(repair) = self.plan.ending else { return false };
        mend();
        let mut any = false;
        for run in self.runs() {
            let id = run.id().to_string();
            let has_failed = run.describe().await.unwrap().status == ExecutionStatus::Failed;
            let is_repeated = self.asked.contains(&id);
            if self.repaired.contains(&id) || !(has_failed || is_repeated) {
                continue;
            }
            any = true;
            self.asked.insert(id.clone());
            let answer = match repair {
                Repair::Rerun => run.rerun(Rerun::Failed).await.map(drop),
                Repair::RetryStep => run.retry_step(LAST).await.map(drop),
                Repair::Restart => run.restart().await.map(drop),
                Repair::BulkRetry => self.retry_in_bulk(&id).await,
            };
            // A call without an answer is repeated, and may find that it was carried out.
            let was_done = |error: &ClientError| match error.code() {
                Some("not_terminal") => is_repeated,
                // What was undone can't be kept.
                Some("invalid_request") => true,
                _ => false,
            };
            if answer.as_ref().err().is_none_or(was_done) {
                if repair == Repair::Restart {
                    self.send_again(&run).await;
                }
                self.repaired.insert(id);
            }
        }
        any
    }

    /// A restart is new work: it waits for new events.
    async fn send_again(&self, run: &Handle<u64>) {
        for name in events(&self.plan.pieces) {
            run.send_event(&name, 3_u64).id(format!("again-{name}")).await.unwrap();
        }
    }

    async fn retry_in_bulk(&self, id: &str) -> Result<(), ClientError> {
        let retry = self.env.client().on_executions(Action::Retry).only(id).await?;
        let ended = self.env.run(retry.ended()).await??;
        assert_eq!(ended.matched, 1, "{ended:?}");
        Ok(())
    }

    async fn conclude(self, ended_after_ms: u64) -> Told {
        let client = self.env.client();
        self.env.advance("1m").await.unwrap();
        let mut left = BTreeMap::new();
        for child in client.list(sleeper().name()).await.unwrap().executions {
            left.insert(child.id.to_string(), format!("{:?}", child.status));
        }
        self.env.advance(AFTERWARDS).await.unwrap();
        let mut outcomes = BTreeMap::new();
        for run in self.runs() {
            let described = run.describe().await.unwrap();
            let result = match self.env.run(run.result()).now_or_never() {
                Some(Ok(Ok(sum))) => sum.to_string(),
                Some(Ok(Err(error))) => {
                    error.failure().map_or_else(|| "no failure".to_owned(), |one| one.code.clone())
                }
                Some(Err(_)) | None => "no result".to_owned(),
            };
            outcomes.insert(run.id().to_string(), (format!("{:?}", described.status), result, described.run));
        }
        let mut left_open = vec![];
        for workflow in [program().name(), sleeper().name()] {
            let all = client.list(workflow).await.unwrap().executions;
            left_open.extend(all.iter().filter(|one| one.ended_at.is_none()).map(|one| one.id.to_string()));
        }
        for task in client.list_tasks().await.unwrap().tasks {
            if task.ended_at.is_none() {
                left_open.push(task.id.to_string());
            }
        }
        for key in ["customer", "smtp", "children"] {
            let limit = client.api().limit(&FlowKey::parse(key).unwrap()).await.unwrap().limit;
            // A place that a process left behind when it died is found when somebody waits for it, and an item that was left in
            // the line by a tick.
            let is_left = self.env.deaths() == 0 && !limit.holders.is_empty();
            let mut waiting = limit.next.iter().filter_map(|one| one.execution.clone());
            if is_left || waiting.any(|id| left_open.contains(&id.to_string())) {
                left_open.push(format!("key {key}: {limit:?}"));
            }
        }
        Told {
            outcomes,
            outside: outside(),
            ended_after_ms,
            left_open,
            counted_twice: self.counted_twice,
            left,
        }
    }
}

/// The names of the events that the pieces wait for, in order.
fn events(pieces: &[Piece]) -> Vec<String> {
    let mut names = vec![];
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Event => names.push(format!("e{at}")),
            Piece::Join(pieces) => {
                let nested = pieces.iter().enumerate().filter(|(_, piece)| **piece == Piece::Event);
                names.extend(nested.map(|(nth, _)| format!("e{at}.{nth}")));
            }
            _ => {}
        }
    }
    names
}

/// The labels of the steps that undo, in the order in which they were done.
fn undone(done: &[String], of: &str) -> Vec<String> {
    done.iter()
        .filter(|label| label.starts_with(&format!("{of}/")) && label.ends_with("/undo"))
        .cloned()
        .collect()
}

impl Told {
    /// What must hold in every story.
    pub(crate) fn is_consistent(&self, plan: &Plan) -> Result<(), String> {
        if !self.left_open.is_empty() {
            return Err(format!("left open: {:?}", self.left_open));
        }
        if !self.counted_twice.is_empty() {
            return Err(format!("an event counted twice: {:?}", self.counted_twice));
        }
        for (of, (status, ..)) in &self.outcomes {
            if status == "Cancelled" || plan.ending == Ending::Fails {
                self.is_undone(of, plan).map_err(|problem| format!("{of}, {status}: {problem}"))?;
            }
        }
        Ok(())
    }

    /// What an execution has undone that failed or was cancelled.
    fn is_undone(&self, of: &str, plan: &Plan) -> Result<(), String> {
        let undone = undone(&self.outside.done, of);
        // One run's undo steps are of pieces that are numbered in the order of the code.
        let is_one_run = !plan.pieces.iter().any(|piece| matches!(piece, Piece::Join(_) | Piece::NextRun));
        if is_one_run && !undone.is_sorted_by(|one, next| one > next) {
            return Err(format!("undone in another order: {undone:?}"));
        }
        // How far it came before it was cancelled depends on the moment: all of that is undone.
        let left = |(at, piece): (usize, &Piece)| {
            let (label, done) = (format!("{of}/{at}"), &self.outside.done);
            let is_left = done.contains(&label) && !done.contains(&format!("{label}/undo"));
            (matches!(piece, Piece::Undone { .. }) && is_left).then_some(label)
        };
        let left = if is_one_run { plan.pieces.iter().enumerate().find_map(left) } else { None };
        left.map_or(Ok(()), |label| Err(format!("not undone: {label}")))
    }

    /// What must be as without a death.
    pub(crate) fn is_as(&self, undisturbed: &Self, plan: &Plan) -> Result<(), String> {
        if matches!(plan.deed, Some((_, Deed::Cancel))) {
            // How far it came depends on the moment.
            return Ok(());
        }
        if self.outcomes != undisturbed.outcomes {
            return Err("another outcome".to_owned());
        }
        let counts = |told: &Self| -> BTreeMap<String, usize> {
            told.outside.keys.iter().map(|(label, keys)| (label.clone(), keys.len())).collect()
        };
        if counts(self) != counts(undisturbed) {
            return Err("other effects, or with other keys".to_owned());
        }
        for (label, times) in &self.outside.times {
            let without = undisturbed.outside.times.get(label).copied().unwrap_or_default();
            if *times > without + 1 {
                return Err(format!("{label} was done {times} times, and {without} times without a death"));
            }
        }
        for of in self.outcomes.keys() {
            let (undone, before) = (undone(&self.outside.done, of), undone(&undisturbed.outside.done, of));
            if undone != before {
                return Err(format!("undone: {undone:?} instead of {before:?}"));
            }
        }
        if self.left != undisturbed.left && !plan.pieces.iter().any(is_left_to_itself) {
            return Err(format!("children: {:?} instead of {:?}", self.left, undisturbed.left));
        }
        // The outside world looks now and then, and answers that much later.
        let looks = 1 + plan.pieces.iter().filter(|piece| matches!(piece, Piece::Callback)).count() as u64;
        let later = self.ended_after_ms.saturating_sub(undisturbed.ended_after_ms);
        let at_most = LATER_AT_MOST_MS + looks * 2 * LOOK_S * 1_000;
        if plan.deed.is_none() && later > at_most {
            return Err(format!("it ended {later} ms later"));
        }
        Ok(())
    }
}

/// Whether its end depends on the clock alone.
const fn is_left_to_itself(piece: &Piece) -> bool {
    matches!(piece, Piece::Left { policy: Policy::Abandon, .. })
}
