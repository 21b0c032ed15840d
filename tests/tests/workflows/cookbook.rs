//! Tests of the cookbook's workflows.

use super::*;
use octo_tests::test_binaries::service_variable;

const COOKBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cookbook");

fn fake_page(request: Request) -> Response {
    match request.uri().path() {
        "/v1/chat/completions" => {
            let answer = json!({"title": "Tea", "summary": "Tea is drunk."}).to_string();
            axum::Json(json!({"choices": [{"message": {"content": answer}}]})).into_response()
        }
        "/api/v3/repos/octo/hub/pulls/7" => fake_pull_request(&request),
        "/api/v3/repos/octo/hub/pulls/7/files" => {
            let file = json!({"filename": "tea.rs", "status": "modified", "additions": 1, "deletions": 0, "changes": 1, "sha": "a", "patch": "@@ -1 +1 @@\n+tea"});
            axum::Json(json!([file])).into_response()
        }
        path if path.starts_with("/api/") => {
            (StatusCode::NOT_FOUND, axum::Json(json!({"message": "Not Found"}))).into_response()
        }
        "/gone" => (StatusCode::NOT_FOUND, "gone").into_response(),
        _ => Html(
            "<html><head><title>Tea</title></head><body><article><h1>Tea</h1><p>Some words about tea that stand on a page, \
             and some more of them so that it is worth reading.</p></article></body></html>",
        )
        .into_response(),
    }
}

/// A pull request as GitHub returns it, or its diff.
fn fake_pull_request(request: &Request) -> Response {
    if request
        .headers()
        .get("accept")
        .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.contains("diff")))
    {
        let diff = "diff --git a/tea.rs b/tea.rs\n--- a/tea.rs\n+++ b/tea.rs\n@@ -1 +1 @@\n+tea\n";
        return ([("content-type", "application/vnd.github.diff; charset=utf-8")], diff).into_response();
    }
    let side = |name: &str| json!({"ref": name, "sha": "0123456789abcdef0123456789abcdef01234567", "repo": {"full_name": "octo/hub"}});
    axum::Json(json!({
        "number": 7, "title": "Add tea", "state": "open", "merged": false, "draft": false, "user": {"login": "ada"},
        "body": "It is warm.", "labels": [], "mergeable_state": "clean", "base": side("main"), "head": side("tea"),
        "created_at": "2026-11-01T10:00:00Z", "updated_at": "2026-11-02T10:00:00Z",
        "commits": 1, "additions": 1, "deletions": 0, "changed_files": 1, "comments": 0, "review_comments": 0,
    }))
    .into_response()
}

/// A hub with everything that the cookbook's workflows need, and the workflows in its workspace.
async fn cookbook_hub(more: Value) -> Result<(HubHome, PathBuf, String)> {
    let base = start_slow_site(fake_page).await?;
    let mut settings = json!({
        "workspace": "work",
        "toolboxes": {"shell": true, "database": true},
        "net": {"allow": ["127.0.0.1"]},
        "llm": {"url": format!("{base}/v1"), "model": "m"},
        "github": {"url": format!("{base}/api/v3")},
        "git": {"allow_commit": true, "user_name": "T", "user_email": "t@example.com"},
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        settings[name] = value.clone();
    }
    let home = HubHome::new(&settings)?;
    let work = home.dir.path().join("work");
    std::fs::create_dir(&work)?;
    for entry in std::fs::read_dir(COOKBOOK)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("flow-") {
            std::fs::copy(entry.path(), work.join(entry.file_name()))?;
        }
    }
    Ok((home, work, base))
}

async fn run_workflow(home: &HubHome, name: &str, params: &[&str]) -> Result<(i32, Value)> {
    let mut args = vec!["workflow", "run", name, "--json"];
    args.extend_from_slice(params);
    let (code, out, err) = home.run(&args).await?;
    Ok((code, serde_json::from_str(&out).with_context(|| format!("{name}: {out}{err}"))?))
}

#[tokio::test]
async fn every_workflow_of_the_cookbook_is_valid() -> Result<()> {
    let (home, work, _) = cookbook_hub(json!({})).await?;
    let mut checked = 0;
    for entry in std::fs::read_dir(&work)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let (code, out, err) = home.run(&["workflow", "validate", &name]).await?;
        assert_eq!(code, 0, "{name}: {out}{err}");
        assert!(!out.contains("warning"), "{out}");
        checked += 1;
    }
    assert!(checked >= 7, "{checked} workflows");
    let all = std::fs::read_dir(COOKBOOK)?.count();
    assert!(all >= 10, "the cookbook has {all} recipes");
    Ok(())
}

