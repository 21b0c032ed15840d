//! Encryption key of the credential store.

use crate::app_error::AppError;
use crate::settings::Environment;
use crate::settings::model::section_models::Logins;
use octo_model::Secret;
use octo_store::SealKeys;

/// Variables that may contain the secret. `logins.secret` already has the one with higher precedence.
const SECRET_VARIABLES: [&str; 2] = ["OCTOPROX_SECRET", "TOOL_GATEWAY_SECRET"];
/// Checked here because the store rejects shorter secrets only when opened.
const MIN_SECRET_LEN: usize = 16;

/// Returns the configured secret. Without one, the store creates a key file on first use (`seal.key`, accessible only
/// to its owner).
///
/// To rotate the secret without new logins, set both: the new one in `OCTOPROX_SECRET`, the previous one in
/// `TOOL_GATEWAY_SECRET`.
pub fn seal_keys(logins: &Logins, world: &Environment) -> Result<SealKeys, AppError> {
    let Some(secret) = operator_secret(logins)? else { return Ok(SealKeys::default()) };
    if secret.len() < MIN_SECRET_LEN {
        return Err(AppError::invalid(format!(
            "logins.secret: the secret has fewer than {MIN_SECRET_LEN} characters. \
             Set OCTOPROX_SECRET to a longer one, such as the output of `openssl rand -hex 32`, or unset it."
        )));
    }
    let others = SECRET_VARIABLES.into_iter().filter_map(|name| world.variable(name));
    let older =
        others.filter(|other| *other != secret && other.len() >= MIN_SECRET_LEN).map(Secret::new).collect();
    Ok(SealKeys { secret: Some(Secret::new(secret)), previous: older })
}

/// Returns the secret from the settings or from the file.
fn operator_secret(logins: &Logins) -> Result<Option<String>, AppError> {
    if let Some(secret) = &logins.secret {
        return Ok(Some(secret.expose().to_owned()));
    }
    let Some(file) = &logins.secret_file else { return Ok(None) };
    let text = std::fs::read_to_string(file).map_err(|error| {
        AppError::invalid(format!("logins.secret_file: cannot read {}: {error}.", file.display()))
    })?;
    Ok(Some(text.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Flags, SecretStore, load};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn opened(state: &Path, variables: &[(&str, &str)]) -> Result<SecretStore, AppError> {
        let mut world = Environment { current_dir: std::env::temp_dir(), ..Environment::default() };
        world.variables.insert("OCTOPROX_STATE_DIR".to_owned(), state.display().to_string());
        let given = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        world.variables.extend(given);
        let loaded = load(&world, &Flags::default()).unwrap();
        SecretStore::open(&loaded.settings.logins, loaded.settings.state_dir.as_ref(), &world)
    }

    fn read(secrets: &SecretStore) -> Option<String> {
        secrets.get_all(["K"]).unwrap().remove("K").map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn without_a_secret_a_key_file_for_its_owner_alone_is_made_on_first_use() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let kept = opened(&state, &[]).unwrap();
        assert!(!state.exists());
        kept.set("K", Secret::new("k3y")).unwrap();
        let mode = std::fs::metadata(state.join("seal.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(read(&opened(&state, &[]).unwrap()).as_deref(), Some("k3y"));
    }

    #[test]
    fn either_variable_gives_the_secret_and_both_together_change_it() {
        let temp = tempfile::tempdir().unwrap();
        let (old, new) =
            (("TOOL_GATEWAY_SECRET", "the old secret 1"), ("OCTOPROX_SECRET", "the new secret 2"));
        opened(temp.path(), &[old]).unwrap().set("K", Secret::new("k3y")).unwrap();
        assert!(!temp.path().join("seal.key").exists());
        assert!(opened(temp.path(), &[new]).unwrap().get_all(["K"]).is_err());
        assert_eq!(read(&opened(temp.path(), &[new, old]).unwrap()).as_deref(), Some("k3y"));
        assert_eq!(read(&opened(temp.path(), &[new]).unwrap()).as_deref(), Some("k3y"));
        assert!(opened(temp.path(), &[old]).unwrap().get_all(["K"]).is_err());
    }

    #[test]
    fn a_file_gives_the_secret_and_must_be_there() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("secret");
        std::fs::write(&file, "the new secret 2\n").unwrap();
        let named = [("OCTOPROX_SECRET_FILE", file.to_str().unwrap())];
        opened(temp.path(), &named).unwrap().set("K", Secret::new("k3y")).unwrap();
        let given = opened(temp.path(), &[("OCTOPROX_SECRET", "the new secret 2")]).unwrap();
        assert_eq!(read(&given).as_deref(), Some("k3y"));
        std::fs::remove_file(&file).unwrap();
        assert!(format!("{:?}", opened(temp.path(), &named).err().unwrap()).contains("cannot read"));
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_refused_at_once_and_not_told() {
        let temp = tempfile::tempdir().unwrap();
        let refused = opened(temp.path(), &[("OCTOPROX_SECRET", "fifteen letters")]).err().unwrap();
        let text = format!("{refused:?}");
        assert!(text.contains("16 characters") && !text.contains("fifteen letters"), "{text}");
        let taken = opened(temp.path(), &[("OCTOPROX_SECRET", "sixteen letters!")]).unwrap();
        taken.set("K", Secret::new("k3y")).unwrap();
    }
}
