use crate::settings::SettingsFile;
use crate::settings::load::load_settings::*;
use serde_json::json;
use std::path::Path;

/// A home directory with a named settings file, and its environment.
fn world(file: Option<&str>, variables: &[(&str, &str)]) -> (tempfile::TempDir, Environment) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(text) = file {
        std::fs::write(folder.path().join("octoprox.yaml"), text).unwrap();
    }
    let home = folder.path().display().to_string();
    let named = file.map(|_| ("OCTOPROX_CONFIG", "octoprox.yaml"));
    let variables = variables.iter().copied().chain([("HOME", home.as_str())]).chain(named);
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let world = Environment { variables, current_dir: folder.path().to_owned() };
    (folder, world)
}

fn problems(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let (folder, world) = world(Some(file), variables);
    let Err(SettingsProblems(problems)) = load(&world, &Flags::default()) else {
        return Vec::new();
    };
    let here = format!("{}/", folder.path().display());
    problems.iter().map(|problem| problem.to_string().replace(&here, "")).collect()
}

#[test]
fn with_nothing_everything_has_a_default() {
    let (folder, world) = world(None, &[]);
    let loaded = load(&world, &Flags::default()).unwrap();
    let expected = Settings {
        workspace: None,
        state_dir: Some(folder.path().join(".local/state/octoprox")),
        ..Settings::default()
    };
    assert_eq!((loaded.settings, loaded.file, loaded.notes.len()), (expected, None, 0));
    let refused = WorkspaceChoice::Refused { folder: folder.path().to_owned(), is: "your home directory" };
    assert_eq!(loaded.workspace, refused);
}

#[test]
fn an_empty_file_is_no_file() {
    let (_folder, world) = world(Some("# all of it commented out\nservers:\n"), &[]);
    assert_eq!(load(&world, &Flags::default()).unwrap().settings.listen.port, 7000);
}

#[test]
fn flags_over_variables_over_file_over_defaults() {
    for (file, variable, flag, port, origin) in [
        (None, None, None, 7000, "default"),
        (Some("listen: {port: 1}"), None, None, 1, "octoprox.yaml"),
        (Some("listen: {port: 1}"), Some("2"), None, 2, "variable OCTOPROX_PORT"),
        (Some("listen: {port: 1}"), Some("2"), Some(3), 3, "flag --port"),
        (None, None, Some(3), 3, "flag --port"),
    ] {
        let variables: Vec<(&str, &str)> = variable.into_iter().map(|text| ("OCTOPROX_PORT", text)).collect();
        let (_folder, world) = world(file, &variables);
        let loaded = load(&world, &Flags { port: flag, ..Flags::default() }).unwrap();
        assert_eq!(loaded.settings.listen.port, port);
        let said = loaded.layers.origin("listen.port").to_string();
        assert!(said.ends_with(origin), "{said} is not {origin}");
    }
}

#[test]
fn the_file_is_the_first_that_is_there() {
    let (folder, mut world) = world(None, &[]);
    let write = |name: &str, port: u16| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("listen: {{port: {port}}}")).unwrap();
    };
    let port = |world: &Environment, config: Option<&str>| {
        let flags = Flags { config: config.map(PathBuf::from), ..Flags::default() };
        load(world, &flags).unwrap().settings.listen.port
    };
    write(".config/octoprox/octoprox.yaml", 1);
    assert_eq!(port(&world, None), 1);
    write("octoprox.yaml", 2);
    assert_eq!(port(&world, None), 1, "nobody has approved it");
    let here = folder.path().join("octoprox.yaml");
    let mut trust = TrustStore::open(&world).unwrap();
    trust.approve(&[SettingsFile::open(&here).unwrap().record()]).unwrap();
    assert_eq!(port(&world, None), 2);
    write("octoprox.yaml", 5);
    assert_eq!(port(&world, None), 1, "it has changed since");
    write("octoprox.yaml", 2);
    assert_eq!(port(&world, None), 2);
    write("named.yaml", 3);
    world.variables.insert("OCTOPROX_CONFIG".to_owned(), "named.yaml".to_owned());
    assert_eq!(port(&world, None), 3);
    write("flag.yaml", 4);
    assert_eq!(port(&world, Some("flag.yaml")), 4);
    let flags = Flags { config: Some("gone.yaml".into()), ..Flags::default() };
    let error = load(&world, &flags).err().unwrap().to_string();
    assert!(error.ends_with("gone.yaml: file not found. Check the path or remove it."), "{error}");
}

