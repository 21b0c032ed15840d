//! Both backends satisfy the same rules.

use crate::{Options, sqlite};

mod on_sqlite {
    use crate::{Options, sqlite};
    use octo_ports::conformance::Open;

    fn new_backend() -> Box<Open> {
        let dir = tempfile::tempdir().unwrap();
        Box::new(move || sqlite(dir.path(), Options::default()).unwrap())
    }

    octo_ports::conformance_tests!(new_backend);
}

mod in_memory {
    use octo_ports::conformance::Open;
    use octo_ports::{Stores, in_memory};

    fn new_backend() -> Box<Open> {
        let stores = Stores {
            rate_buckets: Some(in_memory::rate_buckets()),
            fleet_records: Some(in_memory::fleet_records()),
            ..Stores::in_memory()
        };
        Box::new(move || stores.clone())
    }

    octo_ports::conformance_tests!(shared new_backend);
}

#[tokio::test]
async fn nothing_is_made_before_it_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let stores = sqlite(&state, Options::default()).unwrap();
    stores.audit.flush().await.unwrap();
    assert!(stores.audit_reader.heads().await.is_err() && !state.exists());
    stores.listings.get("a", "m").await.unwrap();
    let files =
        std::fs::read_dir(&state).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert!(files.into_iter().all(|name| name.starts_with("lists.db")));
    drop(sqlite(&state, Options { open_audit: true, ..Options::default() }).unwrap());
    assert!(state.join("octoprox.db").exists());
}
