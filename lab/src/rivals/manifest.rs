//! The manifest of the rivals: a list of tables `[[rival]]`.
//!
//! `{out}` in a command stands for the output folder, `{workers}` in `run` for the number of workers. Build
//! commands run in the folder of the manifest, the program in `{out}`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;

/// All rivals in the order of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The rivals.
    #[serde(rename = "rival", default)]
    pub rivals: Vec<Rival>,
}

/// One rival.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// Its name in every record.
    pub name: String,
    /// The programs that must be on the path to build and run it.
    #[serde(default, deserialize_with = "one_or_many")]
    pub needs: Vec<String>,
    /// The headers of C or C++ that the compiler must find to build it.
    #[serde(default)]
    pub headers: Vec<String>,
    /// How to get what it needs.
    #[serde(default)]
    pub get: String,
    /// The commands that build it.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// The command that runs it, to which workload and keys are appended. Empty if there is no program.
    pub run: Vec<String>,
    /// The workloads that it can run.
    pub workloads: Vec<String>,
    /// The largest size at which it can run a workload.
    #[serde(default)]
    pub max_n: BTreeMap<String, u64>,
    /// What a reader should know about it.
    #[serde(default)]
    pub note: String,
}

/// A list that may be written as a single word.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(word) => vec![word],
        OneOrMany::Many(words) => words,
    })
}

impl Manifest {
    /// Reads the manifest from its file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| {
            let path = path.display();
            Error::Usage(format!(
                "There are no rivals, because {path} cannot be read: {source}. \
                 Run in a checkout of the project, or name the folder with --rivals-dir."
            ))
        })?;
        Self::parse(&text)
    }

    /// Reads the text of a manifest.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let manifest: Self =
            toml::from_str(text).map_err(|error| Error::Manifest(error.to_string()))?;
        for (index, rival) in manifest.rivals.iter().enumerate() {
            if manifest.rivals[..index]
                .iter()
                .any(|other| other.name == rival.name)
            {
                return Err(Error::Manifest(format!(
                    "the name '{}' occurs twice.",
                    rival.name
                )));
            }
            if rival.build.iter().any(Vec::is_empty) {
                return Err(Error::Manifest(format!(
                    "'{}' has an empty build command.",
                    rival.name
                )));
            }
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[rival]]
        name = "go"
        needs = ["go"]
        get = "apt-get install golang"
        build = [["go", "build", "-o", "{out}/go", "."]]
        run = ["{out}/go"]
        workloads = ["spawn", "ring"]
        max_n = { spawn = 1000000 }
        note = "GOMAXPROCS is the number of workers."

        [[rival]]
        name = "plain"
        needs = "sh"
        run = ["sh", "plain.sh", "{workers}"]
        workloads = ["ring"]
    "#;

    #[test]
    fn reads_the_one_of_this_checkout() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals/rivals.toml");
        let rivals = Manifest::read(&path).unwrap().rivals;
        assert!(rivals.iter().any(|rival| rival.name == "go"));
    }

    #[test]
    fn reads_full_and_short_tables() {
        let rivals = Manifest::parse(TEXT).unwrap().rivals;
        assert_eq!(rivals.len(), 2);
        assert_eq!(rivals[0].build[0][3], "{out}/go");
        assert_eq!(rivals[0].max_n["spawn"], 1_000_000);
        assert_eq!(rivals[1].needs, ["sh"]);
        assert!(rivals[1].build.is_empty() && rivals[1].max_n.is_empty());
    }

    #[test]
    fn refuses_misspelt_keys_doubles_and_empty_commands() {
        let misspelt = TEXT.replace("workloads = [\"ring\"]", "workload = [\"ring\"]");
        let double = TEXT.replace("\"plain\"", "\"go\"");
        let empty = TEXT.replace("[[\"go\"", "[[], [\"go\"");
        for text in [misspelt, double, empty] {
            assert!(matches!(Manifest::parse(&text), Err(Error::Manifest(_))));
        }
    }
}
