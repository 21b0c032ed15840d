//! Selection from a JSON response body with a jq expression.

use crate::{CallContext, Json, ToolError};
use http::Method;
use octo_grants::JqRunner;
use octo_grants::jq::{MAX_INPUT_BYTES, Selection, too_large};
use octo_grants::net::NetResponse;

/// Reply of a tool that was given an expression.
#[derive(Debug)]
pub enum BodySelection {
    /// The selection instead of the body.
    Part(Selection),
    /// The whole body, and why.
    Whole(String),
}

/// Applies an expression to the body of a response, which was requested with [`MAX_INPUT_BYTES`]. An error
/// response has another shape, so its body stays whole. A request that may have changed something is never
/// answered with an error or with nothing: it would be sent again.
pub async fn select(
    jq: &JqRunner,
    program: &str,
    method: &Method,
    answer: &NetResponse,
    cx: &CallContext,
    parse: impl FnOnce(&NetResponse) -> Result<Json, ToolError> + Send + 'static,
) -> Result<BodySelection, ToolError> {
    if answer.status.as_u16() >= 400 {
        return Ok(BodySelection::Whole(format!(
            "jq was not applied: the status is {}.",
            answer.status.as_u16()
        )));
    }
    match select_part(jq, program, answer, cx, parse).await {
        Ok(Selection { notice: Some(nothing), .. }) if !method.is_safe() => {
            Ok(BodySelection::Whole(format!("The request was sent. {nothing}")))
        }
        Err(error) if !method.is_safe() => {
            let why = error.message;
            Ok(BodySelection::Whole(format!("The request was sent, but jq was not applied: {why}")))
        }
        part => part.map(BodySelection::Part),
    }
}

async fn select_part(
    jq: &JqRunner,
    program: &str,
    answer: &NetResponse,
    cx: &CallContext,
    parse: impl FnOnce(&NetResponse) -> Result<Json, ToolError> + Send + 'static,
) -> Result<Selection, ToolError> {
    if answer.truncated {
        return Err(too_large("The body", format_args!("more than {MAX_INPUT_BYTES}"))
            .hint("Ask the service for less, with its parameters for fields or pages."));
    }
    let answer = answer.clone();
    let json = tokio::task::spawn_blocking(move || parse(&answer)).await.map_err(ToolError::internal)??;
    jq.select(&cx.caller, program, json).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PointerJq;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use octo_model::{Caller, Kind};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    async fn whatever_may_have_changed_something_is_no_error() {
        let cx = CallContext::new(
            Arc::new(Caller::local()),
            Instant::now() + Duration::from_secs(9),
            CancellationToken::new(),
        );
        let parse = |answer: &NetResponse| {
            Json::parse(answer.body.clone()).map_err(|_| ToolError::invalid("No JSON."))
        };
        let sent = "The request was sent";
        let rows = [
            (Method::GET, 200, "[1]", false, "/0", Ok("1")),
            (Method::POST, 201, "[1]", false, "/0", Ok("1")),
            (Method::GET, 404, "[1]", false, "/0", Ok("jq was not applied: the status is 404.")),
            (Method::GET, 200, "[1]", false, "/9", Err(Kind::Invalid)),
            (Method::GET, 200, "<p>", false, "/0", Err(Kind::Invalid)),
            (Method::GET, 200, "[1]", true, "/0", Err(Kind::TooLarge)),
            (Method::POST, 200, "[1]", false, "/9", Ok("jq: the expression failed.")),
            (Method::GET, 200, "[null]", false, "/0", Ok("null")),
            (Method::POST, 200, "[null]", false, "/0", Ok("selected nothing")),
            (Method::DELETE, 204, "", false, "/0", Ok("No JSON.")),
            (Method::PUT, 200, "[1]", true, "/0", Ok("The body has more than 16777216 bytes")),
        ];
        for (method, status, body, truncated, program, wanted) in rows {
            let answer = NetResponse {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                url: "http://x/".parse().unwrap(),
                body: Bytes::from_static(body.as_bytes()),
                truncated,
                took: Duration::ZERO,
            };
            let jq = JqRunner::new(Arc::new(PointerJq));
            let selected = select(&jq, program, &method, &answer, &cx, parse).await;
            let what = format!("{method} {status} {body} {program}");
            match (selected, wanted) {
                (Ok(BodySelection::Part(part)), Ok(wanted)) => {
                    assert_eq!(part.json.as_str(), wanted, "{what}")
                }
                (Ok(BodySelection::Whole(notice)), Ok(wanted)) => {
                    assert!(notice.contains(wanted), "{what}: {notice}");
                    assert!(status >= 400 || notice.starts_with(sent), "{what}: {notice}");
                }
                (Err(error), Err(kind)) => assert_eq!(error.kind, kind, "{what}"),
                (selected, wanted) => panic!("{what}: {selected:?}, not {wanted:?}"),
            }
        }
    }
}
