//! Scripts written with the official SDKs: each receives one JSON argument and prints one line of JSON.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// A command in the form that a peer's SDK needs to start it.
pub fn stdio_target(command: &Command) -> Value {
    let command = command.as_std();
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let env: Map<String, Value> =
        command.get_envs().filter_map(|(name, value)| Some((text(name), json!(text(value?))))).collect();
    json!({
        "command": text(command.get_program()),
        "args": command.get_args().map(text).collect::<Vec<_>>(),
        "env": env,
        "cwd": command.get_current_dir(),
    })
}

/// Runs `interpreter tests/peers/SCRIPT ARGUMENT` and parses its output.
pub async fn run_script(interpreter: &str, script: &str, argument: &Value) -> Result<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script);
    let child = Command::new(interpreter)
        .arg(&script)
        .arg(argument.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(120), child)
        .await
        .with_context(|| format!("{} {argument} does not end", script.display()))??;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{} {argument}: {out}{err}", script.display());
    serde_json::from_str(&out).with_context(|| format!("{} said {out}{err}", script.display()))
}
