//! The tools, one file each.

pub(crate) mod back;
pub(crate) mod click;
pub(crate) mod close;
pub(crate) mod console;
pub(crate) mod downloads;
pub(crate) mod drag;
pub(crate) mod execute_js;
pub(crate) mod fill_form;
pub(crate) mod find;
pub(crate) mod forward;
pub(crate) mod get_content;
pub(crate) mod hover;
pub(crate) mod navigate;
pub(crate) mod network;
pub(crate) mod press_key;
pub(crate) mod screenshot;
pub(crate) mod scroll;
pub(crate) mod select_option;
pub(crate) mod tabs;
pub(crate) mod take_snapshot;
pub(crate) mod type_text;
pub(crate) mod upload;
pub(crate) mod wait;