#[tokio::test]
async fn pages_are_read_and_summarised_and_one_that_is_gone_does_no_harm() -> Result<()> {
    let (home, work, base) = cookbook_hub(json!({})).await?;
    let urls = format!("urls=[\"{base}/a\", \"http://127.0.0.1:1/\", \"{base}/b\"]");
    let (code, reply) = run_workflow(&home, "flow-read-and-summarise.yaml", &[&urls]).await?;
    assert_eq!(code, 0, "{reply}");
    let text = std::fs::read_to_string(work.join("summaries.md"))?;
    assert_eq!(text.matches("## Tea\n\nTea is drunk.\n").count(), 2, "{text}");
    assert_eq!(reply["outputs"]["pages"][1], Value::Null);
    Ok(())
}

#[tokio::test]
async fn a_model_answers_as_text_or_as_its_schema_says() -> Result<()> {
    let (home, work, _) = cookbook_hub(json!({})).await?;
    let flow = "version: 1\nname: ask\nsteps:\n  - {id: text, llm: {prompt: Why?}}\n  - id: fits\n    llm: {prompt: Why?, schema: {type: object, required: [title]}}\n  - id: misfit\n    llm: {prompt: Why?, schema: {type: object, required: [nothing]}}\n    retry: {times: 2, delay_seconds: 0}\n    on_error: continue\noutputs: {text: \"{{ steps.text.output.text }}\", title: \"{{ steps.fits.output.title }}\", kind: \"{{ default(steps.misfit.error.kind, 0) }}\"}\n";
    std::fs::write(work.join("ask.yaml"), flow)?;
    let (code, reply) = run_workflow(&home, "ask.yaml", &[]).await?;
    assert_eq!(code, 0, "{reply}");
    let outputs = &reply["outputs"];
    assert!(outputs["text"].as_str().unwrap().starts_with('{'), "{outputs}");
    assert_eq!((&outputs["title"], &outputs["kind"]), (&json!("Tea"), &json!("unavailable")));
    assert_eq!(reply["steps"][2]["attempts"], 3, "{reply}");
    let without = HubHome::new(&json!({}))?;
    std::fs::write(without.workspace().join("ask.yaml"), flow)?;
    let (code, out, _) = without.run(&["workflow", "validate", "ask.yaml"]).await?;
    assert!(code == 2 && out.contains("No language model is set."), "{out}");
    Ok(())
}

#[tokio::test]
async fn a_model_is_asked_under_the_same_rules_and_records_as_any_tool() -> Result<()> {
    let flow = "version: 1\nname: ask\nsteps: [{id: text, llm: {prompt: Why?}}]\n";
    let (home, work, _) = cookbook_hub(json!({})).await?;
    std::fs::write(work.join("ask.yaml"), flow)?;
    assert_eq!(run_workflow(&home, "ask.yaml", &[]).await?.0, 0);
    let records = home.audit_tail(10).await?;
    let asked = |record: &&Value| record.to_string().contains("text_ask");
    assert!(records.iter().filter(asked).count() >= 1, "{records:?}");

    let rule = json!({"name": "no-model", "tools": ["text_*"], "decision": "deny", "hint": "Not here."});
    let (home, work, _) = cookbook_hub(json!({"policy": {"rules": [rule]}})).await?;
    std::fs::write(work.join("ask.yaml"), flow)?;
    let (code, out, err) = home.run(&["workflow", "run", "ask.yaml"]).await?;
    assert!(code != 0 && err.contains("no-model"), "{code} {out} {err}");
    Ok(())
}

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
    anyhow::ensure!(Command::new("git").current_dir(folder).args(identity).args(args).status()?.success());
    Ok(())
}

fn repository(work: &Path) -> Result<PathBuf> {
    let repo = work.join("repo");
    std::fs::create_dir(&repo)?;
    std::fs::write(repo.join("a.txt"), "one\n")?;
    git(&repo, &["init", "-q"])?;
    git(&repo, &["add", "."])?;
    git(&repo, &["commit", "-qm", "Begin"])?;
    Ok(repo)
}

