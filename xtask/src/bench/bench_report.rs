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

pub fn print([modern, legacy]: &[Value; 2], native: &Value, cold: f64, idle_mb: f64) {
    let hub = |proxied| ratio(proxied, "octoprox", 16);
    let hop = |proxied| ratio(proxied, "nginx", 16);
    let bare = ratio(native, "octoprox", 16);
    println!("\n| what | measured | promised |\n|---|---|---|");
    for (what, measured, promised) in [
        ("proxied calls at 16 sessions, relative to direct", hub(modern), "at least 0.5"),
        ("proxied calls at 16 sessions, relative to nginx", hub(modern) / hop(modern), "at least 0.7"),
        ("the same in 2025-06-18, relative to direct", hub(legacy), "at least 0.5"),
        ("the same in 2025-06-18, relative to nginx", hub(legacy) / hop(legacy), "at least 0.7"),
        ("native calls at 16 sessions, relative to bare axum", bare, "at least 0.6"),
        ("cold start to the first list, relative to bare rmcp", cold, "at most 3"),
        ("idle memory in MB", idle_mb, "at most 30"),
    ] {
        println!("| {what} | {measured:.2} | {promised} |");
    }
}
