//! Results with their targets.

use serde_json::Value;

/// Time printed by `mcp-load cold`, in milliseconds.
pub fn cold_ms(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("cold_ms=")?;
    rest.split_whitespace().next()?.parse().ok()
}

pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn ratio(rows: &Value, target: &str, sessions: u64) -> f64 {
    let row = rows
        .as_array()
        .into_iter()
        .flatten()
        .find(|row| row["target"] == target && row["sessions"] == sessions);
    row.and_then(|row| row["rate_ratio"].as_f64()).unwrap_or(f64::NAN)
}

/// Prints a column for the earlier build if there is one.
pub fn print([modern, legacy]: &[Value; 2], native: &Value, cold: &[f64], idle_mb: &[f64]) {
    let each = |measure: &dyn Fn(&str) -> f64| -> Vec<f64> {
        super::BUILDS.into_iter().take(cold.len()).map(measure).collect()
    };
    let direct = |rows| each(&|build| ratio(rows, build, 16));
    let hop = |rows| each(&|build| ratio(rows, build, 16) / ratio(rows, "nginx", 16));
    let earlier = if cold.len() > 1 { [" before | change |", "---|---|"] } else { [""; 2] };
    println!("\n| what | measured | promised |{}\n|---|---|---|{}", earlier[0], earlier[1]);
    for (what, measured, promised) in [
        ("proxied calls at 16 sessions, relative to direct", direct(modern), "at least 0.5"),
        ("proxied calls at 16 sessions, relative to nginx", hop(modern), "at least 0.7"),
        ("the same in 2025-06-18, relative to direct", direct(legacy), "at least 0.5"),
        ("the same in 2025-06-18, relative to nginx", hop(legacy), "at least 0.7"),
        ("native calls at 16 sessions, relative to bare axum", direct(native), "at least 0.6"),
        ("cold start to the first list, relative to bare rmcp", cold.to_vec(), "at most 3"),
        ("idle memory in MB", idle_mb.to_vec(), "at most 30"),
    ] {
        match measured.as_slice() {
            [now, before] => {
                let change = (now / before - 1.0) * 100.0;
                println!("| {what} | {now:.3} | {promised} | {before:.3} | {change:+.1} % |");
            }
            all => println!("| {what} | {:.2} | {promised} |", all.first().copied().unwrap_or(f64::NAN)),
        }
    }
}
