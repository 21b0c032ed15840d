use super::{Open, ada, others, race};
use crate::apis::{MAX_APIS, StoredApi};
use crate::{Limit, StoreError, StoreResult};
use octo_model::{BoxFuture, Secret};

fn api(name: &str, revision: &str) -> StoredApi {
    StoredApi {
        name: name.into(),
        revision: revision.into(),
        settings: "{}".into(),
        secret: Some(Secret::new("s3cret")),
    }
}

pub async fn owned_by_their_caller(open: &Open) -> StoreResult<()> {
    let apis = open().apis;
    apis.put(&ada(), api("x", "1"), "text".into()).await?;
    assert_eq!(apis.find(&ada(), "x").await?, Some(api("x", "1")));
    assert_eq!(apis.text(&ada(), "x", "1").await?.as_deref(), Some("text"));
    assert_eq!(apis.text(&ada(), "x", "2").await?, None, "another revision");
    for other in &others() {
        assert_eq!(apis.find(other, "x").await?, None);
        assert_eq!(apis.text(other, "x", "1").await?, None);
        assert_eq!(apis.list(other).await?, []);
        assert!(!apis.remove(other, "x").await?);
    }
    apis.put(&ada(), api("a", "1"), String::new()).await?;
    apis.put(&ada(), api("x", "2"), "new".into()).await?;
    let without = |name, revision| StoredApi { secret: None, ..api(name, revision) };
    assert_eq!(apis.list(&ada()).await?, [without("a", "1"), without("x", "2")], "by name, without secrets");
    assert!(apis.remove(&ada(), "x").await? && !apis.remove(&ada(), "x").await?);
    Ok(())
}

pub async fn limited_in_number(open: &Open) -> StoreResult<()> {
    let apis = open().apis;
    for number in 0..MAX_APIS {
        apis.put(&ada(), api(&number.to_string(), "1"), String::new()).await?;
    }
    let refused = apis.put(&ada(), api("one more", "1"), String::new()).await;
    assert_eq!(refused, Err(StoreError::Full(Limit::Apis)));
    apis.put(&ada(), api("7", "2"), String::new()).await?;
    let [bob, _] = others();
    apis.put(&bob, api("one more", "1"), String::new()).await
}

/// The limit holds for concurrent processes, too.
pub async fn limited_across_processes(open: &Open) -> StoreResult<()> {
    let apis = open().apis;
    for number in 0..MAX_APIS - 3 {
        apis.put(&ada(), api(&number.to_string(), "1"), String::new()).await?;
    }
    let stored = race((0..8).map(|number| -> BoxFuture<'static, StoreResult<()>> {
        let apis = open().apis;
        Box::pin(async move { apis.put(&ada(), api(&format!("raced {number}"), "1"), String::new()).await })
    }));
    let stored = stored.await;
    assert_eq!(stored.iter().filter(|result| result.is_ok()).count(), 3);
    let is_expected =
        |result: &StoreResult<()>| matches!(result, Ok(()) | Err(StoreError::Full(Limit::Apis)));
    assert!(stored.iter().all(is_expected), "{stored:?}");
    assert_eq!(apis.list(&ada()).await?.len(), MAX_APIS);
    Ok(())
}

/// A secret is replaced together with nothing else, and only in the revision that it belongs to.
pub async fn replaced_secrets(open: &Open) -> StoreResult<()> {
    let apis = open().apis;
    apis.put(&ada(), api("x", "2"), "text".into()).await?;
    for revision in ["1", "2"] {
        let secret = Some(Secret::new(format!("of revision {revision}")));
        apis.replace_secret(&ada(), &StoredApi { secret, ..api("x", revision) }).await?;
    }
    for other in &others() {
        apis.replace_secret(other, &api("x", "2")).await?;
        assert_eq!(apis.list(other).await?, []);
    }
    let found = apis.find(&ada(), "x").await?.and_then(|api| api.secret);
    assert_eq!(found.as_ref().map(Secret::expose), Some("of revision 2"));
    assert_eq!(apis.text(&ada(), "x", "2").await?.as_deref(), Some("text"));
    Ok(())
}

pub async fn any_characters(open: &Open) -> StoreResult<()> {
    let (apis, odd) = (open().apis, "a\0\u{1}\u{fffd}b");
    assert_eq!(apis.find(&ada(), odd).await?, None);
    assert!(!apis.remove(&ada(), odd).await?);
    apis.put(&ada(), api("x", "1"), odd.into()).await?;
    assert_eq!(apis.text(&ada(), "x", "1").await?.as_deref(), Some(odd));
    Ok(())
}

pub async fn durable(open: &Open) -> StoreResult<()> {
    open().apis.put(&ada(), api("x", "1"), "text".into()).await?;
    assert_eq!(open().apis.find(&ada(), "x").await?, Some(api("x", "1")));
    assert!(open().apis.remove(&ada(), "x").await?);
    assert_eq!(open().apis.list(&ada()).await?, []);
    Ok(())
}
