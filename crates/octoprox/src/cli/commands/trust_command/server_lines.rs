//! Description of one server of a settings file.

use crate::clients::{required_variables, stored_secrets};
use crate::settings::{Server, ServerAuth, ServerSandbox};
use octo_model::Secret;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What the server is, then all of its settings that are not the default. Secrets are masked before.
pub fn server_lines(name: &str, value: &Value) -> Vec<String> {
    let Ok(server) = serde_json::from_value::<Server>(value.clone()) else {
        let program = value.get("package").or_else(|| value.get("command"));
        let what = if program.is_some() { "RUNS with all your permissions" } else { "defines" };
        return vec![format!("{what}, in a form that is not checked here: {value} (server {name})")];
    };
    let default = field_texts(&Server::default());
    let above = headline_fields(&server);
    let set = field_texts(&server).into_iter().zip(default);
    let set = set.filter(|(set, default)| set != default && !above.contains(&set.0));
    let fields = set.map(|((field, text), _)| format!("  {field}: {text}"));
    std::iter::once(headline(name, &server)).chain(fields).collect()
}

/// Secrets and variables of the user that a server gets.
pub fn value_lines(name: &str, server: &Map<String, Value>) -> Vec<String> {
    let secrets = stored_secrets(server).into_iter().map(|secret| format!("stored secret {secret}"));
    let variables = required_variables(server).into_iter().map(|variable| format!("variable {variable}"));
    secrets.chain(variables).map(|what| format!("gives the server {name} the {what}")).collect()
}

fn headline(name: &str, server: &Server) -> String {
    let program = match (&server.package, &server.command) {
        (Some(package), Some(command)) => Some(format!("{} of {package}", shell_word(command))),
        (Some(package), None) => Some(package.clone()),
        (None, Some(command)) => Some(shell_word(command)),
        (None, None) => None,
    };
    match (program, &server.url, &server.document) {
        _ if !server.enabled => format!("defines the disabled server {name}"),
        (Some(program), ..) => {
            let words: Vec<String> =
                std::iter::once(program).chain(server.args.iter().map(|word| shell_word(word))).collect();
            let sandbox = if server.sandbox.is_some() { "in a sandbox" } else { "with all your permissions" };
            format!("RUNS {sandbox}: {} (server {name})", words.join(" "))
        }
        (None, _, Some(document)) => format!("adds the API of {document} (server {name})"),
        (None, Some(url), None) => format!("connects to {url} (server {name})"),
        (None, None, None) => format!("changes the server {name}"),
    }
}

/// Settings that the headline has whole.
fn headline_fields(server: &Server) -> &'static [&'static str] {
    match server {
        server if !server.enabled => &["enabled"],
        server if server.is_program() => &["package", "command", "args"],
        Server { document: Some(_), .. } => &["document"],
        _ => &["url"],
    }
}

/// A word of a command line, in quotes if that shows where it ends.
fn shell_word(word: &str) -> String {
    let is_plain = |sign: char| !sign.is_whitespace() && !"\"'".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { json!(word).to_string() }
}

/// All settings of a server as texts. A setting that is missing here does not compile.
fn field_texts(server: &Server) -> [(&'static str, String); 27] {
    let Server {
        name,
        command,
        package,
        digest,
        args,
        env,
        cwd,
        url,
        headers,
        document,
        kind,
        auth,
        enabled,
        connect,
        idle_timeout_seconds,
        start_timeout_seconds,
        timeout_seconds,
        share,
        pool,
        per_minute,
        max_concurrent,
        sandbox,
        era,
        trust,
        effects,
        questions,
        question_hosts,
    } = server;
    [
        ("name", json_text(name)),
        ("enabled", json_text(enabled)),
        ("command", json_text(command)),
        ("package", json_text(package)),
        ("digest", json_text(digest)),
        ("args", json_text(args)),
        ("env", secrets_text(env)),
        ("cwd", json_text(cwd)),
        ("sandbox", sandbox.as_ref().map(sandbox_text).unwrap_or_default()),
        ("url", json_text(url)),
        ("headers", secrets_text(headers)),
        ("document", json_text(document)),
        ("type", json_text(kind)),
        ("auth", auth.as_ref().map(auth_text).unwrap_or_default()),
        ("trust", json_text(trust)),
        ("effects", json_text(effects)),
        ("questions", json_text(questions)),
        ("question_hosts", json_text(question_hosts)),
        ("connect", json_text(connect)),
        ("share", json_text(share)),
        ("pool", json_text(pool)),
        ("era", json_text(era)),
        ("idle_timeout_seconds", json_text(idle_timeout_seconds)),
        ("start_timeout_seconds", json_text(start_timeout_seconds)),
        ("timeout_seconds", json_text(timeout_seconds)),
        ("per_minute", json_text(per_minute)),
        ("max_concurrent", json_text(max_concurrent)),
    ]
}

fn sandbox_text(sandbox: &ServerSandbox) -> String {
    let ServerSandbox { read, write, network, hosts } = sandbox;
    let network = match (network, hosts.as_slice()) {
        (true, _) => "the whole network".to_owned(),
        (false, []) => "no network".to_owned(),
        (false, hosts) => format!("network {}", json_text(&hosts)),
    };
    let folders = |what: &str, folders: &[std::path::PathBuf]| match folders {
        [] => format!("{what} no directory of yours"),
        folders => format!("{what} {}", json_text(&folders)),
    };
    format!("{network}; {}; {}", folders("reads", read), folders("writes", write))
}

fn auth_text(auth: &ServerAuth) -> String {
    let ServerAuth {
        kind,
        env,
        header,
        query,
        client_id,
        client_secret,
        issuer,
        scopes,
        authorize_params,
        shared,
    } = auth;
    json!({
        "type": kind,
        "env": env,
        "header": header,
        "query": query,
        "client_id": client_id,
        "client_secret": client_secret.as_ref().map(Secret::expose),
        "issuer": issuer,
        "scopes": scopes,
        "authorize_params": authorize_params,
        "shared": shared,
    })
    .as_object()
    .map(|fields| fields.iter().filter(|(_, value)| !is_unset(value)))
    .map(|fields| {
        Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect()).to_string()
    })
    .unwrap_or_default()
}

