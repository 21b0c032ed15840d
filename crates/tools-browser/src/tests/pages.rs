//! The pages that the tests look at.

use axum::Router;
use axum::extract::Path;
use axum::http::header;
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::{get, post};
use std::collections::HashMap;
use std::fmt::Write as _;

pub fn router() -> Router {
    Router::new()
        .route("/", get(|| async { Html(HOME) }))
        .route("/app", get(|| async { Html(APP) }))
        .route("/form", get(|| async { Html(FORM) }))
        .route("/login", get(|| async { Html(LOGIN) }).post(login))
        .route("/account", get(account))
        .route("/dialogs", get(|| async { Html(DIALOGS) }))
        .route("/tabs", get(|| async { Html(TABS) }))
        .route("/busy", get(|| async { Html(BUSY) }))
        .route("/slow", get(|| async { Html(SLOW) }))
        .route("/files", get(|| async { Html(FILES) }))
        .route("/report.csv", get(report))
        .route("/frame", get(|| async { Html(FRAME) }))
        .route("/hidden", get(|| async { Html(HIDDEN) }))
        .route("/links", get(|| async { Html(links()) }))
        .route("/table", get(|| async { Html(table()) }))
        .route("/article", get(|| async { Html(article()) }))
        .route("/shop", get(|| async { Html(shop()) }))
        .route("/item/{id}", get(item))
        .route("/order", post(order))
        .route("/million", get(|| async { Html(MILLION) }))
        .route("/alerts", get(|| async { Html(ALERTS) }))
        .route("/prints", get(|| async { Html(PRINTS) }))
        .route("/fetches", get(|| async { Html(FETCHES) }))
        .route("/heap", get(|| async { Html(HEAP) }))
        .route("/endless", get(|| async { Html(ENDLESS) }))
}

const HOME: &str = r#"<!doctype html><title>Home</title><nav aria-label="Main"><a href="/app">App</a> <a href="/form">Form</a></nav>
<main><h1>Welcome</h1><p>Text with <a href="/links">many links</a> in it.</p></main><footer>Footer</footer>"#;

const APP: &str = r#"<!doctype html><title>Tasks</title><h1>Tasks</h1>
<label>New task <input id="new"></label><button id="add">Add</button><ul id="list"></ul><p id="count" role="status">0 tasks</p>
<div id="plain" onclick="this.textContent='Clicked'">Click me</div>
<script>
let tasks = [];
function draw() {
  list.replaceChildren(...tasks.map((task, i) => {
    const li = document.createElement('li');
    li.append(task + ' ');
    const done = document.createElement('button');
    done.textContent = 'Done ' + task;
    done.onclick = () => { tasks.splice(i, 1); draw(); };
    li.append(done);
    return li;
  }));
  count.textContent = tasks.length + ' tasks';
}
add.onclick = () => setTimeout(() => { tasks.push(document.getElementById('new').value); draw(); history.pushState({}, '', '/app#' + tasks.length); }, 50);
document.getElementById('new').onkeydown = e => { if (e.key === 'Enter') add.click(); };
</script>"#;

const FORM: &str = r#"<!doctype html><title>Form</title><form onsubmit="return false">
<fieldset id="s1"><legend>Step 1</legend><label>First name <input required></label><label>E-mail <input type="email"></label>
<button onclick="s1.hidden=true;s2.hidden=false">Next</button></fieldset>
<fieldset id="s2" hidden><legend>Step 2</legend><label>Country <select><option value="">Choose</option><option value="no">Norway</option><option value="se">Sweden</option></select></label>
<label><input type="checkbox"> I agree</label><label><input type="radio" name="r"> By post</label><label><input type="radio" name="r"> By mail</label>
<button onclick="s2.hidden=true;s3.hidden=false;sum.textContent=[...document.querySelectorAll('input,select')].map(f=>f.type=='checkbox'||f.type=='radio'?f.checked:f.value).join(',')">Continue</button></fieldset>
<fieldset id="s3" hidden><legend>Step 3</legend><p id="sum"></p><input disabled aria-label="Locked"><button onclick="done.hidden=false">Send</button></fieldset>
<p id="done" role="status" hidden>Thank you</p></form>"#;

const LOGIN: &str = r#"<!doctype html><title>Log in</title><form method="post"><label>User <input name="user"></label>
<label>Password <input name="password" type="password"></label><button>Log in</button></form>"#;

