//! Start page of a repository: header, tabs, table of files, README, sidebar.

use super::super::word_generator::WordGenerator;
use std::fmt::Write as _;

const FILES: [&str; 30] = [
    ".cargo",
    ".github",
    "assets",
    "benches",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "scripts",
    "src",
    "tests",
    "xtask",
    ".editorconfig",
    ".gitattributes",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "RELEASES.md",
    "SECURITY.md",
    "clippy.toml",
    "deny.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
];
const STYLE: &str = "body{font:14px sans-serif;margin:0}header,nav,.bar{padding:8px 16px}.page{display:grid;grid-template-columns:1fr 296px;gap:24px;padding:16px}\
table{width:100%;border-collapse:collapse}td{padding:8px;border-top:1px solid #ddd}a,button{margin-right:8px}";

pub fn repository() -> String {
    let mut words = WordGenerator::new(2);
    let files = files(&mut words);
    let (readme, sidebar) = (readme(&mut words), sidebar(&mut words));
    format!(
        "<!doctype html><html lang=en><title>harbour/octopus: {}</title><style>{STYLE}</style>{HEADER}\
         <main><div class=bar><h1><a href=/harbour>harbour</a> / <a href=/repository>octopus</a></h1> <span>Public</span> \
         <a href=/login>Notifications</a> <button>Fork <span>1.2k</span></button> <button>Star <span>14.8k</span></button></div>{}\
         <div class=page><div><div class=bar><button aria-haspopup=menu>main</button> <a href=/branches><b>12</b> Branches</a> \
         <a href=/tags><b>84</b> Tags</a> <input aria-label='Go to file' placeholder='Go to file'> <button aria-haspopup=menu>Code</button></div>\
         {files}<div role=tablist aria-label=Documents><a role=tab href=#readme>README</a><a role=tab href=#conduct>Code of conduct</a>\
         <a role=tab href=#license>License</a></div>{readme}</div>{sidebar}</div></main>{FOOTER}</html>",
        words.words(6),
        tabs(),
    )
}

const HEADER: &str = "<header><a href=#content>Skip to content</a> <a href=/ aria-label=Homepage>◆</a><nav aria-label=Global><ul style='display:flex;list-style:none'>\
<li><button>Platform</button></li><li><button>Solutions</button></li><li><button>Resources</button></li><li><button>Open Source</button></li>\
<li><button>Enterprise</button></li><li><a href=/pricing>Pricing</a></li></ul></nav><button aria-label='Search or jump to'>Search or jump to…</button> \
<a href=/login>Sign in</a> <a href=/signup>Sign up</a></header>";

const FOOTER: &str = "<footer><h2>Footer</h2><nav aria-label=Footer><a href=/terms>Terms</a><a href=/privacy>Privacy</a><a href=/security>Security</a><a href=/status>Status</a>\
<a href=/community>Community</a><a href=/docs>Docs</a><a href=/contact>Contact</a><button>Manage cookies</button></nav></footer>";

fn tabs() -> String {
    let list = [
        "Code",
        "Issues 231",
        "Pull requests 47",
        "Discussions",
        "Actions",
        "Projects 3",
        "Wiki",
        "Security 2",
        "Insights",
    ];
    let list: String = list.iter().map(|tab| format!("<li><a href=/tab>{tab}</a></li>")).collect();
    format!("<nav aria-label=Repository><ul style='display:flex;list-style:none;gap:8px'>{list}</ul></nav>")
}

