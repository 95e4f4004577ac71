//! The text files of the repository, read once for all checks.
//!
//! - Paths are relative to the root and use `/`.
//! - Build output is left out: folders named `target` and folders with a cache tag. So is what
//!   fuzzing writes, in folders named `corpus` and `artifacts`.
//! - `.git` is left out, which is a file in a worktree.
//! - Hidden folders are left out except `.ci`, `.cargo`, `.config` and `.github`, which are ours.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

const OUR_HIDDEN_FOLDERS: [&str; 4] = [".ci", ".cargo", ".config", ".github"];
const WRITTEN: [&str; 3] = ["target", "corpus", "artifacts"];
const RIVALS: &str = "lab/rivals/";

/// One text file.
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    syntax: OnceCell<Result<syn::File, syn::Error>>,
}

impl File {
    fn new(path: String, text: String) -> Self {
        Self {
            path,
            text,
            syntax: OnceCell::new(),
        }
    }

    /// The parsed file, or the error of the parser.
    pub(super) fn syntax(&self) -> Result<&syn::File, &syn::Error> {
        let parsed = self.syntax.get_or_init(|| syn::parse_file(&self.text));
        parsed.as_ref()
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(super) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Whether the file belongs to the programs that Weald is measured against.
    pub(super) fn is_of_a_rival(&self) -> bool {
        self.path.starts_with(RIVALS)
    }

    /// The folder of the file, empty for the root.
    pub(super) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// The repository as the checks see it.
pub(super) struct Repository {
    pub(super) root: PathBuf,
    pub(super) files: Vec<File>,
}

impl Repository {
    /// Reads every text file below `root`.
    pub(super) fn load(root: &Path) -> Result<Self, String> {
        let mut repository = Self {
            root: root.to_owned(),
            files: Vec::new(),
        };
        repository.load_folder("")?;
        repository.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(repository)
    }

    fn load_folder(&mut self, folder: &str) -> Result<(), String> {
        let place = self.root.join(folder);
        let entries = fs::read_dir(&place).map_err(|e| unreadable(&place, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| unreadable(&place, &e))?;
            let kind = entry
                .file_type()
                .map_err(|e| unreadable(&entry.path(), &e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            if kind.is_dir() && is_ours(&entry.path(), &name) {
                self.load_folder(&path)?;
            } else if kind.is_file() && name != ".git" {
                let bytes = fs::read(entry.path()).map_err(|e| unreadable(&entry.path(), &e))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    self.files.push(File::new(path, text));
                }
            }
        }
        Ok(())
    }

    /// The file at `path`, if there is one and it is text.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The root file of the crate in `folder`: that of its library, or else of its program.
    pub(super) fn crate_root(&self, folder: &str) -> Option<&File> {
        let library = self.file(&format!("{folder}/src/lib.rs"));
        library.or_else(|| self.file(&format!("{folder}/src/main.rs")))
    }

    /// Whether there is a file or folder at `path`.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    pub(super) fn markdown(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_markdown())
    }

    /// Every Rust file, including those of the rivals.
    pub(super) fn all_rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Every Rust file that keeps our rules.
    pub(super) fn our_rust(&self) -> impl Iterator<Item = &File> {
        self.all_rust().filter(|file| !file.is_of_a_rival())
    }
}

fn is_ours(place: &Path, name: &str) -> bool {
    let is_hidden = name.starts_with('.') && !OUR_HIDDEN_FOLDERS.contains(&name);
    !is_hidden && !WRITTEN.contains(&name) && !place.join("CACHEDIR.TAG").exists()
}

fn unreadable(place: &Path, error: &std::io::Error) -> String {
    format!("{} could not be read: {error}.", place.display())
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;

    #[test]
    fn build_output_and_hidden_folders_are_left_out() {
        let made_up = MadeUp::new(&[
            ("a.rs", ""),
            (".ci/run", ""),
            (".git/config", ""),
            ("a/.git", ""),
            ("target/debug/b.rs", ""),
            ("fuzz/corpus/a/b", ""),
            ("elsewhere/CACHEDIR.TAG", ""),
            ("elsewhere/c.rs", ""),
        ]);
        let repository = made_up.load();
        let paths: Vec<&str> = repository
            .files
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(paths, [".ci/run", "a.rs"]);
    }
}
