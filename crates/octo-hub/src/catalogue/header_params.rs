//! Parameters that clients repeat in HTTP headers.

use octo_model::JsonObject;

/// A parameter that clients repeat in an HTTP header, for routing by proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    pub parameter: String,
    /// The last part of the header name, in lower case.
    pub header: String,
}

pub fn parse_header_params(definition: &JsonObject) -> Vec<HeaderParam> {
    let schema = definition.object("inputSchema").object("properties");
    let annotated = schema.iter().filter_map(|(parameter, schema)| {
        let header = schema.members().ok()?.text("x-mcp-header")?.to_ascii_lowercase();
        Some(HeaderParam { parameter: parameter.to_owned(), header })
    });
    annotated.collect()
}
