//! The routine `cargo xtask install --prefix DIR`: the C libraries, their headers and their `pkg-config` files.
//!
//! ```text
//!   DIR/include/weald.h, DIR/include/myth/myth.h, DIR/include/myth/myth_spinlock.h
//!   DIR/lib/libweald.a, DIR/lib/libmyth.a
//!   DIR/lib/libweald.so -> libweald.so.0 -> libweald.so.0.1.0, and so for libmyth
//!   DIR/lib/pkgconfig/weald.pc, DIR/lib/pkgconfig/myth.pc
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::checkout::Checkout;

/// The version of the shared library.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The first part of it: programs that were linked with one version run with all that have the same.
const INTERFACE: &str = "0";

/// One of the libraries.
struct Library {
    /// As programs name it: `-lNAME`.
    name: &'static str,
    /// As cargo names it.
    built: &'static str,
    /// The folder of its crate, which has `NAME.pc.in`.
    source: &'static str,
    /// Its headers, below `include` in the crate and below `DIR/include`.
    headers: &'static [&'static str],
}

const LIBRARIES: [Library; 2] = [
    Library {
        name: "weald",
        built: "weald_c",
        source: "c/weald",
        headers: &["weald.h"],
    },
    Library {
        name: "myth",
        built: "myth",
        source: "c/myth",
        headers: &["myth/myth.h", "myth/myth_spinlock.h"],
    },
];

/// Builds the libraries, which `build` runs, and copies them below `prefix`.
///
/// # Errors
/// A sentence that names the step that failed.
pub fn install(
    checkout: &Checkout,
    prefix: &Path,
    build: impl FnOnce(&mut Command) -> Result<(), String>,
) -> Result<(), String> {
    if cfg!(target_feature = "crt-static") {
        let sentence = "The C libraries are for glibc: with musl there are no shared ones.";
        return Err(sentence.to_owned());
    }
    build(&mut checkout.cargo("build --release --locked -p weald-c -p weald-myth"))?;
    let prefix = std::path::absolute(prefix).map_err(|error| cannot("find", prefix, &error))?;
    LIBRARIES
        .iter()
        .try_for_each(|library| library.install(checkout, &prefix))
}

impl Library {
    fn install(&self, checkout: &Checkout, prefix: &Path) -> Result<(), String> {
        let Self { name, built, .. } = self;
        let release = checkout.target().join("release");
        let source = checkout.root().join(self.source);
        let lib = prefix.join("lib");
        make_folder(&lib.join("pkgconfig"))?;
        for header in self.headers {
            let to = prefix.join("include").join(header);
            make_folder(to.parent().unwrap_or(prefix))?;
            copy(&source.join("include").join(header), &to)?;
        }
        let archive = lib.join(format!("lib{name}.a"));
        copy(&release.join(format!("lib{built}.a")), &archive)?;
        let shared = format!("lib{name}.so.{VERSION}");
        copy(&release.join(format!("lib{built}.so")), &lib.join(&shared))?;
        let by_interface = format!("lib{name}.so.{INTERFACE}");
        link(&shared, &lib.join(&by_interface))?;
        link(&by_interface, &lib.join(format!("lib{name}.so")))?;
        let template = source.join(format!("{name}.pc.in"));
        let text =
            fs::read_to_string(&template).map_err(|error| cannot("read", &template, &error))?;
        let place = lib.join(format!("pkgconfig/{name}.pc"));
        fs::write(&place, filled_in(&text, prefix)).map_err(|error| cannot("write", &place, &error))
    }
}

/// The text of a `pkg-config` file.
fn filled_in(template: &str, prefix: &Path) -> String {
    template
        .replace("@PREFIX@", &prefix.display().to_string())
        .replace("@VERSION@", VERSION)
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))
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

    /// A build of its own would have no limit in `soak`.
    #[test]
    fn the_caller_runs_the_build() {
        let stopped = |_: &mut Command| Err("stopped".to_owned());
        let installed = install(&Checkout::here(), Path::new("nowhere"), stopped);
        assert_eq!(installed, Err("stopped".to_owned()));
    }
}
