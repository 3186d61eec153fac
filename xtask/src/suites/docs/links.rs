//! Relative links and anchors exist.

use std::path::{Component, Path, PathBuf};

use super::markdown::anchors;
use crate::workspace::Workspace;

/// Checks the link `target` of the page at `page`. Links that leave the repository are not followed.
pub fn check(workspace: &Workspace, page: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        Some(PathBuf::from(page))
    } else {
        resolve(page, path)
    };
    let path = path.ok_or_else(|| format!("the link `{target}` leaves the repository"))?;
    if !workspace.join(&path).exists() {
        return Err(format!(
            "the link `{target}` leads to nothing: there is no {}",
            path.display()
        ));
    }
    if anchor.is_empty() || path.extension().is_none_or(|extension| extension != "md") {
        return Ok(());
    }
    let text = workspace
        .read(&path)
        .map_err(|error| format!("{error:#}"))?;
    if anchors(&text).iter().any(|found| found == anchor) {
        Ok(())
    } else {
        Err(format!(
            "the link `{target}` leads to no heading of {}",
            path.display()
        ))
    }
}

/// The path, from the root, that `link` on `page` means.
fn resolve(page: &str, link: &str) -> Option<PathBuf> {
    let mut resolved = Path::new(page).parent()?.to_path_buf();
    for component in Path::new(link).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !resolved.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_meant_from_their_page_and_stay_in_the_repository() {
        assert_eq!(
            resolve("docs/a.md", "../README.md"),
            Some(PathBuf::from("README.md"))
        );
        assert_eq!(
            resolve("docs/a.md", "b/./c.md"),
            Some(PathBuf::from("docs/b/c.md"))
        );
        assert_eq!(resolve("README.md", "../secret"), None);
        assert_eq!(resolve("README.md", "/etc/passwd"), None);
    }

    #[test]
    fn missing_pages_and_headings_are_problems() {
        let workspace = Workspace::find().unwrap();
        assert_eq!(check(&workspace, "xtask/a.md", "src/main.rs"), Ok(()));
        assert!(check(&workspace, "xtask/a.md", "src/absent.rs").is_err());
        assert_eq!(
            check(&workspace, "README.md", "docs/glossary.md#glossary"),
            Ok(())
        );
        assert!(check(&workspace, "README.md", "docs/glossary.md#absent").is_err());
    }
}
