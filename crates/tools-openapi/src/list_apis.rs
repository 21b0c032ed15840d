//! `openapi_list_apis`.

use crate::document_cache::ApiSettings;
use octo_toolkit::{Apis, CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the APIs that were loaded with openapi_load, with title, version, URL and number of operations; empty if there
/// are none. Prefer openapi_list_endpoints to look into one of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The loaded APIs, by name.
    apis: Vec<Item>,
}

#[derive(Serialize, JsonSchema)]
struct Item {
    /// Name to use it under.
    name: String,
    /// Title of the API.
    title: String,
    /// Version of the API.
    version: String,
    /// Number of operations.
    endpoint_count: usize,
    /// URL of its document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Base URL of its operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    /// URL used instead of the document's servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url_override: Option<String>,
    /// The only origin that its credential is sent to; absent without a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_origin: Option<String>,
}

pub struct ListApis;

impl Tool for ListApis {
    const NAME: &'static str = "openapi_list_apis";
    const TITLE: &'static str = "List loaded APIs";
    const KEYWORDS: &'static str = "registered loaded swagger services";
    const REQUESTS: &'static [&'static str] = &[
        "which apis have been registered so far",
        "is the billing api already loaded",
        "what version and base url do our imported services have",
        "show the swagger documents that are on hand",
        "names of the rest services that i can call by description",
        "is any api description stored here",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Apis;

    fn examples() -> Vec<Example> {
        vec![Example::new("What is loaded", json!({}))]
    }

    async fn run(&self, _: Input, apis: Apis, cx: &CallContext) -> Result<Output, ToolError> {
        let items = apis.list(&cx.caller).await?.into_iter().map(|kept| {
            let settings: ApiSettings = serde_json::from_str(&kept.settings).unwrap_or_default();
            Item {
                name: kept.name,
                title: settings.title,
                version: settings.version,
                endpoint_count: settings.endpoint_count,
                source: settings.source.map(Into::into),
                base_url: settings.base_url.map(Into::into),
                base_url_override: settings.base_url_override.map(Into::into),
                auth_origin: settings.auth_origin.map(|url| url.origin().ascii_serialization()),
            }
        });
        Ok(Output { apis: items.collect() })
    }
}
