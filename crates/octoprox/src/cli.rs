//! Command line. Data goes to standard output, messages to standard error.

pub(crate) mod admin_listener;
mod attachment;
mod build_info;
pub(crate) mod commands;
mod file_change;
mod list_cost;
mod report_error;
mod result_text;
mod standalone;
mod system_service;
mod tool_arguments;
mod tool_client;
mod tool_help;

use self::build_info::build_info;
use self::report_error::report_error;
use crate::app_error::AppError;
use crate::attach::HUB_COMMAND;
use crate::jq_workers;
use crate::settings::{Environment, Flags, named_file, user_file};
use crate::terminal::console;
use crate::toolboxes::{LAUNCHER_COMMAND, PDF_WORKER_COMMAND};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, CommandFactory, Parser, Subcommand};
use octo_grants::exec::init_process;
use std::path::PathBuf;
use std::process::ExitCode;

/// Hidden command of the process of a program.
pub const CODE_CHILD_COMMAND: &str = "code-child";

/// Tool hub for AI agents: native tools and a gateway to your MCP servers, in one binary.
#[derive(Parser)]
#[command(name = "octoprox", version, propagate_version = true, max_term_width = 100)]
#[command(arg(verbose_flag()))]
#[command(
    after_help = "Examples:\n  octoprox init\n  octoprox tools\n  octoprox call time_now timezone=Europe/Berlin\n  octoprox serve"
)]
pub struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// `--version --verbose`. An option of its own, because the parser ends at `--version`.
fn verbose_flag() -> Arg {
    Arg::new("verbose")
        .long("verbose")
        .requires("version")
        .action(ArgAction::SetTrue)
        .help("Print facts about the build, with --version")
}

/// Options of every command.
#[derive(Args)]
struct Common {
    /// Settings file [default: ./octoprox.yaml if `octoprox trust` approved it, then octoprox/octoprox.yaml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Additional MCP servers, in the format of other clients: {"mcpServers": {…}}
    #[arg(long, global = true, value_name = "FILE")]
    servers: Option<PathBuf>,
    /// Run the command for the system service: with /etc/octoprox/octoprox.yaml, as its user
    #[arg(long, global = true, conflicts_with = "config")]
    system: bool,
}

impl Common {
    fn flags(&self) -> Flags {
        Flags { config: self.config.clone(), servers: self.servers.clone(), ..Flags::default() }
    }
}

#[derive(Subcommand)]
enum Command {
    Init(commands::init_command::Init),
    Serve(commands::serve_command::Serve),
    Worker(commands::fleet_nodes::worker_command::Worker),
    Stdio(commands::stdio_command::Stdio),
    Status(commands::background_hub::status_command::Status),
    Stop(commands::background_hub::stop_command::Stop),
    Logs(commands::background_hub::logs_command::Logs),
    Bridge(commands::bridge_command::Bridge),
    Tools(commands::tool_listing::tools_command::Tools),
    Explain(commands::tool_listing::explain_command::Explain),
    Call(commands::call_command::Call),
    Prompts(commands::prompts_command::Prompts),
    Add(commands::add_command::Add),
    Servers(commands::servers_command::Servers),
    Login(commands::login_command::Login),
    Logout(commands::logout_command::Logout),
    Import(commands::import_command::Import),
    Secret(commands::secret_command::Secret),
    Model(commands::model_command::Model),
    Workflow(commands::workflow_command::Workflow),
    Config(commands::config_command::Config),
    Trust(commands::trust_command::Trust),
    Doctor(commands::doctor_command::Doctor),
    Healthcheck(commands::healthcheck_command::Healthcheck),
    Audit(commands::audit_command::Audit),
    Migrate(commands::shared_database::migrate_command::Migrate),
    Fleet(commands::fleet_nodes::fleet_command::FleetCommand),
    Store(commands::shared_database::store_command::Store),
    Token(commands::token_command::Token),
    Completions(commands::shell_files::completions_command::Completions),
    Man(commands::shell_files::man_command::Man),
    #[command(name = HUB_COMMAND, hide = true)]
    Hub(commands::background_hub::hub_command::RunHub),
    /// Evaluate a jq expression on standard input, for the hub itself.
    #[command(name = jq_workers::COMMAND, hide = true)]
    JqWorker,
    /// Extract the text of a PDF on standard input, for the hub itself.
    #[command(name = PDF_WORKER_COMMAND, hide = true)]
    PdfWorker,
    /// Run the program of a model on standard input, for the hub itself.
    #[command(name = CODE_CHILD_COMMAND, hide = true)]
    CodeChild,
    /// Start a program in a sandbox, for the hub itself, and end the processes that it leaves running.
    #[command(name = LAUNCHER_COMMAND, hide = true)]
    Launch {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<std::ffi::OsString>,
    },
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let is_verbose = std::env::args_os().any(|word| word == "--verbose");
            // Ignore a closed pipe.
            let _ = if error.kind() == ErrorKind::DisplayVersion && is_verbose {
                console::print(&build_info())
            } else {
                error.print()
            };
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    if let Command::Launch { rest } = cli.command {
        return octo_grants::exec::launcher::main(rest);
    }
    if init_process::is_init_process() {
        return std::env::current_exe().and_then(|program| init_process::main(&program)).unwrap_or_else(
            |error| {
                console::print_err(&format!("octoprox: cannot start as the first process: {error}"));
                ExitCode::FAILURE
            },
        );
    }
    // A core dump would write secrets in memory to disk.
    if let Err(error) = octo_grants::disable_core_dumps() {
        console::print_err(&format!("octoprox: cannot disable core dumps: {error}"));
    }
    if cli.common.system {
        let Err(error) = system_service::run_as_service();
        return report_error(&error, std::env::args_os().any(|word| word == "--json"));
    }
    if cli.is_about_a_hub() && is_about_another_installation(&cli) {
        console::print_err(
            "This is about your own hub. For the system service of this machine: octoprox --system …",
        );
    }
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_error(&error, std::env::args_os().any(|word| word == "--json")),
    }
}

