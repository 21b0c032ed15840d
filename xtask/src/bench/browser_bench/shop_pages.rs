//! A small shop for the task of ten steps: search, filter, sort, open, look, order, fill, submit, read.

use super::word_generator::WordGenerator;
use std::fmt::Write as _;

/// The item to buy: the cheapest teapot in stock.
pub const WANTED_ITEM: &str = "Blue teapot 17";
pub const MATERIAL: &str = "Salt-glazed stoneware";
pub const ORDER_NUMBER: &str = "HB-4711-17";

const STYLE: &str = "body{font:15px sans-serif;margin:0}header,footer{padding:12px}.page{display:grid;grid-template-columns:220px 1fr;gap:16px;padding:12px}\
ul.goods{list-style:none;padding:0}ul.goods li{padding:10px 0;border-top:1px solid #ddd}label{display:block}nav a{margin-right:10px}";

const HEADER: &str = "<header><a href=/shop>Harbour goods</a><nav aria-label=Departments><a href=/d/kitchen>Kitchen</a><a href=/d/table>Table</a><a href=/d/garden>Garden</a>\
<a href=/d/light>Lamps</a><a href=/d/paper>Paper</a><a href=/d/sale>Sale</a></nav><form action=/shop/search role=search><input type=search name=q aria-label='Search goods'> \
<button>Search</button></form><a href=/account>Account</a> <a href=/basket>Basket (0)</a></header>";

const FOOTER: &str = "<footer><a href=/help>Help</a> <a href=/delivery>Delivery</a> <a href=/returns>Returns</a> <a href=/about>About us</a> <a href=/jobs>Jobs</a> <a href=/privacy>Privacy</a>\
<form><input type=email aria-label='E-mail for news'><button type=button>Subscribe</button></form></footer>";

struct Goods {
    id: u64,
    name: String,
    price: u64,
    stock: bool,
}

pub fn page(path: &str, given: &str) -> Option<String> {
    match path {
        "/shop" => Some(page_frame(
            "Harbour goods",
            &format!("<main><h1>New this week</h1>{}</main>", item_list("")),
        )),
        "/shop/search" => Some(search_page(&form_field(given, "q"))),
        "/order" => Some(confirmation_page(given)),
        "/favicon.ico" => Some(String::new()),
        _ => {
            let (kind, id) = path.strip_prefix("/shop/")?.split_once('/')?;
            let goods = goods().into_iter().find(|goods| goods.id.to_string() == id)?;
            match kind {
                "item" => Some(item_page(&goods)),
                "order" => Some(order_form(&goods)),
                _ => None,
            }
        }
    }
}

fn page_frame(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><title>{title}</title><style>{STYLE}</style>{HEADER}{body}{FOOTER}</html>"
    )
}

fn goods() -> Vec<Goods> {
    let (kinds, colours) =
        (["teapot", "lantern", "bowl", "basket"], ["Blue", "Grey", "White", "Green", "Red"]);
    let cycle = |list: &[&str], at: u64| {
        let at = usize::try_from(at).unwrap_or_default() % list.len().max(1);
        list.get(at).copied().unwrap_or_default().to_owned()
    };
    (1..=160)
        .map(|id| Goods {
            id,
            name: format!("{} {} {id}", cycle(&colours, id / 4 + 1), cycle(&kinds, id - 1)),
            price: if id == 17 { 19 } else { 20 + id * 37 % 90 },
            stock: id % 3 != 0,
        })
        .collect()
}

fn item_list(query: &str) -> String {
    let mut words = WordGenerator::new(5);
    let mut list = "<ul class=goods>".to_owned();
    for goods in goods().iter().filter(|goods| goods.name.contains(query)) {
        let _ = write!(
            list,
            "<li data-price={price} data-stock={stock}><a href='/shop/item/{id}'>{name}</a> <b>{price}.00 €</b> <span>{rating} of 5</span> \
             <a href='/shop/item/{id}#reviews'>{reviews} reviews</a> <span>{there}</span> <p>{about}.</p><button aria-label='Add {name} to basket'>Add</button></li>",
            id = goods.id,
            name = goods.name,
            price = goods.price,
            stock = goods.stock,
            there = if goods.stock { "In stock" } else { "Sold out" },
            rating = 3 + words.below(3),
            reviews = 1 + words.below(300),
            about = words.title(12),
        );
    }
    list + "</ul>"
}

