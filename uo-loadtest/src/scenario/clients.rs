//! Real game clients that play beside the bots: programs of their own, which end by themselves or are ended.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

/// Between two looks whether one has ended.
const LOOK: Duration = Duration::from_millis(50);

/// See the module. Dropped, whoever still runs is killed, with everything that it started.
pub struct Clients(Vec<Client>);

struct Client {
    name: String,
    process: Child,
    status: Option<ExitStatus>,
}

/// How one ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The character's name.
    pub name: String,
    /// What became of it, in words.
    pub how: String,
    /// Whether it ended by itself, and well.
    pub is_good: bool,
}

/// The command of one client, for the shell.
fn command_of(template: &str, urls: &str, name: &str, out: &Path) -> String {
    template
        .replace("{urls}", urls)
        .replace("{name}", name)
        .replace("{out}", &out.display().to_string())
}

impl Clients {
    /// Starts `count` of them. In `template`, `{urls}` stands for the gateways, `{name}` for the character, `{out}` for the
    /// folder of the run, where each has its log.
    pub fn start(
        count: u16,
        template: &str,
        urls: &[String],
        out: &Path,
    ) -> anyhow::Result<Clients> {
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let mut clients = Clients(Vec::new());
        for number in 1..=count {
            let name = format!("client-{number}");
            let path = out.join(format!("{name}.log"));
            let log =
                File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            let command = command_of(template, &urls.join(","), &name, out);
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &command])
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log);
            std::os::unix::process::CommandExt::process_group(&mut shell, 0);
            let process = shell
                .spawn()
                .with_context(|| format!("cannot run `{command}`"))?;
            clients.0.push(Client {
                name,
                process,
                status: None,
            });
        }
        Ok(clients)
    }

    /// Waits until all have ended, and ends those that have not by then.
    pub async fn end(&mut self, within: Duration) -> anyhow::Result<Vec<Ended>> {
        let deadline = Instant::now() + within;
        while !self.look()? && Instant::now() < deadline {
            sleep(LOOK).await;
        }
        let mut ended = Vec::new();
        for client in &mut self.0 {
            let how = match client.status {
                Some(status) => status.to_string(),
                None => {
                    client.kill()?;
                    "it did not end by itself, and was killed".into()
                }
            };
            ended.push(Ended {
                name: client.name.clone(),
                how,
                is_good: client.status.is_some_and(|status| status.success()),
            });
        }
        self.0.clear();
        Ok(ended)
    }

    /// Whether all have ended.
    fn look(&mut self) -> anyhow::Result<bool> {
        for client in &mut self.0 {
            if client.status.is_none() {
                client.status = client.process.try_wait()?;
            }
        }
        Ok(self.0.iter().all(|client| client.status.is_some()))
    }
}

impl Client {
    fn kill(&mut self) -> anyhow::Result<()> {
        // What the shell started is of its group.
        kill_process_group(Pid::from_child(&self.process), Signal::KILL)?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for client in self.0.iter_mut().filter(|client| client.status.is_none()) {
            let _ = client.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clients_are_told_where_to_play_and_do_not_outlive_the_run() {
        let dir = tempfile::tempdir().expect("a folder");
        let urls = ["ws://a".to_owned(), "ws://b".to_owned()];
        let run = |template: &'static str| {
            let mut clients = Clients::start(2, template, &urls, dir.path()).expect("they start");
            async move {
                clients
                    .end(Duration::from_secs(60))
                    .await
                    .expect("they end")
            }
        };
        let ended = run("echo {urls} > {out}/{name}.txt; [ {name} = client-1 ]").await;
        let good: Vec<bool> = ended.iter().map(|ended| ended.is_good).collect();
        assert_eq!(good, [true, false]);
        let told = std::fs::read_to_string(dir.path().join("client-2.txt"));
        assert_eq!(told.expect("it was written"), "ws://a,ws://b\n");

        let mut endless =
            Clients::start(1, "sleep 600 & wait", &urls, dir.path()).expect("it starts");
        let ended = endless.end(Duration::ZERO).await.expect("it is ended");
        assert!(ended[0].how.contains("was killed"), "{ended:?}");
    }
}
