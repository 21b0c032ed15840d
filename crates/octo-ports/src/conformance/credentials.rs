use super::{Open, ada, others, race};
use crate::credentials::MAX_SECRET_BYTES;
use crate::{Limit, Owner, PendingLogin, Port, Slot, StoreError, StoreResult};
use octo_model::{BoxFuture, Caller, Secret};

fn slot(caller: &Caller, issuer: &str) -> Slot {
    Slot::new(Owner::from(caller), "notion", issuer)
}

fn login(id: &str, expires: i64) -> PendingLogin {
    PendingLogin {
        id: id.into(),
        owner: Owner::from(&ada()),
        server: "notion".into(),
        expires,
        secret: Secret::new("verifier"),
    }
}

pub async fn owned_and_bound_to_an_issuer(open: &Open) -> StoreResult<()> {
    let store = open().credentials;
    let (a, b) = (slot(&ada(), "https://a.example"), slot(&ada(), "https://b.example"));
    let first = store.put(&a, Secret::new("one"), None).await?;
    let second = store.put(&b, Secret::new("two"), None).await?;
    assert!(second > first);
    let all = store.all(&a.owner, "notion").await?;
    assert_eq!(all.iter().map(|kept| kept.secret.expose()).collect::<Vec<_>>(), ["two", "one"]);
    assert_eq!(store.all(&a.owner, "another server").await?, []);
    for other in &others() {
        assert_eq!(store.find(&slot(other, "https://a.example")).await?, None);
        assert_eq!(store.all(&Owner::from(other), "notion").await?, []);
    }
    assert_eq!(store.all(&Owner::Shared, "notion").await?, []);
    let slots = store.slots().await?;
    assert!(slots.len() == 2 && slots.contains(&a) && slots.contains(&b), "{slots:?}");
    assert!(store.remove(&a).await? && !store.remove(&a).await?);
    Ok(())
}

pub async fn replaced_by_revision(open: &Open) -> StoreResult<()> {
    let (store, a) = (open().credentials, slot(&ada(), "i"));
    let first = store.put(&a, Secret::new("one"), None).await?;
    let second = open().credentials.put(&a, Secret::new("two"), Some(first)).await?;
    let late = store.put(&a, Secret::new("late"), Some(first)).await;
    assert_eq!(late, Err(StoreError::Conflict(Port::Credentials)));
    assert_eq!(store.find(&a).await?.map(|kept| kept.revision), Some(second));
    store.remove(&a).await?;
    let gone = store.put(&a, Secret::new("late"), Some(second)).await;
    assert_eq!(gone, Err(StoreError::Conflict(Port::Credentials)));
    assert!(store.put(&a, Secret::new("new"), None).await? > second, "revisions never come back");
    Ok(())
}

/// Of several processes that replace the same revision, one does.
pub async fn replaced_by_one(open: &Open) -> StoreResult<()> {
    let (one, two, a) = (open().credentials, open().credentials, slot(&ada(), "i"));
    let mut revision = one.put(&a, Secret::new("first"), None).await?;
    for _ in 0..20 {
        let results = race([&one, &two].map(|store| -> BoxFuture<'static, StoreResult<u64>> {
            let (store, a) = (store.clone(), a.clone());
            Box::pin(async move { store.put(&a, Secret::new("next"), Some(revision)).await })
        }));
        let results = results.await;
        let refused =
            results.iter().filter(|result| **result == Err(StoreError::Conflict(Port::Credentials)));
        assert_eq!(refused.count(), 1, "{results:?}");
        let next = results.into_iter().find_map(Result::ok);
        assert!(next > Some(revision), "{next:?}");
        revision = next.unwrap_or_default();
        assert_eq!(one.find(&a).await?.map(|kept| kept.revision), Some(revision));
    }
    Ok(())
}

/// An authorization server chooses its name.
pub async fn any_issuer(open: &Open) -> StoreResult<()> {
    let store = open().credentials;
    let long: String = (0..2_000).map(|number| format!("/{number}")).collect();
    for issuer in ["", "https://a.example\0", &format!("https://a.example{long}")] {
        let slot = slot(&ada(), issuer);
        store.put(&slot, Secret::new("one"), None).await?;
        let revision = store.put(&slot, Secret::new("two"), None).await?;
        assert_eq!(store.find(&slot).await?.map(|kept| kept.revision), Some(revision));
        assert!(store.remove(&slot).await?);
        assert_eq!(store.find(&slot).await?, None);
    }
    Ok(())
}

pub async fn limited_in_size(open: &Open) -> StoreResult<()> {
    let (store, a) = (open().credentials, slot(&ada(), "i"));
    let long = Secret::new("x".repeat(MAX_SECRET_BYTES + 1));
    let refused = store.put(&a, long.clone(), None).await;
    assert_eq!(refused, Err(StoreError::Full(Limit::SecretBytes)));
    let refused = store.put_pending(PendingLogin { secret: long, ..login("id", 100) }, 0).await;
    assert_eq!(refused, Err(StoreError::Full(Limit::SecretBytes)));
    store.put(&a, Secret::new("x".repeat(MAX_SECRET_BYTES)), None).await.map(drop)
}

/// A pending login is taken once, and replaced by the next.
pub async fn taken_once(open: &Open) -> StoreResult<()> {
    let (one, two) = (open().credentials, open().credentials);
    let owner = Owner::from(&ada());
    one.put_pending(login("first", 100), 0).await?;
    one.put_pending(login("second", 100), 0).await?;
    assert_eq!(two.take_pending("first", 0).await?, None);
    assert_eq!(two.find_pending(&owner, "notion", 0).await?, Some(login("second", 100)));
    for other in &others() {
        assert_eq!(two.find_pending(&Owner::from(other), "notion", 0).await?, None);
    }
    assert_eq!(two.take_pending("second", 0).await?, Some(login("second", 100)));
    assert_eq!(one.take_pending("second", 0).await?, None);
    one.put_pending(login("third", 100), 0).await?;
    assert_eq!(one.find_pending(&owner, "notion", 100).await?, None, "too late");
    assert_eq!(one.take_pending("third", 100).await?, None, "too late");
    Ok(())
}

/// Of several processes that take a login, one gets it.
pub async fn taken_by_one(open: &Open) -> StoreResult<()> {
    let (first, processes) = (open().credentials, [(); 8].map(|()| open().credentials));
    for round in 0..5 {
        let id = format!("login {round}");
        first.put_pending(login(&id, 100), 0).await?;
        let taken = race(processes.iter().map(|store| -> BoxFuture<'static, StoreResult<_>> {
            let (store, id) = (store.clone(), id.clone());
            Box::pin(async move { store.take_pending(&id, 0).await })
        }));
        let taken: Vec<Option<PendingLogin>> = taken.await.into_iter().collect::<StoreResult<_>>()?;
        assert_eq!(taken.into_iter().flatten().collect::<Vec<_>>(), [login(&id, 100)]);
    }
    Ok(())
}

pub async fn durable(open: &Open) -> StoreResult<()> {
    let a = slot(&ada(), "i");
    let revision = open().credentials.put(&a, Secret::new("one"), None).await?;
    let kept = open().credentials.find(&a).await?;
    let brief = kept.as_ref().map(|kept| (kept.revision, kept.secret.expose()));
    assert_eq!(brief, Some((revision, "one")));
    assert!(open().credentials.remove(&a).await?);
    assert_eq!(open().credentials.find(&a).await?, None);
    Ok(())
}
