use super::*;
use crate::in_memory::InMemoryCredentials;
use octo_model::Caller;

const CANARY: &str = "c4nary-t0ken";
const KEY: [u8; 32] = [7; 32];
const NEXT_KEY: [u8; 32] = [8; 32];

fn store(
    records: &Arc<InMemoryCredentials>,
    current: [u8; 32],
    previous: &'static [[u8; 32]],
) -> CredentialStore {
    let keyring = move || {
        let previous = previous.iter().map(Seal::new).collect::<StoreResult<_>>()?;
        Ok(Keyring { current: Seal::new(&current)?, previous })
    };
    CredentialStore::new(records.clone(), move || Box::pin(std::future::ready(keyring())))
}

fn slot(subject: &str) -> Slot {
    Slot::new(Owner::from(&Caller::named(subject)), "notion", "https://auth.example")
}

fn login(id: &str) -> PendingLogin {
    PendingLogin {
        id: id.into(),
        owner: slot("ada").owner,
        server: "notion".into(),
        expires: 100,
        secret: Secret::new(CANARY),
    }
}

/// Ada's credential and pending login.
async fn with_ada() -> (Arc<InMemoryCredentials>, CredentialStore) {
    let records = Arc::default();
    let kept = store(&records, KEY, &[]);
    kept.put(&slot("ada"), Secret::new(CANARY), None).await.unwrap();
    kept.put_pending(login("id"), 0).await.unwrap();
    (records, kept)
}

#[tokio::test]
async fn a_backend_sees_no_secret() {
    let (records, store) = with_ada().await;
    let set = records.lock().clone();
    let secrets = set.credentials.iter().map(|kept| &kept.secret);
    let secrets = secrets.chain(set.logins.iter().map(|login| &login.secret));
    let sealed: Vec<&Secret> = secrets.chain(set.revisions.iter().map(|list| &list.sealed)).collect();
    assert_eq!(sealed.len(), 3);
    for secret in sealed {
        assert!(!secret.bytes().windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
    }
    assert_eq!(store.find(&slot("ada")).await.unwrap().unwrap().secret.expose(), CANARY);
    assert_eq!(store.take_pending("id", 0).await.unwrap(), Some(login("id")));
}

#[tokio::test]
async fn a_record_of_another_principal_server_or_issuer_does_not_open() {
    let other = |change: fn(&mut Slot)| {
        let mut slot = slot("ada");
        change(&mut slot);
        slot
    };
    for moved in [
        slot("bob"),
        other(|slot| slot.owner = Owner::Shared),
        other(|slot| slot.server = "github".into()),
        other(|slot| slot.issuer = "https://evil.example".into()),
    ] {
        let (records, store) = with_ada().await;
        records.lock().credentials[0].slot = moved.clone();
        assert!(store.find(&moved).await.is_err() && store.all(&moved.owner, &moved.server).await.is_err());

        // With the same revision in the list, too.
        let seal = Seal::new(&KEY).unwrap();
        let mut list = RevisionList::default();
        assert_eq!(list.advance(&moved), records.lock().credentials[0].revision);
        assert!(unseal_credential(&seal, &list, &records.lock().credentials[0]).is_err());
    }
}

#[tokio::test]
async fn a_login_of_another_principal_or_server_does_not_open() {
    for (owner, server) in
        [(slot("bob").owner, "notion"), (Owner::Shared, "notion"), (slot("ada").owner, "x")]
    {
        let (records, store) = with_ada().await;
        let moved =
            PendingLogin { owner: owner.clone(), server: server.into(), ..records.lock().logins[0].clone() };
        records.lock().logins[0] = moved;
        assert!(store.find_pending(&owner, server, 0).await.is_err());
        assert!(store.take_pending("id", 0).await.is_err());
    }
}

#[tokio::test]
async fn a_restored_list_or_a_missing_one_is_noticed() {
    let (records, kept) = with_ada().await;
    let old = records.lock().clone();
    assert!(kept.remove(&slot("ada")).await.unwrap());
    *records.lock() = old;
    assert!(matches!(kept.find(&slot("ada")).await, Err(StoreError::Corrupt { .. })));
    records.lock().revisions = None;
    assert!(matches!(kept.find(&slot("ada")).await, Err(StoreError::Corrupt { .. })));
    let again = store(&records, KEY, &[]);
    assert!(matches!(again.find(&slot("ada")).await, Err(StoreError::Corrupt { .. })));
}

#[tokio::test]
async fn a_new_key_takes_over_while_a_process_with_the_old_one_writes() {
    let (records, old) = with_ada().await;
    let new = store(&records, NEXT_KEY, &[KEY]);
    assert_eq!(new.find(&slot("ada")).await.unwrap().unwrap().secret.expose(), CANARY);
    assert_eq!(new.find_pending(&slot("ada").owner, "notion", 0).await.unwrap(), Some(login("id")));
    let mismatch = StoreError::SealMismatch { port: Port::Credentials, name: "credentials".into() };
    assert_eq!(old.put(&slot("ada"), Secret::new("x"), None).await, Err(mismatch.clone()));
    assert_eq!(old.put_pending(login("id"), 0).await, Err(mismatch.clone()));
    assert_eq!(store(&records, KEY, &[]).find(&slot("ada")).await, Err(mismatch));
    assert_eq!(new.find(&slot("ada")).await.unwrap().unwrap().secret.expose(), CANARY);
}

#[tokio::test]
async fn a_login_that_was_taken_while_it_was_resealed_does_not_come_back() {
    let (records, kept) = with_ada().await;
    let set = records.lock().clone();
    assert!(kept.take_pending("id", 0).await.unwrap().is_some());
    let (seal, before) = (Seal::new(&KEY).unwrap(), set.revisions.unwrap());
    let after = RevisionList::unseal(&before, &seal).unwrap().unwrap().seal(&seal).unwrap();
    let change = CredentialChange::Replace { credentials: set.credentials, logins: set.logins };
    assert!(records.write(Some(before), after, change).await.unwrap());
    assert_eq!(kept.take_pending("id", 0).await.unwrap(), None);
    assert_eq!(kept.find(&slot("ada")).await.unwrap().unwrap().secret.expose(), CANARY);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_several_processes_are_all_made() {
    let records = Arc::default();
    // Fewer changes than attempts: each lost attempt is a change of another process.
    let changes = (0..4).map(|process| {
        let kept = store(&records, KEY, &[]);
        tokio::spawn(async move {
            for at in 0..10 {
                kept.put(&slot(&format!("{process}-{at}")), Secret::new(CANARY), None).await.unwrap();
            }
        })
    });
    for change in changes.collect::<Vec<_>>() {
        change.await.unwrap();
    }
    let kept = store(&records, KEY, &[]);
    let slots = kept.slots().await.unwrap();
    assert_eq!((slots.len(), records.lock().revisions.as_ref().unwrap().revision), (40, 40));
    for slot in &slots {
        assert_eq!(kept.find(slot).await.unwrap().unwrap().secret.expose(), CANARY);
    }
}
