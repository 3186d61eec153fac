//! `cargo` commands name packages, targets and tasks that exist.

use std::collections::BTreeMap;

use anyhow::Context;
use clap::CommandFactory;
use serde_json::Value;

use crate::command::{ask, cargo};
use crate::workspace::Workspace;

/// The commands of cargo that our pages may tell a reader to type.
const CARGO_COMMANDS: &[&str] = &[
    "add", "bench", "build", "check", "clippy", "clean", "doc", "fetch", "fmt", "fuzz", "info",
    "install", "metadata", "run", "test", "tree", "update",
];

/// Each package's targets: kind (`bin`, `example`, `test`, `bench`) and name.
type Targets = Vec<(String, String)>;

/// What there is to name.
pub struct Catalogue {
    packages: BTreeMap<String, Targets>,
    /// The packages meant by a command that names none.
    default: Vec<String>,
    tasks: Vec<String>,
}

impl Catalogue {
    /// Asks cargo what the workspace holds.
    pub fn read(workspace: &Workspace) -> anyhow::Result<Catalogue> {
        let arguments = ["metadata", "--no-deps", "--format-version", "1", "--locked"];
        let metadata: Value = serde_json::from_str(&ask(&mut cargo(workspace, arguments))?)?;
        let mut packages = BTreeMap::new();
        let mut default = Vec::new();
        let default_ids = metadata["workspace_default_members"]
            .as_array()
            .context("no default members")?;
        for package in metadata["packages"].as_array().context("no packages")? {
            let name = package["name"]
                .as_str()
                .context("a package without a name")?
                .to_owned();
            if default_ids.contains(&package["id"]) {
                default.push(name.clone());
            }
            packages.insert(name, targets(package));
        }
        let tasks = crate::Arguments::command();
        let tasks = tasks
            .get_subcommands()
            .map(|task| task.get_name().to_owned())
            .collect();
        Ok(Catalogue {
            packages,
            default,
            tasks,
        })
    }

    /// Checks a command, given without its leading `cargo`.
    pub fn check(&self, command: &str) -> Result<(), String> {
        let words: Vec<&str> = command
            .split_whitespace()
            .take_while(|word| *word != "--")
            .collect();
        let mut words = words.into_iter().filter(|word| !word.starts_with('+'));
        let Some(subcommand) = words.next() else {
            return Ok(());
        };
        if subcommand == "xtask" {
            return match words.next() {
                Some(task) if !task.starts_with('-') => self.check_task(task),
                _ => Ok(()),
            };
        }
        if !CARGO_COMMANDS.contains(&subcommand) {
            return Err(format!(
                "`cargo {command}`: cargo has no command `{subcommand}` that we use"
            ));
        }
        self.check_targets(command, &words.collect::<Vec<_>>())
    }

    fn check_task(&self, task: &str) -> Result<(), String> {
        if self.tasks.iter().any(|known| known == task) {
            Ok(())
        } else {
            Err(format!(
                "`cargo xtask {task}`: there are only {}",
                self.tasks.join(", ")
            ))
        }
    }

    fn check_targets(&self, command: &str, words: &[&str]) -> Result<(), String> {
        let mut packages = self.default.clone();
        let options = options(words);
        if words.contains(&"--workspace") {
            packages = self.packages.keys().cloned().collect();
        }
        if let Some((_, name)) = options
            .iter()
            .find(|(option, _)| matches!(*option, "-p" | "--package"))
        {
            packages = vec![(*name).to_owned()];
        }
        if let Some(unknown) = packages
            .iter()
            .find(|name| !self.packages.contains_key(*name))
        {
            return Err(format!(
                "`cargo {command}`: there is no package `{unknown}`"
            ));
        }
        for (option, target) in options {
            let Some(kind) = ["bin", "example", "test", "bench"]
                .iter()
                .find(|kind| option == format!("--{kind}"))
            else {
                continue;
            };
            let has = |name: &String| {
                self.packages[name]
                    .iter()
                    .any(|(of, name)| of == kind && name == target)
            };
            if !packages.iter().any(has) {
                return Err(format!(
                    "`cargo {command}`: {} has no {kind} `{target}`",
                    packages.join(", ")
                ));
            }
        }
        Ok(())
    }
}

/// The options that take a value, with it: `-p x`, `--example x`, `--example=x`.
fn options<'a>(words: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let mut options = Vec::new();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            continue;
        }
        if let Some((option, value)) = word.split_once('=') {
            options.push((option, value));
        } else if let Some(value) = words.next_if(|next| !next.starts_with('-')) {
            options.push((word, value));
        }
    }
    options
}

fn targets(package: &Value) -> Targets {
    let targets = package["targets"].as_array().into_iter().flatten();
    let named = targets.filter_map(|target| {
        Some((
            target["kind"][0].as_str()?.to_owned(),
            target["name"].as_str()?.to_owned(),
        ))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let of = |list: &[(&str, &str)]| {
            list.iter()
                .map(|(kind, name)| ((*kind).into(), (*name).into()))
                .collect()
        };
        Catalogue {
            packages: BTreeMap::from([
                (
                    "uo-server".into(),
                    of(&[("bin", "uo-server"), ("test", "simulated")]),
                ),
                ("uo-sdk".into(), of(&[("example", "hello_bot")])),
            ]),
            default: vec!["uo-server".into()],
            tasks: vec!["test".into(), "ci".into()],
        }
    }

    #[test]
    fn commands_that_exist_pass() {
        for command in [
            "run --release",
            "run --release -p uo-sdk --example hello_bot -- --name Me -p nothing",
            "test --test simulated",
            "test --workspace --example=hello_bot",
            "xtask test --only unit",
            "+1.95 build",
        ] {
            assert_eq!(catalogue().check(command), Ok(()), "{command}");
        }
    }

    #[test]
    fn commands_that_do_not_exist_are_problems() {
        for command in [
            "run -p uo-absent",
            "run --package=uo-absent",
            "run -p uo-sdk --example absent",
            "test --test absent",
            "xtask absent",
            "absent",
        ] {
            assert!(catalogue().check(command).is_err(), "{command}");
        }
    }
}
