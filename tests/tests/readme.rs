//! The README, the guide and the tutorials lead to a call: their commands run as written, in a directory that has only
//! the files that the page shows, and produce the pictures. The home directory and the database are those of a reader who
//! has settings, clients and data already: no page changes them.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result};
use octo_tests::reader_home::{ReaderDatabase, check_reader_files, write_reader_files};
use octo_tests::test_binaries::{binary_path, service_variable};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const README: &str = include_str!("../../README.md");
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
/// The page whose commands need Chromium and take the pictures.
const BROWSER_PAGE: &str = "browser.md";
/// A picture in a page.
const PICTURE_LINK: &str = "](../pictures/";

/// A page whose commands have been run.
struct PageRun {
    /// Keeps the directory until the pictures have been checked.
    home: tempfile::TempDir,
    /// Output of each block.
    outputs: Vec<String>,
    stderr: String,
}

const VISIBLE_BLOCK: &str = "```sh run\n";
/// Commands that a page needs as a test, and that no reader sees.
const SETUP_BLOCK: &str = "<!-- setup\n";
/// A role that a page creates: one name for all databases of a server.
const ROLE: &str = "teas_reader";

/// The commands marked to be run, block by block, each after the set-up before it.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split(VISIBLE_BLOCK).map(|part| {
        let setups = part.split(SETUP_BLOCK).skip(1).filter_map(|rest| rest.split("-->").next());
        (part.split("```").next().unwrap_or_default(), setups.collect::<String>())
    });
    let parts: Vec<_> = parts.collect();
    parts.windows(2).map(|pair| format!("{}{}", pair[0].1, pair[1].0)).collect()
}

/// Expected output of each block: the lines of the text that follows it, before the next one.
fn expected_output(page: &str) -> Vec<Vec<&str>> {
    let parts = page.split(VISIBLE_BLOCK).skip(1);
    parts
        .map(|part| {
            part.split("```text\n")
                .nth(1)
                .and_then(|rest| rest.split("```").next())
                .map_or_else(Vec::new, |text| text.lines().collect())
        })
        .collect()
}

/// A free port below those of outgoing connections: none of them takes it before the program of the page does.
fn free_port() -> Result<String> {
    let mut chance = std::iter::repeat_with(|| RandomState::new().hash_one(0) % 20_000 + 10_000).take(100);
    let port = chance.find(|port| std::net::TcpListener::bind(format!("127.0.0.1:{port}")).is_ok());
    Ok(port.context("no free port")?.to_string())
}

