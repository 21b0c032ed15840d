//! Secrets known to this process.

use crate::settings::{LoadedSettings, Server, is_secret_name};
use url::Url;

/// Returns all secret values of the settings.
pub fn settings_secrets(loaded: &LoadedSettings) -> Vec<String> {
    let settings = &loaded.settings;
    let mut found = loaded.secrets.clone();
    let single = [
        &settings.logins.secret,
        &settings.github.token,
        &settings.gitlab.token,
        &settings.search.brave_api_key,
        &settings.llm.key,
        &settings.fleet.credentials,
        &settings.fleet.secret,
    ];
    found.extend(single.into_iter().flatten().map(|secret| secret.expose().to_owned()));
    let databases = settings.database.connections.values().chain(settings.database.readers.values());
    for address in databases.chain(&settings.store.postgres) {
        found.extend(url_secrets(address.expose()));
    }
    settings.servers.values().for_each(|server| found.extend(server_secrets(server)));
    found
}

fn server_secrets(server: &Server) -> Vec<String> {
    let named = server.headers.iter().chain(&server.env).filter(|(name, _)| is_secret_name(name));
    let mut found: Vec<String> = named.flat_map(|(_, value)| header_secrets(value.expose())).collect();
    let document = server.document.iter().filter(|document| document.contains("://"));
    found.extend(server.url.iter().chain(document).flat_map(|address| url_secrets(address)));
    let client = server.auth.as_ref().and_then(|auth| auth.client_secret.as_ref());
    found.extend(client.map(|secret| secret.expose().to_owned()));
    let flags = server.args.iter().zip(server.args.iter().skip(1));
    let after =
        flags.filter(|(flag, _)| flag.starts_with('-') && !flag.contains('=') && is_secret_name(flag));
    found.extend(after.map(|(_, value)| value.clone()));
    found
}

/// Returns a header's value, and the part after its scheme.
fn header_secrets(value: &str) -> Vec<String> {
    let bare = value.split_once(' ').map(|(_, rest)| rest.to_owned());
    [value.to_owned()].into_iter().chain(bare).collect()
}

fn url_secrets(address: &str) -> Vec<String> {
    let Ok(url) = Url::parse(address) else {
        return vec![address.to_owned()];
    };
    let parameters =
        url.query_pairs().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value.into_owned());
    url.password().map(str::to_owned).into_iter().chain(parameters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Secret;

    #[test]
    fn what_a_server_knows() {
        let server = Server {
            url: Some("https://ada:hunter2@x.test/mcp?token=abc1&page=2".to_owned()),
            headers: [("Authorization".to_owned(), Secret::new("Bearer t0ken"))].into(),
            env: [
                ("NODE_ENV".to_owned(), Secret::new("production")),
                ("API_KEY".to_owned(), Secret::new("key1")),
            ]
            .into(),
            args: ["--api-key", "arg1", "--verbose", "yes"].map(str::to_owned).to_vec(),
            ..Server::default()
        };
        assert_eq!(server_secrets(&server), ["Bearer t0ken", "t0ken", "key1", "hunter2", "abc1", "arg1"]);
    }
}