fn search_page(query: &str) -> String {
    let filters = "<aside aria-label=Filters><h2>Filters</h2><label><input type=checkbox id=stock> In stock only</label><label><input type=checkbox> Gift wrapping</label>\
        <label><input type=checkbox> Express delivery</label><label>Sort by <select id=sort><option>Relevance</option><option>Price, low to high</option><option>Price, high to low</option>\
        <option>Rating</option></select></label></aside>";
    let script = "<script>const rows = [...document.querySelectorAll('.goods li')]; const first = rows.slice();
        function draw() {
          const order = sort.selectedIndex == 1 ? 1 : sort.selectedIndex == 2 ? -1 : 0;
          const sorted = order ? rows.slice().sort((a, b) => order * (a.dataset.price - b.dataset.price)) : first;
          document.querySelector('.goods').replaceChildren(...sorted);
          let many = 0;
          for (const row of rows) { row.hidden = stock.checked && row.dataset.stock == 'false'; many += !row.hidden; }
          found.textContent = many + ' found';
        }
        stock.onchange = sort.onchange = draw; draw();</script>";
    let body = format!(
        "<div class=page>{filters}<main><h1>Search: {query}</h1><p id=found role=status></p>{}</main></div>{script}",
        item_list(query)
    );
    page_frame(&format!("Search: {query}"), &body)
}

fn item_page(goods: &Goods) -> String {
    let mut words = WordGenerator::new(goods.id);
    let reviews: String = (0..12)
        .map(|at| {
            format!(
                "<li><h3>{}</h3><p>{}.</p><a href='/u/{at}'>{}</a> <button>Helpful</button></li>",
                words.title(3),
                words.title(25),
                words.word()
            )
        })
        .collect();
    let body = format!(
        "<main class=item><h1>{name}</h1><p><b>{price}.00 €</b></p><p>{about}.</p><button onclick='facts.hidden=false'>Specifications</button>\
         <dl id=facts hidden><dt>Material</dt><dd>{MATERIAL}</dd><dt>Volume</dt><dd>1.2 l</dd><dt>Weight</dt><dd>840 g</dd></dl>\
         <a href='/shop/order/{id}'>Order now</a> <button>Add to basket</button><section aria-label=Reviews><h2>Reviews</h2><ul>{reviews}</ul></section></main>",
        name = goods.name,
        price = goods.price,
        id = goods.id,
        about = words.title(60),
    );
    page_frame(&goods.name, &body)
}

fn order_form(goods: &Goods) -> String {
    let countries: String = ["Norway", "Sweden", "Denmark", "Finland", "Iceland", "Estonia"]
        .iter()
        .map(|name| format!("<option>{name}</option>"))
        .collect();
    let body = format!(
        "<main><h1>Order {name}</h1><form action=/order method=post><input type=hidden name=id value={id}><label>Full name <input name=name required></label>\
         <label>E-mail <input name=email type=email required></label><label>Amount <input name=amount type=number value=1></label><label>Country <select name=country>{countries}</select></label>\
         <label><input type=checkbox name=gift> Wrap as a gift</label><button>Place order</button></form></main>",
        name = goods.name,
        id = goods.id,
    );
    page_frame("Order", &body)
}

fn confirmation_page(given: &str) -> String {
    let body = format!(
        "<main><h1>Thank you, {}</h1><p>Order HB-4711-{}: {} to {}, {} wrapping.</p><p>A letter is on its way to {}.</p></main>",
        form_field(given, "name"),
        form_field(given, "id"),
        form_field(given, "amount"),
        form_field(given, "country"),
        if form_field(given, "gift").is_empty() { "without" } else { "with" },
        form_field(given, "email"),
    );
    page_frame("Thank you", &body)
}

/// A form field as plain text.
fn form_field(given: &str, name: &str) -> String {
    let value = given.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let value = value.unwrap_or_default().replace('+', " ").replace("%40", "@");
    value.replace('%', " ").replace('<', "&lt;")
}
