//! `octoprox servers`.

use super::test_home::TestHome;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_octoprox");

/// Settings with comments that must be kept.
const SETTINGS: &str = "# Mine.\nlisten: {port: 0} # any\n\nservers:\n  # the first\n  a:\n    command: x # why\n\n# The end.\ntoolboxes:\n  shell: false\n";

#[test]
fn a_server_is_added_and_removed_and_every_other_line_stays() {
    let home = TestHome::new();
    home.write("octoprox.yaml", SETTINGS);
    let (code, printed, said) =
        home.run_text(&["servers", "add", "notion", "--url", "https://mcp.notion.com/mcp", "--login"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(printed, format!("added notion to {}\n", home.path("octoprox.yaml").display()));
    assert!(said.contains("octoprox.yaml.bak-1") && said.contains("octoprox servers test notion"), "{said}");
    let written = "  notion:\n    url: https://mcp.notion.com/mcp\n    auth:\n      type: oauth2-pkce\n";
    assert_eq!(home.read("octoprox.yaml"), SETTINGS.replace("# why\n", &format!("# why\n{written}")));
    assert_eq!(home.read("octoprox.yaml.bak-1"), SETTINGS);
    let shown: Value = serde_json::from_str(&home.stdout(&["servers", "list", "--json"])).unwrap();
    let notion = shown["servers"].as_array().unwrap().iter().find(|it| it["name"] == "notion").unwrap();
    assert_eq!(
        (&notion["state"], &notion["kind"], &notion["connect"]),
        (&json!("ready"), &json!("http"), &json!("on-demand"))
    );
    assert_eq!(home.stdout(&["servers", "remove", "notion", "--json"]).matches("removed").count(), 1);
    assert_eq!(home.read("octoprox.yaml"), SETTINGS);
    let (code, _, said) = home.run_text(&["servers", "remove", "notio"]);
    assert_eq!((code, said.contains("Server not found: `notio`.")), (Some(3), true), "{said}");
}

#[test]
fn programs_are_added_with_their_variables_and_no_secret_is_written() {
    let home = TestHome::new();
    let words = [
        "servers",
        "add",
        "gh",
        "--env",
        "GITHUB_TOKEN=canary-12",
        "--env",
        "HOST",
        "--env",
        "MODE=fast",
        "--always",
        "--",
    ];
    let words: Vec<&str> = words.into_iter().chain(["npx", "-y", "@x/y", "--token", "canary-34"]).collect();
    let (code, printed, said) = home.run_text(&words);
    assert_eq!(code, Some(0), "{said}");
    let list = home.read(".config/octoprox/servers.yaml");
    let written = "  gh:\n    command: npx\n    args: [\"-y\", \"@x/y\", \"--token\", \"${GH_TOKEN}\"]\n    env:\n      \
                   GITHUB_TOKEN: \"${GITHUB_TOKEN}\"\n      HOST: \"${HOST}\"\n      MODE: fast\n    connect: always\n";
    assert!(list.ends_with(&format!("servers:\n{written}")), "{list}");
    assert!(said.contains("GH_TOKEN, GITHUB_TOKEN"), "{said}");
    assert!(!format!("{printed}{said}{list}").contains("canary"), "{printed}{said}{list}");
}

#[test]
fn json_stays_json() {
    let home = TestHome::new();
    let before = "{\n    \"mcpServers\": {\n        \"a\": {\"command\": \"x\"} // why\n    }\n}\n";
    home.write("mcp.json", before);
    home.stdout(&["servers", "add", "b", "--to", "mcp.json", "--url", "https://b.test/mcp"]);
    let after = home.read("mcp.json");
    assert!(after.contains("{\"command\": \"x\"}, // why\n        \"b\": {\n            \"url\""), "{after}");
    home.stdout(&["servers", "remove", "b", "--from", "mcp.json"]);
    assert_eq!(home.read("mcp.json"), before);
}

#[test]
fn what_cannot_be_changed_safely_is_left_alone_and_told() {
    let home = TestHome::new();
    let text = "servers: {a: {command: x}}\n";
    home.write("octoprox.yaml", text);
    let (code, printed, said) = home.run_text(&["servers", "add", "b", "--", "prog", "z"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("cannot be edited safely. Nothing was changed; add these lines yourself:"),
        "{said}"
    );
    assert_eq!(printed, "servers:\n  b:\n    command: prog\n    args: [\"z\"]\n");
    let (code, _, said) = home.run_text(&["servers", "remove", "a"]);
    assert_eq!((code, said.contains("remove the lines of `a` yourself")), (Some(1), true), "{said}");
    let (code, _, said) = home.run_text(&["servers", "add", "a", "--", "y"]);
    assert_eq!((code, said.contains("a already exists")), (Some(1), true), "{said}");
    assert_eq!(home.read("octoprox.yaml"), text);
    assert!(!home.exists("octoprox.yaml.bak-1"));
}

#[test]
fn what_cannot_work_is_not_written() {
    let home = TestHome::new();
    for (words, says) in [
        (&["servers", "add", "time", "--url", "https://x.test"][..], "this name is used by a toolbox"),
        (&["servers", "add", "a b", "--url", "https://x.test"], "invalid name"),
        (&["servers", "add", "a", "--url", "x.test"], "`x.test` is not a URL"),
        (&["servers", "add", "a"], "required"),
        (&["servers", "add", "a", "--url", "https://x.test", "--", "y"], "cannot be used with"),
        (&["servers", "add", "a", "--url", "https://x.test", "--header", "nothing"], "is not a header"),
    ] {
        let (code, _, said) = home.run_text(words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
    assert!(!home.exists(".config/octoprox/servers.yaml"));
}

#[test]
fn servers_are_tried_and_what_is_wrong_is_said_with_the_next_step() {
    let home = TestHome::new();
    home.write(
        "octoprox.yaml",
        &format!(
            "servers:\n  fine: {{command: '{BINARY}', args: [stdio, --surface, full, --config, ../none.yaml], cwd: inner}}\n  \
             gone: {{command: no-such-program}}\n  ends: {{command: /bin/sh, args: [-c, 'read line; echo too bad >&2; exit 3']}}\n  \
             deaf: {{url: 'http://127.0.0.1:9/mcp'}}\n  needs: {{command: /bin/sh, env: {{A: '${{NO_SUCH}}'}}}}\n  off: {{command: x, enabled: false}}\n"
        ),
    );
    home.write_with_dirs("inner/x", "");
    home.write("none.yaml", "toolboxes: {git: false}\n");
    let (code, printed, said) = home.run_text(&["servers", "test", "fine", "--tools"]);
    assert_eq!(code, Some(0), "{printed}{said}");
    assert!(printed.starts_with("fine: ok, ") && printed.contains("\n  time_now\n"), "{printed}");
    let (code, printed, said) = home.run_text(&["servers", "test", "--json", "--timeout", "20"]);
    assert_eq!(code, Some(6), "{printed}{said}");
    let told: Value = serde_json::from_str(&printed).unwrap();
    let of = |name: &str| {
        told["servers"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert_eq!(of("fine")["ok"], json!(true), "{told}");
    for (name, problem, next) in [
        ("gone", "its program was not found", "Program not found: `no-such-program`"),
        ("ends", "too bad", "Run it by hand to see the cause: /bin/sh -c"),
        ("deaf", "cannot be reached", "Check `url`"),
        ("needs", "a variable or secret that it needs is not set", "Set NO_SUCH where octoprox is started"),
    ] {
        let one = of(name);
        assert_eq!(one["ok"], json!(false));
        assert!(one["message"].as_str().unwrap().contains(problem), "{one}");
        assert!(one["hint"].as_str().unwrap().contains(next), "{one}");
    }
    assert_eq!(told["servers"].as_array().unwrap().len(), 5, "what is off is not tried");
    assert_eq!(home.run(&["servers", "test", "nobody"]).status.code(), Some(3));
}

#[test]
fn a_plan_says_what_a_change_would_do() {
    let home = TestHome::new();
    home.write("old.yaml", "servers:\n  a: {command: x}\n  b: {url: 'https://b.test', headers: {K: canary-1}}\n  c: {command: z}\n");
    home.write("octoprox.yaml", "servers:\n  b: {url: 'https://b.test', headers: {K: canary-2}}\n  c: {command: z}\n  d: {command: y}\n");
    let printed = home.stdout(&["servers", "plan", "--from", "old.yaml"]);
    let expected =
        "drop       a  removed from the settings\nswap       b  `headers` changed\nconnect    d  new\n";
    assert_eq!(printed, expected);
    let told: Value = serde_json::from_str(&home.stdout(&["servers", "plan", "--all", "--json"])).unwrap();
    let actions: Vec<&str> =
        told["changes"].as_array().unwrap().iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["connect"; 3], "no hub has run yet");
    let (code, printed, said) = home.run_text(&["servers", "plan", "--from", "octoprox.yaml"]);
    assert_eq!((code, printed.as_str(), said.as_str()), (Some(0), "", "Nothing would change.\n"));
}

#[test]
fn lists_fit_a_terminal_and_tell_no_secret() {
    let home = TestHome::new();
    let long = "a".repeat(90);
    home.write("octoprox.yaml", &format!("servers:\n  a: {{command: /bin/sh, args: ['{long}']}}\n  b: {{url: 'https://u:canary-9@x.test/mcp'}}\n  c: {{command: '/no/such'}}\n"));
    let (code, printed, said) = home.run_text(&["servers", "list"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    assert!(
        printed.contains("b  ready    https://u:***@x.test/mcp\n") && !printed.contains("canary"),
        "{printed}"
    );
    assert!(
        printed.contains("c  missing  /no/such\n") && said.contains("c: program not found: `/no/such`"),
        "{said}"
    );
    let (code, printed, said) = TestHome::new().run_text(&["servers", "list"]);
    assert_eq!((code, printed.as_str(), said.contains("No servers configured.")), (Some(0), "", true));
}
