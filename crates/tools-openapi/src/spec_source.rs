//! Loads the text of a document: from a URL, a file of the workspace, or the call itself.

use octo_openapi::MAX_DOCUMENT_BYTES;
use octo_toolkit::fs::Read;
use octo_toolkit::net::NetRequest;
use octo_toolkit::{CallContext, Capabilities, Fs, Grant, Kind, Net, ToolError, WorkPath};
use std::time::Duration;
use url::Url;

const FETCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Files of the workspace, if the hub has one.
pub struct WorkspaceFiles(Option<Fs<Read>>);

impl Grant for WorkspaceFiles {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        Ok(Self(Fs::open(doors).ok()))
    }
}

impl WorkspaceFiles {
    pub async fn read_text(&self, path: WorkPath) -> Result<String, ToolError> {
        let Some(fs) = &self.0 else {
            return Err(ToolError::denied("The hub has no workspace to read files from.")
                .hint("Use spec_url or spec_content."));
        };
        let bytes = fs.run(move |fs| Ok(fs.read(&fs.place(&path)?, MAX_DOCUMENT_BYTES as u64)?.0)).await?;
        utf8(bytes)
    }
}

/// Fetches the text at a URL, without any credential.
pub async fn fetch_document(net: &Net, url: Url, cx: &CallContext) -> Result<(String, Url), ToolError> {
    let mut ask = NetRequest::get(url);
    ask.timeout = FETCH_TIMEOUT.min(cx.time_left());
    ask.max_bytes = MAX_DOCUMENT_BYTES;
    ask.headers.insert(
        http::header::ACCEPT,
        http::HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5"),
    );
    let answer = cx.run(net.send(ask)).await??;
    if !answer.status.is_success() {
        let status = answer.status.as_u16();
        return Err(ToolError::unavailable(format!("The document's URL returned status {status}.")).hint(
            "Check it; if it needs a login, fetch the document yourself and pass it as spec_content.",
        ));
    }
    if answer.truncated {
        return Err(ToolError::new(Kind::TooLarge, "The document is larger than 32 MB.")
            .hint("Load the part that you need as a separate document."));
    }
    Ok((utf8(answer.body.to_vec())?, answer.url))
}

fn utf8(bytes: Vec<u8>) -> Result<String, ToolError> {
    String::from_utf8(bytes).map_err(|_| {
        ToolError::invalid("The document is not UTF-8 text.").hint("Pass the JSON or YAML document itself.")
    })
}
