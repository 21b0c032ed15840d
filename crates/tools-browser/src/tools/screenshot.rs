//! `browser_screenshot`.

use crate::browser_defaults;
use crate::browser_sessions::element_target::ElementTarget;
use crate::browser_sessions::{ActiveSession, BrowserSessions, PageState};
use crate::engine::{CaptureArea, ImageFormat, Node, Page, World};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Image, Kind, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum base64 length of a screenshot. Models pay for pixels and not for bytes, so this only limits the transfer.
const MAX_BASE64_LEN: usize = 2_000_000;
/// Maximum marks on a screenshot.
const MAX_MARKS: usize = 150;

/// Takes a screenshot (picture) of the viewport, the whole page or one element; marks put refs on the elements in view.
/// Prefer browser_snapshot to act on the page: a screenshot has no refs of its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// CSS selector of the element to capture.
    #[serde(default)]
    selector: Option<String>,
    /// Ref of the element to capture.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// Captures the whole page instead of the viewport.
    #[serde(default)]
    full_page: bool,
    /// Draws refs on the elements in view.
    #[serde(default)]
    marks: bool,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Width in pixels.
    width: u32,
    /// Height in pixels.
    height: u32,
    /// URL of the page.
    url: String,
    /// Original and reduced size, if the image was scaled down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip)]
    picture: Option<Image>,
}

pub struct Screenshot(pub BrowserSessions);

impl Tool for Screenshot {
    const NAME: &'static str = "browser_screenshot";
    const TITLE: &'static str = "Take a screenshot of the page";
    const KEYWORDS: &'static str = "capture picture image of the page photo look";
    const REQUESTS: &'static [&'static str] = &[
        "take a picture of the page to see the layout",
        "capture the whole landing page as an image",
        "photograph just the pricing table element",
        "show me visually how the site looks right now",
        "check with an image whether the button overlaps the logo",
        "snap the screen with labels drawn on the clickable things",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    const HAS_OUTPUT_SCHEMA: bool = false;
    type Input = Input;
    type Output = Output;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new("The viewport", json!({})), Example::new("With refs on it", json!({"marks": true}))]
    }

    fn images(output: &Output) -> Vec<Image> {
        output.picture.iter().cloned().collect()
    }

    async fn run(&self, input: Input, chromium: Chromium, cx: &CallContext) -> Result<Output, ToolError> {
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let shot = match (&input.selector, &input.reference, input.full_page) {
            (None, None, true) => CaptureArea::FullPage,
            (None, None, false) => CaptureArea::Viewport,
            (selector, reference, _) => {
                let target = ElementTarget {
                    selector: selector.as_deref(),
                    reference: reference.as_deref(),
                    ..ElementTarget::ref_or_selector()
                };
                CaptureArea::Element(
                    active
                        .find_element(
                            target,
                            browser_defaults::clamp_timeout(
                                browser_defaults::default_action_timeout_ms(),
                                cx,
                            ),
                        )
                        .await?,
                )
            }
        };
        if input.marks {
            let page_state = active.page_state().await?;
            draw_marks(&mut active, &page_state).await?;
        }
        let captured = capture_picture(&active.page, &shot).await;
        if input.marks {
            active.page.evaluate(REMOVE_MARKS_JS, World::Isolated, Duration::from_secs(2)).await?;
        }
        let SizedPicture { picture, width, height, note } = captured?;
        let (url, _) = active.page.location().await?;
        Ok(Output { width, height, url: crate::sanitize::single_line(&url), note, picture: Some(picture) })
    }
}

/// An image with its size.
pub struct SizedPicture {
    pub picture: Image,
    width: u32,
    height: u32,
    note: Option<String>,
}

/// Screenshot that fits into a reply: PNG, then JPEG if that is too large, then scaled down.
pub async fn capture_picture(page: &Page, shot: &CaptureArea) -> Result<SizedPicture, ToolError> {
    let jpeg = |(quality, scale)| ImageFormat::Jpeg { quality, scale };
    let fallbacks = [(80, 1.0), (55, 1.0), (60, 0.75), (55, 0.5), (50, 0.35), (45, 0.25)].map(jpeg);
    for format in [ImageFormat::Png].into_iter().chain(fallbacks) {
        let image = match page.screenshot(shot, format).await {
            Ok(taken) => taken,
            Err(error) if error.kind == Kind::TooLarge => continue,
            Err(error) => return Err(error),
        };
        if image.base64.is_empty() || image.base64.len() > MAX_BASE64_LEN {
            continue;
        }
        let (width, height) = (image.width, image.height);
        let (mime, scale) = match format {
            ImageFormat::Png => ("image/png", 1.0),
            ImageFormat::Jpeg { scale, .. } => ("image/jpeg", scale),
        };
        let note = (scale < 1.0).then(|| {
            let whole = |side: u32| (f64::from(side) / scale).round();
            format!(
                "Scaled down from {} by {} to {width} by {height} pixels. Capture the viewport or one element to see more.",
                whole(width),
                whole(height)
            )
        });
        return Ok(SizedPicture { picture: Image { mime, base64: image.base64 }, width, height, note });
    }
    Err(ToolError::new(Kind::TooLarge, "The screenshot is too large for a reply.")
        .hint("Capture the viewport or one element instead of the whole page."))
}

/// Draws labels over the actionable elements.
async fn draw_marks(active: &mut ActiveSession, page_state: &PageState) -> Result<(), ToolError> {
    let mut items = Vec::new();
    page_state.tree.walk(&mut |item| {
        if item.actionable && item.visible && item.node.is_some() && items.len() < MAX_MARKS {
            items.push(item);
        }
    });
    let nodes: Vec<Node> = items.iter().filter_map(|item| item.node.clone()).collect();
    let rects = active.page.rects(&nodes).await?;
    let marks: Vec<Value> = items
        .into_iter()
        .zip(rects)
        .filter_map(|(item, rect)| {
            let name = active.state.refs.get_or_assign(&page_state.document, item)?;
            rect.map(|rect| json!([name, rect.x, rect.y, rect.width, rect.height]))
        })
        .collect();
    let script = format!("({DRAW_MARKS_JS})({})", Value::from(marks));
    active.page.evaluate(&script, World::Isolated, Duration::from_secs(2)).await?;
    Ok(())
}

const DRAW_MARKS_JS: &str = r#"marks => {
    const layer = document.createElement('div');
    layer.id = 'octoprox-marks';
    layer.style.cssText = 'position:fixed;inset:0;pointer-events:none;z-index:2147483647';
    for (const [name, x, y, width, height] of marks) {
        const frame = document.createElement('div');
        frame.style.cssText = `position:absolute;left:${x}px;top:${y}px;width:${width}px;height:${height}px;outline:1px solid #d22`;
        const label = document.createElement('span');
        label.textContent = name;
        // Above the element if there is room, so that its first letters can be read.
        const above = y >= 13;
        label.style.cssText = `position:absolute;${above ? 'left:-1px;bottom:100%' : 'right:-1px;top:0'};background:#b00;color:#fff;font:bold 11px/13px sans-serif;padding:0 2px;white-space:nowrap;outline:1px solid #fff`;
        frame.append(label);
        layer.append(frame);
    }
    document.documentElement.append(layer);
}"#;

const REMOVE_MARKS_JS: &str = "document.getElementById('octoprox-marks')?.remove()";
