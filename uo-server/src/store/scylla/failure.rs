//! What an error of the driver says about the request: whether it can still take effect.

use scylla::errors::{
    ConnectionPoolError, DbError, ExecutionError, MetadataError, NewSessionError,
    RequestAttemptError,
};

use crate::store::StoreError;

/// How often the driver may have sent a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// A compare-and-set: once, or not at all.
    AtMostOnce,
    /// Anything else: an earlier attempt may be on its way still, whatever became of the last one.
    Repeatedly,
}

/// The error for the caller.
///
/// A compare-and-set is only refused where the request was not sent, or was turned away before it was looked at. That
/// too few replicas are alive (`Unavailable`) is not among these: the database looks again before it commits a round
/// that is already decided, and what it then says in the same words will take effect.
pub(super) fn failure(error: &ExecutionError, sent: Sent) -> StoreError {
    let text = said(error);
    match never_executed(error) || (sent == Sent::AtMostOnce && never_sent(error)) {
        true => StoreError::Refused(text),
        false => StoreError::Unknown(text),
    }
}

/// In one line, without what a reader cannot use.
pub(super) fn said(error: &ExecutionError) -> String {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, message)) => {
            format!("{error} ({message})")
        }
        other => other.to_string(),
    }
}

/// Why there is no connection: the last cause, without the chain of what that made impossible.
pub(super) fn no_session(error: &NewSessionError) -> String {
    match error {
        NewSessionError::FailedToResolveAnyHostname(names) => {
            format!("no address is known of {}", names.join(", "))
        }
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(
            ConnectionPoolError::Broken {
                last_connection_error,
            },
        )) => last_connection_error.to_string(),
        other => other.to_string(),
    }
}

/// Whether every attempt ended before the database did anything.
fn never_executed(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::BadQuery(_) => true,
        ExecutionError::LastAttemptError(error) => match error {
            RequestAttemptError::SerializationError(_)
            | RequestAttemptError::CqlRequestSerialization(_) => true,
            RequestAttemptError::DbError(error, _) => matches!(
                error,
                DbError::SyntaxError
                    | DbError::Invalid
                    | DbError::Unauthorized
                    | DbError::AuthenticationError
                    | DbError::ConfigError
            ),
            _ => false,
        },
        _ => false,
    }
}

/// Whether the last attempt never reached a database that would have executed it.
fn never_sent(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::EmptyPlan
        | ExecutionError::PrepareError(_)
        | ExecutionError::ConnectionPoolError(_) => true,
        ExecutionError::LastAttemptError(error) => matches!(
            error,
            RequestAttemptError::UnableToAllocStreamId
                | RequestAttemptError::DbError(DbError::IsBootstrapping, _)
                | RequestAttemptError::DbError(DbError::Unprepared { .. }, _)
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scylla::errors::WriteType;
    use scylla::statement::Consistency;

    use super::*;

    fn db(error: DbError) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, "said".into()))
    }

    /// Red with `Unavailable` or `Overloaded` among the definite ones.
    #[test]
    fn a_compare_and_set_that_may_have_begun_is_in_doubt() {
        let consistency = Consistency::Serial;
        let doubtful = [
            db(DbError::WriteTimeout {
                consistency,
                received: 1,
                required: 2,
                write_type: WriteType::Cas,
            }),
            db(DbError::Unavailable {
                consistency,
                required: 2,
                alive: 1,
            }),
            db(DbError::Overloaded),
            db(DbError::ServerError),
            db(DbError::Other(0x1700)),
            ExecutionError::RequestTimeout(Duration::from_secs(1)),
        ];
        for error in doubtful {
            let failure = failure(&error, Sent::AtMostOnce);
            assert!(matches!(failure, StoreError::Unknown(_)), "{error}");
        }
    }

    #[test]
    fn what_was_never_sent_is_only_certain_for_what_is_sent_once() {
        let unsent = ExecutionError::EmptyPlan;
        assert!(matches!(
            failure(&unsent, Sent::AtMostOnce),
            StoreError::Refused(_)
        ));
        assert!(matches!(
            failure(&unsent, Sent::Repeatedly),
            StoreError::Unknown(_)
        ));
        for sent in [Sent::AtMostOnce, Sent::Repeatedly] {
            let refused = failure(&db(DbError::Invalid), sent);
            assert!(matches!(refused, StoreError::Refused(_)));
        }
    }
}
