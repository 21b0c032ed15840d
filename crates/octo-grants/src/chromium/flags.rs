//! Chromium's command line and environment.

use super::browser_dir::BrowserDir;
use std::ffi::{OsStr, OsString};

/// No background activity, and no requests except for the requested pages.
const CHROMIUM_FLAGS: [&str; 38] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--no-pings",
    "--disable-background-networking",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-gpu",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--disable-quic",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,NetworkTimeServiceQuerying,\
     PrivacySandboxSettings4,GlobalMediaControls,ImprovedCookieControls,HttpsUpgrades,DnsOverHttps",
    "--force-color-profile=srgb",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--hide-scrollbars",
    // A script that uses more crashes its page and not the machine.
    "--js-flags=--max-old-space-size=1024",
    "--lang=en-US",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--window-size=1280,720",
    // Includes loopback, which the browser would otherwise connect to directly.
    "--proxy-bypass-list=<-loopback>",
];

pub(super) fn flags(folder: &BrowserDir, proxy: &str) -> Vec<OsString> {
    let mut all: Vec<OsString> = CHROMIUM_FLAGS.map(OsString::from).into();
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(folder.profile());
    all.push(profile);
    all.push(format!("--proxy-server=http://{proxy}").into());
    // The proxy resolves names; any other lookup fails.
    let host = proxy.rsplit_once(':').map_or(proxy, |(host, _)| host);
    all.push(format!("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {host}").into());
    all.push("about:blank".into());
    all
}

/// Contains nothing of the hub's environment.
pub(super) fn environment(path: &OsStr, folder: &BrowserDir, enclosed: bool) -> Vec<(OsString, OsString)> {
    // Inside bubblewrap `/tmp` is private to the browser.
    let temporary = if enclosed { "/tmp".into() } else { folder.temporary() };
    vec![
        ("PATH".into(), path.to_owned()),
        ("HOME".into(), folder.home().into()),
        ("TMPDIR".into(), temporary.into()),
        ("XDG_CONFIG_HOME".into(), folder.home().into()),
        ("XDG_CACHE_HOME".into(), folder.home().into()),
        ("LANG".into(), "C.UTF-8".into()),
        // Otherwise its wrapper would query the desktop.
        ("DBUS_SESSION_BUS_ADDRESS".into(), "disabled:".into()),
    ]
}
