//! Every pure file denies the purity lints, by its own attribute or by that of a module around it.

use std::path::Path;

use super::areas::Area;
use crate::suites::findings::Findings;
use crate::workspace::Workspace;

const LINTS: [&str; 2] = ["clippy::disallowed_methods", "clippy::disallowed_types"];

/// Checks the files of all `areas`.
pub fn check(workspace: &Workspace, areas: &[Area], findings: &mut Findings) -> anyhow::Result<()> {
    for area in areas {
        let files = match workspace.files(area.path, "rs") {
            Ok(files) if !files.is_empty() => files,
            _ => {
                findings.check(
                    area.path,
                    Err("is listed as pure and does not exist".into()),
                );
                continue;
            }
        };
        for (shell, reason) in area.shells {
            let path = format!("{}/{shell}", area.path);
            let result = match (files.contains(&path), reason.is_empty()) {
                (true, false) => Ok(()),
                (true, true) => Err("is listed as a shell without a reason".into()),
                (false, _) => Err("is listed as a shell and does not exist".into()),
            };
            findings.check(path, result);
        }
        let is_shell = |path: &str| {
            area.shells
                .iter()
                .any(|(shell, _)| path == format!("{}/{shell}", area.path))
        };
        for path in files.iter().filter(|path| !is_shell(path)) {
            findings.check(path, judge(workspace, path)?);
        }
    }
    Ok(())
}

fn judge(workspace: &Workspace, path: &str) -> anyhow::Result<Result<(), String>> {
    let text = workspace.read(path)?;
    if let Some(line) = line_that_allows(&text) {
        return Ok(Err(format!(
            "line {line} lifts the purity lints in a pure module"
        )));
    }
    if denies(&text) {
        return Ok(Ok(()));
    }
    for around in modules_around(path) {
        if workspace.join(&around).is_file() && denies(&workspace.read(&around)?) {
            return Ok(Ok(()));
        }
    }
    Ok(Err(
        "is in a pure area: put `#![deny(clippy::disallowed_methods, clippy::disallowed_types)]` at its top, or list it \
         as a shell, with the reason, in xtask/src/suites/purity/areas.rs"
            .into(),
    ))
}

/// Whether the file denies both lints for itself and everything below it.
fn denies(text: &str) -> bool {
    let denied: Vec<&str> = inner_attributes(text)
        .filter(|attribute| {
            attribute.starts_with("#![deny(") || attribute.starts_with("#![forbid(")
        })
        .collect();
    LINTS
        .iter()
        .all(|lint| denied.iter().any(|attribute| attribute.contains(lint)))
}

/// `#![...]` attributes, each from its `#` to its `]`.
fn inner_attributes(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let rest = text[at..].trim_start();
        // Attributes stand at the start of a line; one in a comment or a string does not count.
        (line.trim_start().starts_with("#!["))
            .then(|| &rest[..rest.find(")]").unwrap_or(rest.len())])
    })
}

/// The first line (from 1) that lifts one of the lints again.
fn line_that_allows(text: &str) -> Option<usize> {
    let lifts = |line: &str| {
        ["allow(", "expect(", "warn("]
            .iter()
            .any(|level| line.contains(level))
    };
    let names = |line: &str| line.contains("clippy::disallowed_") || line.contains("clippy::style");
    text.lines()
        .position(|line| lifts(line) && names(line) && !line.trim_start().starts_with("//"))
        .map(|at| at + 1)
}

/// The files of the modules that `path` is inside of, nearest first: lint levels pass from a module to its children.
fn modules_around(path: &str) -> Vec<String> {
    let mut around = Vec::new();
    let mut folder = Path::new(path).parent();
    while let Some(current) = folder {
        let shown = current.to_string_lossy().replace('\\', "/");
        around.extend(["mod.rs", "lib.rs"].map(|name| format!("{shown}/{name}")));
        if current.ends_with("src") {
            break;
        }
        around.push(format!("{shown}.rs"));
        folder = current.parent();
    }
    around
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const DENY: &str = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]\n";

    /// The problems of a crate `c/src` with these files, where `areas` decides what is pure.
    fn problems(name: &str, files: &[(&str, &str)], areas: &[Area]) -> Vec<String> {
        let root = std::env::temp_dir().join(format!("xtask-scan-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join("c/src").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut findings = Findings::default();
        check(&Workspace::at(&root), areas, &mut findings).unwrap();
        fs::remove_dir_all(&root).unwrap();
        findings.problems().to_vec()
    }

    fn pure(shells: &'static [(&'static str, &'static str)]) -> [Area; 1] {
        [Area {
            path: "c/src",
            shells,
        }]
    }

    #[test]
    fn a_module_is_covered_by_itself_or_by_a_module_around_it() {
        let files = [
            ("lib.rs", ""),
            ("own.rs", DENY),
            ("deep/mod.rs", DENY),
            ("deep/er/leaf.rs", ""),
        ];
        let found = problems("covered", &files, &pure(&[]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("c/src/lib.rs: "), "{found:?}");
    }

    #[test]
    fn a_new_module_without_the_attribute_is_found() {
        let found = problems(
            "new",
            &[("lib.rs", "mod new;"), ("new.rs", "")],
            &pure(&[("lib.rs", "a map")]),
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("c/src/new.rs: "), "{found:?}");
    }

    #[test]
    fn half_an_attribute_or_one_in_a_comment_is_not_enough() {
        let half = "#![deny(clippy::disallowed_methods)]\n";
        let comment = format!("// {DENY}");
        let found = problems(
            "half",
            &[("half.rs", half), ("comment.rs", &comment)],
            &pure(&[]),
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn an_attribute_over_several_lines_counts() {
        let text = "//! Map.\n#![deny(\n    clippy::disallowed_methods,\n    clippy::disallowed_types\n)]\n";
        assert!(problems("lines", &[("lib.rs", text)], &pure(&[])).is_empty());
    }

    #[test]
    fn lifting_the_lints_again_is_found() {
        let text = format!("{DENY}#[allow(clippy::disallowed_types)]\nfn f() {{}}\n");
        let found = problems("lifted", &[("lib.rs", &text)], &pure(&[]));
        assert!(found[0].contains("line 2 lifts"), "{found:?}");
    }

    #[test]
    fn a_stale_list_is_found() {
        let found = problems(
            "stale",
            &[("lib.rs", DENY)],
            &pure(&[("gone.rs", "was a shell")]),
        );
        assert_eq!(found.len(), 1, "{found:?}");
        let areas = [Area {
            path: "c/gone",
            shells: &[],
        }];
        assert_eq!(problems("stale2", &[("lib.rs", DENY)], &areas).len(), 1);
    }
}
