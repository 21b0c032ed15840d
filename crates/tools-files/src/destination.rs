//! Where something is moved or copied to: what is in the way is refused with the next call, or told as lost.

use octo_toolkit::fs::{EntryKind, Write};
use octo_toolkit::{Fs, Kind, RootedPath, ToolError};

/// What will be lost at the destination, in words. The grant makes sure of it once more, at the moment of the change.
pub fn check_destination(
    fs: &Fs<Write>,
    from: &RootedPath,
    to: &RootedPath,
    overwrite: bool,
) -> Result<Option<String>, ToolError> {
    let source = fs.link_stat(from)?;
    let present = match fs.link_stat(to) {
        Ok(stat) => stat,
        Err(error) if error.kind == Kind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let path = to.display();
    let conflict = |message: String| ToolError::new(Kind::Conflict, message);
    if present.kind == EntryKind::Folder && source.kind != EntryKind::Folder {
        let name = from.relative().file_name().unwrap_or_default();
        let inside = to.join(name).display();
        return Err(conflict(format!("`{path}` is a folder."))
            .hint(format!("To put it in there, give destination {inside:?}.")));
    }
    if present.kind != EntryKind::Folder && source.kind == EntryKind::Folder {
        return Err(conflict(format!("`{path}` is not a folder, so a folder cannot take its place."))
            .hint("Take another destination, or delete it first with fs_delete."));
    }
    if !overwrite {
        return Err(conflict(format!("`{path}` exists already; nothing was changed."))
            .hint("Take another destination, or give overwrite true to replace it."));
    }
    Ok(Some(match present.kind {
        EntryKind::Folder => format!("Replaced the folder `{path}`."),
        _ => format!("Replaced `{path}`, which had {} bytes.", present.size),
    }))
}

/// The folder that something should go into does not exist.
pub fn missing_parent_error(error: ToolError, to: &RootedPath) -> ToolError {
    let above = to.display();
    match above.rsplit_once('/') {
        Some((above, _)) if error.kind == Kind::NotFound => {
            ToolError::not_found(format!("The folder `{above}` does not exist."))
                .hint(format!("Call fs_mkdir {{\"path\": \"{above}\"}} first, or take another path."))
        }
        _ => error,
    }
}
