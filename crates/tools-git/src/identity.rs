//! Commit identity.

use crate::git_config::{self, ConfigEntry};

/// Commit identity: from the settings, else the repository, else the user, else the hub.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub name: Option<String>,
    pub email: Option<String>,
    /// Git identity of the user who runs the hub.
    pub user: UserIdentity,
}

/// Name and address in the user's own git settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserIdentity {
    pub name: Option<String>,
    pub email: Option<String>,
}

impl UserIdentity {
    /// Reads the user's git configuration files, in increasing precedence. Includes are not read, and neither is
    /// anything but these two settings.
    pub fn from_config_files<'a>(files: impl IntoIterator<Item = &'a str>) -> Self {
        let entries: Vec<ConfigEntry> =
            files.into_iter().filter_map(|text| git_config::parse(text).ok()).flatten().collect();
        let last = |key: &str| {
            let found = entries.iter().rev().find(|entry| entry.key == key);
            found.map(|entry| entry.value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        Self { name: last("user.name"), email: last("user.email") }
    }
}

impl Identity {
    pub fn settings(&self, config: &[ConfigEntry]) -> Vec<(String, String)> {
        let fill = |key: &str, given: &Option<String>, person: &Option<String>, otherwise: &str| {
            let known = config.iter().any(|entry| entry.key == key && !entry.value.trim().is_empty());
            let person = || person.clone().unwrap_or_else(|| otherwise.to_owned());
            let value = given.clone().or_else(|| (!known).then(person));
            value.map(|value| (key.to_owned(), value))
        };
        let name = fill("user.name", &self.name, &self.user.name, "octoprox");
        let email = fill("user.email", &self.email, &self.user.email, "octoprox@localhost");
        name.into_iter().chain(email).collect()
    }

    /// For directories without a repository.
    pub fn without_repository(&self) -> Vec<(String, String)> {
        self.settings(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_given_kept_or_made_up() {
        let entry = |key: &str, value: &str| ConfigEntry { key: key.to_owned(), value: value.to_owned() };
        let own = [entry("user.name", "Ann"), entry("user.email", "a@b")];
        let given = Identity { name: Some("Bot".to_owned()), ..Identity::default() };
        assert_eq!(Identity::default().settings(&own), []);
        assert_eq!(given.settings(&own), [("user.name".to_owned(), "Bot".to_owned())]);
        let files = [
            "[user]\n\tname = Old\n\temail = eve@b\n[alias]\n\tx = !y\n",
            "not a file",
            "[user]\nname = Eve\n",
        ];
        let person = UserIdentity::from_config_files(files);
        assert_eq!((person.name.as_deref(), person.email.as_deref()), (Some("Eve"), Some("eve@b")));
        let of_person = Identity { user: person, ..Identity::default() };
        assert_eq!(of_person.settings(&own), []);
        assert_eq!(of_person.without_repository()[0], ("user.name".to_owned(), "Eve".to_owned()));
        let made_up = Identity::default().without_repository();
        assert_eq!(made_up[1], ("user.email".to_owned(), "octoprox@localhost".to_owned()));
    }
}
