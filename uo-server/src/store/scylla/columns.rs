//! Rows by the names of their columns. Never by position: of a compare-and-set that applied, Cassandra returns
//! `[applied]` alone and ScyllaDB the former row as well; of one that was refused, Cassandra returns what its condition
//! names.

use std::sync::Arc;

use scylla::response::query_result::QueryResult;
use scylla::value::{CqlValue, Row};
use uuid::Uuid;

use crate::store::StoreError;

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    names: Arc<[String]>,
    values: Vec<Option<CqlValue>>,
}

/// Every row of a result; none for a result that is no rows.
pub(super) fn rows(result: QueryResult) -> Result<Vec<Columns>, StoreError> {
    if !result.is_rows() {
        return Ok(Vec::new());
    }
    let result = result.into_rows_result().map_err(|error| strange(&error))?;
    let names: Arc<[String]> = result
        .column_specs()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    let rows = result.rows::<Row>().map_err(|error| strange(&error))?;
    rows.map(|row| {
        Ok(Columns {
            names: names.clone(),
            values: row.map_err(|error| strange(&error))?.columns,
        })
    })
    .collect()
}

/// The outcome of a compare-and-set: whether it applied, and what else was returned.
pub(super) fn outcome(result: QueryResult) -> Result<(bool, Columns), StoreError> {
    let mut rows = rows(result)?;
    let row = rows.pop().ok_or_else(|| strange(&"no outcome"))?;
    match row.boolean("[applied]")? {
        Some(applied) => Ok((applied, row)),
        None => Err(strange(&"an outcome without [applied]")),
    }
}

/// It was executed, whatever it did: so the outcome is unknown.
fn strange(what: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unknown(format!("the database's answer cannot be read: {what}"))
}

/// A column's value, or none when it is null or not among those returned.
macro_rules! column {
    ($($(#[$doc:meta])* $name:ident, $variant:ident, $type:ty;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(&self, name: &str) -> Result<Option<$type>, StoreError> {
            match self.value(name) {
                None => Ok(None),
                Some(CqlValue::$variant(value)) => Ok(Some(value.clone())),
                Some(_) => Err(strange(&format_args!("column {name} is of another type"))),
            }
        }
    )*};
}

impl Columns {
    fn value(&self, name: &str) -> Option<&CqlValue> {
        let at = self.names.iter().position(|there| there == name)?;
        self.values.get(at)?.as_ref()
    }

    column! {
        text, Text, String;
        bigint, BigInt, i64;
        int, Int, i32;
        uuid, Uuid, Uuid;
        boolean, Boolean, bool;
        blob, Blob, Vec<u8>;
    }

    /// A list of uuids; a list that is empty is null in the database.
    pub(super) fn uuids(&self, name: &str) -> Result<Vec<Uuid>, StoreError> {
        let Some(value) = self.value(name) else {
            return Ok(Vec::new());
        };
        let CqlValue::List(values) = value else {
            return Err(strange(&format_args!("column {name} is not a list")));
        };
        let uuids = values.iter().map(|value| match value {
            CqlValue::Uuid(uuid) => Ok(*uuid),
            _ => Err(strange(&format_args!("column {name} has other than uuids"))),
        });
        uuids.collect()
    }
}

/// A column that every row has.
pub(super) fn present<T>(value: Option<T>, name: &str) -> Result<T, StoreError> {
    value.ok_or_else(|| strange(&format_args!("column {name} is null")))
}

/// A number that the database keeps as it is and that is never negative here.
pub(super) fn unsigned<T: TryFrom<i64>>(value: i64, name: &str) -> Result<T, StoreError> {
    T::try_from(value).map_err(|_| strange(&format_args!("column {name} is {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: &[(&str, Option<CqlValue>)]) -> Columns {
        Columns {
            names: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            values: columns.iter().map(|(_, value)| value.clone()).collect(),
        }
    }

    /// The same statement: alone, with the columns of its condition, and whole.
    #[test]
    fn whatever_else_is_returned_and_in_whatever_order() {
        let applied = || ("[applied]", Some(CqlValue::Boolean(true)));
        let epoch = || ("epoch", Some(CqlValue::BigInt(7)));
        let node = || ("node", None);
        for columns in [
            vec![applied(), epoch()],
            vec![applied(), node(), epoch()],
            vec![epoch(), node(), applied()],
        ] {
            let row = row(&columns);
            assert_eq!(row.boolean("[applied]"), Ok(Some(true)));
            assert_eq!(row.bigint("epoch"), Ok(Some(7)));
            assert_eq!(row.text("node"), Ok(None));
        }
        assert_eq!(row(&[applied()]).bigint("epoch"), Ok(None));
        assert!(row(&[epoch()]).text("epoch").is_err());
    }

    #[test]
    fn lists_that_are_empty_are_null() {
        let uuid = Uuid::from_u128(5);
        let list = |value| row(&[("panics", value)]).uuids("panics");
        assert_eq!(list(None), Ok(vec![]));
        assert_eq!(
            list(Some(CqlValue::List(vec![CqlValue::Uuid(uuid)]))),
            Ok(vec![uuid])
        );
        assert!(list(Some(CqlValue::List(vec![CqlValue::Int(1)]))).is_err());
    }
}
