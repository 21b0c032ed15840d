//! `fetch_url`.

use crate::body_kind::BodyKind;
use crate::head_metadata::Metadata;
use crate::links::Link;
use crate::render_body::{self, FetchedBody, OutputFormat, RenderOptions, RenderedBody};
use crate::{outgoing_request, pdf};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method};
use octo_toolkit::net::{NetRequest, NetResponse};
use octo_toolkit::{CallContext, Effect, Example, Net, Pdf, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

/// Fetches a URL and returns its main content as Markdown, text or HTML, with title and links; JSON formatted, PDF as
/// text by page, other files described. Error responses keep their body. Prefer read_page for long articles,
/// http_request to change something.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// URL to fetch, http or https.
    url: String,
    /// GET, HEAD or OPTIONS, or POST for services that are queried with it.
    #[serde(default = "default_method")]
    method: String,
    /// Headers to send, by name.
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    /// Body to send with POST.
    #[serde(default)]
    body: Option<String>,
    /// Content type of the request body, such as application/json.
    #[serde(default)]
    content_type: Option<String>,
    /// Maximum bytes to read and to return, up to 10 MB; of a PDF, to return.
    #[serde(default = "default_max_bytes")]
    max_bytes: u64,
    /// Seconds to wait, redirects and body included; at most 120.
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    /// Whether to follow redirects.
    #[serde(default = "default_true")]
    follow_redirects: bool,
    /// Whether to leave out menus, banners and footers of a page.
    #[serde(default = "default_true")]
    extract_main_content: bool,
    /// Format of the content: markdown, text (words only), html (without scripts) or raw (unchanged).
    #[serde(default = "default_format")]
    output_format: OutputFormat,
    /// Whether to list the links of the content.
    #[serde(default = "default_true")]
    include_links: bool,
    /// Whether to return title, description and other metadata of the page.
    #[serde(default = "default_true")]
    include_metadata: bool,
}

fn default_method() -> String {
    "GET".to_owned()
}

pub fn default_max_bytes() -> u64 {
    500_000
}

fn default_timeout_s() -> u64 {
    30
}

pub fn default_true() -> bool {
    true
}

fn default_format() -> OutputFormat {
    OutputFormat::Markdown
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// URL of the response, after redirects.
    url: String,
    /// Status of the response; from 400 on the content is the error page.
    status_code: u16,
    /// Content type sent by the server; empty if there is none.
    content_type: String,
    /// Title of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Description from the page's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The content in the requested format.
    content: String,
    /// Links of the content, each once, at most 100.
    links: Vec<Link>,
    /// Whether the body or the content was truncated at max_bytes.
    truncated: bool,
    /// Bytes of the body that were read.
    byte_count: usize,
    /// Number of pages of a PDF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pages: Option<usize>,
    /// Other metadata of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    /// Notes about this response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct FetchUrl;

impl Tool for FetchUrl {
    const NAME: &'static str = "fetch_url";
    const TITLE: &'static str = "Fetch a URL";
    const KEYWORDS: &'static str = "download webpage site content curl wget article link";
    const REQUESTS: &'static [&'static str] = &[
        "download this web address and give me its text",
        "get the raw html source of a site",
        "what is at this link, page or file",
        "show the headers or content type of a url with head",
        "grab all links from a web page without a browser",
        "get the plain text of a remote txt or xml file",
        "pull a page's title and description from its address",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = (Net, Pdf);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A page as Markdown", json!({"url": "https://example.com/"})),
            Example::new(
                "A whole page as plain text",
                json!({"url": "https://example.com/", "extract_main_content": false, "output_format": "text"}),
            ),
        ]
    }

    async fn run(&self, input: Input, (net, pdf): (Net, Pdf), cx: &CallContext) -> Result<Output, ToolError> {
        let options = RenderOptions {
            format: input.output_format,
            main_content: input.extract_main_content,
            links: input.include_links,
            metadata: input.include_metadata,
            max_bytes: outgoing_request::check_max_bytes(input.max_bytes)?,
        };
        let request = build_request(input, &net, options.max_bytes, cx)?;
        net.check_robots(&request.url).await?;
        let answer = outgoing_request::send_whole(&net, request, pdf::MAX_PDF_BYTES, is_pdf, cx).await?;
        net.check_robots(&answer.url).await?;
        let content_type = outgoing_request::content_type(&answer).map(str::to_owned);
        let is_pdf = is_pdf(&answer);
        let NetResponse { url, body, truncated, .. } = answer;
        let (told, status, byte_count) = (String::from(url.clone()), answer.status, body.len());
        let body = FetchedBody { url, content_type: content_type.clone(), bytes: body, truncated };
        let (reading, pages) = if is_pdf {
            render_pdf(&pdf, &body, options, cx).await?
        } else {
            (outgoing_request::run_blocking(cx, move || render_body::render(&body, options)).await?, None)
        };
        let notice = build_notice(status, &reading);
        Ok(Output {
            url: told,
            status_code: status.as_u16(),
            content_type: content_type.unwrap_or_default(),
            title: reading.title,
            description: reading.description,
            content: reading.content,
            links: reading.links,
            truncated: reading.truncated,
            byte_count,
            pages,
            metadata: reading.metadata,
            notice,
        })
    }
}

