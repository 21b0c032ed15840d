//! User actions on a page.

use super::engine_fixture::{
    EngineFixture, TEST_TIMEOUT, error_kind, eval, page, query_one, site, wait_until,
};
use crate::engine::{Button, CaptureArea, DialogPolicy, DownloadState, ImageFormat};
use octo_toolkit::Kind;
use serde_json::json;
use std::time::{Duration, Instant};

const FORM: &str = r#"
<form id=f><input id=name value=old><textarea id=more></textarea><input type=date id=day>
<select id=one><option value=a>Apple<option value=b>Pear</select>
<input type=checkbox id=agree><label for=agree>I agree</label>
<button id=go>Go</button><button id=off disabled>Off</button></form>
<div id=rich contenteditable>rich</div>
<div style="height:3000px"></div><button id=far onclick="window.reached = true">Far</button>
<div style="position:relative"><button id=under>U</button>
<div id=cover style="position:absolute;inset:0;background:red"></div></div>
<button id=hidden style="display:none">H</button>
<script>
const keys = []; f.name; document.getElementById('name').addEventListener('keydown', e => keys.push(e.key));
let changes = []; f.addEventListener('input', e => changes.push(e.target.id));
f.addEventListener('submit', e => { e.preventDefault(); window.sent = [...new FormData(f)].length + ':' + document.getElementById('name').value; });
far.addEventListener('mouseover', () => window.over = true);
</script>"#;

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_filled_clicked_and_sent() {
    let bench = EngineFixture::new(site().route("/form", page(FORM))).await;
    let (_, tab, _) = bench.visit("/form").await;
    let name = query_one(&tab, "#name").await;
    tab.fill(&name, "new é", true).await.unwrap();
    tab.fill(&name, "!", false).await.unwrap();
    tab.type_text("aB?ü").await.unwrap();
    assert_eq!(eval(&tab, "document.getElementById('name').value").await, "new é!aB?ü");
    assert_eq!(eval(&tab, "keys").await, json!(["a", "B", "?"]));
    tab.press("Control+A").await.unwrap();
    tab.press("Backspace").await.unwrap();
    assert_eq!(eval(&tab, "document.getElementById('name').value").await, "");
    tab.fill(&name, "done", true).await.unwrap();
    tab.fill(&query_one(&tab, "#more").await, "two\nlines", true).await.unwrap();
    tab.fill(&query_one(&tab, "#day").await, "2026-11-15", true).await.unwrap();
    tab.fill(&query_one(&tab, "#rich").await, "poor", true).await.unwrap();
    assert_eq!(
        eval(&tab, "[more.value, day.value, rich.textContent]").await,
        json!(["two\nlines", "2026-11-15", "poor"])
    );
    assert_eq!(error_kind(tab.fill(&query_one(&tab, "#day").await, "soon", true).await), Some(Kind::Invalid));
    let select = query_one(&tab, "#one").await;
    assert_eq!(tab.select(&select, &["Pear".to_owned()]).await.unwrap(), ["b"]);
    let error = tab.select(&select, &["Plum".to_owned()]).await.unwrap_err();
    assert!(error.text().contains("Apple, Pear"), "{error}");
    tab.click(&query_one(&tab, "label").await, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    assert_eq!(eval(&tab, "agree.checked && changes.includes('one') && changes.includes('day')").await, true);
    tab.click(&query_one(&tab, "#go").await, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    wait_until(&tab, "window.sent === '0:done'").await;
    tab.focus(&name).await.unwrap();
    eval(&tab, "window.sent = null").await;
    tab.press("Enter").await.unwrap();
    wait_until(&tab, "window.sent === '0:done'").await;
    let far = query_one(&tab, "#far").await;
    tab.hover(&far, TEST_TIMEOUT).await.unwrap();
    wait_until(&tab, "window.over === true").await;
    tab.click(&far, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    wait_until(&tab, "window.reached === true").await;
    for (selector, why) in [("#off", "disabled"), ("#under", "#cover"), ("#hidden", "not shown")] {
        let error =
            tab.click(&query_one(&tab, selector).await, Button::Left, 1, TEST_TIMEOUT).await.unwrap_err();
        assert!(error.kind == Kind::Conflict && error.message.contains(why), "{selector}: {error}");
    }
    eval(&tab, "far.remove()").await;
    assert_eq!(error_kind(tab.click(&far, Button::Left, 1, TEST_TIMEOUT).await), Some(Kind::NotFound));
    assert!(!tab.is_attached(&far).await && tab.is_attached(&name).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_are_answered_by_policy_and_told() {
    let body = "<button onclick=\"alert('hi'); window.yes = confirm('sure?'); window.said = prompt('name?')\">B</button>";
    let bench = EngineFixture::new(site().route("/dialog", page(body))).await;
    let (session, tab, _) = bench.visit("/dialog").await;
    let button = query_one(&tab, "button").await;
    tab.click(&button, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    wait_until(&tab, "window.yes === false && window.said === null").await;
    session.answer_dialogs(DialogPolicy::Accept(Some("Ada".to_owned())));
    tab.click(&button, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    wait_until(&tab, "window.yes === true && window.said === 'Ada'").await;
    let told: Vec<_> = tab.dialogs(0).into_iter().map(|dialog| (dialog.kind, dialog.accepted)).collect();
    let wanted = [
        ("alert", true),
        ("confirm", false),
        ("prompt", false),
        ("alert", true),
        ("confirm", true),
        ("prompt", true),
    ];
    assert_eq!(told, wanted.map(|(kind, accepted)| (kind.to_owned(), accepted)));
    assert!(tab.dialogs(6).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_that_pages_open_become_active() {
    let body =
        "<a id=new target=_blank href=/second>new</a><button onclick=\"open('/second'); close()\">x</button>";
    let bench = EngineFixture::new(site().route("/opener", page(body))).await;
    let (session, first, _) = bench.visit("/opener").await;
    first.click(&query_one(&first, "#new").await, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    let begun = Instant::now();
    let second = loop {
        let page = session.page().await.unwrap();
        if page.id() != first.id() {
            break page;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    wait_until(&second, "document.readyState === 'complete' && location.pathname === '/second'").await;
    let tabs = session.tabs().await.unwrap();
    let seen: Vec<_> = tabs.iter().map(|tab| (tab.url.ends_with("/second"), tab.active)).collect();
    assert_eq!(seen, [(false, false), (true, true)]);
    // A tab in the background can be used, too.
    assert_eq!(first.screenshot(&CaptureArea::Viewport, ImageFormat::Png).await.unwrap().width, 1280);
    let again = session.select_tab(0).await.unwrap();
    assert_eq!(again.id(), first.id());
    session.close_tab(0).await.unwrap();
    assert_eq!(session.page().await.unwrap().id(), second.id());
    assert_eq!(error_kind(session.select_tab(1).await), Some(Kind::NotFound));
    assert_eq!(error_kind(first.location().await), Some(Kind::NotFound));
    session.close_tab(0).await.unwrap();
    assert!(session.tabs().await.unwrap().is_empty());
    assert_eq!(session.page().await.unwrap().location().await.unwrap().0, "about:blank");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_and_go_through_the_quarantine() {
    let body = r#"<a href=/file>get</a><input type=file id=file onchange="file.files[0].text().then(t => window.got = file.files[0].name + ':' + t)">"#;
    let bench = EngineFixture::new(site().route("/files", page(body))).await;
    let (session, tab, _) = bench.visit("/files").await;
    tab.click(&query_one(&tab, "a").await, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    let begun = Instant::now();
    let download = loop {
        if let [download] = session.downloads().as_slice() {
            break download.clone();
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "no download");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(download.name, "report.csv");
    let (taken, bytes) = session.take_download(&download.id, TEST_TIMEOUT).await.unwrap();
    assert_eq!((taken.state, bytes.as_slice()), (DownloadState::Complete, b"a,b\n1,2\n".as_slice()));
    assert!(session.downloads().is_empty());
    let input = query_one(&tab, "#file").await;
    tab.upload(&input, vec![("note 1.txt".to_owned(), b"hello".to_vec())]).await.unwrap();
    wait_until(&tab, "window.got === 'note 1.txt:hello'").await;
    let two = vec![("a".to_owned(), Vec::new()), ("b".to_owned(), Vec::new())];
    assert_eq!(error_kind(tab.upload(&input, two).await), Some(Kind::Invalid));
    assert_eq!(error_kind(tab.upload(&query_one(&tab, "a").await, Vec::new()).await), Some(Kind::Invalid));
}
