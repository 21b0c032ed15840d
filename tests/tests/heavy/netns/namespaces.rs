//! Namespaces of a test. The test restarts itself within them.

use super::public_site;
use anyhow::{Context, Result, ensure};
use std::future::Future;
use std::path::Path;
use std::process::{Command, Stdio};

/// Set inside the namespaces.
const INSIDE_VARIABLE: &str = "OCTOPROX_TEST_NETWORK";

/// Address of the DNS server.
pub const NAME_SERVER: &str = "10.255.255.53";

/// A public address at which nothing listens.
pub const DEAD_ADDRESS: &str = "93.184.216.99";

/// Assigns all addresses to loopback, so that every connection arrives at listeners of the test, and uses its DNS
/// server. The machine itself is not changed.
const SCRIPT: &str = r#"
PATH="$PATH:/usr/sbin:/sbin"
ip link set lo up
ip route add local default dev lo
ip -6 route add local default dev lo
ip route add unreachable "$DEAD" table local
for file in resolv.conf hosts nsswitch.conf; do mount --bind "$FILES/$file" "/etc/$file"; done
mount --bind "$FILES/chromium" /etc/chromium
exec "$0" --exact "$1" --nocapture
"#;

/// Network privileges of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubPrivilege {
    /// It can create a network namespace for the browser.
    Root,
    /// It cannot, as wherever it does not run as root: the browser shares the network of the hub.
    Unprivileged,
}

/// Runs a test in its own namespaces; fails if they cannot be created.
pub fn run_in_namespaces<F>(test: &str, body: impl FnOnce() -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    if std::env::var_os(INSIDE_VARIABLE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        return runtime.block_on(body());
    }
    let files = tempfile::tempdir()?;
    write_etc_files(files.path())?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]);
    if !is_root()? {
        command.args(["--user", "--map-root-user"]);
    }
    let output = command
        .args(["--fork", "--kill-child", "--", "/bin/sh", "-euc", SCRIPT])
        .arg(std::env::current_exe()?)
        .arg(format!("netns::{test}"))
        .env(INSIDE_VARIABLE, "1")
        .env("FILES", files.path())
        .env("DEAD", DEAD_ADDRESS)
        .stdin(Stdio::null())
        .output()
        .context("no `unshare` (util-linux), with which the test makes its network namespace")?;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{said}");
    ensure!(
        said.contains("running 1 test"),
        "the test cannot make the namespaces that it runs in; it needs root or user namespaces, `ip` (iproute2) and \
         Chromium, and it does not run without them:\n{said}"
    );
    ensure!(output.status.success(), "it failed within its namespaces:\n{said}");
    Ok(())
}

fn write_etc_files(files: &Path) -> Result<()> {
    let resolver = format!("nameserver {NAME_SERVER}\noptions timeout:2 attempts:2\n");
    std::fs::write(files.join("resolv.conf"), resolver)?;
    std::fs::write(files.join("hosts"), "127.0.0.1 localhost\n::1 localhost ip6-localhost\n")?;
    std::fs::write(files.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    // Service workers exist only on origins that the browser trusts; this stands for a certificate.
    let trusted: Vec<_> = (0..public_site::ATTACKER_SITES)
        .map(|number| format!("http://{}", public_site::attacker(number)))
        .collect();
    let trusted = serde_json::json!({"OverrideSecurityRestrictionsOnInsecureOrigin": trusted});
    let policies = files.join("chromium/policies/managed");
    std::fs::create_dir_all(&policies)?;
    Ok(std::fs::write(policies.join("test.json"), trusted.to_string())?)
}

fn is_root() -> Result<bool> {
    let id = Command::new("id").arg("-u").output()?;
    Ok(id.stdout.trim_ascii() == b"0")
}
