//! Flows across several pages.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use serde_json::json;

#[tokio::test]
async fn a_page_is_opened_read_and_left_again() {
    let bench = BrowserFixture::new().await;
    let home = bench.open("/").await;
    assert_eq!((string_field(&home, "title"), home["status"].as_u64()), ("Home".to_owned(), Some(200)));
    assert!(string_field(&home, "content").starts_with("# Welcome"), "{home}");
    assert!(!string_field(&home, "content").contains("Footer"));
    assert_eq!(home["links"][0]["text"], "many links");
    assert!(string_field(&home, "snapshot").contains("link \"Form\" [ref="), "{home}");
    let form = bench.ok("browser_click", json!({"text": "Form"})).await;
    assert_eq!(form["title"], "Form");
    assert!(string_field(&form, "page").contains("textbox \"First name\" [ref="), "{form}");
    let back = bench.ok("browser_back", json!({})).await;
    assert_eq!(
        (string_field(&back, "title"), back["url"].as_str().unwrap().ends_with('/')),
        ("Home".to_owned(), true)
    );
    let forward = bench.ok("browser_forward", json!({})).await;
    assert_eq!(forward["title"], "Form");
    let nowhere = bench.call("browser_forward", json!({})).await.unwrap_err();
    assert!(nowhere.message.contains("no next page"));
    bench.open("/article").await;
    let scrolled = bench.ok("browser_scroll", json!({"direction": "down", "amount": 3_000})).await;
    assert!(string_field(&scrolled, "page").contains("h2 \"Chapter"), "{scrolled}");
    assert!(scrolled["events"].to_string().contains("In view: "), "{scrolled}");
    let part = bench.ok("browser_get_content", json!({"output_format": "markdown", "max_tokens": 500})).await;
    let next = part["next"].as_u64().unwrap();
    let more = bench.ok("browser_get_content", json!({"output_format": "markdown", "offset": next})).await;
    assert!(
        !string_field(&more, "content").is_empty()
            && string_field(&more, "content") != string_field(&part, "content")
    );
}

#[tokio::test]
async fn a_form_in_three_steps() {
    let bench = BrowserFixture::new().await;
    bench.open("/form").await;
    let wrong =
        json!({"fields": [{"label": "First name", "value": "Ada"}, {"label": "Country", "value": "Norway"}]});
    let error = bench.call("browser_fill_form", wrong).await.unwrap_err();
    assert!(error.message.starts_with("Field 2 (Country): No field"), "{error}");
    // Nothing was filled, since not all fields could be.
    let page = bench.snapshot().await;
    assert!(page.contains("textbox \"First name\" [ref=") && !page.contains("Ada"), "{page}");
    let fields = json!({"fields": [{"label": "First name", "value": "Ada"}, {"selector": "input[type=email]", "value": "ada@example.org"}]});
    let filled = bench.ok("browser_fill_form", fields).await;
    assert!(string_field(&filled, "changes").contains("value: \"Ada\""), "{filled}");
    let second = bench.ok("browser_click", json!({"text": "Next"})).await;
    let changes = string_field(&second, "changes") + &string_field(&second, "page");
    let country = find_ref(&changes, "combobox \"Country\"");
    let fields = json!({"fields": [{"ref": country, "value": "Atlantis"}]});
    let error = bench.call("browser_fill_form", fields).await.unwrap_err();
    assert!(error.hint.unwrap().contains("Norway; Sweden"));
    let fields = json!({"fields": [
        {"ref": country, "value": "Sweden"}, {"label": "I agree", "value": true}, {"label": "By mail", "value": true},
    ]});
    bench.ok("browser_fill_form", fields).await;
    bench.ok("browser_select_option", json!({"ref": country, "values": ["no"]})).await;
    let third = bench.ok("browser_click", json!({"text": "Continue"})).await;
    let said = string_field(&third, "changes") + &string_field(&third, "page");
    assert!(said.contains("Ada,ada@example.org,no,true,false,true"), "{third}");
    let locked =
        bench.call("browser_fill_form", json!({"fields": [{"label": "Locked", "value": "x"}]})).await;
    assert!(locked.unwrap_err().message.contains("disabled"));
    bench.ok("browser_hover", json!({"selector": "#s3 button"})).await;
    bench.ok("browser_click", json!({"text": "Send"})).await;
    assert!(bench.snapshot().await.contains("Thank you"));
}

#[tokio::test]
async fn a_login_is_kept_by_its_session_alone() {
    let bench = BrowserFixture::new().await;
    bench.open("/login").await;
    let fill = |password: &str| json!({"fields": [{"label": "User", "value": "ada"}, {"label": "Password", "value": password}], "submit": true});
    let wrong = bench.ok("browser_fill_form", fill("guess")).await;
    assert!(wrong.to_string().contains("Wrong password"), "{wrong}");
    let right = bench.ok("browser_fill_form", fill("secret")).await;
    assert!(string_field(&right, "page").contains("Hello who=ada"), "{right}");
    assert!(!right.to_string().contains("secret"));
    let url = format!("{}/account", bench.base_url);
    let other = bench.ok("browser_navigate", json!({"url": url, "session": "other"})).await;
    assert!(string_field(&other, "content").contains("Hello nobody"), "{other}");
    bench.ok("browser_press_key", json!({"key": "Control+A"})).await;
    assert!(bench.call("browser_press_key", json!({"key": "Nonsense"})).await.is_err());
    assert!(bench.call("browser_navigate", json!({"url": "file:///etc/passwd"})).await.is_err());
    assert!(bench.call("browser_navigate", json!({"url": url, "session": "../x"})).await.is_err());
}
