//! Paths as callers write them, and as replies show them.

use super::Fs;
use super::root::Root;
use octo_model::ToolError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Limits of the kernel for a path and for one name in it.
const MAX_PATH_BYTES: usize = 4_096;
const MAX_NAME_BYTES: usize = 255;

/// A path as written by a caller: relative to the default root, or absolute beneath any root. Not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkPath(String);

impl WorkPath {
    /// Value of `format` in the schema.
    pub const FORMAT: &'static str = "workspace-path";

    /// The default root.
    pub fn here() -> Self {
        Self(".".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for WorkPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for WorkPath {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Display for WorkPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for WorkPath {
    fn schema_name() -> Cow<'static, str> {
        "WorkPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// The format identifies paths for the toolkit, which removes it from the schema that clients see.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": Self::FORMAT})
    }
}

/// A root and a path beneath it as the caller named it. Not looked up yet; every use resolves it anew, beneath the
/// root.
#[derive(Clone)]
pub struct RootedPath {
    pub(super) root: Arc<Root>,
    /// Relative to the root, as written except for doubled slashes and `.`; the root itself is `.`. The kernel
    /// ensures that it stays beneath.
    pub(super) relative: PathBuf,
    /// The part before `relative` as the caller wrote it, for replies.
    pub(super) caller_prefix: PathBuf,
}

impl std::fmt::Debug for RootedPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({}: {})", self.root.name, self.relative.display())
    }
}

impl RootedPath {
    pub fn root(&self) -> &Root {
        &self.root
    }

    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// The path in the caller's spelling.
    pub fn display(&self) -> String {
        let told = if self.relative == Path::new(".") && !self.caller_prefix.as_os_str().is_empty() {
            Cow::Borrowed(self.caller_prefix.as_path())
        } else {
            Cow::Owned(self.caller_prefix.join(&self.relative))
        };
        told.to_string_lossy().into_owned()
    }

    /// A path beneath this one.
    #[must_use]
    pub fn join(&self, more: impl AsRef<Path>) -> Self {
        self.at(&normalize(self.relative.components().chain(more.as_ref().components())))
    }

    /// A path beneath a root, shown as an absolute path.
    pub(super) fn beneath(root: &Arc<Root>, inside: &Path) -> Self {
        let spelled = root_spellings(root).next().unwrap_or(&root.path).to_owned();
        Self { root: Arc::clone(root), relative: inside.to_owned(), caller_prefix: spelled }
    }

    /// Another path of the same root, in the same spelling.
    pub(super) fn at(&self, inside: &Path) -> Self {
        Self {
            root: Arc::clone(&self.root),
            relative: inside.to_owned(),
            caller_prefix: self.caller_prefix.clone(),
        }
    }
}

/// Removes `.`, doubled slashes and a leading slash. `..` stays: only the kernel can resolve it.
fn normalize<'a>(components: impl Iterator<Item = Component<'a>>) -> PathBuf {
    let kept = components.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let path: PathBuf = kept.collect();
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

impl<M: 'static> Fs<M> {
    /// Finds the root that a path belongs to. Refuses invalid paths; does no I/O.
    pub fn place(&self, path: &WorkPath) -> Result<RootedPath, ToolError> {
        let roots = self.workspace().roots();
        let Some(first) = roots.first() else {
            return Err(self.workspace().no_root());
        };
        check_path_text(&path.0)?;
        let path = Path::new(&path.0);
        if path.is_relative() {
            let inside = normalize(path.components());
            return Ok(RootedPath {
                root: Arc::clone(first),
                relative: inside,
                caller_prefix: PathBuf::new(),
            });
        }
        let found = roots.iter().flat_map(|root| root_spellings(root).map(move |spelled| (root, spelled)));
        let found =
            found.filter_map(|(root, spelled)| Some((root, spelled, path.strip_prefix(spelled).ok()?)));
        let Some((root, spelled, rest)) = found.max_by_key(|(_, spelled, _)| spelled.components().count())
        else {
            return Err(outside_error(roots));
        };
        let spelled: PathBuf = spelled.components().collect();
        Ok(RootedPath {
            root: Arc::clone(root),
            relative: normalize(rest.components()),
            caller_prefix: spelled,
        })
    }
}

/// Absolute paths that denote a root.
fn root_spellings(root: &Root) -> impl Iterator<Item = &Path> {
    let all = [Some(root.path.as_path()), Some(root.configured_path.as_path()), root.alias_path.as_deref()];
    all.into_iter().flatten().filter(|path| path.is_absolute())
}

