//! Renames an identifier that is used in 34 files.

use crate::cost_agent::Agent;
use anyhow::{Result, ensure};
use octo_tests::hub_process::HubHome;
use serde_json::json;
use std::path::PathBuf;

const FILE_COUNT: usize = 34;
const OLD: &str = "load_user";
const NEW: &str = "fetch_user";

/// A file that uses the name, and names that only contain it.
fn file_text(at: usize, name: &str) -> String {
    let uses = format!("    return {name}({at}) or preload_user({at}) or load_users()\n").repeat(at % 3 + 1);
    format!("from users import {name}, load_users\n\n\ndef page_{at}():\n{uses}")
}

fn files() -> impl Iterator<Item = (usize, PathBuf)> {
    let folder = |at: usize| ["app", "app/views", "lib", "tests"][at % 4];
    (0..FILE_COUNT).map(move |at| (at, PathBuf::from(format!("{}/page_{at}.py", folder(at)))))
}

#[tokio::test]
async fn a_name_changes_in_34_files_in_three_calls() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let write = |path: PathBuf, text: String| -> Result<()> {
        let path = home.workspace().join(path);
        std::fs::create_dir_all(path.parent().unwrap())?;
        Ok(std::fs::write(path, text)?)
    };
    for (at, path) in files() {
        write(path, file_text(at, OLD))?;
    }
    write("notes.md".into(), "load_users and preload_user stay.\n".into())?;
    let mut agent = Agent::new(&home).await?;
    let change = json!({"pattern": OLD, "replacement": NEW, "whole_word": true});
    let mut dry = change.clone();
    dry["dry_run"] = json!(true);
    let planned = agent.call("fs_replace", dry).await?;
    let uses: usize = (0..FILE_COUNT).map(|at| at % 3 + 2).sum();
    ensure!(planned["replacements"] == uses, "{planned}");
    ensure!(planned["message"].as_str().is_some_and(|message| message.contains("34 files")), "{planned}");
    for (at, path) in files() {
        assert_eq!(
            std::fs::read_to_string(home.workspace().join(path))?,
            file_text(at, OLD),
            "a dry run writes"
        );
    }
    let changed = agent.call("fs_replace", change).await?;
    ensure!(changed["replacements"] == uses, "{changed}");
    let left = json!({"pattern": format!("\\b{OLD}\\b"), "max_results": 0});
    let left = agent.call("fs_search", left).await?;
    ensure!(left["total_matches"] == 0, "{left}");
    for (at, path) in files() {
        assert_eq!(std::fs::read_to_string(home.workspace().join(path))?, file_text(at, NEW));
    }
    assert!(
        std::fs::read_to_string(home.workspace().join("notes.md"))?.starts_with("load_users and preload")
    );
    agent.finish("rename an identifier in 34 files", 3, 1_500)
}
