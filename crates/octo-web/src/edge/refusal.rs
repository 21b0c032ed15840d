//! What the edge says when it does not let a request in.

use super::token::NoEntry;
use crate::fault::{body, described, json};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Host,
    Origin,
    OtherUser,
    Unlisted,
    NoEntry(NoEntry),
    NotAdmin,
    TooManyConnections,
    TwoLengths,
    TooLarge { limit: usize },
    Stalled,
}

impl Refusal {
    fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin | Self::OtherUser | Self::NotAdmin => StatusCode::FORBIDDEN,
            Self::Unlisted => StatusCode::NOT_FOUND,
            Self::NoEntry(_) => StatusCode::UNAUTHORIZED,
            Self::TooManyConnections => StatusCode::TOO_MANY_REQUESTS,
            Self::TwoLengths => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Host | Self::Origin | Self::OtherUser | Self::NotAdmin => "denied",
            Self::Unlisted => "not_found",
            Self::NoEntry(_) => "unauthorized",
            Self::TooManyConnections => "unavailable",
            Self::TwoLengths => "invalid",
            Self::TooLarge { .. } => "too_large",
            Self::Stalled => "timeout",
        }
    }

    /// The label of the counter.
    fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::OtherUser => "other_user",
            Self::Unlisted => "unlisted",
            Self::NoEntry(NoEntry::Missing) => "no_token",
            Self::NoEntry(NoEntry::Unknown) => "bad_token",
            Self::NoEntry(NoEntry::Expired) => "expired_token",
            Self::NotAdmin => "not_admin",
            Self::TooManyConnections => "too_many_connections",
            Self::TwoLengths => "two_lengths",
            Self::TooLarge { .. } => "too_large",
            Self::Stalled => "stalled",
        }
    }

    fn message(self) -> String {
        let text = match self {
            Self::Host => "This hub does not answer under the host name of the request.",
            Self::Origin => "Pages of this origin may not speak to this hub.",
            Self::OtherUser => "This hub answers only to the user it runs as.",
            Self::Unlisted => "There is nothing here.",
            Self::NoEntry(NoEntry::Missing) => "This hub wants a token, and the request has none.",
            Self::NoEntry(NoEntry::Unknown) => "The token of the request is not one that this hub knows.",
            Self::NoEntry(NoEntry::Expired) => "The token of the request has expired.",
            Self::NotAdmin => "This is for administrators only.",
            Self::TooManyConnections => "You have too many connections open.",
            Self::TwoLengths => "The request says in two ways how long its body is.",
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
            Self::Unlisted => "GET /openapi.json says what there is.",
            Self::NoEntry(_) => "Send `Authorization: Bearer <token>`; the operator gives tokens out.",
            Self::NotAdmin => "Ask the operator: an administrator's token has the scope `admin`.",
            Self::TooManyConnections => {
                "Close those that you do not need, or send requests one after the other on one."
            }
            Self::TwoLengths => "Send either Content-Length or Transfer-Encoding.",
            Self::TooLarge { .. } => "Send less at once, or let the operator raise `http.max_body_bytes`.",
            Self::Stalled => "Send the request again, whole.",
        }
    }

    pub fn response(self) -> Response {
        metrics::counter!("octoprox_http_refused_total", "why" => self.word()).increment(1);
        let mut response = json(body(described(self.kind(), &self.message(), Some(self.hint()))));
        *response.status_mut() = self.status();
        if let Self::NoEntry(why) = self {
            let challenge = match why {
                NoEntry::Missing => HeaderValue::from_static("Bearer"),
                NoEntry::Unknown | NoEntry::Expired => {
                    HeaderValue::from_static("Bearer error=\"invalid_token\"")
                }
            };
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
