//! `openapi_unload`.

use octo_toolkit::{Apis, CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Removes an API that was loaded with openapi_load, its document and its credential; reports if there was none of that
/// name. Prefer openapi_load with the same name to replace one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name that it was loaded under.
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The given name.
    name: String,
    /// Whether there was such an API.
    unloaded: bool,
}

pub struct Unload;

impl Tool for Unload {
    const NAME: &'static str = "openapi_unload";
    const TITLE: &'static str = "Unload an API";
    const KEYWORDS: &'static str = "delete forget unregister swagger service";
    const REQUESTS: &'static [&'static str] = &[
        "remove the pets api that we registered",
        "forget the stored token and document of that api",
        "we do not need the billing service description any more",
        "drop an imported swagger definition",
        "unregister an api",
        "clean up api definitions that are no longer used",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Apis;

    fn examples() -> Vec<Example> {
        vec![Example::new("Forget an API and its credential", json!({"name": "pets"}))]
    }

    async fn run(&self, input: Input, apis: Apis, cx: &CallContext) -> Result<Output, ToolError> {
        let name = input.name.trim().to_owned();
        let unloaded = apis.remove(&cx.caller, &name).await?;
        Ok(Output { name, unloaded })
    }
}
