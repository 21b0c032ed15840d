use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn runs(dir: &Path) -> SqliteRunStore {
    SqliteRunStore::new(dir, Durability::Flush)
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
async fn a_run_outlives_the_process_with_its_steps_in_their_order() {
    let temp = tempfile::tempdir().unwrap();
    let ada = Caller::named("ada");
    let pen = runs(temp.path()).begin(&ada, new()).await.unwrap();
    pen.step(step("b", "started", None)).await.unwrap();
    pen.step(step("a", "done", Some("x"))).await.unwrap();
    pen.step(step("b", "done", Some("y"))).await.unwrap();
    let id = pen.id().to_owned();
    assert!(id.starts_with("w_") && is_run_id(&id), "{id}");
    drop(pen);
    let (run, pen) = runs(temp.path()).lease(&ada, &id).await.unwrap();
    let steps: Vec<_> = run.steps.iter().map(|step| (step.key.as_str(), step.status.as_str())).collect();
    assert_eq!(steps, [("b", "done"), ("a", "done")]);
    assert_eq!(run.steps[0].output.as_ref().unwrap().as_str(), "\"y\"");
    assert_eq!(
        (run.text.as_str(), run.params.as_str(), run.status),
        ("version: 1", "{\"x\":1}", RunStatus::Running)
    );
    assert_eq!(run.hash, fingerprint("version: 1"));
    pen.status(RunStatus::Done, Some(Json::empty_object()), None).await.unwrap();
    let seen = runs(temp.path()).get(&ada, &id).await.unwrap();
    assert!(seen.is_leased && seen.status == RunStatus::Done && seen.steps[0].output.is_none());
    drop(pen);
    assert!(!runs(temp.path()).get(&ada, &id).await.unwrap().is_leased);
}

#[tokio::test]
async fn someone_elses_run_is_like_none() {
    let temp = tempfile::tempdir().unwrap();
    let runs = runs(temp.path());
    let pen = runs.begin(&Caller::named("ada"), new()).await.unwrap();
    let id = pen.id().to_owned();
    drop(pen);
    let bob = Caller::named("bob");
    let other = Caller::from(Principal::new("other", "ada"));
    for (caller, id) in [(&bob, id.as_str()), (&other, &id), (&bob, "w_nothing"), (&bob, "../../etc/passwd")]
    {
        assert_eq!(runs.get(caller, id).await.unwrap_err(), unknown_run(), "{id}");
        assert_eq!(runs.lease(caller, id).await.err().unwrap(), unknown_run(), "{id}");
    }
    assert!(runs.list(&bob, 10).await.unwrap().is_empty());
    assert_eq!(runs.list(&Caller::named("ada"), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_run_has_one_writer() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two, ada) = (runs(temp.path()), runs(temp.path()), Caller::named("ada"));
    let pen = one.begin(&ada, new()).await.unwrap();
    let id = pen.id().to_owned();
    assert_eq!(two.lease(&ada, &id).await.err().unwrap().kind, Kind::Conflict);
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
    assert_eq!(std::fs::read_dir(temp.path().join(LOCK_DIRECTORY)).unwrap().count(), 2);
}

const KILL_TEST_DIR: &str = "OCTO_RUNS_KILL_TEST";

/// The child: begins a run, notes a step, says so, and waits to be killed.
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
    assert_eq!(runs.lease(&ada, &id).await.err().unwrap().kind, Kind::Conflict);
    child.kill().unwrap();
    child.wait().unwrap();
    let (run, _pen) = runs.lease(&ada, &id).await.unwrap();
    assert_eq!((run.steps[0].key.as_str(), run.steps[0].status.as_str()), ("a", "started"));
}
