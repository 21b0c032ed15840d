//! Playbooks while the hub runs: changes are picked up, errors are reported, and the rest is served.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests write the files that they test, and a missing member of a JSON value reads as null"
)]

use anyhow::Result;
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{LegacyClient, answer_nothing};
use serde_json::{Value, json};
use std::path::Path;

fn write_playbook(folder: &Path, file: &str, name: &str, template: &str) -> Result<()> {
    let text = format!("prompts:\n  {name}:\n    description: A test.\n    template: {template}\n");
    // Renamed, so that it is never read while it is empty.
    let fresh = folder.join("fresh");
    std::fs::write(&fresh, text)?;
    Ok(std::fs::rename(fresh, folder.join(file))?)
}

async fn prompt_text(client: &LegacyClient, name: &str) -> Result<Value> {
    let turn = client.call("prompts/get", json!({"name": name})).await?;
    Ok(turn.result()?["messages"][0]["content"]["text"].clone())
}

async fn wait_for_text(client: &LegacyClient, name: &str, wanted: &str) -> Result<()> {
    let seen = async || prompt_text(client, name).await.ok().filter(|said| *said == wanted);
    eventually(&format!("{name} to be {wanted}"), seen).await.map(drop)
}

#[tokio::test]
async fn a_changed_playbook_is_seen_and_a_broken_one_is_told_with_its_line() -> Result<()> {
    let home = HubHome::new(&json!({"prompts": {"folders": ["playbooks"]}}))?;
    let folder = home.dir.path().join("playbooks");
    std::fs::create_dir(&folder)?;
    write_playbook(&folder, "one.yaml", "first", "before")?;
    let server = home.serve().await?;
    let client = LegacyClient::connect(&server.mcp_url(), json!({}), answer_nothing).await?;
    wait_for_text(&client, "first", "before").await?;

    write_playbook(&folder, "one.yaml", "first", "after")?;
    wait_for_text(&client, "first", "after").await?;
    write_playbook(&folder, "two.yaml", "second", "new")?;
    wait_for_text(&client, "second", "new").await?;

    write_playbook(&folder, "one.yaml", "first", "'{{nobody}}'")?;
    write_playbook(&folder, "two.yaml", "second", "newer")?;
    wait_for_text(&client, "second", "newer").await?;
    assert_eq!(prompt_text(&client, "first").await?, "after", "what broke stays as it was");
    let (code, _, said) = home.run(&["prompts"]).await?;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("one.yaml:4: prompts.first: `nobody` is not an argument"), "{said}");

    let names = HttpClient::default().get(&format!("{}/prompts", server.base_url), &[]).await?.text().await?;
    assert!(names.contains("\"second\"") && names.contains("\"code_review\""), "{names}");
    Ok(())
}

#[tokio::test]
async fn playbooks_of_a_variable_are_loaded_with_their_tools() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let folder = home.dir.path().join("playbooks/src");
    std::fs::create_dir_all(&folder)?;
    let text = "prompts:\n  create-notes:\n    description: Writes notes.\n    tags: [notes]\n    template: |\n      {{#if about}}About {{about}}{{else}}About anything{{/if}}\n    arguments:\n      about: {description: What., required: false}\ntools:\n  say-hello:\n    description: Says hello to somebody by name.\n    execution:\n      command: echo hello <<name>>\n    args:\n      name: {description: Who., required: true}\n";
    std::fs::write(folder.join("config.yaml"), text)?;
    std::fs::write(
        folder.join("more.json"),
        r#"{"prompts": {"more": {"description": "More.", "template": "More."}}}"#,
    )?;
    let mut process = home.command(&["prompts", "--json"])?;
    process.env("PLAYBOOKS_PATH", home.dir.path().join("playbooks"));
    let listed = String::from_utf8(process.output().await?.stdout)?;
    assert!(listed.contains("create-notes") && listed.contains("\"more\""), "{listed}");
    let mut process = home.command(&["tools", "--json", "--all"])?;
    process.env("PLAYBOOKS_PATH", home.dir.path().join("playbooks"));
    let listed = String::from_utf8(process.output().await?.stdout)?;
    assert!(listed.contains("say-hello"), "no declared tool");
    Ok(())
}
