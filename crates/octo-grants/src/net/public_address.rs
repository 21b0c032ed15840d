//! Public internet addresses. All others are refused, in every notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Non-public parts of IPv4.
const SPECIAL_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT; also metadata of a cloud
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // platform service of a cloud at a public-looking address
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, metadata
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved
    (Ipv4Addr::BROADCAST, 32),
];

/// The only part of IPv6 that is assigned for global unicast.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Non-public parts of it. Tunnels that carry an IPv4 address (6to4, Teredo) are refused regardless of the address:
/// no pages are served there.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo, benchmarks, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// NAT64 prefix: the last 32 bits are the IPv4 address.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) if within_v6(address, NAT64) => public_v4(last_32_bits(address)),
        IpAddr::V6(address) => {
            within_v6(address, GLOBAL_V6)
                && !SPECIAL_V6.into_iter().any(|special| within_v6(address, special))
                && (!is_isatap(address) || public_v4(last_32_bits(address)))
        }
    }
}

/// Private networks, where operators have their servers; excludes addresses of cloud platforms.
pub(super) fn is_private(address: IpAddr) -> bool {
    const CLOUD_METADATA: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    ];
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local() && !CLOUD_METADATA.contains(&address),
    }
}

fn public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4
        .into_iter()
        .any(|(network, prefix)| (address.to_bits() ^ network.to_bits()) >> (32 - prefix) == 0)
}

fn within_v6(address: Ipv6Addr, (network, prefix): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (128 - prefix) == 0
}

/// ISATAP interface identifier under any prefix: `…:0:5efe:a.b.c.d` or `…:200:5efe:a.b.c.d`.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [.., flags, marker, _, _] = address.segments();
    marker == 0x5efe && flags & !0x0200 == 0
}

fn last_32_bits(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap_or_else(|_| panic!("{text}")))
    }

    #[test]
    fn addresses_of_the_public_internet_pass() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2001:200::1",
            "2a00:1450::1",
            "3ffe::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2a00::5efe:8.8.8.8",
            "2003::1",
            "2620:4f:8000::1",
        ] {
            assert!(public(text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.0",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.192",
            "192.0.0.255",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:1:ffff:ffff:ffff:808:808",
            "64:ff9b:0:0:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:808:808::f7f7:f7f7",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "2002:a9fe:a9fe::",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fe80::5efe:10.0.0.1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ff0e::1",
            "2a00::5efe:10.0.0.1",
            "2a00::200:5efe:127.0.0.1",
            "4000::1",
            "8000::1",
            "e000::1",
        ] {
            assert!(!public(text), "{text}");
        }
    }
}
