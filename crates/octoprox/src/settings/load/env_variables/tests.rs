use crate::settings::load::env_variables::*;
use serde_json::json;

fn world(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment { variables: variables.collect(), ..Environment::default() }
}

/// A variable, its text, the setting and the value as JSON.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("OCTOPROX_WORKSPACE", "/w", "workspace", r#""/w""#),
    ("WORKSPACE_PATH", "/w", "workspace", r#""/w""#),
    ("OCTOPROX_STATE_DIR", "/s", "state_dir", r#""/s""#),
    ("OCTOPROX_HOST", "::1", "listen.host", r#""::1""#),
    ("MCP_BIND_HOST", "0.0.0.0", "listen.host", r#""0.0.0.0""#),
    ("OCTOPROX_PORT", "8000", "listen.port", r#"8000"#),
    ("OCTOPROX_ADMIN_HOST", "::1", "admin.host", r#""::1""#),
    ("OCTOPROX_ADMIN_PORT", "8001", "admin.port", r#"8001"#),
    (
        "OCTOPROX_ALLOWED_HOSTS",
        "hub.example, tools-api:8001",
        "http.allowed_hosts",
        r#"["hub.example", "tools-api:8001"]"#,
    ),
    ("MCP_PORT", " 8000", "listen.port", r#"8000"#),
    ("OCTOPROX_ENABLE_TIME", "off", "toolboxes.time", r#"false"#),
    ("OCTOPROX_ENABLE_SHELL", "YES", "toolboxes.shell", r#"true"#),
    ("OCTOPROX_ENABLE_GITLAB", "0", "toolboxes.gitlab", r#"false"#),
    (
        "OCTOPROX_NET_ONLY",
        "docs.example, *.corp.example",
        "net.only",
        r#"["docs.example", "*.corp.example"]"#,
    ),
    ("OCTOPROX_NET_ALLOW", "127.0.0.1, *.corp.example", "net.allow", r#"["127.0.0.1", "*.corp.example"]"#),
    ("OCTOPROX_NET_CONTACT", "mailto:ops@example.com", "net.contact", r#""mailto:ops@example.com""#),
    ("OCTOPROX_NET_RESPECT_ROBOTS", "true", "net.respect_robots", r#"true"#),
    ("OCTOPROX_SEARXNG_URL", "http://s", "search.searxng_url", r#""http://s""#),
    ("BRAVE_API_KEY", "k", "search.brave_api_key", r#""k""#),
    ("BRAVE_SEARCH_API", "k", "search.brave_api_key", r#""k""#),
    ("GITHUB_TOKEN", "k", "github.token", r#""k""#),
    ("OCTOPROX_DATABASE_READ_ONLY", "true", "database.read_only", r#"true"#),
    ("OCTOPROX_SHELL_ALLOWED_COMMANDS", "ls, git,", "shell.allowed_commands", r#"["ls", "git"]"#),
    ("OCTOPROX_SHELL_BLOCKED_COMMANDS", "rm -rf /", "shell.blocked_commands", r#"["rm -rf /"]"#),
    ("OCTOPROX_SHELL_MAX_TIMEOUT", "60", "shell.max_timeout_seconds", r#"60"#),
    ("OCTOPROX_SHELL_SANDBOX", "landlock", "shell.sandbox", r#""landlock""#),
    ("OCTOPROX_SHELL_NETWORK", "1", "shell.network", r#"true"#),
    ("OCTOPROX_SHELL_LOCAL_SERVERS", "1", "shell.local_servers", r#"true"#),
    ("OCTOPROX_GIT_ALLOW_COMMIT", "on", "git.allow_commit", r#"true"#),
    ("OCTOPROX_GIT_ALLOW_PUSH", "on", "git.allow_push", r#"true"#),
    ("OCTOPROX_FILES_READ_ONLY", "yes", "files.read_only", r#"true"#),
    ("REPOS_PATH", "/home/me/repos", "roots.repos.host_path", r#""/home/me/repos""#),
    ("BASE_REPOS_PATH", "/mnt/repos", "roots.repos.path", r#""/mnt/repos""#),
    ("DOWNLOADS_PATH", "/home/me/d", "roots.downloads.host_path", r#""/home/me/d""#),
    ("BASE_DOWNLOADS_PATH", "/mnt/d", "roots.downloads.path", r#""/mnt/d""#),
    ("PLAYBOOKS_PATH", "/mnt/p", "roots.playbooks.path", r#""/mnt/p""#),
    ("PLAYBOOKS_PATH", "/mnt/p", "prompts.folders", r#"["/mnt/p"]"#),
    ("PLAYBOOKS_PATH", "/mnt/p", "tools.folders", r#"["/mnt/p"]"#),
    ("AUTH_STORE_PATH", "/a", "logins.store", r#""/a""#),
    ("GATEWAY_AUTH_DIR", "/a", "logins.store", r#""/a""#),
    ("TOOL_GATEWAY_SECRET", "hush", "logins.secret", r#""hush""#),
    ("OCTOPROX_SECRET", "hush", "logins.secret", r#""hush""#),
    ("OCTOPROX_SECRET_FILE", "/f", "logins.secret_file", r#""/f""#),
    ("TOOL_GATEWAY_CALLBACK_URL", "http://c", "logins.callback_url", r#""http://c""#),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://o", "telemetry.otlp_endpoint", r#""http://o""#),
    ("OTEL_SERVICE_NAME", "hub", "telemetry.service_name", r#""hub""#),
    ("OCTOPROX_LOG_LEVEL", "debug", "telemetry.log_level", r#""debug""#),
    ("OCTOPROX_LOG_FILE", "/l", "telemetry.log_file", r#""/l""#),
];

#[test]
fn every_variable_sets_its_setting() {
    for (variable, text, path, value) in CASES {
        let mut layers = Layers::default();
        assert_eq!(merge_env(&mut layers, &world(&[(variable, text)])), [], "{variable}");
        let value: Value = serde_json::from_str(value).unwrap();
        assert_eq!(layers.get(path), Some(&value), "{variable}");
        assert_eq!(layers.origin(path), SettingOrigin::Variable((*variable).to_owned()));
    }
}

#[test]
fn our_own_names_win_and_empty_ones_say_nothing() {
    let mut layers = Layers::default();
    let world =
        world(&[("OCTOPROX_PORT", "1"), ("MCP_PORT", "2"), ("OCTOPROX_HOST", ""), ("MCP_BIND_HOST", "::1")]);
    assert_eq!(merge_env(&mut layers, &world), []);
    assert_eq!(layers.tree(), json!({"listen": {"host": "::1", "port": 1}}));
}

#[test]
fn what_cannot_be_read_is_said() {
    for (variable, text, says) in [
        (
            "OCTOPROX_ENABLE_TIME",
            "maybe",
            "variable OCTOPROX_ENABLE_TIME: toolboxes.time: `maybe` is neither true nor false.",
        ),
        ("OCTOPROX_PORT", "http", "variable OCTOPROX_PORT: listen.port: `http` is not an integer."),
        (
            "OCTOPROX_DATABASE_CONNECTIONS",
            "main",
            "variable OCTOPROX_DATABASE_CONNECTIONS: database.connections: not a list",
        ),
        ("GATEWAY_TOKEN", "short", "variable GATEWAY_TOKEN: auth.tokens: a token must have at least 16"),
    ] {
        let problems = merge_env(&mut Layers::default(), &world(&[(variable, text)]));
        assert!(problems.len() == 1 && problems[0].to_string().starts_with(says), "{problems:?}");
    }
}

#[test]
fn databases_by_name() {
    for (text, value) in [
        ("default=postgresql://u:p@h:5432/d", json!({"default": "postgresql://u:p@h:5432/d"})),
        ("a=postgres://h1,h2/d, b=sqlite:///x", json!({"a": "postgres://h1,h2/d", "b": "sqlite:///x"})),
        ("postgresql://h/d?options=a,b=c", json!({"default": "postgresql://h/d?options=a,b=c"})),
    ] {
        assert_eq!(parse_addresses(text).map(Value::Object).unwrap(), value, "{text}");
    }
}

#[test]
fn a_token_is_kept_as_its_hash() {
    let mut layers = Layers::default();
    assert_eq!(merge_env(&mut layers, &world(&[("GATEWAY_TOKEN", "0123456789abcdef")])), []);
    let tokens = layers.get("auth.tokens").unwrap();
    assert_eq!(tokens[0]["sha256"], "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f");
    assert_eq!((&tokens[0]["name"], &tokens[0]["scopes"]), (&json!("gateway"), &json!(["admin"])));
}

#[test]
fn secrets_of_the_environment() {
    let world = world(&[
        ("GATEWAY_TOKEN", "t"),
        ("TOOL_GATEWAY_SECRET", "s"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20x, k=v"),
    ]);
    assert_eq!(env_secrets(&world), ["t", "s", "Basic%20x", "v"]);
}

#[test]
fn slips_are_noticed() {
    let notes =
        unknown_variables(&world(&[("OCTOPROX_ENABLE_SHEL", "1"), ("OCTOPROX_PORT", "1"), ("PATH", "x")]));
    assert_eq!(notes, ["unknown variable OCTOPROX_ENABLE_SHEL; did you mean OCTOPROX_ENABLE_SHELL?"]);
}