#[test]
fn servers_from_a_file_of_their_own() {
    let (folder, world) = world(Some("servers: {a: {url: 'http://x'}, b: {command: b}}"), &[("KEY", "k")]);
    let list = json!({"mcpServers": {"a": {"command": "npx", "args": ["-y"], "env": {"T": "${KEY}"}}}});
    std::fs::write(folder.path().join("mcp.json"), list.to_string()).unwrap();
    let flags = Flags { servers: Some("mcp.json".into()), ..Flags::default() };
    let servers = load(&world, &flags).unwrap().settings.servers;
    assert_eq!(servers["a"].url, None);
    assert_eq!(servers["a"].env["T"].expose(), "k");
    assert_eq!(servers["b"].command.as_deref(), Some("b"));
}

/// A file and the problem reported for it.
const INVALID_FILES: &[(&str, &str)] = &[
    ("lisen: {port: 1}", "octoprox.yaml: lisen: unknown setting. Did you mean `listen`?"),
    ("listen: {prot: 1}", "octoprox.yaml: listen.prot: unknown setting. Did you mean `port`?"),
    (
        "toolboxes: {shell: yes}",
        "octoprox.yaml: toolboxes.shell: `\"yes\"` is not a boolean. Write true or false.",
    ),
    ("listen: {port: 99999}", "octoprox.yaml: listen.port: `99999` is too large. The maximum is 65535."),
    ("servers: {a: {url: 5}}", "octoprox.yaml: servers.a.url: `5` is not a string. Put it in quotes."),
    ("servers: {a: {}}", "octoprox.yaml: servers.a: neither `command` nor `url` is set. Set one of them."),
    (
        "servers: {my-notes: {command: a}, My_Notes: {command: b}, mynotes: {command: c}}",
        "octoprox.yaml: servers.my-notes: some clients cannot distinguish this name from `My_Notes`. Use a name that differs in more than case, `-` and `_`.",
    ),
    (
        "servers: {a: {url: 'http://x', command: y}}",
        "octoprox.yaml: servers.a: both `command` and `url` are set. Remove one of them.",
    ),
    (
        "servers: {notion: {url: 'notion.com/mcp'}}",
        "octoprox.yaml: servers.notion.url: `notion.com/mcp` is not a URL. Use a URL with http:// or https://.",
    ),
    (
        "telemetry: {service_name: '${NO_SUCH}'}",
        "octoprox.yaml: telemetry.service_name: variable NO_SUCH is not set. Set it, or write ${NO_SUCH:-} if it may be empty.",
    ),
    (
        "servers: {a: {url: 'https://x', headers: {X: '${OPEN'}}}",
        "octoprox.yaml: servers.a.headers.X: `${` without a closing `}`. Add the `}`.",
    ),
    (
        "servers: {a: {document: none.yaml}}",
        "octoprox.yaml: servers.a.document: file not found: none.yaml. Use the path of a file or a URL with https://.",
    ),
    (
        "servers: {a: {type: openapi}}",
        "octoprox.yaml: servers.a: `document` is missing. Set it to the URL or path of the OpenAPI document.",
    ),
    (
        "servers: {a: {command: x, type: remote-mcp}}",
        "octoprox.yaml: servers.a.type: conflicts with a `command`. Remove it.",
    ),
    (
        "servers: {a: {command: x, auth: {type: oauth2}}}",
        "octoprox.yaml: servers.a.auth.type: a server with `command` does not support logins. Remove it: the program logs in by itself. For a key use `type: api-key` with `env`.",
    ),
    (
        "servers: {a: {url: 'https://x', auth: {type: api-key, env: sk-1234567890abcdef}, enabled: false}}",
        "octoprox.yaml: servers.a.auth.env: not a valid variable name. Write the name of the variable, not the key.",
    ),
    (
        "servers: {a: {url: 'https://x', auth: {type: oauth2, authorize_params: {access_type: offline, state: s}}}}",
        "octoprox.yaml: servers.a.auth.authorize_params.state: the hub sets this parameter itself. Remove it.",
    ),
    (
        "servers: {a: {url: 'https://x', auth: {type: device-code, authorize_params: {prompt: consent}}}}",
        "octoprox.yaml: servers.a.auth.authorize_params: only supported for browser logins. Remove it, or use `type: oauth2-pkce`.",
    ),
    (
        "servers: {a: {command: x, connect: sometimes}}",
        "octoprox.yaml: servers.a.connect: `\"sometimes\"` is not a valid value. Use one of: on-demand, always.",
    ),
    (
        "servers: {a__b: {command: x}}",
        "octoprox.yaml: servers.a__b: invalid name. Use at most 20 letters, digits, `_` and `-`, without `__`.",
    ),
    (
        "servers: {time: {command: x}}",
        "octoprox.yaml: servers.time: this name is used by a toolbox. Use another name.",
    ),
    (
        "servers: {a: {command: x, type: grpc}}",
        "octoprox.yaml: servers.a.type: `\"grpc\"` is not a valid value. Use one of: stdio, stdio-mcp, http, streamable-http, streamableHttp, remote-mcp, sse, openapi.",
    ),
    (
        "profiles: {p: {tools: ['a[']}}",
        "octoprox.yaml: profiles.p.tools: invalid pattern: error parsing glob 'a[': unclosed character class; missing ']'. Fix the pattern.",
    ),
    (
        "profiles: {p: {servers: [nobody]}}",
        "octoprox.yaml: profiles.p.servers: unknown server or toolbox `nobody`. Use a name from `servers` or `toolboxes`.",
    ),
    (
        "policy: {rules: [{name: r, decision: maybe}]}",
        "octoprox.yaml: policy.rules[0].decision: `\"maybe\"` is not a valid value. Use one of: allow, deny.",
    ),
    ("policy: {rules: [{name: r}]}", "octoprox.yaml: policy.rules[0]: `decision` is missing. Add it."),
    (
        "auth: {tokens: [{name: ada, sha256: abc}]}",
        "octoprox.yaml: auth.tokens[0]: The token of `ada` needs a sha256 of 64 hexadecimal digits. Create one with `octoprox token new NAME`.",
    ),
    (
        "telemetry: {log_level: loud}",
        "octoprox.yaml: telemetry.log_level: `loud` is not a log level. Use error, warn, info, debug or trace.",
    ),
    (
        "workspace: /no/such/folder",
        "octoprox.yaml: workspace: directory not found: /no/such/folder. Create it or use another one.",
    ),
    (
        "listen: {host: example.com}",
        "octoprox.yaml: listen.host: `example.com` is not an IP address. Use an IP address or localhost.",
    ),
];

