//! Every notation of an address that must not be reached.

use crate::ground::{CanaryServer, ScriptedResolver, ask, error_kind, net, spec};
use octo_grants::Net;
use octo_model::Kind;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const PRIVATE: [[u8; 4]; 18] = [
    [127, 0, 0, 1],
    [127, 0, 0, 2],
    [127, 255, 255, 254],
    [0, 0, 0, 0],
    [0, 0, 0, 1],
    [10, 0, 0, 1],
    [172, 16, 0, 1],
    [172, 31, 255, 254],
    [192, 168, 0, 1],
    [169, 254, 169, 254],
    [100, 64, 0, 1],
    [100, 100, 100, 200],
    [192, 0, 0, 192],
    [192, 0, 2, 1],
    [198, 18, 0, 1],
    [224, 0, 0, 1],
    [240, 0, 0, 1],
    [255, 255, 255, 255],
];

/// Hosts as written in a URL.
fn spellings([a, b, c, d]: [u8; 4]) -> Vec<String> {
    let whole = u32::from_be_bytes([a, b, c, d]);
    let (high, low) = ((whole >> 16) as u16, whole as u16);
    let dotted = Ipv4Addr::new(a, b, c, d).to_string();
    let wide: String = dotted
        .chars()
        .map(|c| c.to_digit(10).and_then(|digit| char::from_u32(0xff10 + digit)).unwrap_or(c))
        .collect();
    let escaped: String = dotted.bytes().map(|byte| format!("%{byte:02x}")).collect();
    vec![
        dotted.clone(),
        format!("{dotted}."),
        format!("{whole}"),
        format!("{whole}."),
        format!("{whole:#x}"),
        format!("0X{whole:X}"),
        format!("0x000000{whole:x}"),
        format!("0{whole:o}"),
        format!("0000{whole:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.00{b:o}.0000{c:o}.0{d:o}"),
        format!("{a:#x}.0{b:o}.{c}.{d}"),
        format!("{a}.{b}.{}", u16::from_be_bytes([c, d])),
        format!("{a}.{}", u32::from_be_bytes([0, b, c, d])),
        format!("{a:#x}.{}", u32::from_be_bytes([0, b, c, d])),
        format!("0{a:o}.{:#x}", u32::from_be_bytes([0, b, c, d])),
        wide.clone(),
        wide.replace('.', "。"),
        dotted.replace('.', "．"),
        dotted.replace('.', "｡"),
        escaped,
        dotted.replace('.', "%2e"),
        format!("{}\u{ad}{}", &dotted[..1], &dotted[1..]),
        format!("[::ffff:{dotted}]"),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[::FFFF:{high:X}:{low:X}]"),
        format!("[0:0:0:0:0:ffff:{dotted}]"),
        format!("[0000:0000:0000:0000:0000:ffff:{high:04x}:{low:04x}]"),
        format!("[::{dotted}]"),
        format!("[::ffff:0:{dotted}]"),
        format!("[64:ff9b::{dotted}]"),
        format!("[64:ff9b::{high:x}:{low:x}]"),
        format!("[64:ff9b:1::{dotted}]"),
        format!("[64:ff9b:1:{high:x}:{:x}:{:x}::]", low >> 8, low << 8),
        format!("[2002:{high:x}:{low:x}::]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[2001:0:808:808::{:x}:{:x}]", !high, !low),
        format!("[2001:0:{high:x}:{low:x}::1]"),
        format!("[2a00:1450::5efe:{dotted}]"),
        format!("[2a00:1450::200:5efe:{dotted}]"),
        format!("[fe80::5efe:{dotted}]"),
        format!("[fd00::{dotted}]"),
    ]
}

fn everything() -> Vec<String> {
    let more = [
        "127.1",
        "127.0.1",
        "0",
        "0x0",
        "00",
        "0.0",
        "0x7f.1",
        "0177.1",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000:0000:0000:0000:0000:0000:0000:0001]",
        "[::0001]",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[ff02::1]",
        "[100::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[2001:2::1]",
        "[5f00::1]",
        "[4000::1]",
        "168.63.129.16",
        "①②⑦.⓪.⓪.①",
        "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
        "１２７.1",
    ];
    PRIVATE.into_iter().flat_map(spellings).chain(more.map(str::to_owned)).collect()
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let canary = CanaryServer::new().await;
    let net = net(&[]);
    let all = everything();
    assert!(all.len() >= 500, "{}", all.len());
    for host in &all {
        for text in [format!("http://{host}:{}/", canary.port), format!("https://{host}:{}/", canary.port)] {
            let url = net.url(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(error_kind(net.send(ask(url.as_str())).await), Some(Kind::Denied), "{text}");
        }
        assert!(net.connect(host, canary.port).await.is_err(), "{host}");
        assert!(net.addresses(host, canary.port).await.is_err(), "{host}");
    }
    assert_eq!(canary.count().await, 0);
}

