//! Tools and resources of MCP servers that the client named.