#[test]
fn every_error_says_where_what_and_what_to_do() {
    for (file, expected) in INVALID_FILES {
        assert_eq!(problems(file, &[]), [*expected], "{file}");
    }
}

#[test]
fn errors_do_not_tell_secrets() {
    let file =
        "logins: {secret: 8675309}\ngithub: {token: [8675309]}\nsearch: {searxng_url: 'x?key=8675309'}";
    let other = "servers: {a: {url: 'ada:8675309@x', headers: {Authorization: 8675309}}}\nworkspace: 8675309";
    let said = [problems(file, &[]), problems(other, &[])].concat().join("\n");
    assert!(said.contains("logins.secret") && said.contains("servers.a.headers.Authorization"), "{said}");
    assert_eq!(said.matches("8675309").count(), 1, "only the workspace is none: {said}");
}

#[test]
fn all_errors_at_once() {
    let file = "listen: {port: x}\nservers: {a: {urll: 'http://x'}}\nlimits: [{per_minute: 0}]";
    let said = problems(file, &[("OCTOPROX_ENABLE_TIME", "perhaps")]);
    assert_eq!(said.len(), 4, "{said:#?}");
}

#[test]
fn an_error_about_a_renamed_setting_names_the_new_one() {
    let file = "servers: {a: {command: x, idle_seconds: 1, in_flight: 2}}\nshell: {pass_variables: []}\n\
                roots: {r: {outside: /x}}\nprompts: {shipped: false}";
    let said = problems(file, &[]).join("\n");
    for new in ["idle_timeout_seconds", "max_concurrent", "env_passthrough", "host_path", "builtin"] {
        assert!(said.contains(&format!("renamed to `{new}`")), "{new}: {said}");
    }
}

