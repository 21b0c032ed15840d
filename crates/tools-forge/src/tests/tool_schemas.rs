//! Properties of all tool definitions.

use crate::{GithubSettings, GitlabSettings, github_toolbox, gitlab_toolbox};
use serde_json::Value;

#[test]
fn every_tool_has_examples_that_fit_its_schema() {
    let toolboxes = [gitlab_toolbox(GitlabSettings::default()), github_toolbox(GithubSettings::default())];
    let tools: Vec<_> = toolboxes.iter().flat_map(|toolbox| &toolbox.tools).collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    assert_eq!(
        names,
        [
            "gitlab_request",
            "gitlab_openapi_spec",
            "gitlab_openapi_paths",
            "gitlab_openapi_operation",
            "gitlab_tool_help",
            "github_pull_request"
        ]
    );
    for tool in tools {
        let definition: Value = tool.definition.to_json().to().unwrap();
        assert!(!tool.examples.is_empty(), "{}", tool.name);
        for example in &tool.examples {
            let input: Value = example.input.to().unwrap();
            assert!(jsonschema::is_valid(&definition["inputSchema"], &input), "{}: {input}", tool.name);
        }
        let words = definition["description"].as_str().unwrap().split_whitespace().count();
        assert!((10..=60).contains(&words), "{} is described in {words} words", tool.name);
    }
}

/// A reply matches the output schema of its tool.
pub fn assert_fits(tools: &[octo_toolkit::ErasedTool], name: &str, answer: &Value) {
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    let definition: Value = tool.definition.to_json().to().unwrap();
    let validator = jsonschema::validator_for(&definition["outputSchema"]).unwrap();
    let wrong: Vec<String> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}
