//! What a program accepts beyond plain text.

/// What a program supports beyond text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramCapabilities {
    /// Images in prompts.
    pub images: bool,
    /// MCP servers of the session.
    pub mcp: bool,
}
