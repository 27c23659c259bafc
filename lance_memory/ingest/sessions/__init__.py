"""What was said just now, in a ledger: the messages of each session, and its context."""

from lance_memory.ingest.sessions.forgetting import forget_said, forget_sessions, sessions_with
from lance_memory.ingest.sessions.kept import SessionMark, Sessions
from lance_memory.ingest.sessions.leaving import Leaving, Promote, hibernated, settled
from lance_memory.ingest.sessions.said import Said, SessionContext, event_of, last_of, message_id
from lance_memory.ingest.sessions.settling import Settling
from lance_memory.ingest.sessions.turned import row_of, said_in

__all__ = [
    "Leaving",
    "Promote",
    "Said",
    "SessionContext",
    "SessionMark",
    "Sessions",
    "Settling",
    "event_of",
    "forget_said",
    "forget_sessions",
    "hibernated",
    "last_of",
    "message_id",
    "row_of",
    "said_in",
    "sessions_with",
    "settled",
]
