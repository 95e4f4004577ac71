//! The rivals: which are declared, which can be built here, and the systems they become.
//!
//! Steps: read the manifest; keep those asked for; look for the tools they need; build them below
//! one folder; ask each for its version. A rival that fails at a step is left out with a sentence
//! that says how to get it, and the others go on.

mod build;
mod manifest;

use std::path::{Path, PathBuf};

pub use manifest::{Manifest, Rival};

use crate::child::Invocation;
use crate::error::Error;
use crate::nearest;
use crate::system::System;

/// Where rivals come from and go to.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder with the sources and `rivals.toml`.
    pub sources: PathBuf,
    /// The folder for what is built.
    pub out: PathBuf,
}

/// A rival that will not be measured, and why.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Why, and what to do about it.
    pub sentence: String,
}

/// What became of the rivals.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those that can be measured.
    pub systems: Vec<System>,
    /// Those that cannot.
    pub missing: Vec<Missing>,
}

impl Places {
    /// The places to use unless the caller names others: the checkout that this program was built
    /// from if it still exists, else the current folder.
    #[must_use]
    pub fn usual() -> Self {
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let checkout = built_from
            .filter(|folder| folder.join("lab/rivals").is_dir())
            .map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        Self {
            sources: checkout.join("lab/rivals"),
            out: checkout.join("target/rivals"),
        }
    }
}

/// Finds and builds the rivals with these names, or all if none are named; `step` hears a few
/// words on what is being done.
pub fn assemble(
    places: &Places,
    names: &[String],
    step: &mut dyn FnMut(&str),
) -> Result<Found, Error> {
    let manifest = Manifest::read(&places.sources.join("rivals.toml"))?;
    let chosen = choose(&manifest, names)?;
    let places = absolute(places)?;
    let mut found = Found::default();
    for rival in chosen {
        match prepare(rival, &places, step) {
            Ok(system) => found.systems.push(system),
            Err(sentence) => found.missing.push(Missing {
                name: rival.name.clone(),
                sentence,
            }),
        }
    }
    Ok(found)
}

fn choose<'a>(manifest: &'a Manifest, names: &[String]) -> Result<Vec<&'a Rival>, Error> {
    let known: Vec<&str> = manifest
        .rivals
        .iter()
        .map(|rival| rival.name.as_str())
        .collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            return Err(Error::Usage(nearest::unknown("rival", name, &known)));
        }
    }
    let wanted = |rival: &&Rival| names.is_empty() || names.contains(&rival.name);
    Ok(manifest.rivals.iter().filter(wanted).collect())
}

/// Rivals are built and run in another folder than this program, so relative paths would mislead.
fn absolute(places: &Places) -> Result<Places, Error> {
    std::fs::create_dir_all(&places.out).map_err(Error::file("create", &places.out))?;
    let resolve = |path: &Path| path.canonicalize().map_err(Error::file("find", path));
    Ok(Places {
        sources: resolve(&places.sources)?,
        out: resolve(&places.out)?,
    })
}

fn prepare(rival: &Rival, places: &Places, step: &mut dyn FnMut(&str)) -> Result<System, String> {
    if rival.run.is_empty() {
        return Err(format!("There is no program for it. {}", rival.get.trim()));
    }
    build::require(rival)?;
    step(&format!("building {}", rival.name));
    build::build(rival, places)?;
    let argv = rival
        .run
        .iter()
        .map(|word| build::fill(word, places))
        .collect();
    let mut system = System {
        name: rival.name.clone(),
        version: String::new(),
        program: Invocation {
            argv,
            folder: Some(places.out.clone()),
            ..Default::default()
        },
        workloads: Some(rival.workloads.clone()),
        max_n: rival
            .max_n
            .iter()
            .map(|(name, n)| (name.clone(), *n))
            .collect(),
        note: rival.note.clone(),
    };
    step(&format!("asking {} for its version", rival.name));
    let no_version = |failure: crate::child::Failure| {
        format!(
            "It was built but does not tell its version: {}",
            failure.sentence()
        )
    };
    system.ask_version().map_err(no_version)?;
    Ok(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_usage_errors_with_a_suggestion() {
        let text = "[[rival]]\nname = 'erlang'\nrun = ['x']\nworkloads = []";
        let manifest = Manifest::parse(text).unwrap();
        let error = choose(&manifest, &["erlnag".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("'erlang'?"), "{error}");
        assert_eq!(choose(&manifest, &[]).unwrap().len(), 1);
        assert_eq!(choose(&manifest, &["erlang".to_owned()]).unwrap().len(), 1);
    }
}