fn files(words: &mut WordGenerator) -> String {
    let mut table = format!(
        "<h2>Folders and files</h2><table aria-label='Folders and files'><thead><tr><th>Name</th><th>Last commit message</th><th>Last commit date</th></tr></thead><tbody>\
         <tr><td colspan=3><a href=/u/ada aria-label='commits by ada'>ada</a> <a href=/c/1>{} (</a><a href=/pull/4711>#4711</a><a href=/c/1>)</a> \
         <a href=/c/9f31ab2>9f31ab2</a> · <a href=/c/9f31ab2>yesterday</a> <a href=/commits>6,204 Commits</a></td></tr>",
        words.title(6)
    );
    for (at, file) in FILES.iter().enumerate() {
        let (subject, number) = (words.title(6), 4_000 + words.below(700));
        let (age, folder) = (1 + words.below(11), if at < 12 { "tree" } else { "blob" });
        let _ = write!(
            table,
            "<tr><td><a href='/{folder}/main/{file}' title='{file}' aria-label='{file}, ({})'>{file}</a></td>\
             <td><a href='/c/{at}' title='{subject} (#{number})'>{subject} (</a><a href='/pull/{number}'>#{number}</a><a href='/c/{at}'>)</a></td>\
             <td><time datetime=2026-11-01>{age} months ago</time></td></tr>",
            if at < 12 { "Directory" } else { "File" },
        );
    }
    table + "</tbody></table>"
}

fn readme(words: &mut WordGenerator) -> String {
    let mut text = "<article id=readme><h1>octopus</h1><p>".to_owned();
    for badge in ["build", "crates.io", "docs", "license", "chat"] {
        let _ = write!(
            text,
            "<a href='https://badges.example/{badge}'><img alt='{badge} status' width=80 height=20></a> "
        );
    }
    text.push_str("</p>");
    for section in [
        "Why",
        "Install",
        "Quick start",
        "Settings",
        "How it works",
        "Limits",
        "Questions",
        "Contributing",
        "License",
    ] {
        let id = section.to_lowercase().replace(' ', "-");
        let _ = write!(
            text,
            "<div><h2>{section}</h2><a href='#{id}' aria-label='Permalink: {section}'>#</a></div><p>{}. {} <a href='/docs/{id}'>{}</a> {}.</p>\
             <pre><code>cargo install octopus --locked\noctopus {} --port 7000</code></pre><ul>",
            words.title(30),
            words.title(9),
            words.words(3),
            words.words(14),
            words.word(),
        );
        for _ in 0..5 {
            let _ = write!(
                text,
                "<li><code>{}</code>: {} <a href='/docs/{id}#x'>{}</a></li>",
                words.word(),
                words.words(9),
                words.words(2)
            );
        }
        text.push_str("</ul>");
    }
    text + "</article>"
}

fn sidebar(words: &mut WordGenerator) -> String {
    let topics: String = [
        "agents", "async", "browser", "cli", "gateway", "hub", "json", "linux", "rust", "server", "tools",
        "web",
    ]
    .iter()
    .map(|topic| format!("<a href=/topics/{topic}>{topic}</a> "))
    .collect();
    let people: String = (0..14)
        .map(|at| {
            format!("<li><a href=/u/{at}><img alt='@{}{at}' width=32 height=32></a></li>", words.word())
        })
        .collect();
    let languages: String =
        [("Rust", "91.2"), ("TypeScript", "4.1"), ("Shell", "2.0"), ("Python", "1.9"), ("Other", "0.8")]
            .iter()
            .map(|(name, share)| {
                format!("<li><a href=/search?l={name}><span>{name}</span> <span>{share}%</span></a></li>")
            })
            .collect();
    format!(
        "<aside><h2>About</h2><p>{}</p><a href=https://octopus.example>octopus.example</a><h3>Topics</h3><div>{topics}</div><h3>Resources</h3><a href=#readme>Readme</a>\
         <h3>License</h3><a href=/license>Apache-2.0 license</a><h3>Stars</h3><a href=/stars><b>14.8k</b> stars</a><h3>Watchers</h3><a href=/watchers><b>121</b> watching</a>\
         <h3>Forks</h3><a href=/forks><b>1.2k</b> forks</a> <a href=/report>Report repository</a><h2><a href=/releases>Releases 84</a></h2><a href=/releases/v3>v3.2.0 Latest</a>\
         <h2><a href=/people>Contributors 214</a></h2><ul>{people}</ul><a href=/people>+ 200 contributors</a><h2>Languages</h2><ul>{languages}</ul></aside>",
        words.title(12)
    )
}
