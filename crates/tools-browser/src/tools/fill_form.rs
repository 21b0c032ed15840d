//! `browser_fill_form`.

use crate::browser_defaults;
use crate::browser_sessions::action_outcome::ActionOutcome;
use crate::browser_sessions::element_target::ElementTarget;
use crate::browser_sessions::{ActiveSession, BrowserSessions};
use crate::engine::{Button, Node};
use crate::snapshot::find_items;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum fields of one call.
const MAX_FIELDS: usize = 100;

/// Fills several fields of a form at once: text, checkboxes, choices; checks all before filling the first, and returns
/// what changed. Prefer browser_type for a single field.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The fields, in the order of filling.
    fields: Vec<Field>,
    /// Presses Enter in the last field afterwards.
    #[serde(default)]
    submit: bool,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

/// A field, given by one of ref, selector and label.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Field {
    /// Ref of the field.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the field.
    #[serde(default)]
    selector: Option<String>,
    /// Label of the field.
    #[serde(default)]
    label: Option<String>,
    /// Text; for a checkbox true or false; for a choice the option's value or label, or a list of them.
    value: Value,
}

pub struct FillForm(pub BrowserSessions);

impl Tool for FillForm {
    const NAME: &'static str = "browser_fill_form";
    const TITLE: &'static str = "Fill a form";
    const KEYWORDS: &'static str = "enter input fields login sign up submit checkout";
    const REQUESTS: &'static [&'static str] = &[
        "complete the registration with name, country and consent in one go",
        "enter street, postcode and city on the checkout page together",
        "fill out the whole contact sheet and send it",
        "set several inputs at once: checkbox, radio and text boxes",
        "sign up a test user with all required details",
        "populate the job application with the data from my cv",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = Chromium;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "A form with three fields",
            json!({"fields": [
                {"ref": "e3", "value": "Ada"},
                {"label": "Country", "value": "Norway"},
                {"label": "I agree", "value": true},
            ]}),
        )]
    }

    async fn run(
        &self,
        input: Input,
        chromium: Chromium,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        if input.fields.is_empty() || input.fields.len() > MAX_FIELDS {
            return Err(ToolError::invalid(format!("fields must have 1 to {MAX_FIELDS} entries.")));
        }
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let mut fills = Vec::new();
        for (at, field) in input.fields.iter().enumerate() {
            let fill = resolve_field(&mut active, field, cx).await;
            fills.push(fill.map_err(|error| with_field_name(error, at, field))?);
        }
        let before = active.baseline().await?;
        for (at, (node, fill)) in fills.iter().enumerate() {
            let done = apply_action(&active, node, fill, cx).await;
            done.map_err(|error| match input.fields.get(at) {
                Some(field) => with_field_name(error, at, field),
                None => error,
            })?;
        }
        if input.submit {
            if let Some((node, _)) = fills.last() {
                active.page.focus(node).await?;
            }
            active.page.press("Enter").await?;
        }
        active.outcome(&before).await
    }
}

/// How a field is filled.
enum FieldAction {
    Text(String),
    Checkbox { click: bool },
    Options(Vec<String>),
}

/// Properties of a field, read from the element.
#[derive(Deserialize)]
struct FieldInfo {
    kind: String,
    disabled: bool,
    readonly: bool,
    checked: bool,
    options: Vec<(String, String)>,
}

const FIELD_INFO_JS: &str = "function () {
    const tag = this.tagName.toLowerCase();
    const role = this.getAttribute('role');
    const type = tag === 'input' ? this.type : tag;
    const box = ['checkbox', 'switch', 'radio'];
    const kind = box.includes(role) && tag !== 'input' ? 'aria-box'
        : this.isContentEditable ? 'text' : type;
    return {
        kind,
        disabled: !!this.disabled || this.getAttribute('aria-disabled') === 'true',
        readonly: !!this.readOnly,
        checked: kind === 'aria-box' ? this.getAttribute('aria-checked') === 'true' : !!this.checked,
        options: tag === 'select' ? [...this.options].map(o => [o.value, o.label]) : [],
    };
}";

