//! What requests carried: their headers are not kept, their bodies are as long as the browser keeps them.

use super::{Page, Request};
use octo_toolkit::ToolError;
use serde::Deserialize;
use serde_json::json;

/// What was sent and what came back, as text.
#[derive(Debug, Default)]
pub struct Bodies {
    pub sent: Option<String>,
    pub received: Received,
}

#[derive(Debug, Default)]
pub enum Received {
    Text(String),
    /// Not text; about so many bytes.
    Binary(usize),
    /// The browser does not have it, or not any more.
    #[default]
    Missing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    post_data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    body: String,
    base64_encoded: bool,
}

impl Page {
    /// The bodies of a request, as far as the browser has kept them.
    pub async fn bodies(&self, request: &Request) -> Result<Bodies, ToolError> {
        let params = json!({"requestId": request.id});
        let sent = self.ask(&request.session, "Network.getRequestPostData", params.clone()).await?;
        let received = self.ask(&request.session, "Network.getResponseBody", params).await?;
        let sent = sent.get::<Sent>().await.ok().map(|sent| sent.post_data);
        let received = match received.get::<Body>().await {
            Ok(Body { body, base64_encoded: false }) => Received::Text(body),
            Ok(Body { body, .. }) => Received::Binary(body.len() / 4 * 3),
            Err(_) => Received::Missing,
        };
        Ok(Bodies { sent, received })
    }
}
