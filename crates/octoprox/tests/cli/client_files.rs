//! Configuration files of clients.

/// `~/.claude.json`, with global servers, servers of a project, and other settings.
pub const CLAUDE_CODE: &str = r#"{
  "numStartups": 42,
  "installMethod": "native",
  "mcpServers": {
    "context7": {
      "type": "http",
      "url": "https://mcp.context7.com/mcp",
      "headers": {
        "CONTEXT7_API_KEY": "ctx7sk-canary-1111-2222"
      }
    },
    "github": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_canary0123456789abcdefghij",
        "LOG_LEVEL": "${LOG_LEVEL:-info}"
      }
    }
  },
  "projects": {
    "/nowhere": {"mcpServers": {"elsewhere": {"command": "x"}}}
  }
}
"#;

/// `claude_desktop_config.json`.
pub const CLAUDE_DESKTOP: &str = r#"{
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]
    }
  }
}
"#;

/// `~/.cursor/mcp.json`.
pub const CURSOR: &str = r#"{
  "mcpServers": {
    "linear": {
      "url": "https://mcp.linear.app/mcp",
      "headers": {"Authorization": "Bearer ${env:LINEAR_KEY}"}
    },
    "Postgres (main)": {
      "command": "uvx",
      "args": ["postgres-mcp", "postgresql://ada:canary-pass@db.test/main"],
      "envFile": "${workspaceFolder}/.env"
    }
  }
}
"#;

/// VS Code's `mcp.json`, with comments and trailing commas.
pub const VSCODE: &str = r#"{
	// Asked once, kept by the editor.
	"inputs": [
		{"type": "promptString", "id": "perplexity-key", "description": "Key", "password": true},
	],
	"servers": {
		"perplexity": {
			"type": "stdio",
			"command": "npx",
			"args": ["-y", "server-perplexity-ask"],
			"env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"},
		},
		"old": {"type": "sse", "url": "https://old.test/sse"}, /* kept for later */
	},
}
"#;

/// `~/.codex/config.toml`.
pub const CODEX: &str = r#"model = "gpt-5"
approval_policy = "on-request"

[mcp_servers.docs]
url = "https://docs.test/mcp"
bearer_token_env_var = "DOCS_TOKEN"
tool_timeout_sec = 45

[mcp_servers.local] # mine
command = "my-server"
args = ["--api-key", "canary-key-of-codex"]
env_vars = ["LANGUAGE"]
startup_timeout_sec = 20

[mcp_servers.off]
command = "other"
enabled = false
"#;
