//! Screenshots.

use super::{CaptureArea, CapturedImage, ImageFormat, Page, Rect};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum width and height of a screenshot.
const MAX_IMAGE_SIDE_PX: f64 = 16_000.0;

#[derive(Deserialize)]
struct ScreenshotResult {
    data: String,
}

impl Page {
    pub async fn screenshot(
        &self,
        shot: &CaptureArea,
        format: ImageFormat,
    ) -> Result<CapturedImage, ToolError> {
        self.touch();
        let clip = self.clip(shot).await?;
        let (width, height) =
            (clip.width.ceil().min(MAX_IMAGE_SIDE_PX), clip.height.ceil().min(MAX_IMAGE_SIDE_PX));
        let scale = match format {
            ImageFormat::Png => 1.0,
            ImageFormat::Jpeg { scale, .. } => scale,
        };
        let mut params = json!({
            "format": "png",
            "captureBeyondViewport": *shot != CaptureArea::Viewport,
            "clip": {"x": clip.x, "y": clip.y, "width": width, "height": height, "scale": scale},
        });
        if let (ImageFormat::Jpeg { quality, .. }, Value::Object(members)) = (format, &mut params) {
            members.insert("format".to_owned(), "jpeg".into());
            members.insert("quality".to_owned(), quality.into());
        }
        let captured: ScreenshotResult = self.call("Page.captureScreenshot", params).await?;
        let pixels = |side: f64| (side * scale).round() as u32;
        Ok(CapturedImage { base64: captured.data, width: pixels(width), height: pixels(height) })
    }

    /// The area to capture, in document coordinates.
    async fn clip(&self, shot: &CaptureArea) -> Result<Rect, ToolError> {
        let metrics = self.metrics().await?;
        let (view, content) = (metrics.css_visual_viewport, metrics.css_content_size);
        Ok(match shot {
            CaptureArea::Viewport => {
                Rect { x: view.page_x, y: view.page_y, width: view.client_width, height: view.client_height }
            }
            CaptureArea::FullPage => Rect { x: 0.0, y: 0.0, width: content.width, height: content.height },
            CaptureArea::Element(node) => {
                let rect = self.rect(node).await?.filter(|rect| rect.width >= 1.0 && rect.height >= 1.0);
                let rect = rect.ok_or_else(|| {
                    ToolError::new(Kind::Conflict, "The element is not visible.")
                        .hint("Choose a visible element, or capture the whole page.")
                })?;
                Rect { x: rect.x + view.page_x, y: rect.y + view.page_y, ..rect }
            }
        })
    }
}
