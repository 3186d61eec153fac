//! A relay between WebSocket clients and their gateway that does harm to the frames with speech.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What is done to some frames of the first connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// None.
    Nothing,
    /// One does not arrive.
    Drop,
    /// One arrives twice.
    Double,
    /// One arrives after the next.
    Swap,
}

/// What every line has in it, and nothing else.
const SPEECH: &[u8] = b"the lazy dog";
/// The frame with speech that is harmed, counted from 0.
const HARMED: usize = 40;
/// Longest head of an answer to an upgrade.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Listens, and passes on what comes to `to`, until the test ends. Returns where it listens.
pub async fn relay(to: SocketAddr, harm: Harm) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut harm = harm;
        while let Ok((client, _)) = listener.accept().await {
            let harm = std::mem::replace(&mut harm, Harm::Nothing);
            tokio::spawn(pass(client, to, harm));
        }
    });
    address
}

async fn pass(client: TcpStream, to: SocketAddr, harm: Harm) -> io::Result<()> {
    let server = TcpStream::connect(to).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    tokio::select! {
        done = tokio::io::copy(&mut from_client, &mut to_server) => done.map(drop),
        done = down(from_server, to_client, harm) => done,
    }
}

/// From the server to the client: the answer to the upgrade as it is, then frame by frame.
async fn down(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, harm: Harm) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(from.read_u8().await?);
    }
    to.write_all(&head).await?;
    let mut from = tokio::io::BufReader::new(from);
    let (mut speeches, mut held) = (0, None);
    loop {
        let frame = frame(&mut from).await?;
        if !frame.windows(SPEECH.len()).any(|words| words == SPEECH) {
            to.write_all(&frame).await?;
            continue;
        }
        match harm {
            Harm::Drop if speeches == HARMED => {}
            Harm::Double if speeches == HARMED => to.write_all(&frame.repeat(2)).await?,
            Harm::Swap if speeches == HARMED => held = Some(frame),
            _ => {
                to.write_all(&frame).await?;
                if let Some(held) = held.take() {
                    to.write_all(&held).await?;
                }
            }
        }
        speeches += 1;
    }
}

/// One frame of a server, which masks nothing, with its head.
async fn frame(from: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut frame = vec![from.read_u8().await?, from.read_u8().await?];
    let extended = match frame[1] & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mut length = usize::from(frame[1] & 0x7f);
    if extended > 0 {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes[8 - extended..]).await?;
        frame.extend(&bytes[8 - extended..]);
        length = u64::from_be_bytes(bytes) as usize;
    }
    let head = frame.len();
    frame.resize(head + length, 0);
    from.read_exact(&mut frame[head..]).await?;
    Ok(frame)
}
