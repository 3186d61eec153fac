//! A walk over a MessagePack frame before any decoding.
//!
//! `rmp-serde` hands the length that an array declares to serde, which reserves memory for it before it has seen one
//! element: five bytes cost a megabyte, and nested headers a megabyte each. After this walk every declared length is
//! known to be true, so that what a decoder reserves is bounded by what the frame holds.

use rmp::Marker;

/// How deep arrays and maps may nest. Our deepest message has five levels; the rest is room for fields yet unknown.
pub const DEPTH_MAX: usize = 32;

/// Why bytes are not one MessagePack value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StructureError {
    /// The bytes end within the value, or a length goes beyond them.
    #[error("the frame ends before its value does")]
    Truncated,
    /// There are bytes behind the value.
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    /// Arrays or maps nest deeper than [`DEPTH_MAX`].
    #[error("more than {DEPTH_MAX} levels of arrays and maps")]
    TooDeep,
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    NotText,
    /// The one byte (0xc1) that MessagePack leaves without a meaning.
    #[error("the byte 0xc1 means nothing")]
    Reserved,
}

/// Whether a sound frame holds a map.
pub(super) fn is_map(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|&byte| {
        matches!(
            Marker::from_u8(byte),
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32
        )
    })
}

/// Checks that `bytes` are exactly one value. Needs no heap and looks at each byte once.
pub(super) fn check(bytes: &[u8]) -> Result<(), StructureError> {
    let mut reader = Reader { rest: bytes };
    // How many values each open array or map still waits for, outermost first.
    let mut open = [0_u64; DEPTH_MAX];
    let mut depth = 0;
    loop {
        match reader.part()? {
            Part::Skip(length) => drop(reader.take(length)?),
            Part::Text(length) => drop(
                std::str::from_utf8(reader.take(length)?).map_err(|_| StructureError::NotText)?,
            ),
            Part::Values(0) => {}
            Part::Values(count) => {
                // Every value takes at least one byte, so a count beyond the rest is a lie.
                if count > reader.rest.len() as u64 {
                    return Err(StructureError::Truncated);
                }
                *open.get_mut(depth).ok_or(StructureError::TooDeep)? = count;
                depth += 1;
                continue;
            }
        }
        while depth > 0 {
            open[depth - 1] -= 1;
            if open[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            break;
        }
    }
    match reader.rest.len() {
        0 => Ok(()),
        left => Err(StructureError::Trailing(left)),
    }
}

/// What follows a marker and its length.
enum Part {
    /// So many bytes of any kind.
    Skip(u64),
    /// So many bytes of UTF-8.
    Text(u64),
    /// So many values.
    Values(u64),
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], StructureError> {
        let length = usize::try_from(length).map_err(|_| StructureError::Truncated)?;
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(StructureError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A big-endian number of `width` bytes.
    fn number(&mut self, width: u64) -> Result<u64, StructureError> {
        let bytes = self.take(width)?;
        Ok(bytes
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// The next marker with its length.
    fn part(&mut self) -> Result<Part, StructureError> {
        let marker = Marker::from_u8(self.number(1)? as u8);
        Ok(match marker {
            Marker::FixPos(_) | Marker::FixNeg(_) => Part::Skip(0),
            Marker::Null | Marker::True | Marker::False => Part::Skip(0),
            Marker::U8 | Marker::I8 => Part::Skip(1),
            Marker::U16 | Marker::I16 => Part::Skip(2),
            Marker::U32 | Marker::I32 | Marker::F32 => Part::Skip(4),
            Marker::U64 | Marker::I64 | Marker::F64 => Part::Skip(8),
            Marker::FixStr(length) => Part::Text(length.into()),
            Marker::Str8 => Part::Text(self.number(1)?),
            Marker::Str16 => Part::Text(self.number(2)?),
            Marker::Str32 => Part::Text(self.number(4)?),
            Marker::Bin8 => Part::Skip(self.number(1)?),
            Marker::Bin16 => Part::Skip(self.number(2)?),
            Marker::Bin32 => Part::Skip(self.number(4)?),
            // An extension's type is one byte more.
            Marker::FixExt1 => Part::Skip(1 + 1),
            Marker::FixExt2 => Part::Skip(2 + 1),
            Marker::FixExt4 => Part::Skip(4 + 1),
            Marker::FixExt8 => Part::Skip(8 + 1),
            Marker::FixExt16 => Part::Skip(16 + 1),
            Marker::Ext8 => Part::Skip(self.number(1)? + 1),
            Marker::Ext16 => Part::Skip(self.number(2)? + 1),
            Marker::Ext32 => Part::Skip(self.number(4)? + 1),
            Marker::FixArray(count) => Part::Values(count.into()),
            Marker::Array16 => Part::Values(self.number(2)?),
            Marker::Array32 => Part::Values(self.number(4)?),
            Marker::FixMap(count) => Part::Values(2 * u64::from(count)),
            Marker::Map16 => Part::Values(2 * self.number(2)?),
            Marker::Map32 => Part::Values(2 * self.number(4)?),
            Marker::Reserved => return Err(StructureError::Reserved),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        let mut bytes = vec![0x91; levels];
        bytes.push(0xc0);
        bytes
    }

    #[test]
    fn sound_values_pass() {
        for bytes in [
            &b"\xc0"[..],
            b"\x80",
            b"\x90",
            b"\x82\xa1a\x01\xa1b\x92\xc2\xc3",
            b"\xd9\x02hi",
            b"\xc4\x02\xff\xfe",
            b"\xd4\x01\x00",
            b"\xdf\x00\x00\x00\x01\xa1a\xdd\x00\x00\x00\x00",
        ] {
            assert_eq!(check(bytes), Ok(()), "{bytes:x?}");
        }
        assert_eq!(check(&nested(DEPTH_MAX)), Ok(()));
    }

    #[test]
    fn each_fault_has_its_name() {
        use StructureError::*;
        for (bytes, want) in [
            (&b""[..], Truncated),
            (b"\xdd\xff\xff\xff\xff", Truncated),
            (b"\xdf\xff\xff\xff\xff\xc0", Truncated),
            (b"\xdb\xff\xff\xff\xffhi", Truncated),
            (b"\xc9\xff\xff\xff\xff\x01", Truncated),
            (b"\x92\xc0", Truncated),
            (b"\x81\xa1a", Truncated),
            (b"\xcd\x01", Truncated),
            (b"\xc0\xc0", Trailing(1)),
            (b"\xa1\xff", NotText),
            (b"\x91\xc1", Reserved),
        ] {
            assert_eq!(check(bytes), Err(want), "{bytes:x?}");
        }
        assert_eq!(check(&nested(DEPTH_MAX + 1)), Err(TooDeep));
        assert_eq!(check(&vec![0x91; 1 << 20]), Err(TooDeep));
    }
}
