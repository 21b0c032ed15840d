//! Egress against real servers on loopback: what is refused is never contacted, and responses are bounded.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests run the servers themselves and may panic"
)]

#[path = "net/bodies.rs"]
mod bodies;
#[path = "net/bombs.rs"]
mod bombs;
#[path = "net/gates.rs"]
mod gates;
#[path = "net/ground.rs"]
mod ground;
#[path = "net/manners.rs"]
mod manners;
#[path = "net/named.rs"]
mod named;
#[path = "net/names.rs"]
mod names;
#[path = "net/redirects.rs"]
mod redirects;
#[path = "net/secure.rs"]
mod secure;
#[path = "net/spellings.rs"]
mod spellings;
