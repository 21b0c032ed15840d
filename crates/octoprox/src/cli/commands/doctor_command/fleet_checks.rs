//! Checks of what nodes share: the database and the fleet.

use crate::app_context::block_on_current_thread;
use crate::app_error::AppError;
use crate::cli::commands::doctor_command::{Finding, Verdict};
use crate::fleet::{OPEN_BUS_REMEDY, collect_all, duplicate_names, nats_options, workspace_service};
use crate::settings::{Environment, Settings};
use crate::stores::postgres_options;
use Verdict::{Fail, Warn};
use octo_fabric::{NatsProblem, StatusReply, check_nats};
use octo_postgres::PostgresError;

/// Returns findings on the shared database and the fleet; none if the settings name neither.
pub fn fleet_checks(settings: &Settings, world: &Environment) -> Result<Vec<Finding>, AppError> {
    block_on_current_thread(async {
        let mut findings: Vec<Finding> = database(settings, world).await.into_iter().collect();
        if !settings.fleet.nats.is_empty() {
            findings.extend(fleet(settings).await);
        }
        Ok(findings)
    })
}

async fn database(settings: &Settings, world: &Environment) -> Option<Finding> {
    const NAME: &str = "database";
    let options = match postgres_options(settings, world) {
        Ok(options) => options?,
        Err(error) => {
            let next = "Check store.postgres and logins.secret.";
            return Some(Finding::problem(Fail, NAME, error.text(), next));
        }
    };
    let schema = options.schema.as_str();
    Some(match octo_postgres::check(&options).await {
        Ok(version) => Finding::ok(
            NAME,
            format!("PostgreSQL accepts writes; the tables of schema `{schema}` have version {version}"),
        ),
        Err(error) => {
            let next = match &error {
                PostgresError::NotMigrated { .. } => "Run `octoprox migrate` once, then start the hubs.",
                PostgresError::Newer { .. } => {
                    "Upgrade octoprox on this machine to the version of the other hubs."
                }
                error => error.hint(),
            };
            Finding::problem(Fail, NAME, error.to_string(), next)
        }
    })
}

async fn fleet(settings: &Settings) -> Vec<Finding> {
    const NAME: &str = "nats";
    let options = match nats_options(settings) {
        Ok(options) => options,
        Err(error) => return vec![Finding::problem(Fail, NAME, error.text(), "Set store.node.")],
    };
    let server = match check_nats(&options).await {
        Ok(server) => server,
        Err(problem) => return vec![Finding::problem(Fail, NAME, problem.to_string(), next_step(&problem))],
    };
    let connected = Finding::ok(NAME, format!("connected to {}, version {}", server.address, server.version));
    let replies = match collect_all(settings).await {
        Ok(replies) => replies,
        Err(error) => {
            let next = "Allow this node to publish `octoprox.1.status` and to subscribe to its inbox.";
            return vec![connected, Finding::problem(Fail, "fleet", error.text(), next)];
        }
    };
    let service = workspace_service(&settings.fleet.workspace);
    vec![connected, nodes(&replies, &options.node), workspace(&replies, &service)]
}

fn next_step(problem: &NatsProblem) -> &'static str {
    match problem {
        NatsProblem::Invalid(_) => "Fix fleet.nats and fleet.credentials.",
        NatsProblem::Unreachable(_) => {
            "Check that a NATS server runs at an address of fleet.nats, and that no firewall is in between."
        }
        NatsProblem::Tls(_) => {
            "Use tls:// only for servers with TLS, and set fleet.ca_file to the certificate of their authority."
        }
        NatsProblem::Open => OPEN_BUS_REMEDY,
        NatsProblem::Credentials => {
            "Set fleet.credentials to the seed or the .creds file of a user that the server knows."
        }
    }
}

