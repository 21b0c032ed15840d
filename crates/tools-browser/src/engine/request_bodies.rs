//! Request and response bodies. Headers are not stored; bodies as long as the browser keeps them.

use super::{Page, Request};
use octo_toolkit::ToolError;
use serde::Deserialize;
use serde_json::json;

/// Bodies of a request, as text.
#[derive(Debug, Default)]
pub struct RequestBodies {
    pub sent: Option<String>,
    pub received: ResponseBody,
}

#[derive(Debug, Default)]
pub enum ResponseBody {
    Text(String),
    /// Not text; approximate size in bytes.
    Binary(usize),
    /// The browser does not have it, or no longer has it.
    #[default]
    Missing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostDataResult {
    post_data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBodyResult {
    body: String,
    base64_encoded: bool,
}

impl Page {
    /// Bodies of a request, as far as the browser has kept them.
    pub async fn bodies(&self, request: &Request) -> Result<RequestBodies, ToolError> {
        let params = json!({"requestId": request.id});
        let sent = self.send_command(&request.session, "Network.getRequestPostData", params.clone()).await?;
        let received = self.send_command(&request.session, "Network.getResponseBody", params).await?;
        let sent = sent.get::<PostDataResult>().await.ok().map(|sent| sent.post_data);
        let received = match received.get::<ResponseBodyResult>().await {
            Ok(ResponseBodyResult { body, base64_encoded: false }) => ResponseBody::Text(body),
            Ok(ResponseBodyResult { body, .. }) => ResponseBody::Binary(body.len() / 4 * 3),
            Err(_) => ResponseBody::Missing,
        };
        Ok(RequestBodies { sent, received })
    }
}
