use super::Open;
use crate::StoreResult;

pub async fn found_under_their_mark(open: &Open) -> StoreResult<()> {
    assert_eq!(open().listings.get("a", "m1").await?, None);
    open().listings.put("a", "m1", "one".into()).await?;
    let listings = open().listings;
    assert_eq!(listings.get("a", "m1").await?.as_deref(), Some("one"));
    assert_eq!(listings.get("a", "m2").await?, None);
    assert_eq!(listings.get("b", "m1").await?, None);
    listings.put("a", "m2", "two".into()).await?;
    assert_eq!(open().listings.get("a", "m1").await?, None);
    assert_eq!(open().listings.get("a", "m2").await?.as_deref(), Some("two"));
    Ok(())
}
