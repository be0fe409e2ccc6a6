use clap::Parser;

use super::*;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    args: CostArgs,
}

fn args(arguments: &[&str]) -> CostArgs {
    CommandLine::parse_from(["cost"].iter().chain(arguments)).args
}

fn usd(arguments: &[&str]) -> f64 {
    total(&bill(&args(arguments)))
}

/// The guide's month: a million orders.
const ORDERS: [&str; 12] = [
    "--executions",
    "1000000",
    "--inline-steps",
    "3",
    "--remote-steps",
    "2",
    "--sleeps",
    "1",
    "--events",
    "1",
    "--http-requests",
    "2000000",
];

#[track_caller]
fn is_about(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.005, "{found} instead of {expected}");
}

/// A million invocations of 50 ms.
const INVOCATION: f64 = 0.20 + 0.25 * 0.05 * 13.3334;
/// A million waits for an exact instant.
const WAITS: f64 = 0.25 * 0.5 * 13.3334;

fn logs(gigabytes: f64) -> f64 {
    gigabytes * 1e9 / 1_073_741_824.0 * 0.53
}

fn stored(gigabytes: f64) -> f64 {
    gigabytes * 1e9 / 1_073_741_824.0 * 7.0 / 30.0 * 0.45
}

#[test]
fn an_idle_system_costs_its_ticks_its_polling_its_alarms_and_one_metric() {
    let ticks = 43_200.0 * (18.5 * 0.125 + 1.0 + INVOCATION) / 1e6 + logs(43_200.0 * 300.0 / 1e9);
    let polling = 648_000.0 * 0.40 / 1e6;
    is_about(usd(&[]), ticks + 4.0 * polling + 0.30 + 1.50);
    is_about(usd(&["--workers", "0"]), ticks + 3.0 * polling + 0.30 + 1.10);
    is_about(usd(&["--alarms", "all"]) - usd(&[]), 3.30);
    is_about(usd(&["--priorities"]) - usd(&[]), 2.0 * polling + 0.60);
    is_about(usd(&["--priorities", "--workers", "3"]) - usd(&["--workers", "3"]), 6.0 * polling + 1.80);
    is_about(usd(&[]) - usd(&["--alarms", "none"]), 1.50);
    is_about(usd(&["--paid-dashboard"]) - usd(&[]), 3.0);
}

#[test]
fn a_workload_costs_its_units_at_their_prices() {
    let idle = usd(&[]);
    let queue = 43_200.0 * (0.625 + 7.0 * 0.125) / 1e6;
    // 5 write units, one read unit, and one message with three requests and one invocation.
    let task = 5.0 * 0.625 + 0.125 + 3.0 * 0.40 + INVOCATION;
    is_about(usd(&["--tasks", "1000000"]) - idle, task + queue + logs(1.01) + stored(0.45) + 3.0 * 0.30);
    // 10 write units, one read unit and one message.
    let execution = 10.0 * 0.625 + 0.125 + 3.0 * 0.40 + INVOCATION;
    let recorded = logs(0.69) + stored(1.3);
    is_about(usd(&["--executions", "1000000"]) - idle, execution + queue + recorded + 2.0 * 0.30);
    is_about(usd(&["--http-requests", "1000000"]) - idle, 1.0 + INVOCATION + logs(0.35));
    is_about(usd(&["--http-requests", "1000000", "--function-url"]) - idle, INVOCATION);
    // 648,000 GB-seconds, and a claim every 20 seconds.
    let claims = 0.1296 * (1.0 + 0.20) + 0.648 * 13.3334 + logs(0.1296 * 0.35);
    is_about(usd(&["--waiting-workers", "1"]) - idle, claims);
}

#[test]
fn a_list_of_all_executions_costs_each_one_a_write_and_its_entry() {
    let executions = ["--executions", "1000000"];
    let listed = [&executions[..], &["--list-all"]].concat();
    is_about(usd(&listed) - usd(&executions), 0.625 + stored(0.2));
}

#[test]
fn an_instant_costs_the_wait_for_it() {
    let with = |name| usd(&["--executions", "1000000", name, "1"]);
    // Each tick that holds hints notes that, and takes a second longer.
    let ticks = 43_200.0 * (0.625 + 0.5 * 0.125 + 2.0 * WAITS) / 1e6;
    // Two write units and one read less, and 25 ms instead of half a second.
    is_about(with("--sleeps") - with("--events"), WAITS / 20.0 + ticks - 2.0 * 0.625 - 0.125);
    // Four write units and a read less.
    is_about(with("--short-sleeps") - with("--events"), WAITS - 4.0 * 0.625 - 0.125);
}

#[test]
fn remote_steps_that_start_together_have_one_request_for_ten_hints() {
    let with = |steps: &str, joins: &str| {
        usd(&["--executions", "1000000", "--remote-steps", steps, "--fan-outs", joins])
    };
    let step = with("9", "1") - with("8", "1");
    is_about(with("10", "1") - with("9", "1"), step);
    // And its entries need segments.
    is_about(with("11", "1") - with("10", "1"), step + 0.40 + 5.5 * 0.625);
    // Each further wait costs its own units, and a request for its hints.
    let join = 3.0 * 0.625 + 2.0 * 0.125 + 3.0 * 0.40 + INVOCATION + logs(0.70) + stored(0.15);
    is_about(with("10", "2") - with("10", "1"), join + 0.40);
}

#[test]
fn the_guides_prices_are_kept() {
    assert!(usd(&[]) < 3.01, "{}", usd(&[]));
    let orders = usd(&ORDERS);
    assert!(orders < 41.10, "{orders}");
}

#[test]
fn retries_timeouts_and_failures_cost_more() {
    let plain = usd(&["--tasks", "1000"]);
    for more in [
        vec!["--retries", "1"],
        vec!["--failing", "0.5"],
        vec!["--heartbeats", "2"],
        vec!["--deadlines"],
        vec!["--attempt-timeouts"],
        vec!["--invocation-ms", "51"],
        vec!["--retention-days", "8"],
        vec!["--log-retention-days", "31"],
    ] {
        let arguments: Vec<&str> = ["--tasks", "1000"].into_iter().chain(more).collect();
        assert!(usd(&arguments) > plain, "{arguments:?}");
    }
}

#[test]
fn other_services_bill_eight_operations_for_an_order() {
    let others = others(&args(&ORDERS));
    let usd: Vec<f64> = others.iter().map(|other| other.usd).collect();
    let [durable, standard, express, temporal, cloudflare, vercel] = usd[..] else { panic!("{usd:?}") };
    let written = 8.0 * 1.024 / 1.073_741_824;
    is_about(durable, 64.0 + written * (0.25 + 0.15 * 7.0 / 30.0));
    is_about(standard, 225.0);
    // Five steps of 50 ms are three steps of 100 ms.
    is_about(express, 1.0 + 0.3 / 16.0 * 16.67);
    is_about(temporal, 1.1 * (400.0 + written * (0.042 + 7.0 * 24.0 * 0.001_05)));
    is_about(cloudflare, 5.0 + 0.30 + written * 7.0 / 30.0 * 0.20);
    // Five steps; the bytes are kept for seven days.
    is_about(vercel, 5.0 * 25.0 + written * 7.0 * 24.0 * 0.000_69);
    let operations = 8e6;
    assert!(others.iter().all(|other| (other.usd_a_million - other.usd / operations * 1e6).abs() < 1e-9));
}
