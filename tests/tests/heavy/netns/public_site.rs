//! The public site: pages that redirect.

use std::fmt::Write;
use std::net::IpAddr;

/// Addresses of the site.
pub const PUBLIC_ADDRESSES: [&str; 3] = ["93.184.216.34", "93.184.216.35", "2606:2800:220:1::1"];

pub const SITE_HOST: &str = "site.example.org";
pub const ORIGIN: &str = "http://site.example.org";

/// Each attack has its own site, so that the browser does not throttle one because of another.
pub const ATTACKER_SITES: usize = 7;

pub fn attacker(number: usize) -> String {
    format!("attacker{number}.org")
}

const ATTACK: &str = include_str!("attack.html");
const WORKER: &str = include_str!("worker.js");
const SERVICE: &str = include_str!("service.js");

pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    PUBLIC_ADDRESSES.iter().any(|public| public.parse() == Ok(address))
}

/// URL of a page that redirects to `url` through `hops` pages in between.
pub fn redirect_url(how: &str, hops: usize, url: &str) -> String {
    format!("{ORIGIN}/to/{how}/{hops}/{}", hex(url))
}

/// Base URL below which everything is redirected to the same path below another.
pub fn redirect_base(base: &str) -> String {
    format!("{ORIGIN}/below/{}", hex(base))
}

/// URL of a page that tries everything below a base URL.
pub fn attack_url(number: usize, base: &str) -> String {
    format!("http://{}/attack/{}", attacker(number), hex(base))
}

/// Response to a path.
pub fn answer(path: &str) -> String {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<_> = path.split('/').skip(1).collect();
    match parts[..] {
        ["to", how, "0", url] => redirect_response(how, &unhex(url)),
        ["to", how, hops, url] => {
            let hops: usize = hops.parse().unwrap_or(1);
            redirect_response(how, &format!("/to/{how}/{}/{url}", hops - 1))
        }
        ["below", base, ref rest @ ..] => {
            redirect_response("302", &format!("{}/{}", unhex(base), rest.join("/")))
        }
        ["attack", base] => ok_response("text/html", &fill_page(ATTACK, base)),
        ["worker.js", base] => ok_response("text/javascript", &fill_page(WORKER, base)),
        ["service", base, "worker.js"] => ok_response("text/javascript", &fill_page(SERVICE, base)),
        ["report", base] => {
            let policy =
                format!("Content-Security-Policy: img-src 'none'; report-uri {}/report", unhex(base));
            response("200 OK", &["Content-Type: text/html", &policy], "<img src=/nothing>")
        }
        _ => ok_response("text/html", "<!doctype html><title>outside</title><p>Hello from outside."),
    }
}

/// Ways to redirect.
fn redirect_response(how: &str, url: &str) -> String {
    match how {
        "meta" => ok_response(
            "text/html",
            &format!("<!doctype html><meta http-equiv=refresh content=\"0; url={url}\">"),
        ),
        "refresh" => response("200 OK", &[&format!("Refresh: 0; url={url}"), "Content-Type: text/html"], ""),
        "location" => {
            ok_response("text/html", &format!("<!doctype html><script>location = '{url}'</script>"))
        }
        "replace" => {
            ok_response("text/html", &format!("<!doctype html><script>location.replace('{url}')</script>"))
        }
        "form" => ok_response(
            "text/html",
            &format!(
                "<!doctype html><form method=post action='{url}'></form><script>document.forms[0].submit()</script>"
            ),
        ),
        "link" => ok_response("text/html", &format!("<!doctype html><a href='{url}'>go</a>")),
        "window" => ok_response(
            "text/html",
            &format!("<!doctype html><button onclick=\"window.open('{url}')\">go</button>"),
        ),
        "save" => ok_response("text/html", &format!("<!doctype html><a download=x href='{url}'>go</a>")),
        status => response(&format!("{status} Elsewhere"), &[&format!("Location: {url}")], ""),
    }
}

fn fill_page(page: &str, base: &str) -> String {
    page.replace("@BASE@", &unhex(base)).replace("@HEX@", base)
}

pub fn ok_response(kind: &str, body: &str) -> String {
    response("200 OK", &[&format!("Content-Type: {kind}")], body)
}

/// A response that every origin may read and no cache may store.
fn response(status: &str, headers: &[&str], body: &str) -> String {
    let mut all: Vec<&str> = vec![
        "Connection: close",
        "Cache-Control: no-store",
        "Access-Control-Allow-Origin: *",
        "Access-Control-Allow-Headers: *",
        "Access-Control-Allow-Private-Network: true",
        "Service-Worker-Allowed: /",
    ];
    all.extend(headers);
    format!("HTTP/1.1 {status}\r\n{}\r\nContent-Length: {}\r\n\r\n{body}", all.join("\r\n"), body.len())
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn unhex(hex: &str) -> String {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}