/// Whether each name is that of one node.
fn nodes(replies: &[StatusReply], own: &str) -> Finding {
    const NAME: &str = "fleet";
    let twice = duplicate_names(replies);
    if !twice.is_empty() {
        return Finding::problem(
            Fail,
            NAME,
            format!("several nodes have the same name: {}", twice.join(", ")),
            "Set store.node to a name of its own on each machine, and restart them.",
        );
    }
    if replies.is_empty() {
        return Finding::problem(
            Warn,
            NAME,
            "no node answers",
            "Start one with `octoprox serve` or `octoprox worker`, or allow this node to publish `octoprox.1.status` and to subscribe to its inbox.",
        );
    }
    let is_own = |reply: &&StatusReply| reply.status.node == own;
    let state = if replies.iter().any(|reply| is_own(&reply)) { "runs" } else { "does not run" };
    let count = match replies.len() {
        1 => "1 node answers".to_owned(),
        count => format!("{count} nodes answer, each with its own name"),
    };
    Finding::ok(NAME, format!("{count}; `{own}` {state}"))
}

fn workspace(replies: &[StatusReply], service: &str) -> Finding {
    let has = |reply: &&StatusReply, is_serving: bool| {
        let services = &reply.status.services;
        services.iter().any(|one| one.name == service && one.is_serving == is_serving && !one.has_other_files)
    };
    let names = |is_serving: bool| -> Vec<&str> {
        let nodes = replies.iter().filter(|reply| has(reply, is_serving));
        nodes.map(|reply| reply.status.node.as_str()).collect()
    };
    let (serving, standby) = (names(true), names(false));
    match (serving.as_slice(), standby.as_slice()) {
        ([node], []) => Finding::ok("worker", format!("{service} is served by `{node}`")),
        ([node], others) => {
            let message = format!("{service} is served by `{node}`; standby: {}", others.join(", "));
            Finding::ok("worker", message)
        }
        ([], []) => Finding::problem(
            Warn,
            "worker",
            format!("no worker serves {service}; its tools fail with `unavailable`"),
            "Start `octoprox worker` with the same fleet.workspace.",
        ),
        ([], waiting) => Finding::problem(
            Warn,
            "worker",
            format!("no worker serves {service}; waiting for the lease: {}", waiting.join(", ")),
            "Wait ten seconds; then read the logs of these workers.",
        ),
        (several, _) => Finding::problem(
            Warn,
            "worker",
            format!("{service} is served by several workers: {}", several.join(", ")),
            "Check again in a moment; if they stay, set store.postgres on these workers, so that a lease decides.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_fabric::{NodeStatus, ServiceStatus};
    use std::time::Duration;

    fn reply(node: &str, is_serving: Option<bool>) -> StatusReply {
        let service = |is_serving| ServiceStatus {
            name: "workspace/a".to_owned(),
            is_serving,
            token: None,
            has_other_files: false,
        };
        let status = NodeStatus {
            node: node.to_owned(),
            services: is_serving.map(service).into_iter().collect(),
            ..NodeStatus::default()
        };
        StatusReply { status, round_trip: Duration::ZERO }
    }

    #[test]
    fn names_and_services_are_judged() {
        let (one, two) = (reply("one", Some(true)), reply("two", Some(false)));
        let verdicts =
            |replies: &[StatusReply]| (nodes(replies, "one").state, workspace(replies, "workspace/a").state);
        assert_eq!(verdicts(&[one.clone(), two.clone()]), (Verdict::Ok, Verdict::Ok));
        assert_eq!(verdicts(&[]), (Warn, Warn));
        assert_eq!(verdicts(&[one.clone(), reply("two", Some(true))]), (Verdict::Ok, Warn));
        assert_eq!(verdicts(&[one.clone(), reply("one", None)]), (Fail, Verdict::Ok));
        assert_eq!(verdicts(&[two, reply("three", None)]), (Verdict::Ok, Warn));
        assert!(nodes(&[reply("two", None)], "one").message.contains("`one` does not run"));
    }
}
