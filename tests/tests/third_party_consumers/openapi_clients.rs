//! OpenAPI documents that a linter accepts and that generated clients work with.

use super::{TOKEN, run_program, start_hub};
use anyhow::{Context, Result, ensure};
use octo_tests::http_client::HttpClient;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

async fn get(url: &str) -> Result<String> {
    let bearer = format!("Bearer {TOKEN}");
    let answer = HttpClient::default().get(url, &[("authorization", &bearer)]).await?;
    ensure!(answer.status == 200, "{url}: {}", answer.status);
    answer.text().await
}

/// Writes an OpenAPI document to a file.
async fn save_document(url: &str, folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, get(url).await?)?;
    Ok(path)
}

fn peer_script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

#[tokio::test]
async fn redocly_finds_no_error_in_any_document() -> Result<()> {
    let (home, hub) = start_hub().await?;
    let folder = home.dir.path();
    let mut files =
        vec![save_document(&format!("{}/openapi.json", hub.admin_url), folder, "admin.json").await?];
    for profile in ["", "codex", "gateway", "ralph", "tools-api"] {
        let url = format!("{}/openapi.json?profile={profile}", hub.base_url);
        files.push(save_document(&url, folder, &format!("hub-{profile}.json")).await?);
    }
    let cli = format!("{}/@redocly/cli/bin/cli.js", service_variable("CONSUMERS")?);
    let mut args = vec![cli.as_str(), "lint", "--format=summary"];
    args.extend(files.iter().filter_map(|file| file.to_str()));
    let said = run_program(&service_variable("NODE24")?, &args, folder).await?;
    assert!(said.contains("valid"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_generated_typescript_client_is_typed_and_works() -> Result<()> {
    let (home, hub) = start_hub().await?;
    let folder = home.dir.path().join("client");
    std::fs::create_dir(&folder)?;
    let modules = service_variable("CONSUMERS")?;
    std::os::unix::fs::symlink(&modules, folder.join("node_modules"))?;
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#)?;
    std::fs::copy(peer_script("rest.ts"), folder.join("rest.ts"))?;
    save_document(&format!("{}/openapi.json", hub.base_url), &folder, "openapi.json").await?;
    let node = service_variable("NODE24")?;
    let generator = format!("{modules}/openapi-typescript/bin/cli.js");
    run_program(&node, &[&generator, "openapi.json", "-o", "api.ts"], &folder).await?;
    let tsc = format!("{modules}/typescript/bin/tsc");
    let options = json!({"noEmit": true, "strict": true, "module": "nodenext", "target": "es2023",
        "lib": ["es2023", "dom"], "types": [], "allowImportingTsExtensions": true});
    let project = json!({"compilerOptions": options, "files": ["rest.ts"]});
    std::fs::write(folder.join("tsconfig.json"), project.to_string())?;
    run_program(&node, &[&tsc, "--project", "tsconfig.json"], &folder).await?;
    let said = run_program(&node, &["--no-warnings", "rest.ts", &hub.base_url, TOKEN], &folder).await?;
    check_replies(&said)
}

#[tokio::test]
async fn a_generated_python_client_is_typed_and_works() -> Result<()> {
    let (home, hub) = start_hub().await?;
    let folder = home.dir.path();
    // The generator takes long, so it is given a few tools; those of the server have schemas with definitions.
    save_document(&format!("{}/openapi.json?profile=few", hub.base_url), folder, "openapi.json").await?;
    std::fs::write(folder.join("generator.yaml"), "post_hooks: []\n")?;
    let python = service_variable("CONSUMERS_PYTHON")?;
    let generate = ["-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"];
    let output = ["--output-path", "hub_client", "--config", "generator.yaml"];
    let said = run_program(&python, &[&generate[..], &output].concat(), folder).await?;
    assert!(!said.contains("WARNING") && !said.contains("Unable to"), "{said}");
    let script = peer_script("rest.py").display().to_string();
    let said =
        run_program(&python, &[&script, &folder.display().to_string(), &hub.base_url, TOKEN], folder).await?;
    check_replies(&said)
}

/// Checks the output of both clients for a call that succeeds, one that is refused and one without a token.
fn check_replies(said: &str) -> Result<()> {
    let replies: Value = serde_json::from_str(said).with_context(|| said.to_owned())?;
    assert_eq!(replies, json!({"days": 358, "refused": "invalid", "unknown": 401}));
    Ok(())
}
