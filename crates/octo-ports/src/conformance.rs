//! Rules that every backend obeys, for its tests to run. A rule is given a way to open a store that is empty at first; each
//! opening is like another process on the same data.

mod apis;
mod audit;
mod credentials;
mod leases;
mod listings;
mod memory;
mod pins;
mod results;
mod runs;

use crate::{StoreResult, Stores};
use octo_model::{BoxFuture, Caller, Principal};

pub type Open = dyn Fn() -> Stores + Send + Sync;
pub type Rule = fn(&Open) -> BoxFuture<'_, StoreResult<()>>;

macro_rules! rules {
    ($($port:ident: $($rule:ident),+;)+) => {
        &[$($((concat!(stringify!($port), "::", stringify!($rule)), |open| Box::pin($port::$rule(open)))),+),+]
    };
}

pub const RULES: &[(&str, Rule)] = rules![
    apis: owned_by_their_caller, limited_in_number, durable;
    audit: recorded_in_order, verified_and_anchored, pruned;
    credentials: owned_and_bound_to_an_issuer, replaced_by_revision, limited_in_size, taken_once, durable;
    leases: held_by_one, expired_and_fenced;
    listings: found_under_their_mark;
    memory: owned_by_their_subject, upserted_and_linked, ended_or_erased, listed_in_pages, dumped_in_order, durable;
    pins: first_one_stays, held_until_accepted, follow_a_renamed_server, addresses_of_others;
    results: stored_whole, owned_by_their_caller;
    runs: stored_with_steps_in_order, owned_by_their_caller, written_by_one, listed_newest_first;
];

/// Runs every rule, each on a backend of its own.
pub async fn run(new_backend: impl Fn() -> Box<Open>) {
    for (name, rule) in RULES {
        let open = new_backend();
        let broken = rule(&*open).await.err();
        assert!(broken.is_none(), "{name}: {broken:?}");
    }
}

fn ada() -> Caller {
    Caller::named("ada")
}

/// Everybody who is not Ada, even by name.
fn others() -> [Caller; 2] {
    [Caller::named("bob"), Caller::from(Principal::new("other", "ada"))]
}