fn outside_error(roots: &[Arc<Root>]) -> ToolError {
    let named: Vec<String> =
        roots.iter().map(|root| format!("`{}` ({})", root.name, root.configured_path.display())).collect();
    ToolError::denied("The path is outside the workspace.").hint(format!(
        "Use a path relative to the first of these roots, or an absolute one beneath any of them: {}.",
        named.join(", ")
    ))
}

fn check_path_text(path: &str) -> Result<(), ToolError> {
    let wrong = if path.is_empty() {
        "The path is empty."
    } else if path.contains('\0') {
        "The path contains a NUL character."
    } else if path.len() >= MAX_PATH_BYTES {
        "The path is longer than 4,095 bytes."
    } else if path.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        "A name in the path is longer than 255 bytes."
    } else {
        return Ok(());
    };
    Err(ToolError::invalid(wrong)
        .hint("Use a file or directory, such as `src/main.rs`, or `.` for the workspace itself."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::tests::{FsFixture, error_kind};
    use crate::fs::{Read, RootSpec, Workspace, WorkspaceSpec};

    #[test]
    fn answers_keep_the_spelling_of_the_caller() {
        let kit = FsFixture::new();
        let real = kit.root_path().to_str().unwrap().to_owned();
        for (path, inside, told) in [
            ("a/b.txt", "a/b.txt", "a/b.txt".to_owned()),
            ("./a//b.txt", "a/b.txt", "a/b.txt".to_owned()),
            ("a/./b/", "a/b", "a/b".to_owned()),
            (".", ".", ".".to_owned()),
            ("./", ".", ".".to_owned()),
            ("a/../b", "a/../b", "a/../b".to_owned()),
            ("~/x", "~/x", "~/x".to_owned()),
            ("%2e%2e/x", "%2e%2e/x", "%2e%2e/x".to_owned()),
            ("a /b.", "a /b.", "a /b.".to_owned()),
            ("/host/ws", ".", "/host/ws".to_owned()),
            ("/host/ws//x/./y", "x/y", "/host/ws/x/y".to_owned()),
            (&real, ".", real.clone()),
            (&format!("{real}/x"), "x", format!("{real}/x")),
        ] {
            let place = kit.fs.place(&WorkPath::from(path)).unwrap();
            assert_eq!(place.relative(), Path::new(inside), "{path}");
            assert_eq!(place.display(), told, "{path}");
        }
        let place = kit.at("a").join("b").join("./c");
        assert_eq!((place.display().as_str(), kit.at(".").join("x").display().as_str()), ("a/b/c", "x"));
        assert_eq!(kit.at("a").join("/etc").display(), "a/etc");
    }

    #[test]
    fn sec_fs_01_what_is_no_path_or_outside_is_refused() {
        let kit = FsFixture::new();
        let real = kit.root_path().to_str().unwrap().to_owned();
        let long = "x".repeat(256);
        let longer = "x/".repeat(2_100);
        for (path, expected) in [
            ("", "invalid"),
            ("a\0b", "invalid"),
            (long.as_str(), "invalid"),
            (longer.as_str(), "invalid"),
            ("/", "denied"),
            ("//", "denied"),
            ("/etc/passwd", "denied"),
            (&format!("{real}-evil/x"), "denied"),
            (&format!("{real}x"), "denied"),
            ("/host/ws-evil", "denied"),
        ] {
            let error = kit.fs.place(&WorkPath::from(path)).unwrap_err();
            assert_eq!(error_kind(&error), expected, "{path:?}");
            assert!(error.hint.is_some(), "{path:?}");
        }
    }

    #[test]
    fn sec_fs_02_without_roots_every_path_is_refused() {
        let fs = Fs::<Read>::new(Workspace::open(WorkspaceSpec::default()).unwrap());
        for path in [".", "a", "/", "/etc/passwd"] {
            let error = fs.place(&WorkPath::from(path)).unwrap_err();
            assert_eq!(error_kind(&error), "denied");
            assert!(error.hint.unwrap().contains("`workspace`"));
        }
    }

    #[test]
    fn the_longest_root_wins() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        let spec = |name: &str, path: PathBuf| RootSpec {
            name: name.into(),
            path,
            alias_path: None,
            writable: false,
        };
        let roots = vec![spec("outer", folder.path().into()), spec("inner", folder.path().join("inner"))];
        let workspace = Workspace::open(WorkspaceSpec { roots, ..Default::default() }).unwrap();
        let path = folder.path().join("inner/x");
        let place = Fs::<Read>::new(workspace).place(&WorkPath::from(path.to_str().unwrap())).unwrap();
        assert_eq!((place.root().name.as_str(), place.relative()), ("inner", Path::new("x")));
    }
}
