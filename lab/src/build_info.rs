//! What this program was built from, as `build.rs` records it: the version, the commit, the compiler.

/// The compiler's name and version.
pub(crate) const COMPILER: &str = env!("WEALD_RUSTC");

/// Whether the compiler has optimised this program; if it has not, its figures say nothing.
#[must_use]
pub fn is_optimised() -> bool {
    env!("WEALD_OPT_LEVEL") != "0"
}

/// The version of this program: the package's, and the commit where it is known.
#[must_use]
pub fn version() -> String {
    let commit = env!("WEALD_COMMIT");
    if commit.is_empty() {
        env!("CARGO_PKG_VERSION").to_owned()
    } else {
        format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
    }
}
