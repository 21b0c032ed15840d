//! HTTP transports: streamable HTTP for both eras, and HTTP+SSE.

pub(crate) mod endpoint;
mod event_stream;
pub(crate) mod http_client;
mod http_redirect;
pub(crate) mod request_headers;
mod response_body;
pub(crate) mod server_stream;
pub(crate) mod sse_transport;
