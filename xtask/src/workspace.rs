//! Where the files are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The root of the repository.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this program was built in.
    pub fn find() -> anyhow::Result<Workspace> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask has no parent folder")?;
        Ok(Workspace::at(root))
    }

    /// A workspace at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Workspace {
        Workspace { root: root.into() }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path under it.
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// The text of the file at `path`, which is relative to the root.
    pub fn read(&self, path: impl AsRef<Path>) -> anyhow::Result<String> {
        let path = self.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// All files under `folder` with this extension, relative to the root and sorted. Build output and hidden folders
    /// are left out. A `folder` that is a file is the one file.
    pub fn files(&self, folder: &str, extension: &str) -> anyhow::Result<Vec<String>> {
        let start = self.join(folder);
        if start.is_file() {
            return Ok(vec![folder.to_owned()]);
        }
        let mut found = Vec::new();
        let mut folders = vec![start];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder)
                .with_context(|| format!("cannot list {}", folder.display()))?;
            for entry in entries {
                let entry = entry?;
                let path = entry.path();
                if entry.file_type()?.is_dir() {
                    let name = entry.file_name();
                    if name != "target" && !name.to_string_lossy().starts_with('.') {
                        folders.push(path);
                    }
                } else if path.extension().is_some_and(|found| found == extension) {
                    found.push(self.relative(&path));
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Relative to the root, with forward slashes.
    fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.components()
            .map(|part| part.as_os_str().to_string_lossy())
            .filter(|part| part != ".")
            .collect::<Vec<_>>()
            .join("/")
    }
}
