//! Leases of processes, in a separate database.

mod process_id;

use crate::Durability;
use crate::database::DatabaseSpec;
use crate::lazy_database::{LazyDatabase, WorkResult};
use crate::result_files::now_micros;
use octo_model::BoxFuture;
use octo_ports::leases::MAX_LEASE_DURATION;
use octo_ports::{Changes, Lease, Leases, Port, StoreResult};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "leases.db",
    migrations: &["
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        until INTEGER NOT NULL,
        token INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE tokens (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        last INTEGER NOT NULL
    ) STRICT;
    INSERT INTO tokens (one, last) VALUES (1, 0);
"],
};

/// The `_now` methods block.
#[derive(Clone)]
pub(crate) struct SqliteLeaseStore(LazyDatabase);

impl SqliteLeaseStore {
    pub(crate) fn new(dir: &Path) -> Self {
        Self(LazyDatabase::of(Port::Leases, dir, &DATABASE, Durability::Flush))
    }

    pub(crate) fn acquire_now(&self, name: &str, ttl: Duration) -> StoreResult<Option<Lease>> {
        self.0.with(|conn| acquire(conn, name, ttl))
    }

    pub(crate) fn release_now(&self, lease: &Lease) -> StoreResult<()> {
        self.0.with(|conn| release(conn, lease))
    }

    pub(crate) fn holder_now(&self, name: &str) -> StoreResult<Option<String>> {
        self.0.with(|conn| holder(conn, name))
    }
}

fn until(ttl: Duration) -> i64 {
    let ttl = i64::try_from(ttl.min(MAX_LEASE_DURATION).as_micros()).unwrap_or(i64::MAX);
    now_micros().saturating_add(ttl)
}

/// The holder of a lease. A wrong clock delays others by no more than the maximum lease duration.
fn holder(conn: &Connection, name: &str) -> WorkResult<Option<String>> {
    let mut find = conn.prepare_cached("SELECT holder, until FROM leases WHERE name = ?1")?;
    let held: Option<(String, i64)> =
        find.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (now, far) = (now_micros(), until(MAX_LEASE_DURATION));
    Ok(held
        .filter(|(holder, until)| *until > now && *until <= far && process_id::may_be_alive(holder))
        .map(|(holder, _)| holder))
}

fn acquire(conn: &mut Connection, name: &str, ttl: Duration) -> WorkResult<Option<Lease>> {
    let change = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if holder(&change, name)?.is_some() {
        return Ok(None);
    }
    let token: i64 =
        change.query_row("UPDATE tokens SET last = last + 1 RETURNING last", (), |row| row.get(0))?;
    change
        .prepare_cached("INSERT OR REPLACE INTO leases (name, holder, until, token) VALUES (?1, ?2, ?3, ?4)")?
        .execute((name, process_id::this_process(), until(ttl), token))?;
    change.commit()?;
    Ok(Some(Lease { name: name.to_owned(), token: token.cast_unsigned() }))
}

fn renew(conn: &Connection, lease: &Lease, ttl: Duration) -> WorkResult<bool> {
    let mut renew = conn.prepare_cached("UPDATE leases SET until = ?3 WHERE name = ?1 AND token = ?2")?;
    Ok(renew.execute((&lease.name, lease.token.cast_signed(), until(ttl)))? > 0)
}

fn release(conn: &Connection, lease: &Lease) -> WorkResult<()> {
    let mut release = conn.prepare_cached("DELETE FROM leases WHERE name = ?1 AND token = ?2")?;
    release.execute((&lease.name, lease.token.cast_signed()))?;
    Ok(())
}

impl Leases for SqliteLeaseStore {
    fn changes(&self) -> Changes {
        self.0.changes()
    }

    fn acquire<'a>(&'a self, name: &'a str, ttl: Duration) -> BoxFuture<'a, StoreResult<Option<Lease>>> {
        let name = name.to_owned();
        Box::pin(self.0.run(move |conn| acquire(conn, &name, ttl)))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, StoreResult<bool>> {
        let lease = lease.clone();
        Box::pin(self.0.run(move |conn| renew(conn, &lease, ttl)))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, StoreResult<()>> {
        let lease = lease.clone();
        Box::pin(self.0.run(move |conn| release(conn, &lease)))
    }

    fn holder<'a>(&'a self, name: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        let name = name.to_owned();
        Box::pin(self.0.run(move |conn| holder(conn, &name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn set(dir: &Path, change: &str) {
        Connection::open(dir.join("leases.db")).unwrap().execute(change, ()).unwrap();
    }

    #[test]
    fn a_lease_ends_with_its_process_and_with_a_clock_that_was_wrong() {
        let temp = tempfile::tempdir().unwrap();
        let leases = SqliteLeaseStore::new(temp.path());
        for change in [
            // A dead process of this machine, and one that has reused its pid.
            format!("UPDATE leases SET holder = '{}'", process_id::of(u32::MAX, 1)),
            format!("UPDATE leases SET holder = '{}'", process_id::of(std::process::id(), 1)),
            format!("UPDATE leases SET until = {}", i64::MAX),
        ] {
            assert!(leases.acquire_now("a", MINUTE).unwrap().is_some(), "{change}");
            assert!(leases.acquire_now("a", MINUTE).unwrap().is_none());
            set(temp.path(), &change);
        }
        assert!(leases.acquire_now("a", MINUTE).unwrap().is_some());
        // Nothing is known about other machines, so only the expiry counts.
        set(temp.path(), "UPDATE leases SET holder = 'elsewhere 1 1'");
        assert!(leases.acquire_now("a", MINUTE).unwrap().is_none());
    }

    #[test]
    fn what_is_done_in_turn_is_never_done_twice() {
        let temp = tempfile::tempdir().unwrap();
        let count = temp.path().join("count");
        std::fs::write(&count, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let leases = SqliteLeaseStore::new(temp.path());
                    for _ in 0..20 {
                        let lease = loop {
                            if let Some(lease) = leases.acquire_now("count", MINUTE).unwrap() {
                                break lease;
                            }
                            std::thread::sleep(Duration::from_millis(1));
                        };
                        let next = std::fs::read_to_string(&count).unwrap().parse::<u64>().unwrap() + 1;
                        std::fs::write(&count, next.to_string()).unwrap();
                        leases.release_now(&lease).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "80");
    }

    #[test]
    fn of_many_processes_one_has_it() {
        let temp = tempfile::tempdir().unwrap();
        let stores: Vec<_> = (0..8).map(|_| SqliteLeaseStore::new(temp.path())).collect();
        let got = std::thread::scope(|scope| {
            let race = |store: &SqliteLeaseStore| store.acquire_now("a", MINUTE).unwrap().is_some();
            let threads: Vec<_> = stores.iter().map(|store| scope.spawn(move || race(store))).collect();
            threads
                .into_iter()
                .filter(|_| true)
                .map(|thread| usize::from(thread.join().unwrap()))
                .sum::<usize>()
        });
        assert_eq!(got, 1);
    }
}
