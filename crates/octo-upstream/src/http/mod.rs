//! Servers behind streamable HTTP, of both eras.

mod response_body;
mod server_stream;
mod http_client;
mod endpoint;
mod event_stream;
mod exchange;
mod request_headers;
mod http_redirect;
mod retry_after;

pub(crate) use server_stream::run_server_stream as follow_back_channel;
pub(crate) use http_client::{HttpClient, build_client};
pub(crate) use endpoint::Endpoint;
pub(crate) use request_headers::encode_value as header_value;