async fn resolve_field(
    active: &mut ActiveSession,
    field: &Field,
    cx: &CallContext,
) -> Result<(Node, FieldAction), ToolError> {
    let node = match (&field.label, &field.reference, &field.selector) {
        (Some(label), None, None) => find_by_label(active, label).await?,
        (None, reference, selector) => {
            let target = ElementTarget {
                reference: reference.as_deref(),
                selector: selector.as_deref(),
                accepted: "ref, selector or label",
                ..ElementTarget::default()
            };
            active
                .find_element(
                    target,
                    browser_defaults::clamp_timeout(browser_defaults::default_action_timeout_ms(), cx),
                )
                .await?
        }
        _ => return Err(ToolError::invalid("Set only one of ref, selector and label.")),
    };
    let facts = active.page.call_on(&node, FIELD_INFO_JS, &[]).await?;
    let facts: FieldInfo = serde_json::from_value(facts).map_err(ToolError::internal)?;
    let fill = choose_action(&facts, &field.value)?;
    Ok((node, fill))
}

/// Action for a value, by kind of field.
fn choose_action(facts: &FieldInfo, value: &Value) -> Result<FieldAction, ToolError> {
    if facts.disabled || facts.readonly {
        let how = if facts.disabled { "disabled" } else { "read-only" };
        return Err(ToolError::invalid(format!("It is {how}."))
            .hint("Check what the page requires before it can be filled."));
    }
    match facts.kind.as_str() {
        "checkbox" | "radio" | "aria-box" => {
            let on = match value {
                Value::Bool(on) => *on,
                Value::String(text) if ["true", "on", "yes"].contains(&text.as_str()) => true,
                Value::String(text) if ["false", "off", "no"].contains(&text.as_str()) => false,
                _ => return Err(ToolError::invalid("It is a checkbox.").hint("Use true or false.")),
            };
            if facts.kind == "radio" && !on {
                return Err(ToolError::invalid("A radio button cannot be turned off.")
                    .hint("Turn on another one of its group."));
            }
            Ok(FieldAction::Checkbox { click: on != facts.checked })
        }
        "select" => {
            let values: Vec<String> = match value {
                Value::Array(values) => values.iter().map(value_text).collect::<Result<_, _>>()?,
                value => vec![value_text(value)?],
            };
            let missing = values.iter().find(|wanted| {
                !facts.options.iter().any(|(value, label)| value == *wanted || label.trim() == wanted.trim())
            });
            match missing {
                None => Ok(FieldAction::Options(values)),
                Some(missing) => {
                    let labels =
                        facts.options.iter().take(20).map(|(_, label)| crate::sanitize::single_line(label));
                    let labels: Vec<String> = labels.collect();
                    Err(ToolError::invalid(format!("It has no option {missing:?}."))
                        .hint(format!("Available: {}.", labels.join("; "))))
                }
            }
        }
        "file" => Err(ToolError::invalid("It is a file field.").hint("Use browser_upload.")),
        "button" | "submit" | "reset" | "image" | "a" => {
            Err(ToolError::invalid("It is not a field.").hint("Use browser_click."))
        }
        "input" | "textarea" => Ok(FieldAction::Text(value_text(value)?)),
        _ => Ok(FieldAction::Text(value_text(value)?)),
    }
}

fn value_text(value: &Value) -> Result<String, ToolError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(yes) => Ok(yes.to_string()),
        _ => Err(ToolError::invalid("The value is not text.").hint("Use a string.")),
    }
}

