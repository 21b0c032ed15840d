use super::Open;
use crate::StoreResult;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

pub async fn held_by_one(open: &Open) -> StoreResult<()> {
    let (one, two) = (open().leases, open().leases);
    assert_eq!(one.holder("a").await?, None);
    let first = one.acquire("a", MINUTE).await?;
    assert!(first.is_some() && two.acquire("a", MINUTE).await?.is_none());
    assert!(one.acquire("a", MINUTE).await?.is_none(), "nor a second time by the same");
    assert!(two.acquire("b", MINUTE).await?.is_some(), "another name");
    assert!(two.holder("a").await?.is_some());
    if let Some(lease) = &first {
        assert!(one.renew(lease, MINUTE).await?);
        one.release(lease).await?;
        assert_eq!(two.holder("a").await?, None);
        assert!(!one.renew(lease, MINUTE).await?, "what was given back is gone");
    }
    assert!(two.acquire("a", MINUTE).await?.is_some());
    Ok(())
}

pub async fn expired_and_fenced(open: &Open) -> StoreResult<()> {
    let (one, two) = (open().leases, open().leases);
    let late = one.acquire("a", Duration::ZERO).await?;
    if let Some(late) = &late {
        assert!(one.renew(late, Duration::ZERO).await?, "expired, but nobody has acquired it since");
    }
    let next = two.acquire("a", MINUTE).await?;
    let token = |lease: &Option<crate::Lease>| lease.as_ref().map(|lease| lease.token);
    assert!(token(&late) < token(&next) && late.is_some(), "tokens rise");
    if let Some(late) = &late {
        assert!(!one.renew(late, MINUTE).await?);
        one.release(late).await?;
    }
    assert!(one.holder("a").await?.is_some(), "it was not its to give back");
    if let Some(next) = &next {
        two.release(next).await?;
    }
    let last = open().leases.acquire("a", MINUTE).await?;
    assert!(token(&next) < token(&last), "tokens rise over releases, too");
    Ok(())
}
