//! Gives the shared library the name by which programs that were linked with it look for it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweald.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
