//! The way by which other nodes reach a node: it carries bytes, and can be shut for one caller or for all.
//!
//! Who calls is read from the first frame, which tells it in the clear.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// See the module.
pub struct Door {
    /// What other nodes dial.
    pub address: SocketAddr,
    leads_to: watch::Sender<Option<SocketAddr>>,
    shut: watch::Sender<Shut>,
}

/// For whom a door is shut.
#[derive(Clone, Default)]
struct Shut {
    /// Nothing is carried for these, and nobody is told: packets are lost.
    silently: BTreeSet<String>,
    /// Grows with each time that all connections are cut.
    cuts: u64,
}

impl Door {
    /// A door that leads nowhere yet; inside the runtime of its node.
    pub async fn open() -> std::io::Result<Door> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (leads_to, shut) = (
            watch::Sender::new(None),
            watch::Sender::new(Shut::default()),
        );
        let (target, is_shut) = (leads_to.subscribe(), shut.subscribe());
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(carry(caller, target.clone(), is_shut.clone()));
            }
        });
        Ok(Door {
            address,
            leads_to,
            shut,
        })
    }

    /// Where it leads.
    pub fn leads_to(&self, node: SocketAddr) {
        self.leads_to.send_replace(Some(node));
    }

    /// From now on nothing passes between its node and `caller`; neither is told.
    pub fn shut_for(&self, caller: &str) {
        self.shut.send_modify(|shut| {
            shut.silently.insert(caller.into());
        });
    }

    /// Everybody may pass again. What was held up is lost with its connection.
    pub fn reopen(&self) {
        self.shut.send_modify(|shut| {
            shut.silently.clear();
            shut.cuts += 1;
        });
    }

    /// Ends every connection through it; new ones are let through.
    pub fn cut(&self) {
        self.shut.send_modify(|shut| shut.cuts += 1);
    }
}

/// Carries bytes both ways until one side ends, or the door is shut.
async fn carry(
    mut caller: TcpStream,
    mut target: watch::Receiver<Option<SocketAddr>>,
    mut shut: watch::Receiver<Shut>,
) -> std::io::Result<()> {
    let Ok(Some(to)) = target.wait_for(Option::is_some).await.map(|to| *to) else {
        return Ok(());
    };
    let mut node = TcpStream::connect(to).await?;
    let cuts = shut.borrow().cuts;
    let mut greeting = Vec::new();
    let (mut up, mut down) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    while shut.borrow_and_update().cuts == cuts {
        let is_shut = shut.borrow().is_for(&greeting);
        tokio::select! {
            changed = shut.changed() => if changed.is_err() {
                return Ok(());
            },
            read = caller.read(&mut up), if !is_shut => {
                let bytes = &up[..read?];
                if greeting.len() < CHUNK_BYTES {
                    greeting.extend_from_slice(bytes);
                }
                going_on(bytes)?;
                // Whoever calls at a shut door is not even announced.
                if !shut.borrow().is_for(&greeting) {
                    node.write_all(bytes).await?;
                }
            }
            read = node.read(&mut down), if !is_shut => {
                let bytes = &down[..read?];
                going_on(bytes)?;
                caller.write_all(bytes).await?;
            }
        }
    }
    Ok(())
}

fn going_on(bytes: &[u8]) -> std::io::Result<()> {
    match bytes.is_empty() {
        true => Err(std::io::ErrorKind::UnexpectedEof.into()),
        false => Ok(()),
    }
}

impl Shut {
    /// Whether nothing passes for the caller with this greeting.
    fn is_for(&self, greeting: &[u8]) -> bool {
        let says = |name: &String| {
            greeting
                .windows(name.len())
                .any(|part| part == name.as_bytes())
        };
        self.silently.iter().any(says)
    }
}
