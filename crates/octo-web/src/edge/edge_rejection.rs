//! Rejections by the edge.

use super::bearer_tokens::TokenError;
use crate::error_response::{error_fields, failure_body, json_response};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use octo_model::DEFAULT_RETRY_AFTER;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeRejection {
    Host,
    Origin,
    OtherUser,
    NotFound,
    Unauthorized(TokenError),
    NotAdmin,
    TooManyConnections,
    AmbiguousLength,
    TooLarge { limit: usize },
    Stalled,
}

impl EdgeRejection {
    fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin | Self::OtherUser | Self::NotAdmin => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::TooManyConnections => StatusCode::TOO_MANY_REQUESTS,
            Self::AmbiguousLength => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Host | Self::Origin | Self::OtherUser | Self::NotAdmin => "denied",
            Self::NotFound => "not_found",
            Self::Unauthorized(_) => "unauthorized",
            Self::TooManyConnections => "unavailable",
            Self::AmbiguousLength => "invalid",
            Self::TooLarge { .. } => "too_large",
            Self::Stalled => "timeout",
        }
    }

    /// Label of the metric.
    fn metric_label(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::OtherUser => "other_user",
            Self::NotFound => "unlisted",
            Self::Unauthorized(TokenError::Missing) => "no_token",
            Self::Unauthorized(TokenError::Unknown) => "bad_token",
            Self::Unauthorized(TokenError::Expired) => "expired_token",
            Self::NotAdmin => "not_admin",
            Self::TooManyConnections => "too_many_connections",
            Self::AmbiguousLength => "two_lengths",
            Self::TooLarge { .. } => "too_large",
            Self::Stalled => "stalled",
        }
    }

    fn message(self) -> String {
        let text = match self {
            Self::Host => "The host name of the request is not allowed.",
            Self::Origin => "The origin of the request is not allowed.",
            Self::OtherUser => "This hub answers only to the user it runs as.",
            Self::NotFound => "Not found.",
            Self::Unauthorized(TokenError::Missing) => "This hub requires a token, and the request has none.",
            Self::Unauthorized(TokenError::Unknown) => {
                "The token of the request is unknown to this hub or revoked."
            }
            Self::Unauthorized(TokenError::Expired) => "The token of the request has expired.",
            Self::NotAdmin => "Administrators only.",
            Self::TooManyConnections => "You have too many connections open.",
            Self::AmbiguousLength => "The request has two lengths for its body.",
            Self::TooLarge { limit } => return format!("The body of a request is limited to {limit} bytes."),
            Self::Stalled => "The body of the request did not arrive.",
        };
        text.to_owned()
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Host => {
                "Use localhost or 127.0.0.1, or ask the operator to add the name to `http.allowed_hosts`."
            }
            Self::Origin => "Ask the operator to add the origin to `http.allowed_origins`.",
            Self::OtherUser => "Ask the operator for a token.",
            Self::NotFound => "GET /openapi.json lists all paths.",
            Self::Unauthorized(_) => "Send `Authorization: Bearer <token>`; the operator issues tokens.",
            Self::NotAdmin => "Ask the operator: an administrator's token has the scope `admin`.",
            Self::TooManyConnections => {
                "Close unused connections, or send requests one after the other on one connection."
            }
            Self::AmbiguousLength => "Send either Content-Length or Transfer-Encoding.",
            Self::TooLarge { .. } => "Send less at once, or ask the operator to raise `http.max_body_bytes`.",
            Self::Stalled => "Send the complete request again.",
        }
    }

    pub fn response(self) -> Response {
        metrics::counter!("octoprox_http_refused_total", "reason" => self.metric_label()).increment(1);
        let mut response =
            json_response(failure_body(error_fields(self.kind(), &self.message(), Some(self.hint()))));
        *response.status_mut() = self.status();
        if self == Self::TooManyConnections {
            response.headers_mut().insert(header::RETRY_AFTER, DEFAULT_RETRY_AFTER.as_secs().into());
        }
        if let Self::Unauthorized(why) = self {
            let challenge = match why {
                TokenError::Missing => HeaderValue::from_static("Bearer"),
                TokenError::Unknown | TokenError::Expired => {
                    HeaderValue::from_static("Bearer error=\"invalid_token\"")
                }
            };
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
