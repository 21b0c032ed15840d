use super::{Open, ada, others};
use crate::runs::lease_name;
use crate::{Lease, NewRun, Port, RunStatus, StoreError, StoreResult, StoredStep};
use octo_model::{Json, sha256_hex};
use std::time::Duration;

fn new(name: &str) -> NewRun {
    NewRun {
        path: "flow.yaml".into(),
        name: name.into(),
        text: "version: 1".into(),
        params: Json::empty_object(),
    }
}

fn step(key: &str, status: &str, output: Option<&str>) -> StoredStep {
    StoredStep {
        key: key.into(),
        status: status.into(),
        output: output.map(Json::text),
        error: None,
        attempts: Json::array([]),
    }
}

pub async fn stored_with_steps_in_order(open: &Open) -> StoreResult<()> {
    let lease = open().runs.begin(&ada(), new("test")).await?;
    lease.step(step("b", "started", None)).await?;
    lease.step(step("a", "done", Some("x"))).await?;
    lease.step(step("b", "done", Some("y"))).await?;
    let id = lease.id().to_owned();
    assert!(id.starts_with("w_"), "{id}");
    lease.release().await;
    let (run, lease) = open().runs.lease(&ada(), &id).await?;
    let brief =
        |step: &StoredStep| (step.key.clone(), step.output.as_ref().map(|json| json.as_str().to_owned()));
    let steps: Vec<_> = run.steps.iter().map(brief).collect();
    let quoted = |text: &str| Some(format!("\"{text}\""));
    assert_eq!(steps, [("b".to_owned(), quoted("y")), ("a".to_owned(), quoted("x"))]);
    assert_eq!(
        (run.text.as_str(), run.params.as_str(), run.status),
        ("version: 1", "{}", RunStatus::Running)
    );
    assert_eq!(run.hash, sha256_hex(b"version: 1"));
    lease.status(RunStatus::Done, Some(Json::empty_object()), None).await?;
    let seen = open().runs.get(&ada(), &id).await?;
    assert!(seen.is_leased && seen.status == RunStatus::Done);
    assert!(seen.steps.iter().all(|step| step.output.is_none()), "without the outputs");
    lease.release().await;
    assert!(!open().runs.get(&ada(), &id).await?.is_leased);
    Ok(())
}

/// Another caller's run is treated as nonexistent.
pub async fn owned_by_their_caller(open: &Open) -> StoreResult<()> {
    let runs = open().runs;
    let id = runs.begin(&ada(), new("test")).await?.id().to_owned();
    let unknown = Some(StoreError::NotFound(Port::Runs));
    for other in &others() {
        for id in [id.as_str(), "w_nothing", "../../etc/passwd"] {
            assert_eq!(runs.get(other, id).await.err(), unknown, "{id}");
            assert_eq!(runs.lease(other, id).await.err(), unknown, "{id}");
        }
        assert!(runs.list(other, 10).await?.is_empty());
    }
    assert_eq!(runs.list(&ada(), 10).await?.len(), 1);
    Ok(())
}

pub async fn written_by_one(open: &Open) -> StoreResult<()> {
    let (one, two) = (open().runs, open().runs);
    let lease = one.begin(&ada(), new("test")).await?;
    let id = lease.id().to_owned();
    assert_eq!(two.lease(&ada(), &id).await.err(), Some(StoreError::Conflict(Port::Runs)));
    assert_eq!(one.lease(&ada(), &id).await.err(), Some(StoreError::Conflict(Port::Runs)));
    lease.release().await;
    let (_, lease) = two.lease(&ada(), &id).await?;
    assert_eq!(one.lease(&ada(), &id).await.err(), Some(StoreError::Conflict(Port::Runs)));
    lease.release().await;
    let (_, lease) = one.lease(&ada(), &id).await?;
    lease.release().await;
    Ok(())
}

/// Ends the lease of a run, as its expiry would. Its token is older than that of a new lease.
async fn end_lease(open: &Open, id: &str) -> StoreResult<()> {
    let leases = open().leases;
    let newer = leases.acquire("another", Duration::ZERO).await?.map_or(0, |lease| lease.token);
    for token in 0..newer {
        leases.release(&Lease { name: lease_name(id), token }).await?;
    }
    Ok(())
}

/// A process slept for longer than its lease, and another one has resumed the run.
pub async fn fenced(open: &Open) -> StoreResult<()> {
    let late = open().runs.begin(&ada(), new("test")).await?;
    late.step(step("a", "started", None)).await?;
    end_lease(open, late.id()).await?;
    assert!(!open().runs.get(&ada(), late.id()).await?.is_leased);
    let (run, lease) = open().runs.lease(&ada(), late.id()).await?;
    assert_eq!(run.steps.len(), 1);
    lease.step(step("a", "done", Some("x"))).await?;
    let conflict = Err(StoreError::Conflict(Port::Runs));
    assert_eq!(late.step(step("a", "failed", None)).await, conflict);
    assert_eq!(late.status(RunStatus::Failed, None, None).await, conflict);
    late.release().await;
    let seen = open().runs.get(&ada(), &run.id).await?;
    assert!(seen.is_leased && seen.status == RunStatus::Running);
    assert_eq!(seen.steps.iter().map(|step| step.status.as_str()).collect::<Vec<_>>(), ["done"]);
    Ok(())
}

pub async fn listed_newest_first(open: &Open) -> StoreResult<()> {
    let runs = open().runs;
    for name in ["one", "two", "three"] {
        runs.begin(&ada(), new(name)).await?.step(step("a", "done", None)).await?;
    }
    let listed = runs.list(&ada(), 2).await?;
    assert_eq!(listed.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["three", "two"]);
    assert!(listed.iter().all(|run| run.text.is_empty() && run.steps.is_empty()));
    Ok(())
}
