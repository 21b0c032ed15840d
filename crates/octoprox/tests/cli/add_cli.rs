//! `octoprox add`, as far as it needs no registry. `catalogue/check` adds real packages.

use super::test_home::TestHome;
use serde_json::{Value, json};

const LIST: &str = ".config/octoprox/servers.yaml";

#[test]
fn a_server_of_the_catalogue_is_added_after_its_card() {
    let home = TestHome::new();
    let (code, card, said) = home.run_text(&["add", "notion", "--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    for part in
        ["Notion (notion)", "Connects to https://mcp.notion.com/mcp", "the URL is on its domain", "a login"]
    {
        assert!(card.contains(part), "{part}: {card}");
    }
    assert!(card.lines().all(|line| line.chars().count() <= 80), "{card}");
    assert!(!home.exists(LIST));
    let (code, printed, said) = home.run_text(&["add", "notion", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        printed.contains("added notion to") && said.contains("Next: octoprox login notion"),
        "{printed}{said}"
    );
    assert!(
        home.read(LIST).ends_with(
            "  notion:\n    url: https://mcp.notion.com/mcp\n    auth:\n      type: oauth2-pkce\n"
        )
    );
    let (code, _, said) = home.run_text(&["add", "notion", "--yes"]);
    assert!(code == Some(1) && said.contains("Replace it with --update"), "{said}");
    assert_eq!(home.run_text(&["add", "notion", "--yes", "--update"]).0, Some(0));
}

#[test]
fn what_is_not_certain_is_refused() {
    let home = TestHome::new();
    for (words, code, part) in [
        (&["githb"][..], 1, "Did you mean `github`?"),
        (&["no-such-thing-at-all"], 1, "octoprox add --search"),
        (&["npm:github-mcp-server"], 1, "resembles `github`"),
        (&["https://mcp.n0tion.com/mcp"], 1, "resembles `notion`"),
        (&["notion"], 2, "there is no terminal"),
        (&["notion", "--local"], 2, "has no package"),
        (&["oci:ghcr.io/acme/weather"], 2, "Name the digest"),
        (&["weather.mcpb"], 1, "Check its path"),
        (&["https://example.com/weather.mcpb"], 2, "Download the bundle"),
        (&["https://mcp.example.com/mcp", "--yes", "--", "x"], 2, "are for programs"),
        (&["https://mcp.example.com/mcp", "--yes", "--env", "=x"], 2, "are for programs"),
        (&["notion", "--yes", "--as", "github"], 2, "Use `github-mcp`"),
        (&["./none.py"], 2, "file not found"),
        (&["com.example/weather"], 1, "The catalogue has no server"),
        (&["npm:--registry=x"], 2, "write it like"),
    ] {
        let words: Vec<&str> = ["add"].into_iter().chain(words.iter().copied()).collect();
        let (exit, _, said) = home.run_text(&words);
        assert!(exit == Some(code) && said.contains(part), "{words:?}: {exit:?} {said}");
    }
    assert!(!home.exists(LIST));
}

#[test]
fn searches_and_json() {
    let home = TestHome::new();
    let found: Value =
        serde_json::from_str(&home.stdout(&["add", "--search", "error tracking", "--json"])).unwrap();
    assert_eq!(found["servers"][0]["name"], "sentry");
    let card: Value = serde_json::from_str(&home.stdout(&["add", "notion", "--dry-run", "--json"])).unwrap();
    assert_eq!(
        card["settings"],
        json!({"url": "https://mcp.notion.com/mcp", "auth": {"type": "oauth2-pkce"}})
    );
    assert_eq!(card["publisher"]["verified_by"], "endpoint");
}

/// One hub is the registry of another.
#[test]
fn a_server_of_a_registry_is_added() {
    let registry = TestHome::new();
    let hub = registry.serve(&[]);
    let (status, page) = hub.get("/v0.1/servers?search=notion&limit=1", None);
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((status, &page["servers"][0]["server"]["name"]), (200, &json!("octoprox/notion")));
    for (path, code) in [
        ("/v0.1/servers/octoprox%2Fnotion/versions/latest", 200),
        ("/v0.1/servers/octoprox%2Fnotion/versions", 200),
        ("/v0.1/servers/octoprox%2Fnone/versions", 404),
        ("/v0.1/servers?limit=many", 400),
    ] {
        assert_eq!(hub.get(path, None).0, code, "{path}");
    }
    let home = TestHome::new();
    home.write_with_dirs(
        ".config/octoprox/octoprox.yaml",
        &format!("registries: ['http://127.0.0.1:{}']\n", hub.port),
    );
    let (code, card, said) = home.run_text(&["add", "octoprox/notion", "--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(card.contains("https://mcp.notion.com/mcp") && card.contains("as the registry says"), "{card}");
    hub.stop();
}

#[test]
fn a_package_that_is_not_installed_says_how_to_install_it() {
    let home = TestHome::new();
    home.write_with_dirs(
        LIST,
        "servers:\n  tides:\n    package: npm:@acme/tides@1.0.0\n    sandbox: {hosts: [api.example.com]}\n",
    );
    let (_, listed, said) = home.run_text(&["servers", "list"]);
    assert!(listed.contains("tides  missing  npm:@acme/tides@1.0.0"), "{listed}");
    assert!(said.contains("octoprox servers install tides"), "{said}");
    let (code, _, said) = home.run_text(&["servers", "install"]);
    assert!(
        code == Some(1) && said.contains("octoprox add npm:@acme/tides@1.0.0 --as tides --update"),
        "{said}"
    );
    for (entry, part) in [
        ("package: npm:tides", "is not a package with a version"),
        ("package: npm:tides@1.0.0\n    url: https://x.test/", "cannot be combined"),
        ("package: npm:tides@1.0.0\n    command: bin/tides", "a path, although `package` is set"),
        ("package: npm:tides@1.0.0\n    digest: none", "not a digest"),
        ("command: x\n    sandbox: {network: true, hosts: [a.test]}", "both `network` and `hosts`"),
        ("command: x\n    sandbox: {hosts: ['https://a.test/']}", "in sandbox.hosts is not a host"),
    ] {
        home.write_with_dirs(LIST, &format!("servers:\n  tides:\n    {entry}\n"));
        let (code, _, said) = home.run_text(&["config", "check"]);
        assert!(code != Some(0) && said.contains(part), "{entry}: {said}");
    }
}