#[tokio::test]
async fn odd_text_around_a_private_address_does_not_hide_it() {
    let canary = CanaryServer::new().await;
    let net = net(&[]);
    let port = canary.port;
    for text in [
        format!("http:127.0.0.1:{port}"),
        format!("http:/127.0.0.1:{port}"),
        format!("http:///127.0.0.1:{port}"),
        format!("http:\\\\127.0.0.1:{port}\\"),
        format!("\thttp://127.0.0.1:{port}/\n"),
        format!("ht\ntp://127.\t0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}#@example.com/"),
        format!("http://127.0.0.1:{port}?@example.com/"),
        format!("http://127.0.0.1:{port}\\@example.com/"),
        format!("http://example.com@127.0.0.1:{port}/"),
        format!("http://example.com:80@127.0.0.1:{port}/"),
        format!("http://example.com%40127.0.0.1:{port}/"),
        format!("http://127.0.0.1%00.example.com:{port}/"),
        format!("http://127.0.0.1%0d%0aHost:x:{port}/"),
        format!("http://[::1%25lo]:{port}/"),
        format!("http://[::1].:{port}/"),
        format!("http://127.0.0.1 :{port}/"),
        format!("http://4294967296:{port}/"),
        format!("http://256.0.0.1:{port}/"),
        format!("http://0x7f.0.0.0x1.0:{port}/"),
    ] {
        let answer = match net.url(&text) {
            Ok(url) => net.send(ask(url.as_str())).await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(error_kind(answer), Some(Kind::Denied | Kind::Invalid)), "{text}");
    }
    assert_eq!(canary.count().await, 0);
}

#[tokio::test]
async fn no_name_of_a_private_address_is_connected_to() {
    let canary = CanaryServer::new().await;
    let names = [
        "localhost",
        "localhost.",
        "a.localhost",
        "localhost.localdomain",
        "localtest.me",
        "127.0.0.1.nip.io",
        "ip6-localhost",
        "metadata.google.internal",
        "kubernetes.default.svc",
        "router.local",
        "wpad",
    ];
    let others =
        ["::1", "::", "fd00:ec2::254", "fe80::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"];
    let private = PRIVATE.map(|octets| IpAddr::from(octets).to_string());
    for address in private.iter().map(String::as_str).chain(others) {
        let answers: &[&[&str]] = &[&[address]];
        let known = names.map(|name| (name, answers));
        let net = Net::with_resolver(spec(&[]), ScriptedResolver::new(&known)).unwrap();
        for name in names.into_iter().chain(["LOCALHOST", "ｌｏｃａｌｈｏｓｔ", "ⓛocalhost", "local%68ost"])
        {
            let url = net.url(&format!("http://{name}:{}/", canary.port)).unwrap();
            assert_eq!(
                error_kind(net.send(ask(url.as_str())).await),
                Some(Kind::Denied),
                "{name} at {address}"
            );
        }
    }
    // Also with the system resolver.
    assert_eq!(
        error_kind(net(&[]).send(ask(&format!("http://localhost:{}/", canary.port))).await),
        Some(Kind::Denied)
    );
    assert_eq!(canary.count().await, 0);
}

/// Proves that the canary would have been reached.
#[tokio::test]
async fn what_is_allowed_is_reached_by_every_spelling_and_nothing_else_is() {
    let canary = CanaryServer::new().await;
    let net = Net::with_resolver(spec(&["127.0.0.1"]), Arc::new(ScriptedResolver::default())).unwrap();
    let mut reached = 0;
    for host in everything() {
        let url = net.url(&format!("http://{host}:{}/", canary.port)).unwrap();
        let mapped = ["127.0.0.1", "[::ffff:7f00:1]"].contains(&url.host_str().unwrap());
        match net.connect(url.host_str().unwrap(), canary.port).await {
            Ok(_) => {
                assert!(mapped, "{host}");
                reached += 1;
            }
            Err(error) => assert!(!mapped && error.kind == Kind::Denied, "{host}: {error}"),
        }
    }
    assert!(reached > 25, "{reached}");
    assert_eq!(canary.count().await, reached);
}

#[tokio::test]
async fn an_open_port_of_a_refused_address_looks_like_a_closed_one() {
    let canary = CanaryServer::new().await;
    let net = net(&[]);
    let mut told = Vec::new();
    for port in [canary.port, 1024, 8080] {
        told.push(net.send(ask(&format!("http://127.0.0.1:{port}/"))).await.err().unwrap());
    }
    assert!(told.iter().all(|error| error == &told[0]), "{told:?}");
    assert!(told[0].hint.as_ref().is_some_and(|hint| hint.contains("net.allow")));
}
