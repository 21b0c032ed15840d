use super::{Open, ada};
use crate::leases::MAX_LEASE_DURATION;
use crate::{
    Changes, NewRun, Owner, Pin, PinDelta, PinKind, ServerIdentity, Slot, StoreResult, StoredStep, Stores,
};
use octo_model::{BoxFuture, ItemKind, Json, Secret};
use std::time::Duration;
use tokio::time::timeout;

/// More than one, since a waiter may be woken once without a write.
const ROUNDS: usize = 4;
const DEADLINE: Duration = Duration::from_secs(30);
/// Several intervals at which a backend may poll.
const QUIET: Duration = Duration::from_millis(350);

/// A port that can be waited for.
struct PortCase {
    name: &'static str,
    changes: fn(&Stores) -> Changes,
    /// Makes the write with this number, from 1.
    write: for<'a> fn(&'a Stores, usize) -> BoxFuture<'a, StoreResult<()>>,
    /// Number of writes that can be read.
    count: for<'a> fn(&'a Stores) -> BoxFuture<'a, StoreResult<usize>>,
}

const PORTS: [PortCase; 4] = [
    PortCase {
        name: "credentials",
        changes: |stores| stores.credentials.changes(),
        write: |stores, number| {
            Box::pin(async move {
                let slot = Slot::new(Owner::Shared, "notion", format!("issuer {number}"));
                stores.credentials.put(&slot, Secret::new("secret"), None).await.map(drop)
            })
        },
        count: |stores| Box::pin(async { Ok(stores.credentials.slots().await?.len()) }),
    },
    PortCase {
        name: "leases",
        changes: |stores| stores.leases.changes(),
        write: |stores, number| {
            Box::pin(
                async move { stores.leases.acquire(&lease_name(number), MAX_LEASE_DURATION).await.map(drop) },
            )
        },
        count: |stores| {
            Box::pin(async {
                let mut held = 0;
                while stores.leases.holder(&lease_name(held + 1)).await?.is_some() {
                    held += 1;
                }
                Ok(held)
            })
        },
    },
    PortCase {
        name: "pins",
        changes: |stores| stores.pins.changes(),
        write: |stores, number| {
            Box::pin(async move {
                let pins = (1..=number).map(|number| Pin {
                    kind: PinKind::Item(ItemKind::Tool),
                    key: format!("tool {number}"),
                    text: Json::empty_object(),
                    hash: String::new(),
                });
                let held = PinDelta { held: pins.collect(), ..PinDelta::default() };
                stores.pins.write(&notion(), held).await.map(drop)
            })
        },
        count: |stores| Box::pin(async { Ok(stores.pins.pending("notion").await?.len()) }),
    },
    PortCase {
        name: "runs",
        changes: |stores| stores.runs.changes(),
        write: |stores, _| Box::pin(async { stores.runs.begin(&ada(), new_run()).await.map(drop) }),
        count: |stores| Box::pin(async { Ok(stores.runs.list(&ada(), ROUNDS + 1).await?.len()) }),
    },
];

fn lease_name(number: usize) -> String {
    format!("lease {number}")
}

fn notion() -> ServerIdentity {
    ServerIdentity { server: "notion".into(), ..ServerIdentity::default() }
}

fn new_run() -> NewRun {
    NewRun {
        path: "flow.yaml".into(),
        name: "test".into(),
        text: String::new(),
        params: Json::empty_object(),
    }
}

async fn next_change(changes: &mut Changes, what: &str) {
    assert!(timeout(DEADLINE, changes.changed()).await.is_ok(), "no notification of the change of {what}");
}

/// Waits at least once.
async fn wait_for_write(
    port: &PortCase,
    stores: &Stores,
    changes: &mut Changes,
    number: usize,
) -> StoreResult<()> {
    next_change(changes, port.name).await;
    while (port.count)(stores).await? < number {
        next_change(changes, port.name).await;
    }
    Ok(())
}

/// Whoever waits is woken by a write.
pub async fn wake_a_waiter(open: &Open) -> StoreResult<()> {
    for port in &PORTS {
        let stores = open();
        let mut changes = (port.changes)(&stores);
        for number in 1..=ROUNDS {
            let write = async {
                // The other branch waits by now.
                tokio::task::yield_now().await;
                (port.write)(&stores, number).await
            };
            let (waited, written) = tokio::join!(wait_for_write(port, &stores, &mut changes, number), write);
            waited.and(written)?;
        }
    }
    Ok(())
}

/// A write between the subscription and the wait ends the wait, and so does one after a wait that was given up.
pub async fn kept_until_the_wait(open: &Open) -> StoreResult<()> {
    for port in &PORTS {
        let stores = open();
        let mut changes = (port.changes)(&stores);
        for number in 1..=ROUNDS {
            assert_eq!((port.count)(&stores).await?, number - 1, "{}", port.name);
            let _ = timeout(Duration::ZERO, changes.changed()).await;
            (port.write)(&stores, number).await?;
            wait_for_write(port, &stores, &mut changes, number).await?;
        }
    }
    Ok(())
}

/// Writes through another handle wake, too, each of several waiters.
pub async fn reported_to_all_handles(open: &Open) -> StoreResult<()> {
    for port in &PORTS {
        let (one, two) = (open(), open());
        let mut waiters = [(port.changes)(&one), (port.changes)(&one), (port.changes)(&two)];
        for number in 1..=ROUNDS {
            (port.write)(&two, number).await?;
            for (changes, stores) in waiters.iter_mut().zip([&one, &one, &two]) {
                wait_for_write(port, stores, changes, number).await?;
            }
        }
    }
    Ok(())
}

/// Without writes a waiter is soon not woken any more.
pub async fn quiet_without_writes(open: &Open) -> StoreResult<()> {
    for port in &PORTS {
        let stores = open();
        (port.write)(&stores, 1).await?;
        let mut changes = (port.changes)(&stores);
        let mut wakes = 0;
        while timeout(QUIET, changes.changed()).await.is_ok() {
            wakes += 1;
            assert!(wakes <= ROUNDS, "{} changes by itself", port.name);
        }
    }
    Ok(())
}

/// A waiter for a run learns about its steps, and that nobody works on it any more.
pub async fn of_a_run_and_its_lease(open: &Open) -> StoreResult<()> {
    let (one, two) = (open().runs, open().runs);
    let lease = two.begin(&ada(), new_run()).await?;
    let id = lease.id().to_owned();
    let mut changes = one.changes();
    for count in 1..=ROUNDS {
        let step = StoredStep {
            key: format!("step {count}"),
            status: "done".into(),
            output: None,
            error: None,
            attempts: Json::array([]),
        };
        lease.step(step).await?;
        next_change(&mut changes, "a step").await;
        while one.get(&ada(), &id).await?.steps.len() < count {
            next_change(&mut changes, "a step").await;
        }
    }
    lease.release().await;
    next_change(&mut changes, "a lease").await;
    while one.get(&ada(), &id).await?.is_leased {
        next_change(&mut changes, "a lease").await;
    }
    Ok(())
}
