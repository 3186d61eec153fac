//! Where the database is: what follows `scylla://`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;

/// The keyspace of a place that names none.
pub const KEYSPACE: &str = "felucca";

const PORT: u16 = 9042;

/// Hosts to begin with, and the keyspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Each as `host:port`; the database tells of its other nodes.
    pub hosts: Vec<String>,
    /// Lower-case letters, digits and underscores, so that it never needs quotes.
    pub keyspace: String,
}

/// A place that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is no host, or one without a name, or a port that is none.
    #[error("{0:?} is not a host or host:port; write scylla://host:9042,host2")]
    Host(String),
    /// The keyspace has other characters than Cassandra takes without quotes.
    #[error(
        "{0:?} is not a keyspace: it is made of lower-case letters, digits and underscores, begins with a letter and has \
         48 characters at most"
    )]
    Keyspace(String),
}

impl Place {
    /// Reads `host[:port],host[:port],..[/keyspace]`.
    pub fn parse(text: &str) -> Result<Place, PlaceError> {
        let (hosts, keyspace) = match text.split_once('/') {
            Some((hosts, keyspace)) if !keyspace.is_empty() => (hosts, keyspace),
            Some((hosts, _)) => (hosts, KEYSPACE),
            None => (text, KEYSPACE),
        };
        let good = keyspace.len() <= 48
            && keyspace.starts_with(|c: char| c.is_ascii_lowercase())
            && keyspace
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !good {
            return Err(PlaceError::Keyspace(keyspace.into()));
        }
        Ok(Place {
            hosts: hosts.split(',').map(host).collect::<Result<_, _>>()?,
            keyspace: keyspace.into(),
        })
    }
}

/// With its port. An IPv6 address with a port is written in brackets.
fn host(text: &str) -> Result<String, PlaceError> {
    let bad = || PlaceError::Host(text.into());
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, port.parse().map_err(|_| bad())?)
        }
        _ => (text, PORT),
    };
    let taken = |c: char| c.is_whitespace() || c == '@' || c == '?';
    if name.is_empty() || name.contains(taken) {
        return Err(bad());
    }
    Ok(format!("{name}:{port}"))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scylla://{}", self.hosts.join(","))?;
        match self.keyspace.as_str() {
            KEYSPACE => Ok(()),
            other => write!(f, "/{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Place::parse(text) {
            Ok(place) => format!("{} in {}", place.hosts.join(" "), place.keyspace),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn hosts_get_their_port_and_the_keyspace_its_name() {
        assert_eq!(shown("a:9043,b"), "a:9043 b:9042 in felucca");
        assert_eq!(shown("[::1]:9043/other_1"), "[::1]:9043 in other_1");
        assert_eq!(shown("10.0.0.1/"), "10.0.0.1:9042 in felucca");
        let text = "scylla://a:9042,b:9042/other";
        let place = Place::parse(&text["scylla://".len()..]).expect("it is a place");
        assert_eq!(place.to_string(), text);
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["", "a,,b", "a:port", "a:70000", ":9042", "me@a"] {
            assert!(shown(text).contains("is not a host"), "{text}");
        }
        for text in ["a/Upper", "a/1st", "a/with-dash", "a/b/c"] {
            assert!(shown(text).contains("is not a keyspace"), "{text}");
        }
    }
}
