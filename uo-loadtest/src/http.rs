//! The little of HTTP that the nodes' admin pages need.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Largest page that is read.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Most lines of an answer's head.
const HEAD_LINES_MAX: usize = 64;

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The page.
    pub body: String,
}

/// A connection to one admin address that is kept from one question to the next.
#[derive(Debug)]
pub struct Line {
    host: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Line {
    /// A line to `http://host:port`.
    pub fn new(base: &str) -> anyhow::Result<Line> {
        let host = base
            .strip_prefix("http://")
            .with_context(|| format!("`{base}` is not an address of the form http://host:port"))?
            .trim_end_matches('/')
            .to_owned();
        Ok(Line { host, stream: None })
    }

    /// Asks for a page. After a failure, or when this future is dropped, the next question takes a new connection.
    pub async fn ask(&mut self, method: &str, path: &str) -> anyhow::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.host).await?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
            self.host
        );
        stream.write_all(request.as_bytes()).await?;
        let answer = read_answer(&mut stream).await?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

async fn read_answer(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .context("the answer is not HTTP")?;
    let mut length = None;
    for _ in 0..HEAD_LINES_MAX {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let length = length.context("the answer does not say how long it is")?;
    ensure!(length <= BODY_BYTES_MAX, "a page of {length} bytes");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Answer {
        status,
        body: String::from_utf8(body)?,
    })
}

/// Asks once; whatever is not 200 is an error that says what the page says.
pub async fn get(base: &str, path: &str) -> anyhow::Result<String> {
    let answer = Line::new(base)?.ask("GET", path).await?;
    match answer.status {
        200 => Ok(answer.body),
        status => bail!("{status}: {}", answer.body),
    }
}

/// Posts once within `wait`.
pub async fn post(base: &str, path: &str, wait: Duration) -> anyhow::Result<Answer> {
    let mut line = Line::new(base)?;
    tokio::time::timeout(wait, line.ask("POST", path))
        .await
        .with_context(|| format!("{base}{path} is not answered"))?
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_line_is_kept_between_questions_and_made_anew_after_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("bound"));
        let server = tokio::spawn(async move {
            let (mut first, _) = listener.accept().await.expect("a caller");
            let mut buffer = [0; 1024];
            for answer in [
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            ] {
                let _ = first.read(&mut buffer).await.expect("a question");
                first.write_all(answer.as_bytes()).await.expect("a reader");
            }
            let _ = first.read(&mut buffer).await.expect("a question");
            drop(first);
            let (mut second, _) = listener.accept().await.expect("a caller");
            let _ = second.read(&mut buffer).await.expect("a question");
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nagain";
            second.write_all(answer).await.expect("a reader");
        });
        let mut line = Line::new(&base).expect("an address");
        assert_eq!(line.ask("GET", "/").await.expect("answered").body, "hi");
        assert_eq!(line.ask("GET", "/").await.expect("answered").status, 404);
        assert!(line.ask("GET", "/").await.is_err());
        assert_eq!(line.ask("GET", "/").await.expect("answered").body, "again");
        server.await.expect("it does not panic");
    }
}
