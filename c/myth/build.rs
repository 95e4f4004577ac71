//! Gives the shared library the name by which programs that were linked with it look for it, and its symbols the same
//! as their version.
//!
//! The compiler gives the linker a version script of its own, without a name, and linkers take no second one beside it.
//! So the version comes from `--default-symver`, which GNU's linker has, and which the compiler's own has not.

use std::env;

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmyth.so.0");
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        println!("cargo::rustc-cdylib-link-arg=-fuse-ld=bfd");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--default-symver");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
