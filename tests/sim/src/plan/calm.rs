//! Runs in which nothing goes wrong and nothing is random: of two of them that differ in one death, the ends can be
//! compared.

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;

use super::execution::start;
use super::{Job, JobRequest, PAGE, Plan, START, limits, priorities, request};
use crate::dice::Dice;
use crate::fault_plan::FaultPlan;
use crate::hardship::Hardship;
use crate::script::{Op, Script};

/// All calls are made within this time.
const WITHIN: u64 = 120_000;
/// Scripts among which one that ends by itself is sought.
const TRIES: u32 = 200;

impl Plan {
    /// A seed's plan without faults, but with the one of these conditions.
    pub fn calm(seed: u64, one: Hardship) -> Self {
        let dice = Dice::new(seed, "calm");
        let mut jobs = Vec::new();
        for number in 0..dice.between(1, 6) {
            let at = START.plus(dice.millis(0, WITHIN));
            let mut task = request(&dice);
            task.id = TaskId::parse(format!("t-{number}")).ok();
            task.idempotency_key = None;
            // What a policy or a timeout of its own makes of a lost attempt is what the user asked for, and comes on top.
            task.timeouts = Timeouts::default();
            task.retry = RetryPolicy::fixed(3, Millis::from_secs(1));
            jobs.push(Job { at, client: 0, request: JobRequest::Schedule(vec![task]), repeats: 0 });
        }
        for number in 0..dice.between(1, 3) {
            let at = START.plus(dice.millis(0, WITHIN));
            let mut scripts = (0..TRIES).map(|_| Script::of(dice.roll(), false));
            let (Ok(id), Some(script)) =
                (ExecutionId::parse(format!("e-{number}")), scripts.find(ends_by_itself))
            else {
                continue;
            };
            let mut request = start(&dice, id, false);
            request.input = Some(script.input());
            request.timeouts = ExecutionTimeouts { execution: None, run: None };
            jobs.push(Job { at, client: 1, request: JobRequest::Start(Box::new(request)), repeats: 0 });
        }
        limits::add(seed, &mut jobs);
        let has_classes = priorities::add(seed, &mut jobs);
        jobs.sort_by_key(|job| job.at);
        Self {
            faults: FaultPlan::default(),
            hardship: Hardship { is_calm: true, ..one },
            faults_until: START,
            limits: Limits { retention: Millis::from_days(1), ..Limits::default() },
            workers: 6,
            jobs,
            page: PAGE,
            flood: 0,
            stories: std::collections::BTreeMap::new(),
            has_operations: false,
            has_classes,
            has_sqlite: false,
        }
    }
}

/// Whether nobody has to send it anything.
fn ends_by_itself(script: &Script) -> bool {
    let waits = |op: &Op| matches!(op, Op::Wait { timeout: None, .. });
    let ops = script.ops.iter().enumerate();
    ops.into_iter().all(|(number, op)| {
        let is_child = matches!(op, Op::Child { .. });
        !(waits(op) || is_child && script.child(number).ops.iter().any(waits))
    })
}
