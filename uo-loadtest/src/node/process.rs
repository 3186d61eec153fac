//! One server process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::ports::free_address;
use crate::http;

/// How often a node is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long one such answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// How a node is started.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's program.
    pub program: PathBuf,
    /// The node's name.
    pub name: String,
    /// Flags beside the name and the admin address.
    pub arguments: Vec<String>,
    /// Where its log goes, as `NAME.log`.
    pub out: PathBuf,
}

/// A node: the same name and addresses over many processes. Dropped, it kills its process.
#[derive(Debug)]
pub struct Node {
    plan: Plan,
    admin: String,
    process: Option<Child>,
}

/// The server's program: the one that was named, or the one beside this program.
pub fn server_program(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let program = match named {
        Some(program) => program.to_owned(),
        None => std::env::current_exe()?.with_file_name("uo-server"),
    };
    ensure!(
        program.exists(),
        "{} is not there; build it, or name it with --server",
        program.display()
    );
    Ok(program)
}

impl Node {
    /// A node that does not run yet.
    pub fn new(plan: Plan) -> anyhow::Result<Node> {
        std::fs::create_dir_all(&plan.out)
            .with_context(|| format!("cannot make {}", plan.out.display()))?;
        Ok(Node {
            plan,
            admin: format!("http://{}", free_address()?),
            process: None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// Its admin address, as `http://host:port`.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// The process, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Starts a process.
    pub fn start(&mut self) -> anyhow::Result<()> {
        ensure!(self.process.is_none(), "{} runs already", self.plan.name);
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .with_context(|| format!("cannot write {}", self.log().display()))?;
        let mut command = Command::new(&self.plan.program);
        command
            .args(["--node", &self.plan.name, "--admin"])
            .arg(self.admin.trim_start_matches("http://"))
            .args(&self.plan.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // A Ctrl-C is for this program, which then ends its nodes; they shall not begin to stop by themselves.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let process = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.plan.program.display()))?;
        self.process = Some(process);
        Ok(())
    }

    /// Waits until the node says that it is ready; how long that took.
    pub async fn wait_ready(&mut self, within: Duration) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        loop {
            let asked = http::get(&self.admin, "/readyz");
            if let Ok(Ok(_)) = tokio::time::timeout(ANSWER_MAX, asked).await {
                return Ok(begun.elapsed());
            }
            if let Some(status) = self.ended()? {
                bail!(
                    "{} ended ({status}); see {}",
                    self.name(),
                    self.log().display()
                );
            }
            ensure!(
                begun.elapsed() < within,
                "{} did not become ready within {} s; see {}",
                self.name(),
                within.as_secs(),
                self.log().display()
            );
            sleep(ASK_EVERY).await;
        }
    }

    /// How the process ended, if it did so by itself.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let status = process.try_wait()?;
        if status.is_some() {
            self.process = None;
        }
        Ok(status)
    }

    /// Waits until the process has ended by itself.
    pub async fn wait_end(&mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            ensure!(self.process.is_some(), "{} does not run", self.name());
            ensure!(
                begun.elapsed() < within,
                "{} did not end within {} s",
                self.name(),
                within.as_secs()
            );
            sleep(ASK_EVERY).await;
        }
    }

    /// SIGKILL: it gets to do nothing more.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// SIGTERM: it stops in order.
    pub fn terminate(&self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGSTOP: it stands still, connections and all.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = self
            .process
            .as_ref()
            .with_context(|| format!("{} does not run", self.plan.name))?;
        Ok(kill_process(Pid::from_child(process), signal)?)
    }

    /// Where its log is.
    pub fn log(&self) -> PathBuf {
        self.plan.out.join(format!("{}.log", self.plan.name))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The command is over, whatever came of it: the process it started is as well. A paused one dies too.
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::test_kill_process;

    use super::*;

    /// A node whose program is this shell script.
    fn scripted(dir: &Path, script: &str) -> Node {
        let program = dir.join("server");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("it is written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).expect("it is ours");
        Node::new(Plan {
            program,
            name: "sim-1".into(),
            arguments: vec!["--role".into(), "sim".into()],
            out: dir.join("out"),
        })
        .expect("a node")
    }

    fn lives(pid: u32) -> bool {
        let pid = Pid::from_raw(pid as i32).expect("no pid is 0");
        test_kill_process(pid).is_ok()
    }

    #[tokio::test]
    async fn a_node_keeps_its_name_and_address_over_its_processes_and_its_log_has_all() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut node = scripted(dir.path(), "echo \"$@\" >&2");
        for _ in 0..2 {
            node.start().expect("it starts");
            let status = node.wait_end(Duration::from_secs(60)).await;
            assert!(status.expect("it ends").success());
        }
        let address = node.admin().trim_start_matches("http://");
        let line = format!("--node sim-1 --admin {address} --role sim\n");
        let log = std::fs::read_to_string(node.log()).expect("a log");
        assert_eq!(log, line.repeat(2));
    }

    #[tokio::test]
    async fn a_process_does_not_outlive_its_node_paused_or_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut node = scripted(dir.path(), "exec sleep 600");
        node.start().expect("it starts");
        assert!(node.start().is_err(), "it runs already");
        let first = node.pid().expect("it runs");
        node.kill().expect("it can be killed");
        assert!(!lives(first));
        node.start().expect("it starts again");
        let second = node.pid().expect("it runs");
        node.pause().expect("it can be paused");
        assert!(lives(second));
        drop(node);
        assert!(!lives(second));
    }

    #[tokio::test]
    async fn a_process_that_ends_is_told_with_its_log() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut node = scripted(dir.path(), "exit 3");
        node.start().expect("it starts");
        let error = node.wait_ready(Duration::from_secs(60)).await;
        let error = error.expect_err("it is not ready").to_string();
        assert!(error.contains("sim-1.log"), "{error}");
    }
}
