//! No overlong file, no unfinished code.

use crate::report::Tally;
use crate::suite::Depth;
use crate::suites::findings::Findings;
use crate::workspace::Workspace;

/// A file that outgrows this is missing a noun: split it.
const LINES_MAX: usize = 600;

/// Marks of unfinished code, written in two parts so that this file does not find itself.
const MARKS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("db", "g!("),
];

/// Checks every Rust file.
pub fn run(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    let mut findings = Findings::default();
    for path in workspace.files("", "rs")? {
        check(&mut findings, &path, &workspace.read(&path)?);
    }
    Ok(findings.tell())
}

fn check(findings: &mut Findings, path: &str, text: &str) {
    let lines = text.lines().count();
    let short_enough = if lines <= LINES_MAX {
        Ok(())
    } else {
        Err(format!(
            "has {lines} lines; split it, {LINES_MAX} are allowed"
        ))
    };
    findings.check(path, short_enough);
    for (index, line) in text.lines().enumerate() {
        for mark in MARKS.iter().filter(|mark| line.contains(**mark)) {
            let place = format_args!("{path}:{}", index + 1);
            findings.check(
                place,
                Err(format!(
                    "`{mark}` marks unfinished code; finish or remove it"
                )),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(&mut findings, "some.rs", text);
        findings.problems().to_vec()
    }

    #[test]
    fn each_mark_is_found_with_its_line() {
        for mark in MARKS {
            let found = problems(&format!("fn finished() {{}}\n    {mark}\n"));
            assert_eq!(found.len(), 1, "{mark}");
            assert!(found[0].starts_with("some.rs:2: "), "{found:?}");
        }
        assert!(problems("fn finished() {}\n").is_empty());
    }

    #[test]
    fn the_longest_allowed_file_passes_and_one_line_more_does_not() {
        assert!(problems(&"\n".repeat(LINES_MAX)).is_empty());
        assert_eq!(problems(&"\n".repeat(LINES_MAX + 1)).len(), 1);
    }
}
