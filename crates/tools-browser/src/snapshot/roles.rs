//! Roles of the accessibility tree and how they are trimmed.

/// How a node is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleKind {
    /// Dropped with its subtree.
    Skip,
    /// Replaced by its children.
    Wrapper,
    /// A run of text.
    Text,
    /// Actionable, named by its content.
    Control,
    /// A field: its inner nodes only repeat its value.
    Field,
    /// Contains others and is shown.
    Container,
    /// Contains one line of text and actionable elements.
    Line,
    /// An image or the like, shown if it has a name.
    Figure,
}

pub fn role_kind(role: &str) -> RoleKind {
    match role {
        "InlineTextBox" | "ListMarker" | "LineBreak" | "MenuListPopup" | "separator" => RoleKind::Skip,
        "StaticText" => RoleKind::Text,
        "link" | "button" | "checkbox" | "radio" | "switch" | "menuitem" | "menuitemcheckbox"
        | "menuitemradio" | "tab" | "treeitem" | "option" | "DisclosureTriangle" | "ToggleButton"
        | "PopUpButton" => RoleKind::Control,
        "textbox" | "searchbox" | "combobox" | "spinbutton" | "slider" | "ColorWell" | "Date"
        | "DateTime" | "InputTime" | "scrollbar" | "TextField" | "ComboBoxSelect" | "ComboBoxMenuButton" => {
            RoleKind::Field
        }
        "heading"
        | "paragraph"
        | "listitem"
        | "row"
        | "cell"
        | "gridcell"
        | "columnheader"
        | "rowheader"
        | "caption"
        | "Legend"
        | "LabelText"
        | "DescriptionListTerm"
        | "DescriptionListDetail"
        | "term"
        | "definition"
        | "blockquote"
        | "code"
        | "Pre"
        | "Figcaption" => RoleKind::Line,
        "image" | "img" | "graphics-document" | "Canvas" | "Video" | "Audio" | "math" | "meter"
        | "progressbar" | "PluginObject" | "EmbeddedObject" => RoleKind::Figure,
        "navigation" | "main" | "banner" | "contentinfo" | "complementary" | "search" | "form" | "region"
        | "dialog" | "alertdialog" | "alert" | "status" | "log" | "article" | "tabpanel" | "tablist"
        | "toolbar" | "menu" | "menubar" | "tree" | "grid" | "treegrid" | "table" | "list" | "listbox"
        | "radiogroup" | "figure" | "tooltip" | "feed" | "group" | "Iframe" | "DescriptionList"
        | "Details" => RoleKind::Container,
        _ => RoleKind::Wrapper,
    }
}

/// Whether a container is shown only if it has a name.
pub fn needs_name(role: &str) -> bool {
    matches!(
        role,
        "group" | "region" | "figure" | "Details" | "article" | "toolbar" | "feed" | "list" | "radiogroup"
    )
}

/// The role as shown to readers.
pub fn display_role(role: &str) -> &str {
    match role {
        "DisclosureTriangle" => "summary",
        "ToggleButton" | "PopUpButton" => "button",
        "TextField" => "textbox",
        "ComboBoxSelect" | "ComboBoxMenuButton" => "combobox",
        "ColorWell" => "color",
        "Date" => "date",
        "DateTime" | "InputTime" => "time",
        "gridcell" => "cell",
        "img" | "graphics-document" => "image",
        "Canvas" => "canvas",
        "Video" => "video",
        "Audio" => "audio",
        "PluginObject" | "EmbeddedObject" => "object",
        "Iframe" => "iframe",
        "DescriptionList" => "terms",
        "DescriptionListTerm" => "term",
        "DescriptionListDetail" => "definition",
        "Legend" => "legend",
        "LabelText" => "label",
        "Figcaption" => "caption",
        "Details" => "details",
        "Pre" => "code",
        other => other,
    }
}