fn fields(body: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

async fn login(body: String) -> impl IntoResponse {
    let given = fields(&body);
    match given.get("password").is_some_and(|password| password == "secret") {
        true => ([(header::SET_COOKIE, "who=ada; HttpOnly")], Redirect::to("/account")).into_response(),
        false => Html(format!("{LOGIN}<p role=alert>Wrong password</p>")).into_response(),
    }
}

async fn account(headers: axum::http::HeaderMap) -> Html<String> {
    let cookie = headers.get(header::COOKIE).and_then(|cookie| cookie.to_str().ok()).unwrap_or("nobody");
    Html(format!("<!doctype html><title>Account</title><h1>Hello {cookie}</h1>"))
}

const DIALOGS: &str = r#"<!doctype html><title>Dialogs</title><p id="said" role="status">nothing</p>
<button onclick="alert('Look out'); said.textContent='told'">Warn</button>
<button onclick="said.textContent = confirm('Sure?') ? 'yes' : 'no'">Ask</button>
<button onclick="said.textContent = 'name ' + prompt('Who?')">Name</button>"#;

const TABS: &str = r#"<!doctype html><title>Tabs</title><a href="/app" target="_blank">Open the app</a>"#;

const BUSY: &str = r#"<!doctype html><title>Busy</title><button onclick="out.textContent='pressed'">Press</button><p id="out" role="status"></p><p id="clock"></p>
<script>setInterval(() => { clock.textContent = Date.now() }, 20); setInterval(() => fetch('/').catch(() => {}), 50)</script>"#;

const SLOW: &str = r#"<!doctype html><title>Slow</title><p>Loading</p><script>console.error('late'); setTimeout(() => { document.body.innerHTML = '<p id="there">Ready now</p>' }, 700)</script>"#;

const FILES: &str = r#"<!doctype html><title>Files</title><a href="/report.csv" download>Report</a>
<label>Attach <input type="file" onchange="this.files[0].text().then(t => got.textContent = this.files[0].name + ': ' + t)"></label><p id="got" role="status"></p>"#;

async fn report() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "text/csv"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"report.csv\""),
    ];
    (headers, "a,b\n1,2\n")
}

const FRAME: &str = r#"<!doctype html><title>Frame</title><h1>Outer</h1><iframe title="Inner" src="/app" width="600" height="400"></iframe>"#;

const HIDDEN: &str = "<!doctype html><title>Hid\u{202e}den</title><button>Pay\u{e0041}\u{200b} now</button><p style='display:none'>Secret order</p><p aria-hidden=true>Other</p>";

const MILLION: &str = r#"<!doctype html><title>Million</title><h1>Top</h1><button onclick="this.textContent='Pressed'">Press</button><label>Name <input></label>
<div id="unseen" hidden></div>
<script>const add = (to, tag, many, words) => { const all = document.createDocumentFragment();
for (let i = 0; i < many; i++) { const e = document.createElement(tag); e.append(words + i); all.append(e); } to.append(all); };
add(unseen, 'i', 400000, 'Unseen '); add(document.body, 'p', 100000, 'Line ');</script>"#;

const ALERTS: &str =
    r#"<!doctype html><title>Alerts</title><button onclick="for (;;) alert('again')">Start</button>"#;

const PRINTS: &str = r#"<!doctype html><title>Prints</title><button onclick="for (let i = 0; i < 300; i++) print(); out.textContent = 'printed'">Start</button><p id="out" role="status"></p>"#;

const FETCHES: &str = r#"<!doctype html><title>Fetches</title><button onclick="for (let i = 0; i < 120; i++) setTimeout(() => { const a = document.createElement('a'); a.href = '/report.csv?' + i; a.download = ''; a.click(); if (i === 119) out.textContent = 'all asked for'; }, 10 * i)">Start</button><p id="out" role="status"></p>"#;

const HEAP: &str = r#"<!doctype html><title>Heap</title><script>const kept = [];
function grow() { const part = new Uint8Array(64 << 20); for (let i = 0; i < part.length; i += 4096) part[i] = 1; kept.push(part); setTimeout(grow) }</script><button onclick="grow()">Start</button>"#;

const ENDLESS: &str = r#"<!doctype html><title>Endless</title><button onclick="setTimeout(() => { for (;;); })">Start</button>"#;

