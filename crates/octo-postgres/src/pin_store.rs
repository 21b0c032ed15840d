//! Pinned and held definitions of servers. Whoever writes those of a server has locked its row; a server without
//! news is read only.

mod pin_rows;

use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use octo_model::BoxFuture;
use octo_ports::{
    Changes, PendingPin, Pin, PinDelta, PinSet, PinWrite, Pins, Port, ServerIdentity, StoreResult,
};
use std::sync::Arc;
use tokio_postgres::Row;

pub(crate) struct PostgresPinStore(pub(crate) Arc<Database>);

impl PostgresPinStore {
    async fn read(&self, sql: &str, values: &[&dyn Value]) -> StoreResult<Vec<Row>> {
        self.0.read(Port::Pins, Scope::AllTenants, sql, values).await
    }

    async fn load(&self, whose: &ServerIdentity) -> StoreResult<PinSet> {
        let load = pin_rows::load_sql();
        let values: [&dyn Value; 3] = [&whose.server, &whose.identity, &whose.others];
        let stored = pin_rows::stored_pins(&self.read(&load, &values).await?);
        if stored.identity.as_ref() == Some(&whose.identity) && !stored.is_renamed {
            return Ok(stored.set);
        }
        let mut transaction = self.0.begin(Port::Pins, Scope::AllTenants).await?;
        pin_rows::put_identity(&mut transaction, whose).await?;
        pin_rows::adopt_renamed(&mut transaction, whose).await?;
        let stored = pin_rows::stored_pins(&transaction.query(&load, &values).await?);
        transaction.announce(Port::Pins);
        transaction.commit().await?;
        Ok(stored.set)
    }

    async fn write(&self, server: &str, news: &PinDelta) -> StoreResult<PinWrite> {
        if news.is_empty() && self.read(pin_rows::FIND_PENDING, &[&server]).await?.is_empty() {
            return Ok(PinWrite::Written(Vec::new()));
        }
        let mut transaction = self.0.begin(Port::Pins, Scope::AllTenants).await?;
        pin_rows::lock_server(&mut transaction, server).await?;
        if pin_rows::is_overtaken(&mut transaction, server, news).await? {
            return Ok(PinWrite::Conflict);
        }
        let is_pinned = pin_rows::put_pins(&mut transaction, server, news).await?;
        let seen = pin_rows::record_seen(&mut transaction, server, news).await?;
        if is_pinned || seen.is_changed {
            transaction.announce(Port::Pins);
        }
        transaction.commit().await?;
        Ok(PinWrite::Written(seen.fresh))
    }

    async fn accept(&self, server: &str, chosen: &[Pin]) -> StoreResult<usize> {
        let mut transaction = self.0.begin(Port::Pins, Scope::AllTenants).await?;
        pin_rows::lock_server(&mut transaction, server).await?;
        let count = pin_rows::accept(&mut transaction, server, chosen).await?;
        transaction.announce(Port::Pins);
        transaction.commit().await?;
        Ok(count)
    }
}

impl Pins for PostgresPinStore {
    fn changes(&self) -> Changes {
        self.0.changes(Port::Pins)
    }

    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, StoreResult<PinSet>> {
        Box::pin(self.load(whose))
    }

    fn write<'a>(
        &'a self,
        whose: &'a ServerIdentity,
        news: PinDelta,
    ) -> BoxFuture<'a, StoreResult<PinWrite>> {
        Box::pin(async move { self.write(&whose.server, &news).await })
    }

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<u64>> {
        Box::pin(async move {
            let rows = self.read("SELECT revision FROM pin_servers WHERE server = $1", &[&server]).await?;
            Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
        })
    }

    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, StoreResult<Vec<PendingPin>>> {
        Box::pin(async move {
            let rows = self.read(pin_rows::PENDING, &[&server]).await?;
            Ok(rows.iter().filter_map(pin_rows::pending_from_row).collect())
        })
    }

    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, StoreResult<usize>> {
        Box::pin(async move { self.accept(server, &chosen).await })
    }
}