#[tokio::test]
async fn a_commit_is_made_once_everything_is_well() -> Result<()> {
    let (home, work, _) = cookbook_hub(json!({})).await?;
    let repo = repository(&work)?;
    let name = "flow-check-before-commit.yaml";
    let tests = "tests=printf '1..1\\n'; grep -q two a.txt && echo 'ok 1 - two' || echo 'not ok 1 - two'";
    let params = ["repo=repo", tests, "message=More"];
    let (code, reply) = run_workflow(&home, name, &params).await?;
    assert_eq!((code, &reply["error"]["message"]), (1, &json!("There is nothing to commit.")), "{reply}");
    std::fs::write(repo.join("a.txt"), "one\nthree\n")?;
    let (_, reply) = run_workflow(&home, name, &params).await?;
    assert_eq!(reply["error"]["step"], "broken", "{reply}");
    std::fs::write(repo.join("a.txt"), "<<<<<<< ours\ntwo\n")?;
    let (_, reply) = run_workflow(&home, name, &params).await?;
    assert_eq!(reply["error"]["step"], "conflict", "{reply}");
    std::fs::write(repo.join("a.txt"), "one\ntwo\n")?;
    let (code, reply) = run_workflow(&home, name, &params).await?;
    assert_eq!((code, &reply["outputs"]["committed"]), (0, &json!(true)), "{reply}");
    let (code, reply) = run_workflow(&home, "flow-release-notes.yaml", &["version=1.1", "repo=repo"]).await?;
    assert_eq!((code, &reply["outputs"]["commits"]), (0, &json!(2)), "{reply}");
    assert_eq!(std::fs::read_to_string(repo.join("RELEASE-1.1.md"))?, "# 1.1\n\n- More\n- Begin\n");
    assert_eq!(reply["outputs"]["remembered"], true);
    Ok(())
}

#[tokio::test]
async fn pull_requests_become_a_digest_and_one_that_is_not_there_is_named() -> Result<()> {
    let (home, work, base) = cookbook_hub(json!({})).await?;
    let pulls = format!("pulls=[\"{base}/octo/hub/pull/7\", \"{base}/octo/hub/pull/8\"]");
    let (code, reply) = run_workflow(&home, "flow-pull-request-digest.yaml", &[&pulls]).await?;
    assert_eq!(code, 0, "{reply}");
    let text = std::fs::read_to_string(work.join("digest.md"))?;
    assert!(text.starts_with("# Pull requests\n\n## #7 Add tea (ada)\n\n"), "{text}");
    assert!(text.contains("/octo/hub/pull/8: "), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_table_becomes_a_report() -> Result<()> {
    let dsn = service_variable("POSTGRES")?;
    let (home, work, _) = cookbook_hub(json!({
        "database": {"connections": {"default": dsn}, "superusers": ["default"]},
    }))
    .await?;
    let sql = "sql=SELECT * FROM (VALUES ('Sencha', 12), ('Assam', 8)) AS teas (name, price)";
    let (code, reply) = run_workflow(&home, "flow-nightly-report.yaml", &[sql, "title=Teas"]).await?;
    assert_eq!((code, &reply["outputs"]["rows"]), (0, &json!(2)), "{reply}");
    let text = std::fs::read_to_string(work.join(reply["outputs"]["file"].as_str().unwrap()))?;
    assert!(text.starts_with("# Teas\n"), "{text}");
    assert!(text.ends_with("| name | price |\n|---|---|\n| Sencha | 12 |\n| Assam | 8 |\n"), "{text}");
    let (code, reply) =
        run_workflow(&home, "flow-nightly-report.yaml", &["sql=SELECT 1, 2 WHERE false"]).await?;
    assert_eq!((code, &reply["error"]["message"]), (1, &json!("The query gave nothing.")), "{reply}");
    Ok(())
}

#[tokio::test]
async fn a_page_is_watched_and_links_are_checked() -> Result<()> {
    let (home, work, base) = cookbook_hub(json!({})).await?;
    let url = format!("url={base}/page");
    for (is_new, changed) in [(true, true), (false, false)] {
        let (code, reply) = run_workflow(&home, "flow-watch-page.yaml", &[&url]).await?;
        assert_eq!((code, &reply["outputs"]), (0, &json!({"is_new": is_new, "changed": changed})), "{reply}");
    }
    std::fs::write(work.join("watched.txt"), "before")?;
    let (_, reply) = run_workflow(&home, "flow-watch-page.yaml", &[&url]).await?;
    assert_eq!(reply["outputs"], json!({"is_new": false, "changed": true}), "{reply}");
    let urls = format!("urls=[\"{base}/a\", \"{base}/gone\", \"http://127.0.0.1:1/\"]");
    let (code, reply) = run_workflow(&home, "flow-check-links.yaml", &[&urls]).await?;
    assert_eq!(code, 0, "{reply}");
    let mut broken: Vec<String> =
        std::fs::read_to_string(work.join("broken-links.md"))?.lines().map(str::to_owned).collect();
    broken.sort();
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken[1].ends_with("/gone>: 404"), "{broken:?}");
    Ok(())
}
