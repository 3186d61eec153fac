//! The one place for balance: what objects, items, spells and classes are, and the constants of a fight.
//!
//! - [`object`]: trees, walls, doors, kegs; the arena, the battle and the client's art read the same rows;
//! - [`item`]: weapons, armour and what else is carried;
//! - [`spell`]: what is cast;
//! - [`class`]: who fights how, and what each class starts with;
//! - [`mod@roster`]: who lives in a camp;
//! - [`balance`]: everything else that can be tuned.

pub mod balance;
pub mod class;
pub mod item;
pub mod object;
pub mod roster;
pub mod spell;

pub use class::{ClassRow, class_of_name, class_row, kit};
pub use item::{ItemRow, Weapon, item_row, weapon};
pub use object::{Footing, ObjectRow, cover_percent, object_row};
pub use roster::{RosterEntry, Scene, roster};
pub use spell::{SpellRow, spell_row, spells};