#[test]
fn a_server_that_is_off_needs_no_variables() {
    assert_eq!(problems("servers: {a: {url: '${NO_SUCH}', enabled: false}}", &[]), Vec::<String>::new());
}

#[test]
fn a_server_that_lacks_a_variable_is_left_out_and_the_rest_works() {
    let file = "servers:\n  notion: {url: 'https://x/mcp', headers: {Authorization: 'Bearer ${NO_SUCH}'}}\n  \
                local: {command: x, auth: {type: api-key, env: NO_KEY}}\n  fine: {command: y}\n";
    let (_folder, world) = world(Some(file), &[]);
    let loaded = load(&world, &Flags::default()).unwrap();
    let on = loaded.settings.servers.iter().filter(|(_, server)| server.enabled);
    assert_eq!(on.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["fine", "local"]);
    assert_eq!(
        loaded.unset_variables.remedy("notion").as_deref(),
        Some("set NO_SUCH where octoprox is started")
    );
    assert_eq!(loaded.unset_variables.remedy("local"), None, "its key can be given later");
    assert!(
        loaded
            .notes
            .contains(&"the server notion is disabled until these variables are set: NO_SUCH".to_owned())
    );
}

#[test]
fn a_list_of_servers_lies_beside_the_settings_and_nowhere_else() {
    let list = "servers:\n  a: {command: list}\n  b: {command: list}\n";
    let names = |world: &Environment| {
        let servers = load(world, &Flags::default()).unwrap().settings.servers;
        servers
            .iter()
            .map(|(name, server)| format!("{name} {}", server.command.clone().unwrap()))
            .collect::<Vec<_>>()
    };
    let (folder, mut world) = world(None, &[]);
    std::fs::write(folder.path().join("servers.yaml"), list).unwrap();
    assert_eq!(names(&world), Vec::<String>::new(), "no settings file lies beside it");
    std::fs::write(folder.path().join("octoprox.yaml"), "servers: {a: {command: own}, c: {command: own}}")
        .unwrap();
    assert_eq!(names(&world), Vec::<String>::new(), "nobody has chosen it");
    world.variables.insert("OCTOPROX_CONFIG".to_owned(), "octoprox.yaml".to_owned());
    assert_eq!(names(&world), ["a list", "b list", "c own"]);
    world.variables.insert("OCTOPROX_CONFIG".to_owned(), "servers.yaml".to_owned());
    assert_eq!(names(&world), ["a list", "b list"], "it is a settings file as well");
    std::fs::write(folder.path().join("servers.yaml"), "servers:\n  # a: {command: x}\n").unwrap();
    assert_eq!(names(&world), Vec::<String>::new());
}

#[test]
fn a_list_of_servers_is_read_as_strictly_as_the_settings() {
    let (folder, world) = world(Some(""), &[]);
    for (list, expected) in [
        ("servers: {a: {comand: x}}", "servers.a.comand: unknown setting. Did you mean `command`?"),
        ("listen: {port: 1}", "listen: only `servers` is allowed in this file. Move it to octoprox.yaml."),
        (
            "servers: [a]",
            "servers: expected a map of servers. Write `name:` with `command` or `url` below it.",
        ),
    ] {
        std::fs::write(folder.path().join("servers.yaml"), list).unwrap();
        let said = load(&world, &Flags::default()).err().unwrap().to_string();
        assert!(said.ends_with(&format!("servers.yaml: {expected}")), "{list}: {said}");
    }
}

