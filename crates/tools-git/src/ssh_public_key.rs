//! `ssh_public_key`.

use octo_toolkit::{CallContext, Effect, Example, SshKey, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Shows the public SSH key of this workspace, to be added to a forge so that `git` can fetch and push over ssh; it is
/// generated on first use. No tool can read the private key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The key in one line, in the format of forges.
    public_key: String,
}

pub struct PublicKey;

impl Tool for PublicKey {
    const NAME: &'static str = "ssh_public_key";
    const TITLE: &'static str = "Public SSH key";
    const KEYWORDS: &'static str = "deploy key authentication github access";
    const REQUESTS: &'static [&'static str] = &[
        "what key do i paste into github for ssh access",
        "give me the deploy key for the repository host",
        "show id_ed25519.pub of the workspace",
        "pushing over ssh is denied, which key must be added",
        "set up ssh authentication with a forge",
        "public half of the key pair",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = SshKey;

    fn examples() -> Vec<Example> {
        vec![Example::new("The key to add to a forge", json!({}))]
    }

    async fn run(&self, _: Input, key: SshKey, _: &CallContext) -> Result<Output, ToolError> {
        let public = tokio::task::spawn_blocking(move || key.public()).await.map_err(ToolError::internal)?;
        Ok(Output { public_key: public? })
    }
}
