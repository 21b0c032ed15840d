//! Servers behind streamable HTTP, of both eras.

mod endpoint;
mod event_stream;
mod exchange;
mod http_client;
mod http_redirect;
mod request_headers;
mod response_body;
mod retry_after;
mod server_stream;

pub(crate) use endpoint::Endpoint;
pub(crate) use http_client::{HttpClient, build_client};
pub(crate) use request_headers::encode_value as header_value;
pub(crate) use server_stream::run_server_stream as follow_back_channel;
