//! Repositories that do not exist yet: init and clone. The new folder is beneath a root and is reached through no link.

use super::{Call, Output, fill};
use crate::allow::Asked;
use crate::remote::Asker;
use crate::repo::{normal, real_path};
use crate::run::{Route, Site};
use crate::value::Checked;
use octo_toolkit::fs::{EntryKind, Read};
use octo_toolkit::{Fs, Kind, Place, ToolError, WorkPath};

impl Call<'_> {
    pub(super) async fn init(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        let dir = match asked.words.as_slice() {
            [] => ".".to_owned(),
            [dir] => dir.clone(),
            _ => return Err(ToolError::invalid("init takes one folder.")),
        };
        let (cwd, target) = self.target(path, dir).await?;
        let command = fill::start(asked).word(&target);
        let site = self.site(cwd);
        Ok(self.told(site.run(command.keep(self.keep), &Route::Nowhere).await?))
    }

    pub(super) async fn clone_into(&self, asked: &Asked, path: &WorkPath) -> Result<Output, ToolError> {
        let (address, dir) = match asked.words.as_slice() {
            [address] => (address, folder_of(address, asked.has(&["--bare", "--mirror"]))?),
            [address, dir] => (address, dir.clone()),
            _ => return Err(ToolError::invalid("clone takes an address and, if you like, a folder.")),
        };
        let (cwd, target) = self.target(path, dir).await?;
        let asker = Asker {
            fs: self.fs,
            exec: self.exec,
            ssh: self.ssh,
            net: self.net,
            cx: self.cx,
            from: cwd.clone(),
        };
        let way = asker.to(address).await?;
        let command = fill::start(asked)
            .set("--upload-pack", &way.upload_pack)
            .word(&way.address)
            .word(&target)
            .reach(way.reach);
        self.cx.progress(1, None, "cloning");
        Ok(self.told(self.site(cwd).run(command.keep(self.keep), &way.route).await?))
    }

    fn site(&self, cwd: Place) -> Site {
        let mut site = Site::folder(self.exec, self.cx, cwd);
        site.overrides = self.settings.identity().alone();
        site
    }

    /// The folder to run in and the one to make, by its real path.
    async fn target(&self, path: &WorkPath, dir: String) -> Result<(Place, Checked), ToolError> {
        let path = path.clone();
        self.fs
            .run(move |fs| {
                let cwd = fs.open_folder(&fs.place(&path)?)?.real;
                let target = free(fs, &cwd, &dir)?;
                if !target.root().writable {
                    return Err(ToolError::denied("This folder is in a read-only root."));
                }
                Ok((cwd, Checked::new(real_path(&target).to_string_lossy())))
            })
            .await
    }
}

/// A folder that holds no repository yet, with no link on the way to it.
fn free(fs: &Fs<Read>, cwd: &Place, dir: &str) -> Result<Place, ToolError> {
    let stray =
        || ToolError::denied("A repository is made only beneath a root.").hint("Name a plain folder.");
    if dir.is_empty() || dir.starts_with('-') || dir.chars().any(char::is_control) {
        return Err(stray());
    }
    let whole = if dir.starts_with('/') {
        fs.place(&WorkPath::from(dir))?
    } else {
        let inside = normal(&cwd.inside().join(dir)).ok_or_else(stray)?;
        fs.place(&WorkPath::from(cwd.root().path.join(inside).to_string_lossy().as_ref()))?
    };
    let inside = normal(whole.inside()).ok_or_else(stray)?;
    if inside.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
        return Err(ToolError::denied("A repository is not made inside .git."));
    }
    let root = whole.root().path.clone();
    let at = |rest: &std::path::Path| fs.place(&WorkPath::from(root.join(rest).to_string_lossy().as_ref()));
    let mut way = std::path::PathBuf::new();
    for part in inside.components() {
        way.push(part);
        match fs.link_stat(&at(&way)?) {
            Ok(stat) if stat.kind != EntryKind::Folder => return Err(stray()),
            Ok(_) => {}
            Err(error) if error.kind == Kind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    let target = at(&inside)?;
    for mark in [".git", "HEAD"] {
        if fs.link_stat(&target.join(mark)).is_ok() {
            return Err(ToolError::new(Kind::Conflict, "There is a repository in this folder already.")
                .hint("Use it, or name another folder."));
        }
    }
    Ok(target)
}

/// The folder that git would choose.
fn folder_of(address: &str, bare: bool) -> Result<String, ToolError> {
    let path = address.trim_end_matches('/').trim_end_matches("/.git");
    let last = path.rsplit(['/', ':']).next().unwrap_or_default();
    let name = last.strip_suffix(".git").unwrap_or(last);
    if name.is_empty() || name.starts_with(['-', '.']) {
        return Err(
            ToolError::invalid("No name for the new folder follows from the address.").hint("Name a folder.")
        );
    }
    Ok(if bare { format!("{name}.git") } else { name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn folders_are_named_after_their_addresses() {
        for (address, name) in [
            ("https://example.org/team/demo.git", "demo"),
            ("git@example.org:demo.git", "demo"),
            ("../origin.git/", "origin"),
            ("/roots/a/.git", "a"),
        ] {
            assert_eq!(folder_of(address, false).unwrap(), name, "{address}");
        }
        assert_eq!(folder_of("x/demo", true).unwrap(), "demo.git");
        for address in ["", "/", "..", "https://example.org/-x", "-x"] {
            assert!(folder_of(address, false).is_err(), "{address}");
        }
    }
}
