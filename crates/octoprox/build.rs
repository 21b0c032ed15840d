//! Records facts about the build for `octoprox --version --verbose`.

#![expect(clippy::disallowed_methods, reason = "runs the compiler to ask for its version")]

use std::env::var;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OCTOPROX_BUILD_COMMIT");
    let compiler = var("RUSTC")
        .ok()
        .and_then(|rustc| Command::new(rustc).arg("--version").output().ok())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    for (name, value) in [
        ("COMMIT", var("OCTOPROX_BUILD_COMMIT").ok()),
        ("TARGET", var("TARGET").ok()),
        ("PROFILE", var("PROFILE").ok()),
        ("COMPILER", compiler),
    ] {
        let value = value.filter(|value| !value.is_empty()).unwrap_or_else(|| "unknown".to_owned());
        println!("cargo::rustc-env=OCTOPROX_BUILD_{name}={value}");
    }
}