const WORDS: [&str; 16] = [
    "the", "quick", "octopus", "reads", "water", "under", "eight", "arms", "and", "moves", "slowly",
    "through", "coral", "gardens", "small", "fish",
];

/// So many words, the same each time.
fn words(many: usize, seed: usize) -> String {
    let mut text = String::new();
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    for _ in 0..many {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(text, "{} ", WORDS[(state >> 33) % WORDS.len()]);
    }
    text.trim_end().to_owned()
}

/// A list of links with what news pages have around each.
fn links() -> String {
    let mut page =
        "<!doctype html><title>Links</title><nav><a href=/>News</a> | <a href=/new>new</a></nav><table>"
            .to_owned();
    for at in 1..=200 {
        let _ = write!(
            page,
            "<tr><td>{at}.</td><td><a href='/vote/{at}' title='upvote'>▲</a></td><td><a href='https://s{at}.example/'>Story {at} {}</a> (<a href='/from/{at}'>s{at}.example</a>)</td></tr><tr><td colspan=2></td><td>{} points by <a href='/user/{at}'>user{at}</a> <a href='/item/{at}'>{at} hours ago</a> | <a href='/hide/{at}'>hide</a> | <a href='/item/{at}#c'>{at} comments</a></td></tr>",
            words(7, at),
            at * 3,
        );
    }
    page + "</table>"
}

fn table() -> String {
    let mut page = "<!doctype html><title>Table</title><h1>Prices</h1><table><thead><tr><th>Item</th><th>Price</th><th>Stock</th></tr></thead><tbody>".to_owned();
    for at in 0..1_000 {
        let _ = write!(page, "<tr><td>Item {at}</td><td>{}.50</td><td>{}</td></tr>", at * 2, at % 7);
    }
    page + "</tbody></table>"
}

/// Ten thousand words with links among them.
fn article() -> String {
    let mut page =
        "<!doctype html><title>Octopus</title><header><a href=/>Home</a></header><main><h1>Octopus</h1>"
            .to_owned();
    for chapter in 0..20 {
        let _ = write!(page, "<h2>Chapter {chapter}</h2>");
        for part in 0..5 {
            let seed = chapter * 10 + part;
            let _ = write!(
                page,
                "<p>{} <a href='/w/{seed}'>{}</a> {}.</p>",
                words(60, seed),
                words(2, seed + 1),
                words(40, seed + 2)
            );
        }
    }
    page + "</main>"
}

/// A shop to search, filter and order in.
fn shop() -> String {
    let mut page = r#"<!doctype html><title>Shop</title><h1>Shop</h1><form role="search" onsubmit="return false"><label>Search <input type="search" id="q" oninput="show()"></label>
<label>Sort <select id="sort" onchange="show()"><option>Name</option><option>Price</option></select></label><label><input type="checkbox" id="stock" onchange="show()"> In stock</label></form><p role="status" id="found"></p><ul id="items">"#
        .to_owned();
    for at in 0..120 {
        let _ = write!(
            page,
            "<li data-stock={} data-name='Teapot {at}'><a href='/item/{at}'>Teapot {at}</a> {} kr</li>",
            at % 2,
            at * 5
        );
    }
    page + "</ul><script>function show() { let n = 0; for (const li of items.children) { li.hidden = !(li.dataset.name.includes(q.value) && (!stock.checked || li.dataset.stock == 1)); n += !li.hidden; } found.textContent = n + ' found'; }</script>"
}

async fn item(Path(id): Path<String>) -> Html<String> {
    Html(format!(
        "<!doctype html><title>Item {id}</title><h1>Teapot {id}</h1><p>{}</p><form method=post action=/order><label>Name <input name=name required></label><label>Amount <input name=amount type=number value=1></label><label>Country <select name=country><option>Norway<option>Sweden</select></label><label><input type=checkbox name=gift> Gift</label><button>Order</button></form>",
        words(60, 5)
    ))
}

async fn order(body: String) -> Html<String> {
    let given = fields(&body);
    let get = |name: &str| given.get(name).cloned().unwrap_or_default();
    let (name, amount, country) = (get("name"), get("amount"), get("country"));
    Html(format!(
        "<!doctype html><title>Ordered</title><h1>Thank you, {name}</h1><p>Order 4711: {amount} to {country}, gift {}.</p><a href=/shop>Back to the shop</a>",
        get("gift")
    ))
}
