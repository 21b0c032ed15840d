//! The process of a program, for the tests of this crate: `octoprox` starts itself instead.

fn main() -> std::io::Result<()> {
    octo_code::child_main(std::io::stdin().lock(), std::io::stdout().lock())
}
