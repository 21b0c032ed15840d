//! File toolbox: reads, finds, changes and restores files beneath the workspace roots.

mod content;
mod destination;
mod file_walk;
mod fs_append;
mod fs_copy;
mod fs_delete;
mod fs_edit;
mod fs_glob;
mod fs_list;
mod fs_mkdir;
mod fs_move;
mod fs_patch;
mod fs_read_bytes;
mod fs_read_many;
mod fs_read_media;
mod fs_read_text;
mod fs_replace;
mod fs_roots;
mod fs_search;
mod fs_stat;
mod fs_tree;
mod fs_undo;
mod fs_write_text;

use octo_toolkit::Toolbox;

/// Tools of the domain `filesystem`.
pub fn toolbox() -> Toolbox {
    Toolbox::new("filesystem", "Reads, searches and changes files of the workspace.")
        .using_workspace()
        .bound_to_machine()
        .with(fs_read_text::ReadText)
        .with(fs_read_many::ReadMany)
        .with(fs_read_bytes::ReadBytes)
        .with(fs_read_media::ReadMedia)
        .with(fs_stat::StatPath)
        .with(fs_search::Search)
        .with(fs_glob::GlobFiles)
        .with(fs_tree::Tree)
        .with(fs_list::List)
        .with(fs_roots::Roots)
        .with(fs_write_text::WriteText)
        .with(fs_append::Append)
        .with(fs_edit::EditText)
        .with(fs_replace::Replace)
        .with(fs_patch::Patch)
        .with(fs_mkdir::MakeFolder)
        .with(fs_delete::Delete)
        .with(fs_move::Move)
        .with(fs_copy::Copy)
        .with(fs_undo::Undo)
}

#[cfg(test)]
mod tests;
