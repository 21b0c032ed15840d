//! Pictures of a page.

use super::{Format, Page, Picture, Rect, Shot};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

/// Pictures are not larger than this in either direction.
const LONGEST_SIDE: f64 = 16_000.0;

#[derive(Deserialize)]
struct Captured {
    data: String,
}

impl Page {
    pub async fn screenshot(&self, shot: &Shot, format: Format) -> Result<Picture, ToolError> {
        self.touch();
        let clip = self.clip(shot).await?;
        let (width, height) = (clip.width.ceil().min(LONGEST_SIDE), clip.height.ceil().min(LONGEST_SIDE));
        let scale = match format {
            Format::Png => 1.0,
            Format::Jpeg { scale, .. } => scale,
        };
        let mut params = json!({
            "format": "png",
            "captureBeyondViewport": *shot != Shot::Viewport,
            "clip": {"x": clip.x, "y": clip.y, "width": width, "height": height, "scale": scale},
        });
        if let (Format::Jpeg { quality, .. }, Value::Object(members)) = (format, &mut params) {
            members.insert("format".to_owned(), "jpeg".into());
            members.insert("quality".to_owned(), quality.into());
        }
        let captured: Captured = self.call("Page.captureScreenshot", params).await?;
        let pixels = |side: f64| (side * scale).round() as u32;
        Ok(Picture { base64: captured.data, width: pixels(width), height: pixels(height) })
    }

    /// The part of the document that is to be seen, in its own pixels.
    async fn clip(&self, shot: &Shot) -> Result<Rect, ToolError> {
        let metrics = self.metrics().await?;
        let (view, content) = (metrics.css_visual_viewport, metrics.css_content_size);
        Ok(match shot {
            Shot::Viewport => {
                Rect { x: view.page_x, y: view.page_y, width: view.client_width, height: view.client_height }
            }
            Shot::FullPage => Rect { x: 0.0, y: 0.0, width: content.width, height: content.height },
            Shot::Element(node) => {
                let rect = self.rect(node).await?.filter(|rect| rect.width >= 1.0 && rect.height >= 1.0);
                let rect = rect.ok_or_else(|| {
                    ToolError::new(Kind::Conflict, "The element is not shown, so there is no picture of it.")
                        .hint("Choose an element that is visible, or take the whole page.")
                })?;
                Rect { x: rect.x + view.page_x, y: rect.y + view.page_y, ..rect }
            }
        })
    }
}
