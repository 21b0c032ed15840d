//! Pages of the tests.

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
        .route("/menu", get(|| async { Html(MENU) }))
        .route("/swap", get(|| async { Html(SWAP) }))
        .route("/veiled", get(|| async { Html(VEILED) }))
        .route("/runaway", get(|| async { Html(RUNAWAY) }))
        .route("/double", get(|| async { Html(DOUBLE) }))
        .route("/drag", get(|| async { Html(DRAG) }))
        .route("/slide", get(|| async { Html(SLIDE) }))
        .route("/board", get(|| async { Html(BOARD) }))
        .route("/feed", get(|| async { Html(FEED) }))
        .route("/spa", get(|| async { Html(SPA) }))
        .route("/empty", get(|| async { Html(EMPTY) }))
        .route("/rows", get(|| async { Html(ROWS) }))
        .route("/photos", get(|| async { Html(photos()) }))
        .route("/calls", get(|| async { Html(CALLS) }))
        .route("/api", post(api))
        .route("/silent", get(|| async { Html(SILENT) }))
        .route("/states", get(|| async { Html(STATES) }))
}

/// A menu that takes space while the pointer is over it, above a field with suggestions.
const MENU: &str = r#"<!doctype html><title>Menu</title><style>.menu ul{display:none;margin:0}.menu:hover ul{display:block}.menu li{height:30px}
#list div{height:24px}</style><div class="menu"><b>Account</b><ul><li><a href='#p'>Profile</a></li><li><a href='#o'>Orders</a></li><li><a href='#l'>Log out</a></li></ul></div>
<label>City <input id="cb" oninput="draw()"></label><div id="list"></div><p id="said" role="status"></p>
<script>function draw() { list.replaceChildren(...['Oslo', 'Osaka', 'Osnabrück', 'Ostend', 'Ostrava', 'Osh'].map(name => { const row = document.createElement('div');
row.textContent = name; row.onclick = () => { cb.value = name; said.textContent = 'chosen ' + name; list.replaceChildren() }; return row })) }</script>"#;

/// The element under the pointer changes when the pointer arrives: another one slides there.
const SWAP: &str = r#"<!doctype html><title>Swap</title><style>button{position:absolute;width:120px;height:40px;left:20px}#delete{top:200px}</style>
<button id="keep" style="top:20px" onclick="said.textContent='kept'">Keep</button><button id="delete" onclick="said.textContent='deleted'">Delete</button><p id="said" role="status">nothing</p>
<script>let moved = false; keep.onmouseenter = () => { if (!moved) { moved = true; keep.style.top = '200px'; document.getElementById('delete').style.top = '20px' } }</script>"#;

/// A frame whose button is covered by an overlay of the outer page.
const VEILED: &str = r#"<!doctype html><title>Veiled</title><iframe title="Inner" srcdoc="<button onclick=&quot;parent.said.textContent='inner'&quot;>Inner</button>" width="300" height="200" style="position:absolute;left:0;top:40px;border:0"></iframe>
<div id="veil" onclick="said.textContent='veil'" style="position:absolute;left:0;top:40px;width:300px;height:200px;z-index:2;background:rgba(0,0,0,.1)"></div><p id="said" role="status">nothing</p>"#;

/// A button that is never where the pointer is.
const RUNAWAY: &str = r#"<!doctype html><title>Runaway</title><button id="run" style="position:absolute;left:50px;top:50px" onclick="said.textContent='caught'">Catch</button>
<div id="net" onclick="said.textContent='net'" style="position:absolute;inset:200px 0 0 0">Net</div><p id="said" role="status">nothing</p>
<script>run.onmouseenter = () => { run.style.left = run.style.left === '50px' ? '300px' : '50px' }</script>"#;

/// A first click that moves the page.
const DOUBLE: &str = r#"<!doctype html><title>Double</title><div id="gap"></div><button id="one" onclick="gap.style.height='300px'" ondblclick="said.textContent='twice'">Twice</button>
<button id="two" style="position:absolute;left:8px;top:400px" onclick="said.textContent='two'">Two</button><p id="said" role="status">nothing</p><div style="height:100px;width:600px" onclick="said.textContent='other'">Other</div>"#;

/// Dragged with HTML drag events.
const DRAG: &str = r#"<!doctype html><title>Drag</title><style>li,#basket{padding:8px;margin:4px;background:#eee;width:200px}</style>
<ul><li draggable="true" id="milk">Milk</li><li draggable="true" id="sugar">Sugar</li></ul><div id="basket">Basket: <span id="in"></span></div><p id="log" role="status"></p>
<script>const note = e => log.textContent += e.type + ' ';
for (const li of document.querySelectorAll('li')) { li.ondragstart = e => { e.dataTransfer.setData('text/plain', li.id); note(e) }; li.ondragend = note }
basket.ondragenter = e => { e.preventDefault(); note(e) }; basket.ondragover = e => e.preventDefault();
basket.ondrop = e => { e.preventDefault(); document.getElementById('in').textContent += e.dataTransfer.getData('text/plain') + ' '; note(e) }</script>"#;

