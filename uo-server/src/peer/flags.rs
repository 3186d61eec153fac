//! The flags of links between processes.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use clap::Args;

use super::outbound::Bounds;
use super::proof::{Hello, Secret, VERSION, VERSION_MIN};
use super::tcp::Presence;
use crate::identity::Holder;
use crate::limits::{NAME_BYTES_MAX, SECRET_BYTES_MIN};
use crate::store::row::Role;

/// Files of secrets are short; one that is not was not meant.
const SECRET_FILE_BYTES_MAX: u64 = 4 * 1024;

/// How other processes of the same cluster find and trust this one.
#[derive(Args, Clone, Debug)]
pub struct PeerArgs {
    /// The cluster's name. Nodes of another one are refused.
    #[arg(long, default_value = "felucca", value_name = "NAME")]
    cluster: String,
    /// Where other nodes connect; the default is a free port on loopback. Only for a --store that several share.
    #[arg(long, value_name = "ADDR")]
    peer_listen: Option<SocketAddr>,
    /// The address that other nodes are told; the default is the one of --peer-listen.
    #[arg(long, value_name = "HOST:PORT")]
    peer_advertise: Option<String>,
    /// A file with the cluster's secret. Without a secret only nodes on this machine are linked.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The cluster's secret itself. Everybody on this machine can read a command line: use the environment or a file.
    #[arg(
        long,
        env = "UO_CLUSTER_SECRET",
        hide_env_values = true,
        hide = true,
        value_name = "TEXT"
    )]
    cluster_secret: Option<Hidden>,
}

/// Text that is not shown, not even when it is wrong.
#[derive(Clone)]
struct Hidden(String);

impl FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Hidden, Self::Err> {
        Ok(Hidden(text.into()))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(..)")
    }
}

/// How this node is linked to others; checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerConfig {
    /// The cluster's name.
    pub cluster: String,
    /// Where other nodes connect.
    pub listen: SocketAddr,
    /// What they are told; none: the address that was bound.
    pub advertise: Option<String>,
    /// What they have to prove to know.
    pub secret: Secret,
    /// The versions of the messages that this node offers to speak: the oldest and the newest. Fewer than it knows only in
    /// tests, where it stands for a node that is not upgraded yet.
    pub versions: (u16, u16),
}

impl PeerConfig {
    /// How a node presents itself as that boot.
    pub fn presence(&self, me: Holder, role: Role) -> Presence {
        Presence {
            hello: Hello {
                cluster: self.cluster.clone(),
                version_min: self.versions.0,
                version_max: self.versions.1,
                holder: me,
                role,
            },
            secret: self.secret.clone(),
            bounds: Bounds::default(),
        }
    }
}

impl PeerArgs {
    /// Checks the flags; none: nobody else can share `store`, so there is nobody to be linked to.
    pub fn check(&self, store: &str, is_shared: bool) -> anyhow::Result<Option<PeerConfig>> {
        if !is_shared {
            let given = [
                self.peer_listen.map(|_| "--peer-listen"),
                self.peer_advertise.as_ref().map(|_| "--peer-advertise"),
            ];
            if let Some(flag) = given.into_iter().flatten().next() {
                bail!(
                    "{flag}: no other node can share a world that is kept with --store {store}; it takes a database \
                     (scylla://host:9042)"
                );
            }
            return Ok(None);
        }
        ensure!(
            is_name(&self.cluster),
            "--cluster {:?}: a name is made of at most {NAME_BYTES_MAX} letters, digits and dashes",
            self.cluster
        );
        let listen = self
            .peer_listen
            .unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        let secret = self.secret()?;
        if secret.is_none() && !listen.ip().is_loopback() {
            bail!(
                "--peer-listen {listen} can be reached from other machines, and without a secret anybody could join: \
                 give every node the same one ({SECRET_BYTES_MIN} bytes or more) in UO_CLUSTER_SECRET or by --secret-file"
            );
        }
        match &self.peer_advertise {
            Some(address) => ensure!(
                is_address(address),
                "--peer-advertise {address}: it is HOST:PORT, like sim-1.internal:7790"
            ),
            None => ensure!(
                !listen.ip().is_unspecified(),
                "--peer-listen {listen} is every address of this machine: say with --peer-advertise HOST:PORT which of \
                 them the other nodes are to use"
            ),
        }
        Ok(Some(PeerConfig {
            cluster: self.cluster.clone(),
            listen,
            advertise: self.peer_advertise.clone(),
            secret,
            versions: (VERSION_MIN, VERSION),
        }))
    }

