//! The simulation as a command: many seeds, or one of them step by step.
//!
//! ```text
//! sim --seeds N            tries seeds 1 to N and stops at the first that fails; else prints a digest of all histories
//! sim --seeds N --flows    tries those of them that run the example workflows
//! sim --seed S             replays one, a line a step
//! sim ... --bug NAME       with a deliberate bug
//! sim --bugs               names them
//! sim --seed S --deaths W  replays a seed with a death after its write W
//! sim --seeds N --deaths D tries D deaths in each: nothing ends later than by a lease and a moment
//! sim --seeds N --pairs    shows which features met in how many of the seeds, and fails if some never did
//! sim --seeds N --cover    prints few of the seeds in which all pairs meet that do in any of them, and the other pairs
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output is the result of the program")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tickover_sim::bugs::Bug;
use tickover_sim::deaths::dies_after;
use tickover_sim::pairs::{Pairs, met_in};
use tickover_sim::plan::Plan;
use tickover_sim::search::{first_failure_seen, replay};
use tickover_sim::violation::Violation;
use tickover_sim::{Run, checks, run, run_plan, trace};

/// The arguments of the command.
enum Arguments {
    Seeds { first: u64, count: u64, bug: Option<Bug>, flows: bool },
    Pairs { first: u64, count: u64 },
    Cover { first: u64, count: u64 },
    Deaths { first: u64, count: u64, deaths: u64 },
    Death { seed: u64, write: u64 },
    Seed { seed: u64, bug: Option<Bug> },
    Bugs,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Ok(Arguments::Seeds { first, count, bug, flows }) => search(first, count, bug, flows),
        Ok(Arguments::Pairs { first, count }) => pairs(first, count),
        Ok(Arguments::Cover { first, count }) => cover(first, count),
        Ok(Arguments::Death { seed, write }) => {
            let run = run_plan(seed, Plan::calm(seed, dies_after(write)), None);
            let violations = checks::check(&run);
            let _ = print(&run, &violations, None);
            ExitCode::SUCCESS
        }
        Ok(Arguments::Deaths { first, count, deaths: each }) => deaths(first, count, each),
        Ok(Arguments::Seed { seed, bug }) => show(seed, bug),
        Ok(Arguments::Bugs) => {
            for bug in Bug::ALL {
                println!("{:<28}{} ({})", bug.name(), bug.sentence().trim(), bug.breaks());
            }
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("sim: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Arguments, String> {
    let (mut seeds, mut from, mut seed, mut bug) = (1_000, 1, None, None);
    let (mut flows, mut pairs, mut covers, mut deaths) = (false, false, false, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--bugs" {
            return Ok(Arguments::Bugs);
        }
        if argument == "--flows" {
            flows = true;
            continue;
        }
        if argument == "--pairs" {
            pairs = true;
            continue;
        }
        if argument == "--cover" {
            covers = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{argument} needs a number, not {value:?}"));
        match argument.as_str() {
            "--seeds" => seeds = number()?,
            "--from" => from = number()?,
            "--deaths" => deaths = Some(number()?),
            "--seed" => seed = Some(number()?),
            "--bug" => {
                bug = Some(Bug::parse(value).ok_or_else(|| format!("no bug is named {value:?}"))?);
            }
            other => {
                return Err(format!(
                    "{other:?} is none of --seeds, --from, --seed, --bug, --bugs, --flows, --pairs, --cover, --deaths"
                ));
            }
        }
    }
    if let (Some(seed), Some(write)) = (seed, deaths) {
        return Ok(Arguments::Death { seed, write });
    }
    if let Some(deaths) = deaths {
        return Ok(Arguments::Deaths { first: from, count: seeds, deaths });
    }
    Ok(match seed {
        Some(seed) => Arguments::Seed { seed, bug },
        None if pairs => Arguments::Pairs { first: from, count: seeds },
        None if covers => Arguments::Cover { first: from, count: seeds },
        None => Arguments::Seeds { first: from, count: seeds, bug, flows },
    })
}

fn search(first: u64, count: u64, bug: Option<Bug>, flows: bool) -> ExitCode {
    let began = Instant::now();
    let last = first + count.saturating_sub(1);
    // The seeds end in no order, so their digests are added.
    let digest = AtomicU64::new(0);
    let add = |run: &Run| {
        digest.fetch_add(trace::digest(run), Ordering::Relaxed);
    };
    let failure = first_failure_seen(first, last, bug, |plan| !flows || plan.runs_flows(), add);
    let seconds = began.elapsed().as_secs_f64();
    let Some(failure) = failure else {
        println!("{count} seeds, nothing found, {seconds:.1} s, digest {:016x}", digest.into_inner());
        return ExitCode::SUCCESS;
    };
    println!("{failure}");
    println!("found after {seconds:.1} s");
    ExitCode::FAILURE
}

fn deaths(first: u64, count: u64, each: u64) -> ExitCode {
    let (mut tried, mut bad) = (0, 0);
    for seed in first..first + count {
        tried += each;
        for found in tickover_sim::deaths::check(seed, each) {
            print!("{found}");
            bad += 1;
        }
    }
    println!("{bad} of {tried} deaths made something late");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn pairs(first: u64, count: u64) -> ExitCode {
    let met = Mutex::new(Pairs::default());
    let see = |run: &Run| met.lock().unwrap_or_else(PoisonError::into_inner).add(run);
    if let Some(failure) = first_failure_seen(first, first + count.saturating_sub(1), None, |_| true, see) {
        println!("{failure}");
        return ExitCode::FAILURE;
    }
    let met = met.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{met}");
    if print_unmet(&met) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints the pairs that never met. Returns whether there are any.
fn print_unmet(met: &Pairs) -> bool {
    let unmet = met.unmet();
    for (one, other) in &unmet {
        println!("never met: {} and {}", one.name(), other.name());
    }
    !unmet.is_empty()
}

fn cover(first: u64, count: u64) -> ExitCode {
    let (each, all) = (Mutex::new(BTreeMap::new()), Mutex::new(Pairs::default()));
    let see = |run: &Run| {
        let met = met_in(run);
        all.lock().unwrap_or_else(PoisonError::into_inner).add(run);
        each.lock().unwrap_or_else(PoisonError::into_inner).insert(run.seed, met);
    };
    if let Some(failure) = first_failure_seen(first, first + count.saturating_sub(1), None, |_| true, see) {
        println!("{failure}");
        return ExitCode::FAILURE;
    }
    let each = each.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut missing: BTreeSet<_> = each.values().flatten().copied().collect();
    let mut seeds = BTreeSet::new();
    // Again and again the one that brings the most.
    while !missing.is_empty() {
        let brings = |(_, met): &(&u64, &BTreeSet<_>)| met.intersection(&missing).count();
        let Some((seed, met)) = each.iter().max_by_key(brings) else { break };
        missing.retain(|pair| !met.contains(pair));
        seeds.insert(*seed);
    }
    print_unmet(&all.into_inner().unwrap_or_else(PoisonError::into_inner));
    let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
    println!("{} of {count}: {}", seeds.len(), seeds.join(", "));
    ExitCode::SUCCESS
}

fn show(seed: u64, bug: Option<Bug>) -> ExitCode {
    let run = run(seed, bug);
    let violations = checks::check(&run);
    // A reader of only the first lines closes the pipe: that is no failure.
    let _ = print(&run, &violations, bug);
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(run: &Run, violations: &[Violation], bug: Option<Bug>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{:#?}\n{:#?}", run.plan.faults, run.plan.hardship)?;
    trace::lines(run).try_for_each(|line| writeln!(out, "{line}"))?;
    violations.iter().try_for_each(|violation| writeln!(out, "{violation}"))?;
    let (steps, digest) = (run.events.len(), trace::digest(run));
    writeln!(out, "{steps} steps, digest {digest:016x}, {}", replay(run.seed, bug))
}
