//! Built-in prompts.

use octo_hub::prompt_files::BuiltinPrompts;

pub const SHIPPED: BuiltinPrompts = &[
    ("octoprox/changes", include_str!("prompts/changes.yaml")),
    ("octoprox/code", include_str!("prompts/code.yaml")),
    ("octoprox/planning", include_str!("prompts/planning.yaml")),
    ("octoprox/playbooks", include_str!("prompts/playbooks.yaml")),
    ("octoprox/writing", include_str!("prompts/writing.yaml")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use octo_grants::config_dirs::ConfigDirs;
    use octo_hub::prompt_files::{problems, source};
    use octo_model::{Caller, Json, JsonObject, Method, Operation};
    use octo_toolkit::{CallContext, Source};
    use serde_json::{Map, Value, json};
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tokio_util::sync::CancellationToken;

    async fn fill(source: &Arc<dyn Source>, name: &str, arguments: Map<String, Value>) -> String {
        let deadline = Instant::now() + Duration::from_secs(10);
        let cx = CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new());
        let params = JsonObject::new().with("arguments", Json::from(Value::Object(arguments)));
        let op = Operation { method: Method::GetPrompt, name: name.to_owned(), params };
        let result: Value = source.run(op, &cx).await.unwrap().to_json().to().unwrap();
        result["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
    }

    /// Returns the values of an argument, as listed in its description.
    fn values(argument: &Value) -> Vec<String> {
        let description = argument["description"].as_str().unwrap();
        let listed = description.split_once("One of: ").and_then(|(_, rest)| rest.split_once('.'));
        listed.map_or_else(Vec::new, |(all, _)| all.split(", ").map(str::to_owned).collect())
    }

    #[tokio::test]
    async fn every_prompt_can_be_filled_in_with_and_without_what_is_optional() {
        assert_eq!(problems(SHIPPED, &ConfigDirs::default()), []);
        let source = source(SHIPPED, ConfigDirs::default());
        let prompts = Arc::clone(&source.listing().borrow().listing);
        for name in [
            "code_review",
            "coding_guidelines",
            "commit_message",
            "create_playbook",
            "implementation_guide",
            "implementation_guide_review",
            "python_coding_guidelines",
            "unit_tests",
            "update_documentation",
            "generate_playbook",
            "generate_structured_prompt",
            "update_playbooks",
            "explain_concept",
            "transcript_summary",
            "create_pr_description",
        ] {
            assert!(prompts.prompts.iter().any(|prompt| prompt.key == name), "{name} is not shipped");
        }
        for prompt in &prompts.prompts {
            let (name, about): (_, Value) = (&prompt.key, prompt.members.to_json().to().unwrap());
            let arguments = about["arguments"].as_array().unwrap();
            assert!(about["title"].is_string(), "{name}");
            assert!(arguments.iter().all(|one| !one["description"].as_str().unwrap().is_empty()), "{name}");
            let mark = |argument: &Value| format!("<<{}>>", argument["name"].as_str().unwrap());
            let given = |wanted: &dyn Fn(&Value) -> bool| -> Map<String, Value> {
                let chosen = arguments.iter().filter(|one| values(one).is_empty() && wanted(one));
                chosen.map(|one| (one["name"].as_str().unwrap().to_owned(), json!(mark(one)))).collect()
            };
            let bare = fill(&source, name, given(&|one| one["required"] == true)).await;
            let full = fill(&source, name, given(&|_| true)).await;
            assert!(bare.len() > 300 && full != bare, "{name}");
            for text in [&bare, &full] {
                assert!(!text.contains("{{") && !text.contains("}}"), "{name}: {text}");
                assert!(!text.contains("\n\n\n") && !text.starts_with('\n'), "{name}: {text}");
                assert!(!text.lines().any(|line| line.ends_with(' ')), "{name}: {text}");
            }
            for one in arguments.iter().filter(|one| values(one).is_empty()) {
                assert!(full.contains(&mark(one)), "{name} leaves out {one}: {full}");
                assert!(one["required"] == true || !bare.contains(&mark(one)), "{name}");
            }
            for one in arguments {
                let mut texts: Vec<String> = Vec::new();
                for value in values(one) {
                    let mut all = given(&|_| true);
                    all.insert(one["name"].as_str().unwrap().to_owned(), json!(value));
                    texts.push(fill(&source, name, all).await);
                }
                texts.sort();
                let count = texts.len();
                texts.dedup();
                assert_eq!(texts.len(), count, "{name}: two values of {one} make no difference");
            }
        }
    }
}
