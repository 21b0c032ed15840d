//! Two hundred links with the markup of news sites around each.

use super::super::word_generator::WordGenerator;
use std::fmt::Write as _;

const ENTRIES: u64 = 200;
const STYLE: &str = "body{font:13px sans-serif;margin:8px}td{padding:0 2px}.subtext,.rank{font-size:10px;color:#777}\
.spacer{height:5px}.votearrow{width:10px;height:10px;background:#999}header a{padding:0 4px}";

pub fn links() -> String {
    let mut words = WordGenerator::new(1);
    let mut page = format!(
        "<!doctype html><html lang=en><title>Links of the day</title><style>{STYLE}</style><center><table id=main width=85%><tr><td>\
         <header><a href=/links><b>Links of the day</b></a> <a href=/newest>new</a> | <a href=/past>past</a> | \
         <a href=/comments>comments</a> | <a href=/ask>ask</a> | <a href=/show>show</a> | <a href=/jobs>jobs</a> | \
         <a href=/submit>submit</a> <a href=/login>login</a></header></td></tr><tr><td><table>"
    );
    for at in 1..=ENTRIES {
        entry(&mut page, at, &mut words);
    }
    page.push_str(
        "</table></td></tr><tr><td><center><a href=/guidelines>Guidelines</a> | <a href=/faq>FAQ</a> | <a href=/lists>Lists</a> | \
         <a href=/api>API</a> | <a href=/legal>Legal</a> | <a href=/contact>Contact</a>\
         <form action=/search>Search: <input name=q size=17></form></center></td></tr></table></center></html>",
    );
    page
}

fn entry(page: &mut String, at: u64, words: &mut WordGenerator) {
    let long = 5 + usize::try_from(words.below(7)).unwrap_or_default();
    let (title, host) = (words.title(long), format!("{}{at}.example", words.word()));
    let (user, points) = (format!("{}{}", words.word(), words.below(90)), words.below(900));
    let (hours, comments) = (1 + words.below(23), 2 + words.below(400));
    let id = 40_000_000 + at * 37;
    let _ = write!(
        page,
        "<tr class=athing id={id}><td class=rank align=right>{at}.</td><td><center><a id=up_{id} href='/vote?id={id}&how=up'>\
         <div class=votearrow title=upvote></div></a></center></td><td class=title><span class=titleline>\
         <a href='https://{host}/posts/{id}'>{title}</a><span class=sitebit> (<a href='/from?site={host}'><span>{host}</span></a>)</span>\
         </span></td></tr><tr><td colspan=2></td><td class=subtext><span><span>{points} points</span> by \
         <a href='/user?id={user}'>{user}</a> <span title='2026-11-14T08:00:00'><a href='/item?id={id}'>{hours} hours ago</a></span> | \
         <a href='/hide?id={id}'>hide</a> | <a href='/item?id={id}'>{comments}&nbsp;comments</a></span></td></tr><tr class=spacer></tr>"
    );
}
