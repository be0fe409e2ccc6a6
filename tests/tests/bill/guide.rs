//! The guide's tables of costs: each row is what `tickover cost` prints.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tickover_tests::process::binary;

/// Orders of the guide's month.
pub(crate) const MONTH: f64 = 1e6;
/// The guide's command for them.
pub(crate) const ORDERS: &str = "--executions 1000000 --inline-steps 3 --remote-steps 2 --sleeps 1 --events 1 --http-requests 2000000 --compare";
const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/COST.md");
const COMMAND: &str = "cargo run -- cost";

/// What `tickover cost` says with these arguments.
pub(crate) fn cost(arguments: &str) -> Value {
    let given = arguments.split(' ').filter(|one| !one.is_empty());
    let output = Command::new(binary("tickover")).arg("cost").args(given).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The section of the guide.
fn section() -> String {
    let guide = fs::read_to_string(GUIDE).unwrap();
    let section = guide.split("\n## ").find(|section| section.starts_with("What it costs")).unwrap();
    section.to_owned()
}

/// The rows of the first table after a text, as cells.
fn table(after: &str) -> Vec<Vec<String>> {
    let rows =
        after.lines().skip_while(|line| !line.starts_with("| ")).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace(['*', ','], "")).collect::<Vec<_>>()
    };
    rows.skip(2).map(cells).collect()
}

/// Checks the table after a command: each line of the bill is a row, with each of its numbers that isn't zero.
#[track_caller]
fn is_printed(arguments: &str, rows: &[Vec<String>], units: &[&str]) {
    let bill = cost(arguments);
    let text = |line: &Value, unit: &str| {
        let number = line[unit].as_f64().unwrap();
        if number > 0.0 { format!("{number:.0}") } else { String::new() }
    };
    let lines = bill["lines"].as_array().unwrap().iter().map(|line| {
        let what = line["what"].as_str().unwrap().replace("polling of 4", "polling of four");
        let units = units.iter().map(|unit| text(line, unit));
        [what]
            .into_iter()
            .chain(units)
            .chain([format!("{:.2}", line["usd"].as_f64().unwrap())])
            .collect::<Vec<_>>()
    });
    let usd = format!("{:.2}", bill["usd"].as_f64().unwrap());
    let together =
        [String::from("together")].into_iter().chain(units.iter().map(|_| String::new())).chain([usd]);
    // What rounds to nothing is left out.
    let is_shown = |row: &Vec<String>| row.last().is_some_and(|usd| usd != "0.00");
    let expected: Vec<_> = lines.filter(is_shown).chain([together.collect()]).collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_guides_bills_are_those_of_the_command() {
    let section = section();
    let [_, idle, orders] = &section.split(COMMAND).collect::<Vec<_>>()[..] else { panic!("{section}") };
    is_printed("", &table(idle), &["sqs_requests", "invocations"]);
    assert!(orders.trim_start().starts_with(ORDERS), "{orders}");
    let units = ["write_units", "read_units", "sqs_requests", "invocations", "gb_seconds"];
    is_printed(ORDERS, &table(orders), &units);
}

#[test]
fn the_guides_comparison_is_that_of_the_command() {
    let bill = cost(ORDERS);
    let usd = |of: &Value| format!("{:.2}", of.as_f64().unwrap());
    let own = vec![usd(&bill["usd"]), format!("{:.2}", bill["usd"].as_f64().unwrap() / 8.0)];
    let others = bill["others"].as_array().unwrap().iter();
    let others = others.map(|other| vec![usd(&other["usd"]), usd(&other["usd_a_million"])]);
    let section = section();
    let rows = table(section.split("The same orders with other services").nth(1).unwrap());
    let found: Vec<_> = rows.iter().map(|row| row[2..4].to_vec()).collect();
    assert_eq!(found, [own].into_iter().chain(others).collect::<Vec<_>>());
    let names = bill["others"].as_array().unwrap().iter().map(|other| other["service"].as_str().unwrap());
    assert!(names.zip(&rows[1..]).all(|(name, row)| row[0] == name.replace(',', "")), "{rows:?}");
}

/// The orders with the options that a row names: each is added, or takes the place of the same one.
fn with_options(row: &str) -> String {
    let given: Vec<&str> = row.split('`').skip(1).step_by(2).filter(|text| text.starts_with("--")).collect();
    assert!(!given.is_empty(), "no option: {row}");
    let names: Vec<&str> =
        given.iter().flat_map(|text| text.split(' ')).filter(|one| one.starts_with("--")).collect();
    let kept = ORDERS.split(" --").enumerate().filter_map(|(place, option)| {
        let option = if place == 0 { option.to_owned() } else { format!("--{option}") };
        (!names.contains(&option.split(' ').next().unwrap())).then_some(option)
    });
    kept.chain(given.iter().map(|text| (*text).to_owned())).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_changes_the_guides_bill_changes_it_by_as_much_as_the_guide_says() {
    let section = section();
    let rows = table(section.split("What changes the bill most").nth(1).unwrap());
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let options = with_options(&row[0]);
        let usd = cost(&options)["usd"].as_f64().unwrap();
        assert_eq!(row[1], format!("{usd:.2}"), "{options}");
    }
}
