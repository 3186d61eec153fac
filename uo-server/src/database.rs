//! The flags of a database, and the `schema` subcommand.

use std::net::SocketAddr;

use anyhow::Context;
use clap::Args;

use crate::store::scylla::{Access, Login, Place, create};

/// How to use a database. The environment is the better place for a password.
#[derive(Args, Clone, Debug)]
pub struct DatabaseArgs {
    /// Replicas of each row, for a keyspace that is still to be made.
    #[arg(
        long,
        env = "UO_SCYLLA_RF",
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=9)
    )]
    scylla_rf: u8,
    /// Who to log in as, if the database asks.
    #[arg(long, env = "UO_SCYLLA_USER", value_name = "NAME")]
    scylla_user: Option<String>,
    /// And with what password.
    #[arg(
        long,
        env = "UO_SCYLLA_PASSWORD",
        hide_env_values = true,
        default_value = "",
        value_name = "TEXT"
    )]
    scylla_password: String,
    /// Reach the database's node that calls itself A at B, for one behind a proxy or another network; each is HOST:PORT
    /// with numbers. With such a rule, only nodes that have one are reached.
    #[arg(long, value_delimiter = ',', value_name = "A=B,..", value_parser = translation)]
    store_translate: Vec<(SocketAddr, SocketAddr)>,
}

fn translation(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let both = text
        .split_once('=')
        .and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    both.ok_or_else(|| "it is A=B, like 10.0.0.1:9042=127.0.0.1:19042".into())
}

/// Makes the keyspace and the tables that are missing, and nothing else.
#[derive(Args, Clone, Debug)]
pub struct SchemaArgs {
    /// The database: scylla://host:9042,host2[/keyspace].
    #[arg(long, value_name = "STORE")]
    store: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl DatabaseArgs {
    /// Replicas of each row.
    pub fn replicas(&self) -> u8 {
        self.scylla_rf
    }

    /// The database at what follows `scylla://`.
    pub fn access(&self, place: &str) -> anyhow::Result<Access> {
        Ok(Access {
            place: Place::parse(place)?,
            login: self.scylla_user.clone().map(|user| Login {
                user,
                password: self.scylla_password.clone(),
            }),
            translate: self.store_translate.clone(),
        })
    }
}

/// Runs the subcommand and says what it did.
pub async fn make_schema(args: SchemaArgs) -> anyhow::Result<String> {
    let place = args
        .store
        .strip_prefix("scylla://")
        .with_context(|| format!("--store {}: a schema is for scylla://host:9042", args.store))?;
    let access = args
        .database
        .access(place)
        .with_context(|| format!("--store {}", args.store))?;
    let made = create(&access, args.database.replicas()).await?;
    let keyspace = match made.keyspace {
        true => format!("made with {} replica(s)", args.database.replicas()),
        false => "there already".into(),
    };
    let tables = match made.tables.as_slice() {
        [] => "there already".into(),
        made => format!("made {}", made.join(", ")),
    };
    Ok(format!(
        "{}: keyspace {keyspace}; tables {tables}",
        access.place
    ))
}
