//! `cargo xtask scale-plan`: the tables of docs/scale.md, from measured costs and simulated queues.

mod fleet_plan;
mod measured;
mod queue_simulation;
mod random_numbers;
mod tenant_skew;

use anyhow::{Context, Result, bail};
use fleet_plan::{
    FleetPlan, LAYOUT, LOAD, audit_bytes_per_day, bus_bytes_per_second, cpu_per_call, messages_per_second,
    rows_per_second,
};
use measured::{
    BUS_CPU_PER_MESSAGE, COMMIT_SECONDS, COMMIT_SECONDS_PER_ROW, FRONT_CPU_PER_CALL, ROWS_PER_CALL,
    ROWS_PER_PRIMARY,
};
use queue_simulation::{QueueReport, simulate_groups, simulate_servers};
use std::path::Path;

const PAGE: &str = "docs/scale.md";
/// The tables are between these lines.
const START: &str = "<!-- cargo xtask scale-plan -->\n";
const END: &str = "<!-- end -->\n";

const TENANTS: usize = 10_000;
const ZIPF_EXPONENT: f64 = 1.0;
const ARRIVALS: usize = 500_000;
/// How much a simulated utilisation may differ from the planned one.
const TOLERANCE: f64 = 0.02;

pub fn write(root: &Path) -> Result<()> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).context(PAGE)?;
    std::fs::write(&path, with_tables(&page, &tables()?)?)?;
    println!("wrote {PAGE}");
    Ok(())
}

pub fn check(root: &Path) -> Result<()> {
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    if with_tables(&page, &tables()?)? == page {
        return Ok(());
    }
    bail!("{PAGE} is out of date; run `cargo xtask scale-plan`")
}

fn with_tables(page: &str, tables: &str) -> Result<String> {
    let (before, rest) = page.split_once(START).with_context(|| format!("{PAGE}: no {START}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PAGE}: no {END}"))?;
    Ok(format!("{before}{START}\n{tables}\n{END}{after}"))
}

fn tables() -> Result<String> {
    let plan = FleetPlan::new(&LOAD, &LAYOUT);
    Ok(format!("{}\n{}\n{}", fleet_table(&plan), queue_table(&plan)?, skew_table(&plan)))
}

fn fleet_table(plan: &FleetPlan) -> String {
    let total = |nodes: f64| nodes * LAYOUT.regions;
    let memory = FleetPlan::memory_per_front(&LOAD, &LAYOUT, plan.fronts) / (1 << 20) as f64;
    let rows = [
        (
            "sessions; calls per second".to_owned(),
            format!("{}; {}", thousands(LOAD.sessions), thousands(LOAD.calls_per_second)),
        ),
        (
            "CPU time per call in front, NATS and PostgreSQL".to_owned(),
            format!("{:.0} µs", cpu_per_call(&LOAD) * 1e6),
        ),
        ("fronts with one core, per region and in all".to_owned(), pair(plan.fronts, total(plan.fronts))),
        (
            "calls per second and memory of sessions of a front, one region lost".to_owned(),
            format!("{}; {memory:.0} MB", thousands(plan.calls_per_front(&LOAD, &LAYOUT))),
        ),
        (
            "messages per second on NATS; bytes per second".to_owned(),
            format!("{}; {:.0} MB", thousands(messages_per_second(&LOAD)), bus_bytes_per_second(&LOAD) / 1e6),
        ),
        (
            "NATS servers with two cores, per region and in all".to_owned(),
            pair(plan.bus_servers, total(plan.bus_servers)),
        ),
        (
            "audit rows per second; audit log per day".to_owned(),
            format!("{}; {:.1} TB", thousands(rows_per_second(&LOAD)), audit_bytes_per_day(&LOAD) / 1e12),
        ),
        (
            "PostgreSQL primaries with eight cores, per region and in all".to_owned(),
            pair(plan.primaries, total(plan.primaries)),
        ),
        (
            "audit rows per second of a primary, one region lost".to_owned(),
            format!(
                "{} of {}",
                thousands(plan.rows_per_primary(&LOAD, &LAYOUT)),
                thousands(ROWS_PER_PRIMARY)
            ),
        ),
        (
            "group commits per second of a primary, one region lost".to_owned(),
            thousands(plan.commits_per_primary(&LOAD, &LAYOUT)),
        ),
    ];
    let rows: String = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
    format!("| quantity | value |\n|---|---|\n{rows}")
}

