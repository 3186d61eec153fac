//! Child processes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace::Workspace;

/// The cargo that runs this program, at the root of the workspace.
pub fn cargo<I, S>(workspace: &Workspace, arguments: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace.root());
    command
}

/// Runs to the end with our own input and output; a sentence when it fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs to the end and shows its output while `line` sees every line of it. Whether it succeeded.
pub fn run_watched(command: &mut Command, mut line: impl FnMut(&str)) -> anyhow::Result<bool> {
    let shown = shown(command);
    println!("$ {shown}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let output = child.stdout.take().context("the child has no output")?;
    for bytes in BufReader::new(output).split(b'\n') {
        // A test may print anything; only the harness's own lines are read, and those are ASCII.
        let text = String::from_utf8_lossy(&bytes?).into_owned();
        println!("{text}");
        line(&text);
    }
    Ok(child.wait()?.success())
}

/// The output of a quick question; an error carries what the program complained about.
pub fn ask(command: &mut Command) -> anyhow::Result<String> {
    let shown = shown(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed: {}", complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
