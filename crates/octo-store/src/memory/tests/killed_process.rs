//! Every acknowledged memory survives `kill -9`, and is found afterwards.

use super::*;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

const DIRECTORY: &str = "OCTO_MEMORY_KILL_TEST";
const ROUND: &str = "OCTO_MEMORY_KILL_ROUND";
const CALLERS: usize = 100;

/// The child: a hundred callers that write without end, and print each entity once it is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started and killed by the other tests"]
async fn child() {
    let (Some(dir), Ok(round)) = (std::env::var_os(DIRECTORY), std::env::var(ROUND)) else {
        return;
    };
    let memories = Arc::new(open(dir.as_ref()));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (memories, round) = (Arc::clone(&memories), round.clone());
            tokio::spawn(async move {
                for at in 0..1_000 {
                    let name = format!("r{round}c{caller}n{at}");
                    let mut entities = vec![entity(&name, "thing", &[&format!("Seen by {name}x")])];
                    if at % 10 == 0 {
                        entities.push(entity(
                            &format!("caller {caller}"),
                            "caller",
                            &[&format!("Wrote {name}")],
                        ));
                    }
                    memories.upsert(ada(), entities, NameMatch::Alike).await.unwrap();
                    println!("\nacknowledged {name}");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Starts the child, kills it after `answers` acknowledgements, and returns all that it acknowledged.
fn round(dir: &Path, round: usize, answers: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "memory::tests::killed_process::child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIRECTORY, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).split(b'\n').map_while(Result::ok);
    let name = |line: Vec<u8>| {
        let line = String::from_utf8(line).ok()?;
        // The last line may be truncated by the kill: a name is complete if something follows it.
        line.strip_prefix("acknowledged ").map(str::to_owned)
    };
    let mut acknowledged: Vec<String> = lines.by_ref().filter_map(name).take(answers).collect();
    child.kill().unwrap();
    // Output before the kill counts, too; the very last line may be incomplete.
    let mut rest: Vec<String> = lines.filter_map(name).collect();
    rest.pop();
    acknowledged.extend(rest);
    child.wait().unwrap();
    acknowledged
}

async fn survive(rounds: usize, answers: usize) {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for at in 0..rounds {
        acknowledged.extend(round(dir.path(), at, answers));
    }
    assert!(acknowledged.len() >= rounds * answers, "only {} were acknowledged", acknowledged.len());
    let memories = open(dir.path());
    let (mut after, mut written, mut noted) = (Some(0), HashSet::new(), HashSet::new());
    while let Some(from) = after {
        let dump = memories.dump(ada(), from, 1_000).await.unwrap();
        for known in dump.entities {
            assert_eq!(known.fact_count, known.facts.len() as u64);
            if known.kind == "caller" {
                noted.extend(known.facts.into_iter().map(|fact| fact.text.replace("Wrote ", "")));
            } else {
                assert_eq!(known.facts.len(), 1, "{} is there without what was said of it", known.name);
                assert!(written.insert(known.name.clone()), "{} is there twice", known.name);
            }
        }
        after = dump.next;
    }
    for name in &acknowledged {
        assert!(written.contains(name), "{name} of {} is lost", acknowledged.len());
        assert!(!name.ends_with("n0") || noted.contains(name), "the second half of {name} is lost");
    }
    let step = (acknowledged.len() / 1_000).max(1);
    for name in acknowledged.iter().step_by(step) {
        assert_eq!(find(&memories, &format!("{name}x")).await, [name.as_str()], "it is there and not found");
    }
    println!("{} acknowledged, {} written, {rounds} kills, 0 lost", acknowledged.len(), written.len());
}

#[tokio::test]
async fn acknowledged_memories_survive() {
    survive(3, 300).await;
}

#[tokio::test]
#[ignore = "takes minutes: a hundred callers, a thousand answers each, a hundred kills"]
async fn a_hundred_callers_and_a_hundred_kills() {
    survive(100, 1_000).await;
}