/// Dragged with mouse events only.
const SLIDE: &str = r#"<!doctype html><title>Slide</title><div id="knob" style="position:absolute;left:20px;top:60px;width:40px;height:40px;z-index:2;background:#46c">Knob</div>
<div id="goal" style="position:absolute;left:400px;top:300px;width:80px;height:80px;background:#ddd">Goal</div><p id="said" role="status">still</p>
<script>let held = false, steps = 0; knob.onmousedown = e => { held = true; e.preventDefault() };
onmousemove = e => { if (held) { steps++; knob.style.left = e.clientX - 20 + 'px'; knob.style.top = e.clientY - 20 + 'px' } };
onmouseup = e => { if (held) { held = false; said.textContent = (steps > 2 ? 'smooth ' : 'jump ') + e.clientX + ',' + e.clientY } }</script>"#;

const BOARD: &str = r#"<!doctype html><title>Board</title><canvas id="board" width="300" height="200" style="position:absolute;left:10px;top:10px;background:#eee"></canvas>
<p id="said" role="status" style="margin-top:240px">no move</p><script>board.onclick = e => said.textContent = 'move ' + e.offsetX + ',' + e.offsetY</script>"#;

/// A list that grows while it is scrolled.
const FEED: &str = r#"<!doctype html><title>Feed</title><h1>Feed</h1><div id="feed"></div>
<script>let n = 0; function more() { for (let i = 0; i < 20 && n < 100; i++) { n++; const p = document.createElement('p'); p.style.height = '60px'; p.textContent = 'Entry ' + n; feed.append(p) } }
more(); onscroll = () => { if (scrollY + innerHeight > document.documentElement.scrollHeight - 50) setTimeout(more, 50) }</script>"#;

const SPA: &str = r#"<!doctype html><title>App</title><div id="root"></div><script>setTimeout(() => { root.innerHTML = '<h1>Orders</h1><p>Three orders are open today.</p><button>Refresh</button>' }, 300)</script>"#;

const EMPTY: &str =
    r#"<!doctype html><title>Empty</title><div id="root"></div><script>window.nothing = 1</script>"#;

const ROWS: &str = r#"<!doctype html><title>Rows</title><table><tr><td>Tea</td><td><button>Remove</button></td></tr><tr><td>Rice</td><td><button>Remove</button></td></tr></table>
<ul><li>Salt <button>Remove</button></li></ul>"#;

/// Noise, which compresses badly.
fn photos() -> String {
    "<!doctype html><title>Photos</title><body style='margin:0'><h1>Photos</h1><a href=/>Home</a><canvas id=c width=1280 height=5000></canvas><script>const x = c.getContext('2d'), d = x.createImageData(1280, 5000);\
     let s = 7; for (let i = 0; i < d.data.length; i++) { s = (Math.imul(s, 1103515245) + 12345) & 0x7fffffff; d.data[i] = i % 4 === 3 ? 255 : (s >> 16) & 255 } x.putImageData(d, 0, 0)</script>".to_owned()
}

const CALLS: &str = r#"<!doctype html><title>Calls</title><button onclick="fetch('/api?token=abc123456789secret', {method: 'POST', headers: {'content-type': 'application/json', authorization: 'Bearer 0123456789abcdef0123456789abcdef'}, body: JSON.stringify({name: 'Ada', password: 'hunter2hunter2'})}).then(r => r.json()).then(j => out.textContent = j.greeting)">Send</button><p id="out" role="status"></p>"#;

async fn api(body: String) -> impl IntoResponse {
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::SET_COOKIE, "sid=verysecretcookie1234")];
    (
        headers,
        format!(
            r#"{{"greeting":"Hello Ada","access_token":"ghp_abcdefghijklmnopqrstuvwxyz0123456789","length":{}}}"#,
            body.len()
        ),
    )
}

const SILENT: &str = r#"<!doctype html><title>Silent</title><p>Some words that stay as they are.</p><button>Nothing</button><label>Name <input></label>"#;

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

/// This many words, the same each time.
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

/// States that neither attributes nor texts contain.
const STATES: &str = r#"<!doctype html><title>States</title><label>Name <input id="t"></label><label><input type="checkbox" id="c"> Box</label>
<button id="b">Send</button><p id="p">Words here</p><div id="host"></div><script>host.attachShadow({mode: 'open'}).innerHTML = '<button>Inside</button>'</script>"#;
