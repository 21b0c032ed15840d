//! Facts about this build, for `octoprox --version --verbose`.

/// Lines under the version.
pub fn build_info() -> String {
    let allocator = if cfg!(feature = "jemalloc") { "jemalloc" } else { "system" };
    let facts = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("commit", env!("OCTOPROX_BUILD_COMMIT")),
        ("target", env!("OCTOPROX_BUILD_TARGET")),
        ("profile", env!("OCTOPROX_BUILD_PROFILE")),
        ("compiler", env!("OCTOPROX_BUILD_COMPILER")),
        ("allocator", allocator),
    ];
    facts.map(|(name, value)| format!("{name}: {value}\n")).concat()
}
