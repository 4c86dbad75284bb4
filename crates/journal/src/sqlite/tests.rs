//! What only the SQLite file promises.
