//! Messages of clients.
//!
//! They are read in two passes without a buffer between: the head says which message it is, then its own fields are
//! read straight from the frame. (Serde's derived code for tagged enums copies every field it meets into a tree first,
//! at up to 64 bytes for one byte of the frame.)

use serde::{Deserialize, Serialize};

use super::{Checked, DecodeError, Encoding, unknown_type};
use crate::{
    ClientMsg, Dir, ItemKind, Login, NumberedOrder, ObjectKey, Order, Ping, Pos, Resume, Slot,
    Spell, Target,
};

impl Encoding {
    /// Reads a client's message and checks the bounds of its fields.
    pub fn decode_client(self, bytes: &[u8]) -> Result<ClientMsg, DecodeError> {
        let frame = Checked::new(self, bytes)?;
        let head = frame.head()?;
        let msg = match head.r#type.as_ref() {
            "login" => ClientMsg::Login(frame.parse()?),
            "resume" => ClientMsg::Resume(frame.parse()?),
            "ping" => ClientMsg::Ping(frame.parse()?),
            name => {
                let order = read_order(name, frame).map_err(|error| error.about(head.seq))?;
                let seq = head
                    .seq
                    .ok_or_else(|| DecodeError::invalid("missing field `seq`"))?;
                ClientMsg::Order(NumberedOrder { seq, order })
            }
        };
        match msg.validate() {
            Ok(()) => Ok(msg),
            Err(why) => Err(DecodeError::Refused {
                why,
                seq: msg.seq(),
            }),
        }
    }

    /// Writes a client's message.
    pub fn encode_client(self, msg: &ClientMsg) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Tagged<'a> {
            Login(&'a Login),
            Resume(&'a Resume),
            Ping(&'a Ping),
        }
        match msg {
            ClientMsg::Login(login) => self.encode(&Tagged::Login(login)),
            ClientMsg::Resume(resume) => self.encode(&Tagged::Resume(resume)),
            ClientMsg::Ping(ping) => self.encode(&Tagged::Ping(ping)),
            ClientMsg::Order(order) => self.encode(order),
        }
    }
}

/// Reads the fields of the order called `name`: the reverse of what [`Order`] derives, as a round trip of every order
/// proves.
fn read_order(name: &str, frame: Checked<'_>) -> Result<Order, DecodeError> {
    #[derive(Deserialize)]
    struct Held {
        dir: Option<Dir>,
    }
    #[derive(Deserialize)]
    struct Heading {
        dir: Dir,
    }
    #[derive(Deserialize)]
    struct Aim {
        target: Target,
    }
    #[derive(Deserialize)]
    struct Spelled {
        spell: Spell,
        target: Target,
    }
    #[derive(Deserialize)]
    struct Thing {
        object: ObjectKey,
    }
    #[derive(Deserialize)]
    struct Words {
        text: String,
    }
    #[derive(Deserialize)]
    struct Item {
        item: ItemKind,
    }
    #[derive(Deserialize)]
    struct Worn {
        slot: Slot,
    }
    Ok(match name {
        "walk_to" => {
            let Pos { x, y } = frame.parse()?;
            Order::WalkTo { x, y }
        }
        "move" => {
            let Held { dir } = frame.parse()?;
            Order::Move { dir }
        }
        "step" => {
            let Heading { dir } = frame.parse()?;
            Order::Step { dir }
        }
        "stop" => Order::Stop,
        "attack" => {
            let Aim { target } = frame.parse()?;
            Order::Attack { target }
        }
        "cast" => {
            let Spelled { spell, target } = frame.parse()?;
            Order::Cast { spell, target }
        }
        "guard" => Order::Guard,
        "potion" => Order::Potion,
        "hold" => Order::Hold,
        "open" => {
            let Thing { object } = frame.parse()?;
            Order::Open { object }
        }
        "plant" => {
            let Pos { x, y } = frame.parse()?;
            Order::Plant { x, y }
        }
        "say" => {
            let Words { text } = frame.parse()?;
            Order::Say { text }
        }
        "look" => {
            let Aim { target } = frame.parse()?;
            Order::Look { target }
        }
        "inventory" => Order::Inventory,
        "equip" => {
            let Item { item } = frame.parse()?;
            Order::Equip { item }
        }
        "unequip" => {
            let Worn { slot } = frame.parse()?;
            Order::Unequip { slot }
        }
        "gather" => {
            let Aim { target } = frame.parse()?;
            Order::Gather { target }
        }
        "craft" => {
            let Item { item } = frame.parse()?;
            Order::Craft { item }
        }
        "logout" => Order::Logout,
        _ => return Err(unknown_type(name)),
    })
}