fn is_pdf(answer: &NetResponse) -> bool {
    BodyKind::detect(outgoing_request::content_type(answer), &answer.body) == BodyKind::Pdf
}

/// Text and page count of a PDF; a file without readable text is described.
async fn render_pdf(
    pdf: &Pdf,
    body: &FetchedBody,
    want: RenderOptions,
    cx: &CallContext,
) -> Result<(RenderedBody, Option<usize>), ToolError> {
    let read = pdf::read(pdf, body.bytes.clone(), !body.truncated, cx.time_left());
    let (reading, pages) = match cx.run(read).await? {
        Ok(paper) => {
            let content = paper.text(matches!(want.format, OutputFormat::Markdown | OutputFormat::Html));
            let pages = Some(paper.page_count);
            let about = Metadata { author: paper.author, ..Metadata::default() };
            let reading = RenderedBody {
                content,
                title: paper.title.filter(|_| want.metadata),
                metadata: Some(about).filter(|about| want.metadata && *about != Metadata::default()),
                truncated: paper.is_truncated,
                notices: paper.notices,
                ..RenderedBody::default()
            };
            (reading, pages)
        }
        Err(why) if matches!(why.kind, octo_toolkit::Kind::Internal | octo_toolkit::Kind::Unavailable) => {
            return Err(why);
        }
        Err(why) => (pdf::describe_unreadable(body, &why), None),
    };
    Ok((render_body::finalize(reading, want.max_bytes), pages))
}

fn build_request(
    input: Input,
    net: &Net,
    max_bytes: usize,
    cx: &CallContext,
) -> Result<NetRequest, ToolError> {
    let method = outgoing_request::parse_method(&input.method)?;
    if !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS | Method::POST) {
        return Err(ToolError::invalid(format!("fetch_url does not support {method}."))
            .hint("Use http_request to change something."));
    }
    if input.body.is_some() && method != Method::POST {
        return Err(ToolError::invalid(format!("{method} does not take a body."))
            .hint("Set method to POST, or omit body."));
    }
    let mut headers = outgoing_request::parse_headers(input.headers)?;
    if let Some(kind) = &input.content_type {
        let kind = HeaderValue::try_from(kind.trim()).map_err(|_| {
            ToolError::invalid("content_type is not a media type.").hint("Use one such as application/json.")
        })?;
        headers.insert(CONTENT_TYPE, kind);
    }
    let accept =
        "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, */*;q=0.5";
    outgoing_request::default_header(
        &mut headers,
        ACCEPT,
        if input.output_format == OutputFormat::Markdown { accept } else { "*/*" },
    );
    Ok(NetRequest {
        method,
        headers,
        body: input.body.map(|body| outgoing_request::check_body(body.into_bytes())).transpose()?,
        timeout: outgoing_request::check_timeout(input.timeout_s, cx)?,
        max_bytes,
        max_redirects: outgoing_request::redirect_limit(input.follow_redirects),
        ..NetRequest::get(outgoing_request::check_url(net, &input.url)?)
    })
}

/// Joins the notes for the model into one text.
fn build_notice(status: http::StatusCode, reading: &RenderedBody) -> Option<String> {
    let failed = (status.as_u16() >= 400)
        .then(|| format!("The server returned {status}; the content is its error page."));
    let moved = status
        .is_redirection()
        .then(|| format!("The server returned {status}; the redirect was not followed."));
    let notices: Vec<String> =
        failed.into_iter().chain(moved).chain(reading.notices.iter().cloned()).collect();
    (!notices.is_empty()).then(|| notices.join(" "))
}