fn is_unset(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || *value == json!([]) || *value == json!({})
}

fn secrets_text(values: &BTreeMap<String, Secret>) -> String {
    let shown: BTreeMap<&String, &str> = values.iter().map(|(name, value)| (name, value.expose())).collect();
    json_text(&shown)
}

fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Two values of each setting that are not the default.
    fn samples(field: &str) -> [Value; 2] {
        match field {
            "args" => [json!(["a b"]), json!(["a", "b"])],
            "env" | "headers" => [json!({"A": "1"}), json!({"A": "2"})],
            "auth" => [json!({"type": "none"}), json!({"type": "api-key", "env": "A"})],
            "enabled" => [json!(false), json!(false)],
            "connect" => [json!("always"), json!("always")],
            "share" => [json!("pool"), json!("per-caller")],
            "sandbox" => [json!({"network": true}), json!({"read": ["/"], "write": ["~"]})],
            "era" => [json!("legacy"), json!("modern")],
            "trust" => [json!("follow"), json!("warn")],
            "effects" => [json!("annotations"), json!({"reads": ["*"]})],
            "questions" => [json!(["sampling"]), json!(["roots"])],
            "question_hosts" => [json!(["a.test"]), json!(["b.test"])],
            "type" => [json!("sse"), json!("openapi")],
            "pool" | "per_minute" | "max_concurrent" => [json!(7), json!(8)],
            seconds if seconds.ends_with("_seconds") => [json!(7), json!(8)],
            _ => [json!("one"), json!("two")],
        }
    }

    #[test]
    fn every_setting_of_a_server_changes_the_card() {
        let fields = serde_json::to_value(Server::default()).unwrap();
        for base in [
            json!({"command": "x"}),
            json!({"url": "https://x.test"}),
            json!({"command": "x", "enabled": false}),
        ] {
            for field in fields.as_object().unwrap().keys() {
                let mut cards = BTreeSet::from([server_lines("s", &base)]);
                let mut values = BTreeSet::from([base.get(field).map(Value::to_string).unwrap_or_default()]);
                for value in samples(field) {
                    let mut server = base.as_object().unwrap().clone();
                    server.insert(field.clone(), value.clone());
                    values.insert(value.to_string());
                    cards.insert(server_lines("s", &Value::Object(server)));
                }
                assert_eq!(cards.len(), values.len(), "{field} of {base}: {cards:?}");
            }
        }
        let auth =
            |more: &str| server_lines("s", &json!({"auth": serde_json::from_str::<Value>(more).unwrap()}));
        let auths: BTreeSet<Vec<String>> = [
            r#"{"type": "oauth2"}"#,
            r#"{"type": "device-code"}"#,
            r#"{"type": "oauth2", "env": "A"}"#,
            r#"{"type": "oauth2", "header": "A"}"#,
            r#"{"type": "oauth2", "query": "A"}"#,
            r#"{"type": "oauth2", "client_id": "A"}"#,
            r#"{"type": "oauth2", "client_secret": "A"}"#,
            r#"{"type": "oauth2", "issuer": "A"}"#,
            r#"{"type": "oauth2", "scopes": ["A"]}"#,
            r#"{"type": "oauth2", "authorize_params": {"A": "b"}}"#,
            r#"{"type": "oauth2", "shared": true}"#,
        ]
        .map(auth)
        .into();
        assert_eq!(auths.len(), 11, "{auths:?}");
        let unreadable = server_lines("s", &json!({"pool": "${POOL}"}));
        assert!(unreadable[0].contains("${POOL}"), "{unreadable:?}");
        let unreadable =
            server_lines("s", &json!({"command": "sh", "args": ["-c", "id"], "connect": "${C:-always}"}));
        assert!(unreadable[0].starts_with("RUNS with all your permissions"), "{unreadable:?}");
    }
}