/// A project whose settings use it as the workspace, with the home directory elsewhere.
fn project(text: &str) -> (tempfile::TempDir, Environment, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let here = top.path().canonicalize().unwrap().join("project");
    std::fs::create_dir(&here).unwrap();
    std::fs::write(here.join("octoprox.yaml"), text).unwrap();
    let variables = [("HOME".to_owned(), top.path().join("home").display().to_string())].into();
    let world = Environment { variables, current_dir: here.clone() };
    (top, world, here)
}

fn approve(world: &Environment, path: &Path) {
    let records = crate::settings::Preview::read(world, path).unwrap().records;
    TrustStore::open(world).unwrap().approve(&records).unwrap();
}

#[test]
fn a_projects_file_is_not_even_parsed_until_it_is_approved() {
    let (_top, world, here) = project("{broken: [");
    let loaded = load(&world, &Flags::default()).unwrap();
    assert_eq!(loaded.file, None);
    let said = "octoprox.yaml here is not approved, so it is ignored. Review it, then run `octoprox trust`.";
    assert_eq!(loaded.unapproved, [said]);
    std::fs::write(here.join("octoprox.yaml"), "listen: {port: 1}").unwrap();
    std::fs::write(here.join("servers.yaml"), "servers: {a: {command: x}}").unwrap();
    approve(&world, &here.join("octoprox.yaml"));
    let loaded = load(&world, &Flags::default()).unwrap();
    assert_eq!((loaded.settings.servers.len(), loaded.unapproved.len()), (1, 0));
    for name in ["octoprox.yaml", "servers.yaml"] {
        assert!(loaded.protected.contains(&here.join(name)), "{name}: {:?}", loaded.protected);
    }
    std::fs::write(here.join("servers.yaml"), "servers: {a: {command: y}}").unwrap();
    let loaded = load(&world, &Flags::default()).unwrap();
    assert_eq!(loaded.settings.servers.len(), 0, "the list has changed");
    assert!(loaded.unapproved[0].starts_with("servers.yaml here has changed"), "{:?}", loaded.unapproved);
}

/// A lock file decides which programs run.
#[test]
fn the_lock_file_of_a_project_is_approved_with_it() {
    use crate::packages::{LockedPackage, PackageId, ServersLock};
    let (_top, world, here) = project("servers: {a: {package: 'npm:tides@1.0.0'}}");
    let lock = here.join("servers.lock");
    let id = PackageId::parse("npm:tides@1.0.0").unwrap();
    let write = |content: &str| {
        let locked = LockedPackage::new(&id, "sha512-x".to_owned(), content.into());
        std::fs::write(&lock, ServersLock::edit(&lock, "a", Some(&locked)).unwrap().1).unwrap();
        locked.digest
    };
    let digest = write("one");
    approve(&world, &here.join("octoprox.yaml"));
    let loaded = load(&world, &Flags::default()).unwrap();
    assert_eq!(loaded.settings.servers["a"].digest, Some(digest));
    assert!(loaded.protected.contains(&lock) && loaded.watched_files.contains(&lock));
    write("two");
    let loaded = load(&world, &Flags::default()).unwrap();
    assert_eq!(loaded.settings.servers["a"].digest, None);
    assert!(loaded.unapproved[0].starts_with("servers.lock here has changed"), "{:?}", loaded.unapproved);
    std::fs::write(&lock, "{}").unwrap();
    approve(&world, &here.join("octoprox.yaml"));
    let said = load(&world, &Flags::default()).err().unwrap().to_string();
    assert!(said.contains("servers.lock"), "{said}");
}

