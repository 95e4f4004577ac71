//! The manifest of the rivals: a list of tables `[[rival]]`, whose twins with another allocator or a committer are made
//! here.
//!
//! `{out}` in a command stands for the output folder, `{bin}` for the programs of cargo in it, `{workers}` in `run` for
//! the number of workers. Build commands run in the folder of the manifest, the program in `{out}`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;

/// All rivals in the order of the file, each followed by its twin.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The rivals.
    pub rivals: Vec<Rival>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    /// The packages of cargo, each with how to get what it needs.
    #[serde(default)]
    packages: BTreeMap<String, String>,
    #[serde(default)]
    rival: Vec<Rival>,
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
    #[serde(default)]
    pub run: Vec<String>,
    /// The workloads that it can run.
    pub workloads: Vec<String>,
    /// The largest size at which it can run a workload.
    #[serde(default)]
    pub max_n: BTreeMap<String, u64>,
    /// What a reader should know about it.
    #[serde(default)]
    pub note: String,
    /// The package that cargo builds for it, before its own commands.
    package: Option<String>,
    /// Whether there is a twin with mimalloc as its allocator.
    #[serde(default)]
    mimalloc: bool,
    /// How the note ends of a rival that has a twin with one committer, and that of the twin.
    alone: Option<String>,
    batched: Option<String>,
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
        let text: Text =
            toml::from_str(text).map_err(|error| Error::Manifest(error.to_string()))?;
        let mut manifest = Self { rivals: Vec::new() };
        for rival in text.rival {
            manifest.rivals.extend(rival.expand(&text.packages)?);
        }
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

impl Rival {
    /// The rival and its twin, if there is one.
    fn expand(mut self, packages: &BTreeMap<String, String>) -> Result<Vec<Self>, Error> {
        let mut twin = None;
        if let Some(package) = self.package.take() {
            let Some(get) = packages.get(&package) else {
                return Err(Error::Manifest(format!("there is no package '{package}'.")));
            };
            self.get = format!("{get} {}", self.get).trim().to_owned();
            if self.run.is_empty() {
                self.run = vec![format!("{{bin}}/{package}"), self.name.clone()];
            }
            if self.mimalloc {
                twin = Some(self.clone().with_mimalloc(&package));
            }
            self = self.of_package(&package, "cargo", &[]);
        }
        if let (Some(alone), Some(batched)) = (self.alone.take(), self.batched.take()) {
            let mut other = self.clone();
            other.name += "-batched";
            other.run.push("batched".to_owned());
            other.note = format!("{} {batched}", other.note);
            self.note = format!("{} {alone}", self.note);
            twin = Some(other);
        }
        Ok([Some(self), twin].into_iter().flatten().collect())
    }

    fn with_mimalloc(mut self, package: &str) -> Self {
        self.name += "+mimalloc";
        self.note += " With mimalloc.";
        self.needs.push("cc".to_owned());
        self.get = format!("{} Get a C compiler with apt-get install gcc.", self.get);
        self.of_package(package, "cargo-mimalloc", &["--features", "mimalloc"])
    }

    /// A rival that cargo builds in this folder first.
    fn of_package(mut self, package: &str, folder: &str, features: &[&str]) -> Self {
        let words = [
            "cargo",
            "build",
            "--release",
            "--locked",
            "--package",
            package,
        ];
        let mut build: Vec<String> = words
            .iter()
            .chain(features)
            .map(|word| (*word).to_owned())
            .collect();
        build.extend(["--target-dir".to_owned(), format!("{{out}}/{folder}")]);
        self.build.insert(0, build);
        self.needs.insert(0, "cargo".to_owned());
        let bin = format!("{{out}}/{folder}/release");
        for word in &mut self.run {
            *word = word.replace("{bin}", &bin);
        }
        self
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
    fn a_package_gives_its_rivals_a_command_and_their_twins_another() {
        let text = r#"
            [packages]
            programs = "Install Rust."

            [[rival]]
            name = "a"
            package = "programs"
            mimalloc = true
            workloads = []
            note = "N."

            [[rival]]
            name = "b"
            package = "programs"
            get = "Get b."
            run = ["{bin}/load", "b"]
            workloads = []
            note = "N."
            alone = "Alone."
            batched = "Batched."
        "#;
        let rivals = Manifest::parse(text).unwrap().rivals;
        let names: Vec<&str> = rivals.iter().map(|rival| rival.name.as_str()).collect();
        assert_eq!(names, ["a", "a+mimalloc", "b", "b-batched"]);
        assert_eq!(rivals[0].run, ["{out}/cargo/release/programs", "a"]);
        assert_eq!(
            rivals[1].run,
            ["{out}/cargo-mimalloc/release/programs", "a"]
        );
        assert_eq!(rivals[1].needs, ["cargo", "cc"]);
        assert_eq!(rivals[2].run, ["{out}/cargo/release/load", "b"]);
        assert_eq!(rivals[2].get, "Install Rust. Get b.");
        assert_eq!(rivals[3].run.last().unwrap(), "batched");
        assert_eq!(
            (rivals[2].note.as_str(), rivals[3].note.as_str()),
            ("N. Alone.", "N. Batched.")
        );
        let unknown = text.replace("package = \"programs\"", "package = \"none\"");
        assert!(matches!(Manifest::parse(&unknown), Err(Error::Manifest(_))));
    }

    #[test]
    fn every_rival_says_how_to_get_what_it_needs() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals/rivals.toml");
        for rival in Manifest::read(&path).unwrap().rivals {
            let name = &rival.name;
            assert!(!rival.get.trim().is_empty(), "{name} does not say how");
            for command in &rival.build {
                let tool = command
                    .iter()
                    .find(|word| !word.contains('=') && *word != "env");
                let tool = tool.expect("a command has a word");
                let usual = ["mkdir", "cp", "install", "sh"].contains(&tool.as_str());
                assert!(
                    usual || rival.needs.contains(tool),
                    "{name} needs {tool} and does not say so"
                );
            }
        }
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
