use super::Open;
use crate::{StoreError, StoreResult};
use std::time::Duration;

/// A backend that can record calls has no problems.
pub async fn without_problems(open: &Open) -> StoreResult<()> {
    let stores = open();
    stores.audit.check().await.map_err(StoreError::Internal)?;
    assert!(stores.health.check_space().await.is_ok_and(|free| free != Some(0)));
    assert_eq!(stores.health.check_integrity(Duration::from_secs(60)).await.err(), None);
    Ok(())
}