#[test]
fn a_named_file_that_tools_can_write_needs_approval_whatever_it_says_about_itself() {
    let (top, world, here) = project("listen: {port: 1}");
    let named = Flags { config: Some("octoprox.yaml".into()), ..Flags::default() };
    let said = load(&world, &named).err().unwrap().to_string();
    assert!(
        said.contains("tools can write to the directory") && said.contains("`octoprox trust /"),
        "{said}"
    );
    approve(&world, &here.join("octoprox.yaml"));
    assert_eq!(load(&world, &named).unwrap().settings.listen.port, 1);
    // The new content names another workspace.
    let other = format!("workspace: {}", top.path().display());
    std::fs::write(here.join("octoprox.yaml"), format!("{other}/elsewhere")).unwrap();
    std::fs::create_dir(top.path().join("elsewhere")).unwrap();
    assert!(load(&world, &named).err().unwrap().to_string().contains("has changed since it was approved"));
    // A symlink planted by tools leads to an unknown file.
    let mut trust = TrustStore::open(&world).unwrap();
    trust.revoke(&[here.join("octoprox.yaml")].into()).unwrap();
    assert!(load(&world, &named).is_ok(), "no tool has ever written there");
    trust.remember_roots(std::slice::from_ref(&here)).unwrap();
    assert!(load(&world, &named).is_err(), "tools could write there once");
    std::os::unix::fs::symlink(here.join("octoprox.yaml"), top.path().join("link.yaml")).unwrap();
    let link = Flags { config: Some(top.path().join("link.yaml")), ..Flags::default() };
    assert!(load(&world, &link).is_err(), "a link leads there");
}

#[test]
fn a_file_that_other_users_can_write_needs_approval() {
    use std::os::unix::fs::PermissionsExt;
    let (top, world, _) = project("");
    let path = top.path().canonicalize().unwrap().join("own.yaml");
    std::fs::write(&path, "listen: {port: 1}").unwrap();
    let named = Flags { config: Some(path.clone()), ..Flags::default() };
    assert_eq!(load(&world, &named).unwrap().settings.listen.port, 1);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    let said = load(&world, &named).err().unwrap().to_string();
    assert!(said.contains("other users can write to this file"), "{said}");
    approve(&world, &path);
    assert_eq!(load(&world, &named).unwrap().settings.listen.port, 1);
}

#[test]
fn records_that_tools_can_write_are_not_believed() {
    let (_top, mut world, here) = project("state_dir: /tmp/octoprox-elsewhere");
    let state = here.join("records");
    world.variables.insert("OCTOPROX_STATE_DIR".to_owned(), state.display().to_string());
    approve(&world, &here.join("octoprox.yaml"));
    assert!(load(&world, &Flags::default()).is_ok(), "the hub's own data is closed to tools");
    world.variables.remove("OCTOPROX_STATE_DIR");
    world.variables.insert("XDG_STATE_HOME".to_owned(), state.display().to_string());
    approve(&world, &here.join("octoprox.yaml"));
    // The directory of the records is no longer suitable, so a workspace has to be named.
    world.variables.insert("OCTOPROX_WORKSPACE".to_owned(), here.display().to_string());
    let said = load(&world, &Flags::default()).err().unwrap().to_string();
    assert!(said.contains("the list of approved files"), "{said}");
}

#[test]
fn files_that_an_approved_file_names_count_only_as_approved() {
    let (_top, world, here) = project("workspace: src\ntools: {folders: [tools]}");
    std::fs::create_dir_all(here.join("src")).unwrap();
    std::fs::create_dir_all(here.join("tools")).unwrap();
    std::fs::write(here.join("tools/a.yaml"), "a").unwrap();
    approve(&world, &here.join("octoprox.yaml"));
    let loaded = load(&world, &Flags::default()).unwrap();
    let read = || {
        let folders = octo_grants::config_dirs::ConfigDirs::new(vec![here.join("tools")]);
        let leaves = folders.with_approval(loaded.approve.clone()).read();
        leaves.iter().filter(|leaf| leaf.content.is_ok()).count()
    };
    assert_eq!(read(), 1);
    std::fs::write(here.join("tools/b.yaml"), "b").unwrap();
    assert_eq!(read(), 1, "a new file is not approved");
    std::fs::write(here.join("tools/a.yaml"), "c").unwrap();
    assert_eq!(read(), 0, "a changed one is not, either");
    approve(&world, &here.join("octoprox.yaml"));
    assert_eq!(read(), 2);
}
