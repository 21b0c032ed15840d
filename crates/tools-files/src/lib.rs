//! The files toolbox: reading, finding, changing and undoing, beneath the roots of the workspace.

mod append;
mod copy;
mod delete;
mod diff;
mod edit;
mod encoding;
mod find;
mod glob;
mod hash;
mod lines;
mod list;
mod magic;
mod mkdir;
mod move_to;
mod near;
mod patch;
mod read_bytes;
mod read_many;
mod read_media;
mod read_text;
mod reading;
mod replace;
mod roots;
mod scan;
mod search;
mod stat;
mod target;
mod tree;
mod undo;
mod write_text;

use octo_toolkit::Toolbox;

/// The tools of the domain `filesystem`.
pub fn toolbox() -> Toolbox {
    Toolbox::new("filesystem", "Reads, searches and changes files of the workspace.")
        .with(read_text::ReadText)
        .with(read_many::ReadMany)
        .with(read_bytes::ReadBytes)
        .with(read_media::ReadMedia)
        .with(stat::StatPath)
        .with(search::Search)
        .with(glob::GlobFiles)
        .with(tree::Tree)
        .with(list::List)
        .with(roots::Roots)
        .with(write_text::WriteText)
        .with(append::Append)
        .with(edit::EditText)
        .with(replace::Replace)
        .with(patch::Patch)
        .with(mkdir::MakeFolder)
        .with(delete::Delete)
        .with(move_to::Move)
        .with(copy::Copy)
        .with(undo::Undo)
}

#[cfg(test)]
mod tests;
