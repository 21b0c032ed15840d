use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

fn runs(dir: &Path) -> SqliteRunStore {
    SqliteRunStore::new(dir, Durability::Flush, SqliteLeaseStore::new(dir))
}

fn new() -> NewRun {
    NewRun {
        path: "flow.yaml".into(),
        name: "test".into(),
        text: "version: 1".into(),
        params: Json::from(serde_json::json!({"x": 1})),
    }
}

fn step(key: &str, status: &str, output: Option<&str>) -> StoredStep {
    StoredStep {
        key: key.into(),
        status: status.into(),
        output: output.map(Json::text),
        error: None,
        attempts: Json::parse("[]").unwrap(),
    }
}

#[tokio::test]
async fn one_run_has_one_writer() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two, ada) = (runs(temp.path()), runs(temp.path()), Caller::named("ada"));
    let pen = one.begin(&ada, new()).await.unwrap();
    let id = pen.id().to_owned();
    assert_eq!(two.lease(&ada, &id).await.err(), Some(StoreError::Conflict(Port::Runs)));
    drop(pen);
    let (taken, refused) = tokio::join!(one.lease(&ada, &id), two.lease(&ada, &id));
    assert!(taken.is_ok() != refused.is_ok(), "both or neither have it");
}

#[tokio::test]
async fn looking_takes_nothing_away() {
    let temp = tempfile::tempdir().unwrap();
    let (runs, ada) = (runs(temp.path()), Caller::named("ada"));
    let id = runs.begin(&ada, new()).await.unwrap().id().to_owned();
    let looker = tokio::spawn({
        let (runs, ada, id) = (runs.clone(), ada.clone(), id.clone());
        async move {
            for _ in 0..300 {
                runs.get(&ada, &id).await.unwrap();
            }
        }
    });
    while !looker.is_finished() {
        drop(runs.lease(&ada, &id).await.unwrap());
    }
}

#[tokio::test]
async fn what_ended_long_ago_is_forgotten() {
    let temp = tempfile::tempdir().unwrap();
    let (runs, ada) = (runs(temp.path()), Caller::named("ada"));
    for status in [RunStatus::Done, RunStatus::Running] {
        let pen = runs.begin(&ada, new()).await.unwrap();
        pen.step(step("a", "done", None)).await.unwrap();
        pen.status(status, None, None).await.unwrap();
    }
    runs.0.with(|conn| conn.execute("UPDATE runs SET changed = 1", ())).unwrap();
    drop(runs.begin(&ada, new()).await.unwrap());
    let left: Vec<RunStatus> = runs.list(&ada, 10).await.unwrap().iter().map(|run| run.status).collect();
    assert_eq!(left, [RunStatus::Running, RunStatus::Running]);
    let steps =
        runs.0.with(|conn| conn.query_row("SELECT count(*) FROM steps", (), |row| row.get::<_, i64>(0)));
    assert_eq!(steps.unwrap(), 1);
}

const KILL_TEST_DIR: &str = "OCTO_RUNS_KILL_TEST";

/// The child: starts a run, records a step, reports it, and waits to be killed.
#[tokio::test]
#[ignore = "started and killed by the test below"]
async fn child() {
    let Some(dir) = std::env::var_os(KILL_TEST_DIR) else { return };
    let pen = runs(dir.as_ref()).begin(&Caller::named("ada"), new()).await.unwrap();
    pen.step(step("a", "started", None)).await.unwrap();
    println!("\nrun {}", pen.id());
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_killed_process_holds_nothing_and_has_lost_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_store::tests::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(KILL_TEST_DIR, temp.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id = lines.find_map(|line| line.strip_prefix("run ").map(str::to_owned)).unwrap();
    let (runs, ada) = (runs(temp.path()), Caller::named("ada"));
    assert!(runs.get(&ada, &id).await.unwrap().is_leased);
    assert_eq!(runs.lease(&ada, &id).await.err(), Some(StoreError::Conflict(Port::Runs)));
    child.kill().unwrap();
    child.wait().unwrap();
    let (run, _pen) = runs.lease(&ada, &id).await.unwrap();
    assert_eq!((run.steps[0].key.as_str(), run.steps[0].status.as_str()), ("a", "started"));
}
