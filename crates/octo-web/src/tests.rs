//! The frontend as a whole, against a real hub.

mod connection_costs;
mod descriptor_exhaustion;
mod edge_security;
mod fake_upstream;
mod malformed_http;
mod openapi_document;
mod rest_calls;
mod route_table;
mod shutdown;
mod test_server;
mod test_stores;
pub mod web_fixture;
