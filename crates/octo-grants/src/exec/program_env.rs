//! Environment of a program: fixed variables, those that the operator passes on, and the job's.

use super::start_program::StartRequest;
use super::{Exec, Program};
use octo_model::ToolError;
use std::collections::BTreeMap;
use std::ffi::OsString;

const FIXED_VARIABLES: [(&str, &str); 6] = [
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
];

/// Contains nothing of the hub's environment except what the operator has named.
pub(super) fn environment(
    exec: &Exec,
    order: &StartRequest,
    home: OsString,
    tmp: OsString,
) -> Result<Vec<(OsString, OsString)>, ToolError> {
    let mut all: BTreeMap<OsString, OsString> =
        FIXED_VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).collect();
    // Programs that the hub runs for itself must not start anything that another program could have planted.
    let path = match order.program {
        Program::Shell(_) => exec.search_path().whole().to_owned(),
        Program::Argv(_) => exec.search_path().trusted(),
    };
    all.insert("PATH".into(), path);
    all.insert("HOME".into(), home);
    all.insert("TMPDIR".into(), tmp);
    all.extend(exec.spec().pass_env.iter().map(|(name, value)| (name.into(), value.into())));
    for (name, value) in &order.env {
        check_variable(name, value)?;
        all.insert(name.into(), value.into());
    }
    Ok(all.into_iter().collect())
}

fn check_variable(name: &str, value: &str) -> Result<(), ToolError> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let named = name.bytes().all(word) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if !named {
        return Err(ToolError::invalid("Invalid name of an environment variable.")
            .hint("Use letters, digits and `_`, starting with a letter or `_`."));
    }
    if name.starts_with("LD_") {
        return Err(ToolError::denied(format!(
            "The environment variable {name} may not be set: it decides which code is loaded."
        ))
        .hint("Leave it out; set it inside the command if the program needs it."));
    }
    if value.contains('\0') {
        return Err(ToolError::invalid(format!("The value of {name} contains a NUL character."))
            .hint("Remove the NUL character."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_variable;

    #[test]
    fn names_are_checked() {
        for (name, value, fine) in [
            ("A", "b", true),
            ("_a1", "", true),
            ("PATH", "/x", true),
            ("", "x", false),
            ("1A", "x", false),
            ("A=B", "x", false),
            ("A B", "x", false),
            ("Ä", "x", false),
            ("A", "x\0y", false),
            ("LD_PRELOAD", "x", false),
            ("LD_LIBRARY_PATH", "x", false),
        ] {
            assert_eq!(check_variable(name, value).is_ok(), fine, "{name}");
        }
    }
}
