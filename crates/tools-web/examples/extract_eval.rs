//! Scores the extractor on an evaluation set with its authors' metric, per page type, and lists the worst pages.
//!
//!     extract_eval DIRECTORY SET [--limit N] [--worst N] [--show ID]
//!
//! DIRECTORY contains `articles/` and `pages/`; SET is `articles`, `pages-dev` or `pages-test`.
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "developer tool, not part of the hub"
)]

use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use tools_web::extract::extract;
use url::Url;

struct Page {
    id: String,
    kind: String,
    html: String,
    truth: String,
}

struct Score {
    id: String,
    kind: String,
    found_kind: &'static str,
    precision: f64,
    recall: f64,
    f1: f64,
    millis: u128,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let number = |name: &str, other: usize| option(name).map_or(other, |text| text.parse().unwrap());
    let (Some(folder), Some(set)) = (arguments.first(), arguments.get(1)) else {
        panic!("usage: extract_eval DIRECTORY SET")
    };
    let mut pages = load(Path::new(folder), set);
    pages.truncate(number("--limit", usize::MAX));
    if let Some(id) = option("--show") {
        let page = pages.iter().find(|page| page.id.starts_with(&id)).unwrap();
        let found = extract(&page.html, &Url::parse("http://127.0.0.1/").unwrap());
        println!(
            "=== type {} found {:?} title {:?} by {:?} at {:?}",
            page.kind, found.page_type, found.title, found.byline, found.published
        );
        println!("=== TRUTH\n{}\n=== FOUND\n{}", page.truth, found.text);
        return;
    }
    let words = Regex::new(r"\w+").unwrap();
    let size = if set == "articles" { 4 } else { 1 };
    let mut scores: Vec<Score> = pages.iter().map(|page| score(page, &words, size)).collect();
    let mut kinds: BTreeMap<&str, Vec<&Score>> = BTreeMap::new();
    for one in &scores {
        kinds.entry(&one.kind).or_default().push(one);
    }
    for (kind, scores) in &kinds {
        let right = scores.iter().filter(|one| one.found_kind == *kind).count();
        println!("{kind:14} {:4} pages  {}  type right {right}", scores.len(), line(scores, set));
    }
    println!(
        "{set}: {} pages, {}, slowest {} ms",
        scores.len(),
        line(&scores.iter().collect::<Vec<_>>(), set),
        scores.iter().map(|one| one.millis).max().unwrap_or(0)
    );
    let losses = |one: &Score| ((1.0 - one.f1) * 1000.0) as i64;
    scores.sort_by_key(|one| -losses(one));
    for one in scores.iter().take(number("--worst", 0)) {
        println!(
            "{} {:13} as {:13} P {:.3} R {:.3} F {:.3} {} ms",
            one.id, one.kind, one.found_kind, one.precision, one.recall, one.f1, one.millis
        );
    }
}

fn line(scores: &[&Score], set: &str) -> String {
    let mean = |part: fn(&Score) -> f64| {
        scores.iter().map(|one| part(one)).sum::<f64>() / scores.len().max(1) as f64
    };
    let (precision, recall) = (mean(|one| one.precision), mean(|one| one.recall));
    let f1 =
        if set == "articles" { 2.0 * precision * recall / (precision + recall) } else { mean(|one| one.f1) };
    format!("P {precision:.4} R {recall:.4} F1 {f1:.4}")
}

fn score(page: &Page, words: &Regex, size: usize) -> Score {
    let start = std::time::Instant::now();
    let found = extract(&page.html, &Url::parse("http://127.0.0.1/").unwrap());
    let millis = start.elapsed().as_millis();
    let lower = size == 1;
    let (truth, mine) =
        (shingles(&page.truth, words, size, lower), shingles(&found.text, words, size, lower));
    let both: usize =
        truth.iter().map(|(word, count)| (*count).min(mine.get(word).copied().unwrap_or(0))).sum();
    let (all, got): (usize, usize) = (truth.values().sum(), mine.values().sum());
    let precision = if got > 0 {
        both as f64 / got as f64
    } else if all > 0 {
        0.0
    } else {
        1.0
    };
    let recall = if all > 0 {
        both as f64 / all as f64
    } else if got > 0 {
        0.0
    } else {
        1.0
    };
    let f1 = if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
    Score {
        id: page.id.clone(),
        kind: page.kind.clone(),
        found_kind: found.page_type.as_str(),
        precision,
        recall,
        f1,
        millis,
    }
}

fn shingles(text: &str, words: &Regex, size: usize, lower: bool) -> HashMap<String, usize> {
    let text = if lower { text.to_lowercase() } else { text.to_owned() };
    let all: Vec<&str> = words.find_iter(&text).map(|found| found.as_str()).collect();
    let mut counts = HashMap::new();
    if all.is_empty() {
        return counts;
    }
    for at in 0..all.len().saturating_sub(size - 1).max(1) {
        *counts.entry(all[at..(at + size).min(all.len())].join(" ")).or_insert(0) += 1;
    }
    counts
}

fn load(folder: &Path, set: &str) -> Vec<Page> {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    if set == "articles" {
        let truth: Value = serde_json::from_str(&read(folder.join("articles/ground-truth.json"))).unwrap();
        let entries = truth.as_object().unwrap().iter();
        return entries
            .map(|(id, entry)| Page {
                id: id.clone(),
                kind: "article".to_owned(),
                html: unzip(&folder.join(format!("articles/html/{id}.html.gz"))),
                truth: entry["articleBody"].as_str().unwrap_or("").to_owned(),
            })
            .collect();
    }
    let base = folder.join("pages").join(set.trim_start_matches("pages-"));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(base.join("ground-truth")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let id = path.file_stem().unwrap().to_string_lossy().into_owned();
            let truth: Value = serde_json::from_str(&read(path)).unwrap();
            Page {
                kind: truth["_internal"]["page_type"]["primary"].as_str().unwrap_or("?").to_owned(),
                html: unzip(&base.join(format!("html/{id}.html.gz"))),
                truth: truth["ground_truth"]["main_content"].as_str().unwrap_or("").to_owned(),
                id,
            }
        })
        .collect()
}

fn unzip(path: &Path) -> String {
    let output = Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
