//! Declared effects are tied to the pinned definitions.

use super::super::review::{Review, review};
use super::super::{ChangePolicy, DeclaredEffects};
use super::{everything, listing_from, listing_json, pinned, server_identity, settings_with, with_change};
use octo_model::{EffectClass, EffectOrigin};
use serde_json::{Value, json};

fn reviewed_with(effects: Value, after: &Value, changes: ChangePolicy) -> Review {
    let effects = DeclaredEffects::new(&serde_json::from_value(effects).unwrap()).unwrap();
    let known = pinned(&everything());
    review(&listing_from(after), &known, &server_identity(), settings_with(changes), Some(&effects))
}

fn effect_of(review: &Review, tool: &str) -> (EffectClass, EffectOrigin) {
    let tool = review.lists.tools.iter().find(|definition| definition.key == tool).unwrap();
    (tool.effect.class(), tool.effect_origin)
}

const UNKNOWN: (EffectClass, EffectOrigin) = (EffectClass::Destroys, EffectOrigin::Declared);

#[test]
fn effects_apply_to_pinned_definitions() {
    let patterns = json!({"reads": ["search", "pages://*"], "writes": ["save*"]});
    let review = reviewed_with(patterns, &everything(), ChangePolicy::Hold);
    assert!(review.held.is_empty());
    assert_eq!(effect_of(&review, "search"), (EffectClass::Reads, EffectOrigin::Declared));
    assert_eq!(effect_of(&review, "save"), (EffectClass::Writes, EffectOrigin::Declared));
    assert_eq!(review.lists.resources[0].effect.class(), EffectClass::Reads);
    assert_eq!(review.lists.prompts[0].effect_origin, EffectOrigin::Assumed);
    let review = reviewed_with(json!("annotations"), &everything(), ChangePolicy::Hold);
    assert_eq!(effect_of(&review, "search"), (EffectClass::Reads, EffectOrigin::Declared));
    assert_eq!(effect_of(&review, "save"), (EffectClass::Destroys, EffectOrigin::Declared));
    assert_eq!(review.lists.prompts[0].effect.class(), EffectClass::Reads);
    assert_eq!(listing_json(&review.lists), everything(), "the server's own annotations are shown");
}

#[test]
fn a_definition_that_changed_has_no_effect_until_it_is_accepted() {
    let turned = with_change(&everything(), "/tools/0/description", Some(json!("Deletes pages.")));
    for effects in [json!({"reads": ["search"]}), json!("annotations")] {
        let held = reviewed_with(effects.clone(), &turned, ChangePolicy::Hold);
        assert_eq!(effect_of(&held, "search"), UNKNOWN, "{effects}");
        let shown = listing_json(&held.lists)["tools"][0].clone();
        assert_eq!(shown["description"], everything()["tools"][0]["description"]);
        let hints = &shown["annotations"];
        assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(false), &json!(true)));
        let followed = reviewed_with(effects, &turned, ChangePolicy::Follow);
        assert_eq!(effect_of(&followed, "search"), (EffectClass::Reads, EffectOrigin::Declared));
    }
    // A claim to be less dangerous is held, too.
    let claims = with_change(&everything(), "/tools/1/annotations", Some(json!({"readOnlyHint": true})));
    let held = reviewed_with(json!("annotations"), &claims, ChangePolicy::Hold);
    assert_eq!(effect_of(&held, "save"), UNKNOWN);
}

#[test]
fn a_new_tool_is_held_if_a_wildcard_covers_it() {
    let added = |name: &str| {
        let tool = json!({"name": name, "description": "Finds more.", "inputSchema": {"type": "object"}});
        with_change(&everything(), "/tools/-", Some(tool))
    };
    let patterns = json!({"reads": ["search*", "look"], "destroys": ["search_and_*"]});
    for (name, is_held) in
        [("search_more", true), ("look", false), ("search_and_replace", false), ("other", false)]
    {
        let review = reviewed_with(patterns.clone(), &added(name), ChangePolicy::Hold);
        assert_eq!(
            (review.held.len(), review.lists.tools.len()),
            if is_held { (1, 2) } else { (0, 3) },
            "{name}"
        );
        let review = reviewed_with(patterns.clone(), &added(name), ChangePolicy::Warn);
        assert_eq!(review.lists.tools.len(), 3, "{name}");
    }
    let review = reviewed_with(patterns, &added("look"), ChangePolicy::Hold);
    assert_eq!(effect_of(&review, "look"), (EffectClass::Reads, EffectOrigin::Declared));
}
