//! The Lua files for Neovim: a module with the agents for codecompanion.nvim and avante.nvim, and a plugin
//! specification for lazy.nvim that adds them to both.

use crate::EditorAgent;
use std::fmt::Write as _;

const MODULE_HEAD: &str = "\
-- The agents of Jackfield for codecompanion.nvim and avante.nvim.
-- `jackfield setup neovim` writes this file, and `jackfield setup neovim --undo` removes it.

";

const MODULE_TAIL: &str = r#"
local M = { codecompanion = {}, avante = {} }

for _, agent in ipairs(agents) do
  local name = "jackfield_" .. agent.id:gsub("%W", "_")
  M.codecompanion[name] = function()
    return {
      name = name,
      formatted_name = agent.title,
      type = "acp",
      roles = { llm = "assistant", user = "user" },
      opts = { vision = true },
      commands = { default = { program, "acp", agent.id } },
      defaults = { mcpServers = {}, timeout = 60000 },
      parameters = {
        protocolVersion = 1,
        clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
        clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
      },
      handlers = {
        setup = function() return true end,
        -- The agent's own program has the login.
        auth = function() return true end,
        form_messages = function(self, messages, capabilities)
          return require("codecompanion.adapters.acp.helpers").form_messages(self, messages, capabilities)
        end,
        on_exit = function() end,
      },
    }
  end

  M.avante["jackfield-" .. agent.id] = {
    command = program,
    args = { "acp", agent.id },
    -- avante.nvim passes only PATH and these variables.
    env = vim.fn.environ(),
  }
end

return M
"#;

const LAZY_SPEC: &str = r#"-- Adds the agents of Jackfield to codecompanion.nvim and avante.nvim, for lazy.nvim.
-- `jackfield setup neovim` writes this file, and `jackfield setup neovim --undo` removes it.
return {
  {
    "olimorris/codecompanion.nvim",
    optional = true,
    opts = function(_, opts)
      opts.adapters = opts.adapters or {}
      opts.adapters.acp = vim.tbl_extend("keep", opts.adapters.acp or {}, require("jackfield").codecompanion)
    end,
  },
  {
    "yetone/avante.nvim",
    optional = true,
    opts = function(_, opts)
      opts.acp_providers = vim.tbl_extend("keep", opts.acp_providers or {}, require("jackfield").avante)
    end,
  },
}
"#;

/// The module `jackfield`: `codecompanion` has adapters, and `avante` has providers.
pub fn generate_lua_module(program: &str, agents: &[EditorAgent]) -> String {
    let mut text = MODULE_HEAD.to_owned();
    let _infallible = writeln!(text, "local program = {}\nlocal agents = {{", quote(program));
    for agent in agents {
        let (id, title) = (quote(&agent.id), quote(&agent.title));
        let _infallible = writeln!(text, "  {{ id = {id}, title = {title} }},");
    }
    text.push_str("}\n");
    text.push_str(MODULE_TAIL);
    text
}

/// The plugin specification, which uses the module.
pub fn generate_lazy_spec() -> &'static str {
    LAZY_SPEC
}

/// A string of Lua. Other bytes than these stand for themselves.
fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            it if it.is_ascii_control() => {
                let _infallible = write!(quoted, "\\{:03}", u32::from(it));
            }
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quote("/a b/é\"\\\n\u{7f}1"), r#""/a b/é\"\\\010\1271""#);
    }
}