async fn apply_action(
    active: &ActiveSession,
    node: &Node,
    fill: &FieldAction,
    cx: &CallContext,
) -> Result<(), ToolError> {
    match fill {
        FieldAction::Text(text) => active.page.fill(node, text, true).await,
        FieldAction::Checkbox { click: true } => {
            let timeout = browser_defaults::clamp_timeout(browser_defaults::default_action_timeout_ms(), cx);
            active.page.click(node, Button::Left, 1, timeout).await
        }
        FieldAction::Checkbox { click: false } => Ok(()),
        FieldAction::Options(values) => active.page.select(node, values).await.map(|_| ()),
    }
}

async fn find_by_label(active: &mut ActiveSession, label: &str) -> Result<Node, ToolError> {
    let page_state = active.page_state().await?;
    let is_field = |role: &str| {
        !matches!(
            role,
            "link" | "button" | "tab" | "menuitem" | "option" | "summary" | "clickable" | "treeitem"
        )
    };
    let mut fields = find_items(&page_state.tree, Some(label), None);
    fields.retain(|near| near.item.actionable && is_field(&near.item.role));
    let best = fields.first().map_or(0, |near| near.score);
    fields.retain(|near| near.score == best);
    match fields.as_slice() {
        [only] => only.item.node.clone().ok_or_else(|| ToolError::not_found("It has no element.")),
        [] => {
            let mut all = Vec::new();
            page_state
                .tree
                .walk(&mut |item| all.extend((item.actionable && is_field(&item.role)).then_some(item)));
            let list: Vec<String> = all
                .into_iter()
                .take(15)
                .filter_map(|item| active.describe_item(&page_state.document, item))
                .collect();
            Err(ToolError::not_found(format!("No field has the label {label:?}."))
                .hint(format!("The fields are: {}.", list.join(", "))))
        }
        several => {
            let list = active.describe_ambiguous(&page_state, several);
            Err(ToolError::invalid(format!("{} fields have the label {label:?}.", several.len()))
                .hint(format!("Use the ref of one: {list}.")))
        }
    }
}

fn with_field_name(mut error: ToolError, at: usize, field: &Field) -> ToolError {
    let which = field.reference.as_ref().or(field.label.as_ref()).or(field.selector.as_ref());
    let which = which.map(|which| format!(" ({which})")).unwrap_or_default();
    error.message = format!("Field {}{which}: {}", at + 1, error.message).into();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field_info(kind: &str) -> FieldInfo {
        let options = vec![("no".to_owned(), "Norway".to_owned()), ("se".to_owned(), "Sweden".to_owned())];
        FieldInfo { kind: kind.to_owned(), disabled: false, readonly: false, checked: false, options }
    }

    #[test]
    fn a_value_must_fit_its_field() {
        assert!(
            matches!(choose_action(&field_info("text"), &json!(5)), Ok(FieldAction::Text(text)) if text == "5")
        );
        assert!(matches!(
            choose_action(&field_info("checkbox"), &json!(true)),
            Ok(FieldAction::Checkbox { click: true })
        ));
        assert!(matches!(
            choose_action(&field_info("checkbox"), &json!("no")),
            Ok(FieldAction::Checkbox { click: false })
        ));
        assert!(matches!(
            choose_action(&field_info("select"), &json!("Norway")),
            Ok(FieldAction::Options(_))
        ));
        assert!(matches!(
            choose_action(&field_info("select"), &json!(["no", "se"])),
            Ok(FieldAction::Options(_))
        ));
        let wrong = [
            ("select", json!("Atlantis"), "no option"),
            ("radio", json!(false), "cannot be turned off"),
            ("checkbox", json!("maybe"), "box"),
            ("file", json!("a.txt"), "file field"),
            ("submit", json!("x"), "not a field"),
            ("text", json!({}), "not text"),
        ];
        for (kind, value, wanted) in wrong {
            let error = choose_action(&field_info(kind), &value).err().unwrap();
            assert!(error.message.contains(wanted), "{kind}: {}", error.message);
        }
        let error =
            choose_action(&FieldInfo { disabled: true, ..field_info("text") }, &json!("a")).err().unwrap();
        assert!(error.message.contains("disabled"));
    }
}
