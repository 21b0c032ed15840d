//! All spellings of addresses that must not be reached.

use std::net::Ipv4Addr;

const PRIVATE_IPV4: [[u8; 4]; 16] = [
    [127, 0, 0, 1],
    [127, 0, 0, 2],
    [127, 255, 255, 254],
    [0, 0, 0, 0],
    [0, 0, 0, 1],
    [10, 0, 0, 1],
    [10, 255, 255, 254],
    [172, 16, 0, 1],
    [172, 31, 255, 254],
    [192, 168, 0, 1],
    [169, 254, 169, 254],
    [169, 254, 170, 2],
    [100, 64, 0, 1],
    [100, 100, 100, 200],
    [192, 0, 0, 192],
    [198, 18, 0, 1],
];

const OTHER_SPELLINGS: [&str; 31] = [
    "localhost",
    "LOCALHOST",
    "a.localhost",
    "ｌｏｃａｌｈｏｓｔ",
    "127.1",
    "127.0.1",
    "0",
    "0x0",
    "00",
    "0x7f.1",
    "0177.1",
    "①②⑦.⓪.⓪.①",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "168.63.129.16",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0.0.0.1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fc00::1]",
    "[fec0::1]",
    "[100::1]",
    "[2001:db8::1]",
    "[2001:2::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[4000::1]",
    "[e000::1]",
];

/// Hosts as written in a URL.
pub fn all_spellings() -> Vec<String> {
    PRIVATE_IPV4
        .into_iter()
        .flat_map(v4)
        .chain(PRIVATE_IPV4.into_iter().flat_map(v6))
        .chain(OTHER_SPELLINGS.map(str::to_owned))
        .collect()
}

fn v4([a, b, c, d]: [u8; 4]) -> Vec<String> {
    let whole = u32::from_be_bytes([a, b, c, d]);
    let dotted = Ipv4Addr::new(a, b, c, d).to_string();
    let wide = |c: char| c.to_digit(10).and_then(|digit| char::from_u32(0xff10 + digit)).unwrap_or(c);
    let wide: String = dotted.chars().map(wide).collect();
    vec![
        dotted.clone(),
        format!("{dotted}."),
        format!("{whole}"),
        format!("{whole:#x}"),
        format!("0X{whole:X}"),
        format!("0x000000{whole:x}"),
        format!("0{whole:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.00{b:o}.0000{c:o}.0{d:o}"),
        format!("{a:#x}.0{b:o}.{c}.{d}"),
        format!("{a}.{b}.{}", u16::from_be_bytes([c, d])),
        format!("{a}.{}", u32::from_be_bytes([0, b, c, d])),
        format!("0{a:o}.{:#x}", u32::from_be_bytes([0, b, c, d])),
        wide.replace('.', "。"),
        dotted.replace('.', "．"),
        dotted.replace('.', "｡"),
        dotted.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        dotted.replace('.', "%2e"),
        wide,
        format!("{}\u{ad}{}", &dotted[..1], &dotted[1..]),
    ]
}

/// IPv6 forms that contain an IPv4 address.
fn v6([a, b, c, d]: [u8; 4]) -> Vec<String> {
    let dotted = Ipv4Addr::new(a, b, c, d);
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    vec![
        format!("[::ffff:{dotted}]"),
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
        format!("[fd00::{dotted}]"),
    ]
}
