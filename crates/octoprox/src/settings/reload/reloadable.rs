//! Which settings apply at run time and which require a restart.

use crate::settings::Settings;
use serde::Serialize;
use serde_json::Value;

/// Returns `current` with every reloadable setting of `new`. Servers have a separate plan.
#[must_use]
pub fn with_reloadable(current: &Settings, new: &Settings) -> Settings {
    let mut settings = current.clone();
    settings.servers.clone_from(&new.servers);
    settings.profiles.clone_from(&new.profiles);
    settings.surface.clone_from(&new.surface);
    settings.policy.clone_from(&new.policy);
    settings.limits.clone_from(&new.limits);
    settings.cache.clone_from(&new.cache);
    settings.calls.timeout_seconds = new.calls.timeout_seconds;
    settings.auth.tokens.clone_from(&new.auth.tokens);
    settings.telemetry.log_level.clone_from(&new.telemetry.log_level);
    settings.telemetry.log_arguments = new.telemetry.log_arguments;
    settings.audit.arguments = new.audit.arguments;
    settings.audit.max_records = new.audit.max_records;
    settings.audit.max_days = new.audit.max_days;
    settings
}

/// Returns the names of changed settings other than servers, never their values.
pub fn changed_settings(old: &Settings, new: &Settings) -> Vec<String> {
    let mut names = Vec::new();
    // Adding a setting requires comparing it here to compile.
    let Settings {
        workspace,
        state_dir,
        store,
        fleet,
        listen,
        admin,
        toolboxes,
        servers: _,
        registries: _,
        profiles,
        surface,
        policy,
        limits,
        cache,
        results,
        calls,
        audit,
        auth,
        http,
        telemetry,
        net,
        browser,
        search,
        database,
        llm,
        prompts,
        skills,
        tools,
        files,
        git,
        shell,
        github,
        gitlab,
        roots,
        logins,
    } = new;
    compare_section(&mut names, "workspace", &old.workspace, workspace);
    compare_section(&mut names, "state_dir", &old.state_dir, state_dir);
    compare_section(&mut names, "store", &old.store, store);
    compare_section(&mut names, "fleet", &old.fleet, fleet);
    compare_section(&mut names, "listen", &old.listen, listen);
    compare_section(&mut names, "admin", &old.admin, admin);
    compare_section(&mut names, "toolboxes", &old.toolboxes, toolboxes);
    compare_section(&mut names, "profiles", &old.profiles, profiles);
    compare_section(&mut names, "surface", &old.surface, surface);
    compare_section(&mut names, "policy", &old.policy, policy);
    compare_section(&mut names, "limits", &old.limits, limits);
    compare_section(&mut names, "cache", &old.cache, cache);
    compare_section(&mut names, "results", &old.results, results);
    compare_section(&mut names, "calls", &old.calls, calls);
    compare_section(&mut names, "audit", &old.audit, audit);
    compare_section(&mut names, "auth", &old.auth, auth);
    compare_section(&mut names, "http", &old.http, http);
    compare_section(&mut names, "telemetry", &old.telemetry, telemetry);
    compare_section(&mut names, "net", &old.net, net);
    compare_section(&mut names, "browser", &old.browser, browser);
    compare_section(&mut names, "search", &old.search, search);
    compare_section(&mut names, "database", &old.database, database);
    compare_section(&mut names, "llm", &old.llm, llm);
    compare_section(&mut names, "prompts", &old.prompts, prompts);
    compare_section(&mut names, "skills", &old.skills, skills);
    compare_section(&mut names, "tools", &old.tools, tools);
    compare_section(&mut names, "files", &old.files, files);
    compare_section(&mut names, "git", &old.git, git);
    compare_section(&mut names, "shell", &old.shell, shell);
    compare_section(&mut names, "github", &old.github, github);
    compare_section(&mut names, "gitlab", &old.gitlab, gitlab);
    compare_section(&mut names, "roots", &old.roots, roots);
    compare_section(&mut names, "logins", &old.logins, logins);
    names
}

/// Records a changed section, by field if possible.
fn compare_section<T: PartialEq + Serialize>(names: &mut Vec<String>, section: &str, old: &T, new: &T) {
    if old == new {
        return;
    }
    let (old, new) = (serde_json::to_value(old).ok(), serde_json::to_value(new).ok());
    let before = names.len();
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
        let gone = old.keys().filter(|key| !new.contains_key(*key));
        let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value)).map(|(key, _)| key);
        names.extend(changed.chain(gone).map(|key| format!("{section}.{key}")));
    }
    // Secrets serialize identically before and after.
    if names.len() == before {
        names.push(section.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Secret;

    fn settings(yaml: &str) -> Settings {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn each_changed_setting_is_applied_or_named() {
        let old = settings(
            "listen: {port: 1}\ntelemetry: {log_level: info}\ndatabase: {connections: {a: 'p://x:1@h'}}",
        );
        let new = settings(
            "listen: {port: 2}\ntelemetry: {log_level: debug, service_name: x}\npolicy: {default: deny}\n\
             limits: [{per_minute: 1}]\ncalls: {timeout_seconds: 5}\nprofiles: {lean: {tools: [time_*]}}",
        );
        let live = with_reloadable(&old, &new);
        let applied =
            ["profiles.lean", "policy.default", "limits", "calls.timeout_seconds", "telemetry.log_level"];
        assert_eq!(changed_settings(&old, &live), applied);
        assert_eq!(
            changed_settings(&live, &new),
            ["listen.port", "telemetry.service_name", "database.connections"]
        );
        assert!(changed_settings(&new, &new).is_empty());
    }

    #[test]
    fn a_changed_secret_is_noticed_and_not_told() {
        let with = |key: &str| {
            let mut settings = Settings::default();
            settings.github.token = Some(Secret::new(key));
            settings
        };
        assert_eq!(changed_settings(&with("one"), &with("two")), ["github"]);
    }
}
