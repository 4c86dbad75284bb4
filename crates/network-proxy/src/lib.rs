//! An HTTP proxy that lets a sandboxed process reach named hosts only.
