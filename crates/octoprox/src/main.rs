//! See the library.

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Pages that are no longer used go back to the system within a second, so that a burst of sessions leaves nothing behind.
#[cfg(feature = "jemalloc")]
#[expect(unsafe_code, reason = "the allocator reads its settings from a symbol of this name")]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static ALLOCATOR_SETTINGS: &[u8; 69] =
    b"narenas:2,background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0\0";

fn main() -> std::process::ExitCode {
    octoprox::main()
}
