//! What the edge says when it does not let a request in.

use super::bearer_tokens::TokenError;
use crate::error_response::{error_fields, failure_body, json_response};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

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

    /// The label of the counter.
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
            Self::Host => "This hub does not answer under the host name of the request.",
            Self::Origin => "Pages of this origin may not speak to this hub.",
            Self::OtherUser => "This hub answers only to the user it runs as.",
            Self::NotFound => "There is nothing here.",
            Self::Unauthorized(TokenError::Missing) => "This hub wants a token, and the request has none.",
            Self::Unauthorized(TokenError::Unknown) => {
                "The token of the request is not one that this hub knows."
            }
            Self::Unauthorized(TokenError::Expired) => "The token of the request has expired.",
            Self::NotAdmin => "This is for administrators only.",
            Self::TooManyConnections => "You have too many connections open.",
            Self::AmbiguousLength => "The request says in two ways how long its body is.",
            Self::TooLarge { limit } => return format!("The body of a request may have {limit} bytes."),
            Self::Stalled => "The body of the request did not arrive.",
        };
        text.to_owned()
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Host => {
                "Use localhost or 127.0.0.1, or let the operator add the name to `http.allowed_hosts`."
            }
            Self::Origin => "Let the operator add the origin to `http.allowed_origins`.",
            Self::OtherUser => "Ask for a token: `octoprox token new`.",
            Self::NotFound => "GET /openapi.json says what there is.",
            Self::Unauthorized(_) => "Send `Authorization: Bearer <token>`; the operator gives tokens out.",
            Self::NotAdmin => "Ask the operator: an administrator's token has the scope `admin`.",
            Self::TooManyConnections => {
                "Close those that you do not need, or send requests one after the other on one."
            }
            Self::AmbiguousLength => "Send either Content-Length or Transfer-Encoding.",
            Self::TooLarge { .. } => "Send less at once, or let the operator raise `http.max_body_bytes`.",
            Self::Stalled => "Send the request again, whole.",
        }
    }

    pub fn response(self) -> Response {
        metrics::counter!("octoprox_http_refused_total", "why" => self.metric_label()).increment(1);
        let mut response =
            json_response(failure_body(error_fields(self.kind(), &self.message(), Some(self.hint()))));
        *response.status_mut() = self.status();
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
