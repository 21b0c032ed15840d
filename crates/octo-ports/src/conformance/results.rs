use super::{Open, ada, others};
use crate::{Port, ResultWriter, StoreError, StoreResult};
use octo_model::{CallId, Json};
use std::io::Read;

fn whole() -> StoreResult<Json> {
    Json::parse(r#"{"structuredContent":{"a": [1,  2.0, "ü"]}}"#).map_err(StoreError::internal)
}

pub async fn stored_whole(open: &Open) -> StoreResult<()> {
    let handle = open().results.store(&ada(), CallId::fresh(), whole()?).await?;
    let results = open().results;
    assert_eq!(results.load(&ada(), &handle).await?, whole()?, "byte for byte");
    let mut text = results.open_text(&ada(), &handle).await?;
    let mut read = String::new();
    text.reader.read_to_string(&mut read).map_err(StoreError::internal)?;
    assert_eq!(read, "{\n  \"a\": [\n    1,\n    2.0,\n    \"ü\"\n  ]\n}");
    assert_eq!((text.size.lines, text.size.bytes), (7, read.len() as u64));
    let written = ResultWriter::new(open().results).write(&ada(), CallId::fresh(), "some text").await?;
    let mut text = results.open_text(&ada(), &written).await?;
    read.clear();
    text.reader.read_to_string(&mut read).map_err(StoreError::internal)?;
    assert_eq!(read, "some text");
    Ok(())
}

/// Another caller's handle is treated as nonexistent.
pub async fn owned_by_their_caller(open: &Open) -> StoreResult<()> {
    let results = open().results;
    let handle = results.store(&ada(), CallId::fresh(), whole()?).await?;
    let unknown = StoreError::NotFound(Port::Results);
    for other in &others() {
        assert_eq!(results.load(other, &handle).await, Err(unknown.clone()));
        assert_eq!(results.open_text(other, &handle).await.err(), Some(unknown.clone()));
    }
    for handle in ["", "r_aaaaaaaaaaaaaaaaaaaaaaaaaa", "../octoprox.db"] {
        assert_eq!(results.load(&ada(), handle).await, Err(unknown.clone()), "{handle}");
    }
    Ok(())
}
