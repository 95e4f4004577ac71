//! The routine `cargo xtask install --prefix DIR`: the C libraries, their headers and their `pkg-config` files.
//!
//! ```text
//!   DIR/include/myth/myth.h
//!   DIR/lib/libmyth.a
//!   DIR/lib/libmyth.so -> libmyth.so.0 -> libmyth.so.0.1.0
//!   DIR/lib/pkgconfig/myth.pc
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::checkout::{Checkout, run};

/// The version of the shared library.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The first part of it: programs that were linked with one version run with all that have the same.
const INTERFACE: &str = "0";

/// Builds the libraries and copies them below `prefix`.
///
/// # Errors
/// A sentence that names the step that failed.
pub fn install(checkout: &Checkout, prefix: &Path) -> Result<(), String> {
    if cfg!(target_feature = "crt-static") {
        return Err("libmyth is for glibc: with musl there is no shared library.".to_owned());
    }
    run(&mut checkout.cargo("build --release --locked -p weald-myth"))?;
    let prefix = std::path::absolute(prefix).map_err(|error| cannot("find", prefix, &error))?;
    let (built, source) = (
        checkout.target().join("release"),
        checkout.root().join("c/myth"),
    );
    let (lib, include) = (prefix.join("lib"), prefix.join("include/myth"));
    for folder in [&lib.join("pkgconfig"), &include] {
        fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    }
    copy(&source.join("include/myth/myth.h"), &include.join("myth.h"))?;
    copy(&built.join("libmyth.a"), &lib.join("libmyth.a"))?;
    let shared = format!("libmyth.so.{VERSION}");
    copy(&built.join("libmyth.so"), &lib.join(&shared))?;
    let by_interface = format!("libmyth.so.{INTERFACE}");
    link(&shared, &lib.join(&by_interface))?;
    link(&by_interface, &lib.join("libmyth.so"))?;
    let template = source.join("myth.pc.in");
    let text = fs::read_to_string(&template).map_err(|error| cannot("read", &template, &error))?;
    let place = lib.join("pkgconfig/myth.pc");
    fs::write(&place, filled_in(&text, &prefix)).map_err(|error| cannot("write", &place, &error))
}

/// The text of a `pkg-config` file.
fn filled_in(template: &str, prefix: &Path) -> String {
    template
        .replace("@PREFIX@", &prefix.display().to_string())
        .replace("@VERSION@", VERSION)
}

/// Copies a file in place of whatever was there. A program that runs with an older one keeps that.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    remove(to)?;
    fs::copy(from, to).map_err(|error| cannot("write", to, &error))?;
    Ok(())
}

fn link(name: &str, at: &Path) -> Result<(), String> {
    remove(at)?;
    symlink(name, at).map_err(|error| cannot("write", at, &error))
}

fn remove(file: &Path) -> Result<(), String> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("replace", file, &error))
        }
        _ => Ok(()),
    }
}

fn cannot(act: &str, file: &Path, error: &std::io::Error) -> String {
    format!("Cannot {act} {}: {error}.", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_file_names_its_folder_and_version() {
        let text = filled_in(
            "prefix=@PREFIX@\nVersion: @VERSION@\n",
            Path::new("/opt/weald"),
        );
        assert_eq!(text, format!("prefix=/opt/weald\nVersion: {VERSION}\n"));
    }
}
