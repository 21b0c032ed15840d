//! Checks of the database that hubs share.

use crate::settings::check::settings_check::Checks;
use octo_grants::Net;
use octo_grants::sql::DbAddress;
use octo_postgres::Schema;

const MAX_NODE_NAME_LEN: usize = 100;

impl Checks<'_> {
    pub fn check_store(&mut self) {
        let settings = self.settings;
        let store = &settings.store;
        if let Some(dsn) = &store.postgres {
            if let Err(error) = DbAddress::parse("store", dsn, &Net::default()) {
                let hint = "Write it like postgres://user:password@host/database?sslmode=verify-full.";
                self.add_problem("store.postgres", error.message, hint);
            }
            if settings.logins.secret.is_none() && settings.logins.secret_file.is_none() {
                let hint =
                    "Set OCTOPROX_SECRET to the output of `openssl rand -hex 32`, the same for all hubs.";
                self.add_problem("store.postgres", "requires `logins.secret`.", hint);
            }
        }
        if let Err(error) = Schema::parse(&store.schema) {
            self.add_problem("store.schema", format!("{error}."), error.hint());
        }
        let is_node = |name: &String| {
            (1..=MAX_NODE_NAME_LEN).contains(&name.len())
                && name.chars().all(|sign| sign.is_ascii_alphanumeric() || "._-".contains(sign))
        };
        if store.node.as_ref().is_some_and(|name| !is_node(name)) {
            let hint = "Use letters, digits, dots, `_` and `-`.";
            self.add_problem("store.node", "not a name of a node.", hint);
        }
        if store.max_connections == 0 {
            self.add_problem("store.max_connections", "must be at least 1.", "Remove it for the default.");
        }
    }
}
