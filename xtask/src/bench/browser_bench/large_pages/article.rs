//! Ten thousand words with headings, links, footnotes and the navigation of an encyclopedia.

use super::super::word_generator::WordGenerator;
use std::fmt::Write as _;

const SECTIONS: usize = 25;
/// Paragraphs of a section and words of a paragraph: 25 times 5 times 80 words.
const PARAGRAPHS: usize = 5;
const PIECES: usize = 8;
const STYLE: &str = "body{font:15px sans-serif;margin:0;display:grid;grid-template-columns:220px 1fr}header{grid-column:1/3;padding:8px}\
nav{padding:8px}main{padding:0 24px;max-width:900px}sup{font-size:10px}";

pub fn article() -> String {
    let mut words = WordGenerator::new(3);
    let mut note = 0;
    let mut body = String::new();
    for section in 1..=SECTIONS {
        let level = if section % 3 == 1 { 2 } else { 3 };
        let title = words.title(3);
        let _ = write!(
            body,
            "<h{level} id=s{section}>{title}</h{level}><span>[<a href='/edit?s={section}' title='Edit section: {title}'>edit</a>]</span>"
        );
        for _ in 0..PARAGRAPHS {
            paragraph(&mut body, &mut words, &mut note);
        }
    }
    let contents: String = (1..=SECTIONS)
        .map(|section| format!("<li><a href='#s{section}'>{section} {}</a></li>", words.title(3)))
        .collect();
    format!(
        "<!doctype html><html lang=en><title>History of the harbour</title><style>{STYLE}</style>{HEADER}\
         <nav aria-label=Contents><h2>Contents</h2><ul>{contents}</ul></nav><main><h1>History of the harbour</h1>\
         <div role=tablist><a role=tab href=/article>Article</a> <a role=tab href=/talk>Talk</a> <a href=/source>View source</a> <a href=/changes>View history</a></div>\
         {body}{}{}</main></html>",
        references(note, &mut words),
        languages(&mut words),
    )
}

const HEADER: &str = "<header><button aria-label='Main menu'>☰</button> <a href=/>Encyclopedia</a> \
<form action=/search style='display:inline'><input type=search name=q aria-label='Search the encyclopedia' placeholder=Search> <button>Search</button></form> \
<a href=/donate>Donate</a> <a href=/register>Create account</a> <a href=/login>Log in</a></header>";

fn paragraph(body: &mut String, words: &mut WordGenerator, note: &mut usize) {
    body.push_str("<p>");
    for piece in 0..PIECES {
        let link = words.words(2);
        let (before, after) = (words.title(4), words.words(4));
        let _ = write!(
            body,
            "{before} <a href='/wiki/{}' title='{link}'>{link}</a> {after}.",
            link.replace(' ', "_")
        );
        if piece % 3 > 0 {
            continue;
        }
        *note += 1;
        let _ =
            write!(body, "<sup id=r{note}><a href='#n{note}'><span>[</span>{note}<span>]</span></a></sup> ");
    }
    body.push_str("</p>");
}

fn references(notes: usize, words: &mut WordGenerator) -> String {
    let mut list = "<h2>References</h2><ol>".to_owned();
    for note in 1..=notes {
        let (author, title) = (words.title(1), words.title(4));
        let (year, page) = (1900 + words.below(120), 1 + words.below(400));
        let _ = write!(
            list,
            "<li id=n{note}><b><a href='#r{note}' aria-label='Jump up'>^</a></b> <cite>{author}, A. ({year}). \
             <a href='https://books.example/{note}'>\"{title}\"</a>. <i>Annals</i>. p. {page}.</cite></li>"
        );
    }
    list + "</ol>"
}

fn languages(words: &mut WordGenerator) -> String {
    let list: String = (0..60)
        .map(|at| format!("<li><a href='https://l{at}.example/' lang=l{at}>{}</a></li>", words.title(1)))
        .collect();
    format!("<h2>Languages</h2><ul>{list}</ul>")
}