/// The site that some pages of the guide use.
fn copy_shop(to: &Path) -> Result<()> {
    std::fs::create_dir(to)?;
    for file in std::fs::read_dir(Path::new(DOCS).join("guide/shop"))? {
        let file = file?;
        std::fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

/// Writes the files that a page shows: the blocks whose language is followed by a file name.
fn write_shown_files(page: &str, folder: &Path) -> Result<()> {
    for block in page.split("\n```").skip(1).step_by(2) {
        let (info, text) = block.split_once('\n').unwrap_or_default();
        let Some((language, name)) = info.split_once(' ') else { continue };
        if language != "sh" {
            std::fs::write(folder.join(name), format!("{text}\n")).context(name.to_owned())?;
        }
    }
    Ok(())
}

/// Folders of the programs that pages start: octoprox, the Node that runs TypeScript, and the NATS server.
fn program_path() -> Result<String> {
    let folder = |program: &Path| program.parent().map(|folder| folder.display().to_string());
    let node = std::env::var("NODE24").ok().and_then(|node| folder(Path::new(&node)));
    let hub = folder(&binary_path("octoprox")?).context("no folder")?;
    let nats = std::env::var("NATS_SERVER").ok().and_then(|nats| folder(Path::new(&nats)));
    let inherited = std::env::var("PATH")?;
    Ok([Some(hub), node, Some(inherited), nats].into_iter().flatten().collect::<Vec<_>>().join(":"))
}

/// Runs all blocks of a page as one script, in a directory that has only what the page says to copy.
fn run_page(page: &str) -> Result<PageRun> {
    let home = tempfile::tempdir()?;
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for (at, block) in blocks(page).iter().enumerate() {
        script.push_str(&format!("echo '@@ block {at}'\n{block}\n"));
    }
    // Other ports than the written ones, so that what runs here already is left alone.
    let (hub, admin, shop, nats) = (free_port()?, free_port()?, free_port()?, free_port()?);
    let script = script.replace("127.0.0.1:7000", &format!("127.0.0.1:{hub}"));
    let script = script.replace("127.0.0.1:3100", &format!("127.0.0.1:{admin}")).replace("8008", &shop);
    let unique = RandomState::new().hash_one(0);
    let role = format!("{ROLE}_{unique}");
    let script = script.replace("4222", &nats).replace(ROLE, &role);
    let database = match std::env::var("POSTGRES") {
        Ok(server) if page.contains("$DATABASE_URL") => {
            Some(ReaderDatabase::create(&server, format!("reader_{unique}"))?)
        }
        _ => None,
    };
    write_reader_files(home.path())?;
    // The hub's own data lie beside the folder, as they do for everybody.
    let work = home.path().join("work");
    std::fs::create_dir(&work)?;
    if page.contains("`docs/guide/shop` into an empty folder") {
        copy_shop(&work.join("shop"))?;
    }
    write_shown_files(page, &work)?;
    let runtime = home.path().join("run");
    std::fs::create_dir(&runtime)?;
    std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let is_attached = page.starts_with("# Background hub");
    let (out_file, err_file) = (home.path().join("stdout"), home.path().join("stderr"));
    let mut shell = Command::new("bash")
        .args(["-c", &script])
        .process_group(0)
        .current_dir(work)
        .env_clear()
        .env("PATH", program_path()?)
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", runtime)
        .env("OCTOPROX_STANDALONE", if is_attached { "false" } else { "true" })
        .env("OCTOPROX_PORT", &hub)
        .env("OCTOPROX_ADMIN_PORT", &admin)
        .env("DATABASE_URL", database.as_ref().map_or(Ok(String::new()), ReaderDatabase::url)?)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out_file)?)
        .stderr(std::fs::File::create(&err_file)?)
        .spawn()?;
    let group =
        i32::try_from(shell.id()).ok().and_then(rustix::process::Pid::from_raw).context("no process")?;
    let status = shell.wait();
    // The trap ends the jobs of the page, but not what their subshells have started.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let (status, out, said) = (status?, std::fs::read(out_file)?, std::fs::read(err_file)?);
    let (out, said) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&said));
    assert!(status.success(), "{script}\n{out}\n{said}");
    check_reader_files(home.path()).with_context(|| script.clone())?;
    if let Some(database) = database {
        database.check()?;
        database.drop_with_role(&role)?;
    }
    let out = out.replace(&shop, "8008").replace(&role, ROLE);
    let outputs = out.split("@@ block ").skip(1).map(str::to_owned).collect();
    Ok(PageRun { home, outputs, stderr: said.into_owned() })
}

impl PageRun {
    /// Every line that a page shows must have been printed by the block before it.
    fn check(&self, name: &str, expected: &[Vec<&str>]) {
        assert_eq!(self.outputs.len(), expected.len(), "{name}");
        for (part, expected) in self.outputs.iter().zip(expected) {
            for text in expected {
                assert!(part.contains(text), "{name}: {text} is not in:\n{part}\n{}", self.stderr);
            }
        }
    }
}

/// The pages of a folder of the documentation by name.
fn pages_in(folder: &str) -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(Path::new(DOCS).join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            pages.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(pages)
}

#[test]
fn the_commands_of_the_guide_work() -> Result<()> {
    let pages = pages_in("guide")?;
    assert!(pages.len() >= 5, "{} pages", pages.len());
    for (name, page) in pages.iter().filter(|(name, _)| name != BROWSER_PAGE) {
        run_page(page)?.check(name, &expected_output(page));
    }
    Ok(())
}

#[test]
fn the_commands_of_the_tutorials_work() -> Result<()> {
    service_variable("NODE24")?;
    let pages = pages_in("tutorials")?;
    assert!(pages.len() >= 5, "{} pages", pages.len());
    for (name, page) in &pages {
        run_page(page)?.check(name, &expected_output(page));
    }
    Ok(())
}

#[test]
fn the_commands_of_the_readme_work() -> Result<()> {
    let expected: [&[&str]; 4] = [
        &["time_now", "2026-11-15T07:00:00", "timezone=TEXT"],
        &["\"protocolVersion\":\"2025-11-25\"", "\"days\":358"],
        &["\"success\":true", "\"day_of_week\":\"Friday\"", "\"resultType\":\"complete\"", "Europe/Berlin"],
        &["time_convert", "time_diff", "time_parse", "time_now"],
    ];
    run_page(README)?.check("README.md", &expected.map(<[&str]>::to_vec));
    Ok(())
}

