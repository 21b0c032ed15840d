//! Name resolution.

use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Addresses of a name, in the order in which they should be tried.
pub type ResolveFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names. Its answers are not trusted: each address is checked before use.
pub trait Resolver: Send + Sync + 'static {
    fn resolve<'a>(&'a self, name: &'a str) -> ResolveFuture<'a>;
}

/// Maximum concurrent lookups. They block threads that files need as well, and a slow name server must not take them
/// all.
const MAX_LOOKUPS: usize = 64;

/// The system resolver.
pub(crate) struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> ResolveFuture<'a> {
        Box::pin(async move {
            let turn = self.0.clone().acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                // Held here, because a lookup continues after its caller has given up.
                let _turn = turn;
                (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
