//! The bounds of what clients send. What depends on the world (is that tile on the map, is that target there) is judged
//! where the world is.

use crate::{CharId, ClientMsg, Login, MOB_ID_BOUND, Order, Resume};

/// Longest name of a character, in bytes.
pub const NAME_BYTES_MAX: usize = 32;
/// Longest password, in bytes: hashing one costs time in proportion to it.
pub const PASSWORD_BYTES_MAX: usize = 128;
/// Longest `say` that servers take unless told otherwise, in bytes; `welcome` tells what one does.
pub const SAY_BYTES_MAX: usize = 256;
/// Longest `say` that any server takes, in bytes.
pub const SAY_BYTES_BOUND: usize = 4_096;
/// Longest session token, in bytes. Ours are shorter; what is longer than this is not looked up.
pub const TOKEN_BYTES_MAX: usize = 64;

/// Which bound a client's message broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A name is empty, too long or has other characters.
    #[error("a name is 1 to {NAME_BYTES_MAX} letters, digits, `_` or `-`")]
    Name,
    /// The one name in 16 million whose hash is the id of a mob.
    #[error("this name cannot be used; choose another")]
    NameReserved,
    /// A password is empty or too long.
    #[error("a password is 1 to {PASSWORD_BYTES_MAX} bytes")]
    Password,
    /// A token is empty or too long.
    #[error("a token is 1 to {TOKEN_BYTES_MAX} bytes")]
    Token,
    /// Orders are numbered from 1.
    #[error("`seq` starts at 1")]
    Seq,
    /// A `say` is empty or too long.
    #[error("what is said is 1 to {SAY_BYTES_BOUND} bytes")]
    SayLength,
    /// A `say` would garble the screens of those who hear it.
    #[error("what is said has no control characters")]
    SayControl,
}

impl ClientMsg {
    /// The number of the order, if it is one.
    pub fn seq(&self) -> Option<u64> {
        match self {
            ClientMsg::Order(order) => Some(order.seq),
            ClientMsg::Login(_) | ClientMsg::Resume(_) | ClientMsg::Ping(_) => None,
        }
    }

    /// Checks the bounds of all fields. [`Encoding::decode_client`](crate::Encoding::decode_client) has done so.
    pub fn validate(&self) -> Result<(), Refusal> {
        match self {
            ClientMsg::Login(login) => login.validate(),
            ClientMsg::Resume(resume) => resume.validate(),
            ClientMsg::Ping(_) => Ok(()),
            ClientMsg::Order(order) if order.seq == 0 => Err(Refusal::Seq),
            ClientMsg::Order(order) => order.order.validate(),
        }
    }
}

impl Login {
    fn validate(&self) -> Result<(), Refusal> {
        validate_name(&self.name)?;
        match &self.password {
            Some(password) if !(1..=PASSWORD_BYTES_MAX).contains(&password.len()) => {
                Err(Refusal::Password)
            }
            _ => Ok(()),
        }
    }
}

impl Resume {
    fn validate(&self) -> Result<(), Refusal> {
        if (1..=TOKEN_BYTES_MAX).contains(&self.token.len()) {
            Ok(())
        } else {
            Err(Refusal::Token)
        }
    }
}

impl Order {
    fn validate(&self) -> Result<(), Refusal> {
        match self {
            Order::Say { text } if !(1..=SAY_BYTES_BOUND).contains(&text.len()) => {
                Err(Refusal::SayLength)
            }
            Order::Say { text } if text.chars().any(char::is_control) => Err(Refusal::SayControl),
            _ => Ok(()),
        }
    }
}

/// Checks that `name` can be the name of a character.
pub fn validate_name(name: &str) -> Result<(), Refusal> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_allowed) {
        return Err(Refusal::Name);
    }
    if CharId::of_name(name).0 < MOB_ID_BOUND {
        return Err(Refusal::NameReserved);
    }
    Ok(())
}
