//! What the browser's roles mean for the trimmed tree.

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleKind {
    /// Left out with all that is in it.
    Skip,
    /// Left out; its children take its place.
    Wrapper,
    /// A run of text.
    Text,
    /// Something to act on, named by what is in it.
    Control,
    /// A field: its inner nodes only repeat its value.
    Field,
    /// Holds others and says so.
    Container,
    /// Holds one line of text and actors.
    Line,
    /// A picture or the like, worth a line when it has a name.
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

/// Holders that say nothing unless they have a name.
pub fn needs_name(role: &str) -> bool {
    matches!(
        role,
        "group" | "region" | "figure" | "Details" | "article" | "toolbar" | "feed" | "list" | "radiogroup"
    )
}

/// The role in the words of a reader.
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
