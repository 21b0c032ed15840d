//! Rules that every backend must satisfy, for its tests to run. A rule gets a function that opens a store,
//! initially empty; each opening acts like another process on the same data.

pub mod apis;
pub mod audit;
pub mod call_samples;
pub mod changes;
pub mod client_sessions;
pub mod credentials;
pub mod fleet_records;
pub mod health;
pub mod leases;
pub mod listings;
pub mod memory;
pub mod pins;
pub mod rate_buckets;
pub mod results;
pub mod runs;

use crate::Stores;
use octo_model::{BoxFuture, Caller, Principal};

pub type Open = dyn Fn() -> Stores + Send + Sync;

/// One test per rule, in a module per port. `$new_backend` is a function that returns a `Box<Open>` over an
/// empty backend.
#[macro_export]
macro_rules! conformance_tests {
    ($new_backend:ident) => {
        $crate::conformance_tests! { $new_backend;
            apis: owned_by_their_caller, limited_in_number, limited_across_processes, replaced_secrets,
                any_characters, durable;
            audit: recorded_in_order, verified_and_anchored, pruned;
            changes: wake_a_waiter, kept_until_the_wait, reported_to_all_handles, quiet_without_writes,
                of_a_run_and_its_lease;
            credentials: owned_and_bound_to_an_issuer, replaced_by_revision, replaced_by_one, any_issuer,
                limited_in_size, taken_once, taken_by_one, durable;
            health: without_problems;
            leases: held_by_one, expired_and_fenced;
            listings: found_under_their_mark;
            memory: owned_by_their_subject, upserted_and_linked, ended_or_erased, listed_in_pages,
                dumped_in_order, durable;
            pins: first_one_stays, pinned_by_one, held_until_accepted, reported_a_few_times, any_key,
                follow_a_renamed_server, addresses_of_others;
            results: stored_whole, owned_by_their_caller;
            runs: stored_with_steps_in_order, owned_by_their_caller, written_by_one, fenced,
                listed_newest_first;
        }
    };
    // Also what only a backend of several processes has.
    (shared $new_backend:ident) => {
        $crate::conformance_tests!($new_backend);
        $crate::conformance_tests! { $new_backend;
            rate_buckets: leased_in_slices, returned_unused, occupied_while_valid, never_leased_twice;
            client_sessions: changed_by_their_client, streams_are_read_elsewhere, orphans_are_adopted_once,
                questions_are_taken_once;
            fleet_records: first_value_stays, listed_by_prefix, changes_wake;
        }
    };
    ($new_backend:ident; $($port:ident: $($rule:ident),+;)+) => {
        $(mod $port {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $rule() {
                let open: Box<$crate::conformance::Open> = super::$new_backend();
                $crate::conformance::$port::$rule(&*open).await.unwrap();
            })+
        })+
    };
}

/// Runs tasks at once, and returns their results.
async fn race<T: Send + 'static>(tasks: impl IntoIterator<Item = BoxFuture<'static, T>>) -> Vec<T> {
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        match task.await {
            Ok(result) => results.push(result),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    results
}

fn ada() -> Caller {
    Caller::named("ada")
}

/// Callers other than Ada, including one with her name in another tenant.
fn others() -> [Caller; 2] {
    [Caller::named("bob"), Caller::from(Principal::new("other", "ada"))]
}
