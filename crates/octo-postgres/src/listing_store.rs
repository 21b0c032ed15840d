//! The last listing of each upstream.

use crate::database::Database;
use crate::transaction::Scope;
use octo_model::BoxFuture;
use octo_ports::{ListingStore, Port, StoreResult};
use std::sync::Arc;

pub(crate) struct PostgresListingStore(pub(crate) Arc<Database>);

impl ListingStore for PostgresListingStore {
    fn get<'a>(&'a self, server: &'a str, mark: &'a str) -> BoxFuture<'a, StoreResult<Option<String>>> {
        Box::pin(async move {
            let find = "SELECT text FROM listings WHERE server = $1 AND mark = $2";
            let rows = self.0.read(Port::Listings, Scope::AllTenants, find, &[&server, &mark]).await?;
            Ok(rows.first().map(|row| row.get(0)))
        })
    }

    fn put<'a>(&'a self, server: &'a str, mark: &'a str, text: String) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let put = "INSERT INTO listings (server, mark, text) VALUES ($1, $2, $3)
                       ON CONFLICT (server) DO UPDATE SET mark = excluded.mark, text = excluded.text";
            self.0.write(Port::Listings, Scope::AllTenants, put, &[&server, &mark, &text]).await.map(drop)
        })
    }
}