    fn secret(&self) -> anyhow::Result<Secret> {
        match (&self.secret_file, &self.cluster_secret) {
            (None, None) => Ok(Secret::none()),
            (Some(_), Some(_)) => {
                bail!(
                    "there are two secrets, UO_CLUSTER_SECRET and --secret-file: give one of them"
                )
            }
            (None, Some(Hidden(text))) => Secret::parse(text).context("UO_CLUSTER_SECRET"),
            (Some(path), None) => {
                let name = || format!("--secret-file {}", path.display());
                let bytes = std::fs::metadata(path).with_context(name)?.len();
                ensure!(
                    bytes <= SECRET_FILE_BYTES_MAX,
                    "{}: a secret has at most {SECRET_FILE_BYTES_MAX} bytes, and this has {bytes}",
                    name()
                );
                let text = std::fs::read_to_string(path).with_context(name)?;
                Secret::parse(&text).with_context(name)
            }
        }
    }
}

/// Whether text names a node or a cluster.
pub fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_part)
}

fn is_address(text: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && is_port(port))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        peer: PeerArgs,
    }

    const SECRET: &str = "a secret that all share";

    fn check(args: &[&str]) -> Result<PeerConfig, String> {
        let cli = Cli::try_parse_from([&["x"], args].concat()).map_err(|it| it.to_string())?;
        let checked = cli.peer.check("scylla://h", true);
        checked
            .map(|config| config.expect("the store is shared"))
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn without_flags_it_is_for_this_machine_alone() {
        let config = check(&[]).unwrap();
        assert!(config.listen.ip().is_loopback() && config.secret.is_none());
        assert_eq!(config.cluster, "felucca");
    }

    #[test]
    fn a_secret_opens_it_to_other_machines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, format!("{SECRET}\n")).unwrap();
        let path = file.path().to_str().unwrap();
        let open = ["--peer-listen", "10.0.0.1:7790"];
        let by_file = check(&[&open[..], &["--secret-file", path]].concat()).unwrap();
        let by_text = check(&[&open[..], &["--cluster-secret", SECRET]].concat()).unwrap();
        assert_eq!(by_file, by_text);
    }

    #[test]
    fn mistakes_get_one_line_and_no_secret_is_shown() {
        let open = "0.0.0.0:7790";
        let short = "too short a one";
        let cases: &[(&[&str], &str)] = &[
            (&["--peer-listen", open], "UO_CLUSTER_SECRET"),
            (
                &["--peer-listen", open, "--cluster-secret", SECRET],
                "--peer-advertise HOST:PORT",
            ),
            (&["--peer-advertise", "sim-1"], "HOST:PORT"),
            (&["--peer-advertise", "sim-1:0"], "HOST:PORT"),
            (&["--cluster", "a b"], "letters, digits and dashes"),
            (&["--cluster-secret", short], "fewer than 16 bytes"),
            (&["--secret-file", "/nowhere/secret"], "/nowhere/secret"),
            (
                &["--secret-file", "x", "--cluster-secret", SECRET],
                "give one of them",
            ),
        ];
        for (args, expected) in cases {
            let error = check(args).expect_err("it is refused");
            assert!(error.contains(expected), "{args:?}: {error}");
            assert!(!error.contains('\n') && !error.contains(short), "{error}");
            assert!(!error.contains(SECRET), "{error}");
        }
        let cli = Cli::parse_from(["x", "--cluster-secret", SECRET]);
        assert!(!format!("{:?}", cli.peer).contains(SECRET));
    }

    #[test]
    fn a_world_of_ones_own_has_no_links() {
        let of = |args: &[&str]| {
            Cli::parse_from([&["x"], args].concat())
                .peer
                .check("mem", false)
        };
        assert!(of(&[]).unwrap().is_none());
        let error = of(&["--peer-listen", "127.0.0.1:1"]).unwrap_err();
        assert!(error.to_string().contains("--store mem"), "{error}");
    }
}
