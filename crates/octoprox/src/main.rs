//! See the library.

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Returns unused memory pages to the system within a second, so that memory shrinks after a burst of sessions.
#[cfg(feature = "jemalloc")]
#[expect(unsafe_code, reason = "the allocator reads its settings from a symbol of this name")]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static ALLOCATOR_SETTINGS: &[u8; 69] =
    b"narenas:2,background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0\0";

fn main() -> std::process::ExitCode {
    octoprox::main()
}