/// Simulates one node of each kind while a region is lost, and checks the planned utilisation.
fn queue_table(plan: &FleetPlan) -> Result<String> {
    let calls = plan.calls_per_front(&LOAD, &LAYOUT);
    let front = simulate_servers(calls, FRONT_CPU_PER_CALL, LAYOUT.front_cores as usize, ARRIVALS);
    confirm("front", &front, plan.front_utilisation(&LOAD, &LAYOUT))?;
    let messages = plan.messages_per_server(&LOAD, &LAYOUT);
    let bus = simulate_servers(messages, BUS_CPU_PER_MESSAGE, LAYOUT.bus_cores as usize, ARRIVALS);
    confirm("NATS server", &bus, plan.bus_utilisation(&LOAD, &LAYOUT))?;
    let writer = simulate_groups(calls * ROWS_PER_CALL, COMMIT_SECONDS, COMMIT_SECONDS_PER_ROW, ARRIVALS);
    let row = |name: &str, queue: &QueueReport| {
        let QueueReport { utilisation, mean_wait, p99_wait, max_length } = queue;
        let wait = format!("{} | {}", milliseconds(*mean_wait), milliseconds(*p99_wait));
        format!("| {name} | {:.0} % | {wait} | {max_length} |\n", utilisation * 100.0)
    };
    Ok(format!(
        "| queue | busy | mean wait | p99 | longest |\n|---|---|---|---|---|\n{}{}{}",
        row("calls of a front", &front),
        row("messages of a NATS server", &bus),
        row("audit records of a front, until they are committed", &writer),
    ))
}

fn confirm(name: &str, queue: &QueueReport, planned: f64) -> Result<()> {
    if (queue.utilisation - planned).abs() <= TOLERANCE * planned {
        return Ok(());
    }
    bail!("{name}: planned to be busy for {planned:.3} of the time, simulated {:.3}", queue.utilisation)
}

fn skew_table(plan: &FleetPlan) -> String {
    let partitions = plan.primaries * (LAYOUT.regions - 1.0);
    let fronts = plan.fronts * (LAYOUT.regions - 1.0);
    let row = |name: &str, share: f64| {
        let rows = share * rows_per_second(&LOAD);
        let fits = if rows <= ROWS_PER_PRIMARY { "yes" } else { "no" };
        format!("| {name} | {:.1} % | {} | {fits} |\n", share * 100.0, thousands(rows))
    };
    format!(
        "| the ledger is partitioned by | share of the fullest primary | rows per second | fits |\n|---|---|---|---|\n{}{}",
        row("tenant", tenant_skew::by_tenant(TENANTS, ZIPF_EXPONENT, partitions as usize)),
        row("front", tenant_skew::by_front(fronts as usize, partitions as usize)),
    )
}

/// With the digits that matter.
fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    if ms < 0.1 { format!("{ms:.3} ms") } else { format!("{ms:.1} ms") }
}

fn pair(region: f64, all: f64) -> String {
    format!("{region:.0}; {all:.0}")
}

/// A whole number with commas.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document has the tables of this program.
    #[test]
    fn this_tree() {
        check(&crate::workspace_root::find_workspace().unwrap()).unwrap();
    }

    #[test]
    fn tables_replace_those_between_the_marks() {
        let page = format!("a\n{START}old\n{END}b\n");
        let written = with_tables(&page, "new\n").unwrap();
        assert_eq!(written, format!("a\n{START}\nnew\n\n{END}b\n"));
        assert_eq!(with_tables(&written, "new\n").unwrap(), written);
        assert!(with_tables("a", "new").is_err());
    }

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (1e6, "1,000,000")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn another_utilisation_than_planned_is_an_error() {
        let queue = simulate_servers(500.0, 1e-3, 1, 50_000);
        assert!(confirm("front", &queue, 0.5).is_ok());
        assert!(confirm("front", &queue, 0.55).is_err());
    }
}
