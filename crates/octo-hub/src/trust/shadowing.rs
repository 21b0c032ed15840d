//! Names that imitate another server's. Names are compared by what a person would read.

use crate::catalogue::scoped_uris;
use octo_model::ItemKind;
use octo_ports::ServerIdentity;

/// The hub's own namespace; no server may use it.
const HUB_NAMESPACE: &str = "octoprox";

/// Why a key shadows another server's, if it does.
pub fn shadowing_reason(whose: &ServerIdentity, what: ItemKind, key: &str) -> Option<String> {
    match what {
        ItemKind::Tool | ItemKind::Prompt => shadowed_name(whose, key),
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => shadowed_uri(whose, what, key),
    }
}

/// `notion__x` of another server, in any letters, case and punctuation; also a key that shifts the end of its
/// own server's name, as `_x` of `a` does beside a server `a_`.
fn shadowed_name(whose: &ServerIdentity, key: &str) -> Option<String> {
    if mixes_scripts(key) {
        return Some("its name mixes look-alike letters".to_owned());
    }
    let own = skeleton(&whose.server);
    let key = skeleton(&key.replace([':', '/', '.'], "__"));
    let whole = format!("{own}__{key}");
    let hub = HUB_NAMESPACE.to_owned();
    whose.others.iter().chain([&hub]).find_map(|other| {
        let space = format!("{}__", skeleton(other));
        let shifted = space.len() > own.len() + 2 && whole.starts_with(&space);
        let claims = skeleton(other) != own && (key.starts_with(&space) || shifted);
        claims.then(|| format!("its name claims to belong to `{other}`"))
    })
}

/// A URI in another server's scheme, or a template that matches every URI.
fn shadowed_uri(whose: &ServerIdentity, what: ItemKind, key: &str) -> Option<String> {
    let scheme = key.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| !scheme.contains('{'));
    let Some(scheme) = scheme else {
        return (what == ItemKind::Template).then(|| "it matches the URIs of every server".to_owned());
    };
    if scoped_uris::is_scoped(&format!("{scheme}://")) && !scoped_uris::is_scoped(key) {
        return Some("its URI matches those of other servers".to_owned());
    }
    let own = skeleton(&whose.server);
    let scheme = skeleton(scheme);
    let hub = HUB_NAMESPACE.to_owned();
    let mut all = whose.others.iter().chain([&hub]);
    let other = all.find(|other| skeleton(other) == scheme && scheme != own)?;
    Some(format!("its URI claims to belong to `{other}`"))
}

/// What a person reads: without case, look-alikes replaced, `-` as `_`.
pub fn skeleton(name: &str) -> String {
    let seen =
        octo_toolkit::hidden_text::strip_hidden(name).text.chars().map(latin_lookalike).collect::<String>();
    let seen = seen.to_ascii_lowercase().replace('-', "_").replace("rn", "m").replace("vv", "w");
    seen.chars()
        .map(|c| match c {
            '0' => 'o',
            '1' | 'i' | '|' => 'l',
            c => c,
        })
        .collect()
}

/// Returns whether it has both Latin letters and look-alikes.
pub fn mixes_scripts(name: &str) -> bool {
    name.chars().any(|c| c.is_ascii_alphabetic()) && name.chars().any(|c| latin_lookalike(c) != c)
}

/// The Latin letter or sign that a character looks like, or the character itself.
pub fn latin_lookalike(c: char) -> char {
    let code = u32::from(c);
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xfee0).unwrap_or(c),
        '\u{1d400}'..='\u{1d6a3}' => {
            let at = u8::try_from((code - 0x1d400) % 52).unwrap_or_default();
            char::from(if at < 26 { b'A' + at } else { b'a' + at - 26 })
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' => '-',
        '\u{2024}' | '\u{3002}' => '.',
        '\u{a789}' | '\u{2236}' | '\u{fe55}' => ':',
        '\u{2044}' | '\u{2215}' => '/',
        'а' | 'А' | 'α' | 'Α' | 'ɑ' => 'a',
        'В' | 'Β' | 'ь' => 'b',
        'с' | 'С' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'Е' | 'Ε' | 'ё' | 'є' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'Н' | 'Η' | 'հ' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ı' | 'ɩ' => 'i',
        'ј' | 'Ј' => 'j',
        'к' | 'К' | 'κ' | 'Κ' => 'k',
        'ӏ' | 'Ӏ' | 'ⅼ' => 'l',
        'м' | 'М' | 'Μ' => 'm',
        'п' | 'ո' | 'Ν' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'օ' | 'σ' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' => 's',
        'т' | 'Т' | 'τ' | 'Τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ш' | 'ω' => 'w',
        'х' | 'Х' | 'χ' | 'Χ' => 'x',
        'у' | 'У' | 'γ' | 'Υ' => 'y',
        'Ζ' => 'z',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(server: &str, others: &[&str]) -> ServerIdentity {
        let others = others.iter().map(|name| (*name).to_owned()).collect();
        ServerIdentity { server: server.to_owned(), identity: String::new(), others }
    }

    #[test]
    fn nobody_speaks_in_anothers_name() {
        let evil = whose("evil", &["notion", "mail", "evil_"]);
        for key in [
            "notion__search",
            "Notion__search",
            "NOTION--search",
            "notion_-search",
            "notion:search",
            "notion/search",
            "notion.search",
            "not\u{200b}ion__search",
            "n\u{43e}tion__search",
            "ｎｏｔｉｏｎ__search",
            "𝐧𝐨𝐭𝐢𝐨𝐧__search",
            "n0t1on__search",
            "rnail__send",
            "MAlL__send",
            "_x",
            "octoprox__tools",
            "se\u{430}rch",
        ] {
            assert!(shadowing_reason(&evil, ItemKind::Tool, key).is_some(), "{key}");
        }
        for key in ["search", "notion_search", "evil__search", "notions__x", "поиск", "搜索", "a.b", "x__y"]
        {
            assert_eq!(shadowing_reason(&evil, ItemKind::Tool, key), None, "{key}");
        }
        assert_eq!(shadowing_reason(&whose("evil_", &["evil"]), ItemKind::Tool, "x"), None);
    }

    #[test]
    fn addresses_have_owners() {
        let evil = whose("evil", &["notion"]);
        for (what, key, claims) in [
            (ItemKind::Resource, "notion://page", true),
            (ItemKind::Resource, "NOTION://page", true),
            (ItemKind::Resource, "octoprox://results/r_1", true),
            (ItemKind::Resource, "evil://page", false),
            (ItemKind::Resource, "file:///a", false),
            (ItemKind::Template, "{+uri}", true),
            (ItemKind::Template, "ui:{+rest}", true),
            (ItemKind::Template, "UI:/{+rest}", true),
            (ItemKind::Template, "ui://{+rest}", false),
            (ItemKind::Resource, "skill:x", true),
            (ItemKind::Template, "{scheme}://x", true),
            (ItemKind::Template, "file:///{+path}", false),
        ] {
            assert_eq!(shadowing_reason(&evil, what, key).is_some(), claims, "{key}");
        }
    }
}
