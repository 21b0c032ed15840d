//! docs/reference/cli.md: the help of every command, as printed.

use super::markdown_tables;
use anyhow::Result;

/// Returns the help of a command.
type Help<'a> = dyn Fn(&[&str]) -> Result<String> + 'a;

pub fn page(help: &Help) -> Result<String> {
    let mut text = markdown_tables::title("Command line");
    add_command(&mut text, help, &[])?;
    Ok(text)
}

fn add_command(text: &mut String, help: &Help, words: &[&str]) -> Result<()> {
    let said = help(words)?;
    let name: Vec<&str> = ["octoprox"].iter().chain(words).copied().collect();
    text.push_str(&format!("\n## {}\n\n{}", name.join(" "), markdown_tables::fenced("text", &clean(&said))));
    for command in commands(&said) {
        let words: Vec<&str> = words.iter().copied().chain([command]).collect();
        add_command(text, help, &words)?;
    }
    Ok(())
}

fn clean(said: &str) -> String {
    said.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The names under `Commands:`. Continuation lines of a description are indented further.
fn commands(said: &str) -> Vec<&str> {
    let listed = said.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.is_empty() || line.starts_with("  "));
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    const TOP: &str = "Gives an agent its hands

Usage: octoprox <COMMAND>

Commands:
  serve  Starts the faces
  audit  Looks at what was called,
         and by whom
  help   Print this message

Options:
  -h, --help  Print help
";

    fn help(words: &[&str]) -> Result<String> {
        Ok(match words {
            [] => TOP,
            ["serve"] => "Starts the faces   \n",
            ["audit"] => "Commands:\n  verify  Checks the chain\n",
            ["audit", "verify"] => "Checks the chain\n",
            other => bail!("no command {other:?}"),
        }
        .to_owned())
    }

    #[test]
    fn every_command_once() {
        let page = page(&help).unwrap();
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        let expected = ["## octoprox", "## octoprox serve", "## octoprox audit", "## octoprox audit verify"];
        assert_eq!(headings, expected);
        assert!(page.contains("```text\nStarts the faces\n```\n"));
    }
}
