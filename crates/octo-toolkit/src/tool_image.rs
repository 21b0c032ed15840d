//! Images beside or instead of a structured reply.

use octo_model::{Json, JsonObject};

/// An image as a client shows it to its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub mime: &'static str,
    /// The image data in base64.
    pub base64: String,
}

impl Image {
    /// The image as a content block of a result.
    pub fn to_content_block(&self) -> Json {
        JsonObject::new()
            .with("type", "image")
            .with("data", self.base64.as_str())
            .with("mimeType", self.mime)
            .to_json()
    }
}

#[cfg(test)]
mod tests {
    use crate::{CallContext, Effect, Example, Image, Json, Tool, ToolError, Toolbox};
    use octo_grants::Capabilities;
    use octo_model::{Caller, Operation};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tokio_util::sync::CancellationToken;

    /// Draws nothing in particular.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {}

    #[derive(Serialize, JsonSchema)]
    struct Output {
        /// Pixels across.
        width: u32,
        #[serde(skip)]
        picture: String,
    }

    struct Draw<const TYPED: bool>;

    impl<const TYPED: bool> Tool for Draw<TYPED> {
        const NAME: &'static str = "draw";
        const TITLE: &'static str = "Draw";
        const EFFECT: Effect = Effect::reads();
        const HAS_OUTPUT_SCHEMA: bool = TYPED;
        type Input = Input;
        type Output = Output;
        type Grants = ();

        fn examples() -> Vec<Example> {
            Vec::new()
        }

        fn images(output: &Output) -> Vec<Image> {
            vec![Image { mime: "image/png", base64: output.picture.clone() }]
        }

        async fn run(&self, _: Input, (): (), _: &CallContext) -> Result<Output, ToolError> {
            Ok(Output { width: 3, picture: "iVBORw==".to_owned() })
        }
    }

    async fn drawn(toolbox: Toolbox) -> Value {
        let source = toolbox.into_source(Capabilities::default(), crate::SourceState::Ready);
        let deadline = Instant::now() + Duration::from_secs(1);
        let cx = CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
        let op = Operation::tool("draw", Json::empty_object());
        source.run(op, &cx).await.unwrap().to_json().to().unwrap()
    }

    #[tokio::test]
    async fn a_picture_has_no_structure_beside_it() {
        let toolbox = Toolbox::new("art", "").with(Draw::<false>);
        assert!(toolbox.tools[0].definition.get("outputSchema").is_none());
        let result = drawn(toolbox).await;
        assert_eq!(
            result,
            json!({
                "content": [
                    {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
                    {"type": "text", "text": "width: 3"},
                ],
                "isError": false,
            })
        );
    }

    #[tokio::test]
    async fn a_typed_answer_keeps_its_structure_and_gains_the_picture() {
        let toolbox = Toolbox::new("art", "").with(Draw::<true>);
        assert!(toolbox.tools[0].definition.get("outputSchema").is_some());
        let result = drawn(toolbox).await;
        assert_eq!(result["structuredContent"], json!({"width": 3}));
        assert_eq!(result["content"][0], json!({"type": "text", "text": "width: 3"}));
        assert_eq!(result["content"][1]["data"], "iVBORw==");
    }
}
