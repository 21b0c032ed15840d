//! An agent-like script works on a repository with tools only, and the history is right.

use anyhow::{Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::test_binaries::service_variable;
use serde_json::json;
use std::path::Path;
use std::process::Command;

fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"];
    let output = Command::new("git").current_dir(folder).args(who).args(arguments).output()?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A bare repository with one commit, in the workspace.
fn create_origin(workspace: &Path) -> Result<()> {
    let seed = workspace.join("seed");
    std::fs::create_dir(&seed)?;
    git(&seed, &["init", "--quiet", "--initial-branch=main"])?;
    std::fs::write(seed.join("sums.py"), "def add(a, b):\n    return a - b\n")?;
    std::fs::write(seed.join("README.md"), "# Sums\n\nAdds numbers, wrongly.\n")?;
    git(&seed, &["add", "--all"])?;
    git(&seed, &["commit", "--quiet", "--message", "Begin"])?;
    git(workspace, &["clone", "--quiet", "--bare", "seed", "origin.git"])?;
    std::fs::remove_dir_all(seed)?;
    Ok(())
}

#[tokio::test]
async fn an_agent_clones_edits_patches_tests_commits_and_pushes() -> Result<()> {
    let home = HubHome::new(&json!({
        "workspace": "workspace",
        "toolboxes": {"shell": true},
        "git": {"allow_commit": true, "allow_push": true, "user_name": "Grace", "user_email": "grace@example.org"},
    }))?;
    let workspace = home.dir.path().join("workspace");
    std::fs::create_dir_all(&workspace)?;
    create_origin(&workspace)?;
    let server = home.serve().await?;
    for (round, mode, target) in [
        (1, "auto", json!({"url": server.mcp_url()})),
        (2, "legacy", crate::peer_scripts::stdio_target(&home.command(&["stdio"])?)),
    ] {
        if round == 2 {
            // The same work again, on a history that does not have it yet.
            git(&workspace.join("origin.git"), &["update-ref", "refs/heads/main", "main~1"])?;
        }
        let folder = format!("work{round}");
        let task = json!({"target": target, "mode": mode, "folder": folder});
        let said =
            crate::peer_scripts::run_script(&service_variable("PYTHON_MCP")?, "agent.py", &task).await?;
        assert_eq!(said["status"]["branch"], "main", "{said}");
        assert_eq!(said["status"]["ahead"], 0, "{said}");
        assert_eq!(said["log"]["commits"].as_array().map(Vec::len), Some(2), "{said}");
        let history =
            git(&workspace.join("origin.git"), &["log", "--format=%an <%ae> %s|%b", "--stat=200", "main"])?;
        let first = history.lines().next().unwrap_or_default();
        assert_eq!(first, "Grace <grace@example.org> Add for real|With a test.", "{history}");
        assert!(history.contains("3 files changed, 10 insertions(+), 2 deletions(-)"), "{history}");
        assert!(git(&workspace.join("origin.git"), &["show", "main:sums.py"])?.contains("return a + b"));
    }
    let (code, out, err) = home.run(&["audit", "verify"]).await?;
    ensure!(code == 0, "audit verify: {out}{err}");
    Ok(())
}
