//! The real terminal and the connection to the hub: the only part with I/O.
