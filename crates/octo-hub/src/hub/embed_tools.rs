//! Embeds the tools of all sources in the background, for the search by meaning.

use crate::find::tool_index::IndexedSource;
use crate::find::tool_vectors::ToolVectors;
use crate::find::vector_cache::VectorStore;
use crate::hub::Hub;
use octo_embed::TextEncoder;
use octo_model::ToolError;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

impl Hub {
    /// From now on, tools are found by their meaning, too. Only the first call has an effect.
    pub fn set_text_encoder(&self, encoder: Arc<TextEncoder>, store: Arc<dyn VectorStore>) {
        let vectors = Arc::new(ToolVectors::new(encoder, store));
        if self.tool_vectors.set(Arc::clone(&vectors)).is_ok() {
            self.tool_index.set_vectors(&vectors);
            let versions = self.catalogue.versions();
            tokio::spawn(embed_changed_tools(Weak::clone(&self.this), vectors, versions));
        }
    }

    pub fn has_text_encoder(&self) -> bool {
        self.tool_vectors.get().is_some()
    }
}

/// Embeds the tools that are not embedded yet, source by source, until the hub ends.
async fn embed_tools(hub: &Weak<Hub>, vectors: &Arc<ToolVectors>) -> Result<(), ToolError> {
    let mut last = None;
    while let Some((name, source)) = next_source(hub, last.as_deref()).await? {
        let mut embedded = Vec::new();
        for texts in source.texts() {
            if hub.strong_count() == 0 {
                return vectors.save().await;
            }
            embedded.push(vectors.embed(texts).await?);
        }
        source.set_vectors(embedded);
        vectors.save_if_due().await?;
        last = Some(name);
    }
    vectors.save().await
}

/// The next source whose tools are not embedded.
async fn next_source(
    hub: &Weak<Hub>,
    last: Option<&str>,
) -> Result<Option<(String, IndexedSource)>, ToolError> {
    let Some(hub) = hub.upgrade() else { return Ok(None) };
    let tools = hub.tool_index.current(&hub.catalogue).await?;
    Ok(tools.without_vectors(last).map(|(name, source)| (name.to_owned(), source.clone())))
}

async fn embed_changed_tools(hub: Weak<Hub>, vectors: Arc<ToolVectors>, mut versions: watch::Receiver<u64>) {
    loop {
        if let Err(error) = embed_tools(&hub, &vectors).await {
            tracing::warn!(%error, "tools are not found by their meaning");
        }
        if hub.strong_count() == 0 || versions.changed().await.is_err() {
            return;
        }
    }
}