/// The names of functions and files of the tests, without endings.
fn names_in(folder: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        if path.is_dir() {
            names_in(&path, names)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let functions = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<', ' ']).next());
            names.extend(functions.map(str::to_owned));
        }
    }
    Ok(())
}

#[test]
fn every_test_that_a_guarantee_names_exists() -> Result<()> {
    let page = std::fs::read_to_string(Path::new(DOCS).join("security.md"))?;
    let (_, guarantees) = page.split_once("### Sandbox").context("no guarantees")?;
    let guarantees = guarantees.split("## Not guaranteed").next().unwrap_or_default();
    let mut names = BTreeSet::new();
    for folder in ["crates", "tests"] {
        names_in(&Path::new(DOCS).join("..").join(folder), &mut names)?;
    }
    let named = guarantees.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " "));
    let tests: Vec<String> = named
        .filter(|code| code.contains("::") || code.matches('_').count() > 3)
        .map(|code| code.trim_end_matches("::*").trim_end_matches("::tests").trim_end_matches('*').to_owned())
        .collect();
    assert!(tests.len() > 60, "{} tests", tests.len());
    for test in tests {
        let last = test.rsplit("::").next().unwrap_or_default().rsplit(' ').next().unwrap_or_default();
        let is_known =
            names.contains(last) || names.iter().any(|name| last.ends_with('_') && name.starts_with(last));
        assert!(is_known, "{test}: no such test");
    }
    Ok(())
}

/// Width and height of a PNG; None for anything else.
fn png_size(picture: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(picture.get(at..at + 4)?.try_into().ok()?));
    let png = picture.starts_with(b"\x89PNG\r\n\x1a\n") && picture.get(12..16) == Some(b"IHDR");
    Some((number(16)?, number(20)?)).filter(|_| png)
}

/// Directory of the pictures in the documentation.
fn pictures_dir() -> PathBuf {
    Path::new(DOCS).join("pictures")
}

#[test]
fn the_commands_of_the_browser_page_make_its_pictures() -> Result<()> {
    let page = std::fs::read_to_string(Path::new(DOCS).join("guide").join(BROWSER_PAGE))?;
    let walk = run_page(&page)?;
    walk.check(BROWSER_PAGE, &expected_output(&page));
    let named: BTreeSet<&str> =
        page.split(PICTURE_LINK).skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(named.len() >= 3, "{named:?}");
    for name in named {
        let made = std::fs::read(walk.home.path().join("work").join(name)).context(name.to_owned())?;
        if std::env::var_os("OCTOPROX_KEEP_PICTURES").is_some() {
            std::fs::create_dir_all(pictures_dir())?;
            std::fs::write(pictures_dir().join(name), &made)?;
        }
        let kept = std::fs::read(pictures_dir().join(name)).context(name.to_owned())?;
        assert_eq!(png_size(&made).context("no PNG")?, png_size(&kept).context("no PNG")?, "{name}");
    }
    Ok(())
}

/// Diagrams are drawn by `site/diagrams.mjs`; `site/build` checks them.
fn is_diagram(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "svg")
}

#[test]
fn every_picture_is_named_and_small_and_every_name_is_a_picture() -> Result<()> {
    let mut pages = pages_in("guide")?;
    pages.push(("README.md".to_owned(), README.replace("](docs/pictures/", PICTURE_LINK)));
    let mut named = BTreeSet::new();
    for (_, page) in &pages {
        named.extend(
            page.split(PICTURE_LINK).skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned),
        );
    }
    named.retain(|name| !is_diagram(name));
    let mut there = BTreeSet::new();
    for file in std::fs::read_dir(pictures_dir())? {
        let file = file?;
        let (name, picture) = (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path())?);
        if is_diagram(&name) {
            continue;
        }
        let (width, height) = png_size(&picture).with_context(|| format!("{name} is no PNG"))?;
        assert!(width >= 200 && height >= 100 && picture.len() < 150_000, "{name}: {width} × {height}");
        there.insert(name);
    }
    assert_eq!(there, named);
    Ok(())
}