impl Cli {
    /// Whether the command shows or changes the state of a hub.
    const fn is_about_a_hub(&self) -> bool {
        matches!(
            self.command,
            Command::Audit(_)
                | Command::Config(_)
                | Command::Doctor(_)
                | Command::Login(_)
                | Command::Logout(_)
                | Command::Logs(_)
                | Command::Secret(_)
                | Command::Servers(_)
                | Command::Status(_)
                | Command::Stop(_)
                | Command::Token(_)
        )
    }
}

/// Whether root types a command, has no settings, and the machine has a system service: it is probably meant.
fn is_about_another_installation(cli: &Cli) -> bool {
    let world = Environment::current();
    rustix::process::geteuid().is_root()
        && named_file(&world, cli.common.config.as_ref()).is_none()
        && user_file(&world).is_none()
        && system_service::is_installed()
}

/// Help text of a command that prints it itself.
fn help(command: &str) -> String {
    let mut all = Cli::command();
    all.build();
    all.find_subcommand_mut(command).map(|found| found.render_help().to_string()).unwrap_or_default()
}

fn run(cli: &Cli) -> Result<(), AppError> {
    let flags = cli.common.flags();
    match &cli.command {
        Command::Init(command) => command.run(&flags),
        Command::Serve(command) => command.run(flags),
        Command::Worker(command) => command.run(&flags),
        Command::Stdio(command) => command.run(&flags),
        Command::Status(command) => command.run(),
        Command::Stop(command) => command.run(),
        Command::Logs(command) => command.run(),
        Command::Bridge(command) => command.run(&flags),
        Command::Tools(command) => command.run(&flags),
        Command::Explain(command) => command.run(&flags),
        Command::Call(command) => command.run(&flags),
        Command::Prompts(command) => command.run(&flags),
        Command::Add(command) => command.run(&flags),
        Command::Servers(command) => command.run(&flags),
        Command::Login(command) => command.run(&flags),
        Command::Logout(command) => command.run(&flags),
        Command::Import(command) => command.run(&flags),
        Command::Secret(command) => command.run(&flags),
        Command::Model(command) => command.run(&flags),
        Command::Workflow(command) => command.run(&flags),
        Command::Config(command) => command.run(&flags),
        Command::Trust(command) => command.run(&flags),
        Command::Doctor(command) => command.run(&flags),
        Command::Healthcheck(command) => command.run(&flags),
        Command::Audit(command) => command.run(&flags),
        Command::Migrate(command) => command.run(&flags),
        Command::Fleet(command) => command.run(&flags),
        Command::Store(command) => command.run(&flags),
        Command::Token(command) => command.run(&flags),
        Command::Completions(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::Hub(command) => command.run(),
        Command::JqWorker => Ok(jq_workers::run_worker(std::io::stdin().lock(), std::io::stdout().lock())?),
        Command::PdfWorker => {
            octo_grants::Pdf::confine_worker()?;
            Ok(tools_web::read_pdf(std::io::stdin().lock(), std::io::stdout().lock())?)
        }
        Command::CodeChild => Ok(octo_code::child_main(std::io::stdin().lock(), std::io::stdout().lock())?),
        Command::Launch { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_every_flag_a_line() {
        fn check(command: &clap::Command) {
            let name = command.get_name().to_owned();
            if command.is_hide_set() || name == "help" {
                return;
            }
            let mut helped = command.clone();
            let help = helped.render_long_help().to_string();
            assert!(help.contains("Example"), "{name} has no example");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{name} {} is not explained", argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
