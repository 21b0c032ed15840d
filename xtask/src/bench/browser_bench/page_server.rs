//! HTTP server of the pages on loopback, for the lifetime of the program.

use super::{large_pages, shop_pages};
use anyhow::Result;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Serves the pages; returns their base URL.
pub fn start() -> Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let home = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that disconnects is not an error.
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    Ok(home)
}

fn answer(stream: TcpStream) -> Result<()> {
    let mut from = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    from.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        if from.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let path = first.split_whitespace().nth(1).unwrap_or("/");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let given = if body.is_empty() { query.to_owned() } else { String::from_utf8(body)? };
    let page = match path {
        "/links" => Some(large_pages::links()),
        "/repository" => Some(large_pages::repository()),
        "/article" => Some(large_pages::article()),
        _ => shop_pages::page(path, &given),
    };
    let mut to = stream;
    let (status, page) = page.map_or(("404 Not Found", String::new()), |page| ("200 OK", page));
    write!(
        to,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )?;
    Ok(to.flush()?)
}
