//! The rivals: which are declared, which can be built here, and the systems that they become.
//!
//! Steps: read the manifest; keep the requested rivals; look for the tools they need; build them below
//! one folder; ask each for its version. A rival that fails at a step is left out with a sentence
//! that says how to get it, and the others continue.

mod build;
mod manifest;
mod places;

pub use manifest::{Manifest, Rival};
pub use places::Places;

use crate::child::Invocation;
use crate::error::Error;
use crate::nearest;
use crate::system::System;

/// A rival that will not be measured, and why.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Why, and what to do about it.
    pub sentence: String,
}

/// The rivals that were looked for.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Those that can be measured.
    pub systems: Vec<System>,
    /// Those that cannot.
    pub missing: Vec<Missing>,
}

/// Finds and builds the rivals with these names, or all if none are named; `step` gets a few words
/// on what is being done.
pub fn assemble(
    places: &Places,
    names: &[String],
    step: &mut dyn FnMut(&str),
) -> Result<Found, Error> {
    let manifest = Manifest::read(&places.sources.join("rivals.toml"))?;
    let chosen = choose(&manifest, names)?;
    let places = places.absolute()?;
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
            "It was built but does not report its version: {}",
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
