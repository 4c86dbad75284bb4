//! The permissions of each role on the NATS servers of a fleet, as the `authorization` block of
//! their configuration.
//!
//! A server identifies the role of a client by the name in its certificate. It refuses everything
//! that a role does not need: a gateway cannot change the log of a session, and an operator cannot
//! read one.

use jackfield_nats_access::{MEMBER_INBOX, OPERATOR_INBOX};
use std::fmt::Write as _;

/// A kind of client of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetRole {
    /// Runs agents and writes their logs. It may also be a gateway.
    Host,
    /// Connects clients to hosts. It reads logs but does not write them.
    Gateway,
    /// Inspects the fleet, reads the audit log and drains hosts.
    Operator,
}

impl FleetRole {
    pub const ALL: [FleetRole; 3] = [FleetRole::Host, FleetRole::Gateway, FleetRole::Operator];

    /// The name of its certificate directory.
    pub fn name(self) -> &'static str {
        match self {
            FleetRole::Host => "host",
            FleetRole::Gateway => "gateway",
            FleetRole::Operator => "operator",
        }
    }

    /// The DNS name in its certificate, by which servers identify it.
    pub(crate) fn certificate_name(self) -> String {
        format!("jackfield-{}", self.name())
    }

    /// The subjects that it may publish to.
    fn publish_subjects(self, cell: &str) -> Vec<String> {
        let requests = |names: &[&str]| -> Vec<String> {
            names.iter().map(|it| format!("$JS.API.{it}")).collect()
        };
        let subjects = |names: &[&str]| -> Vec<String> {
            names.iter().map(|it| format!("{cell}.{it}")).collect()
        };
        // The first member that starts creates the streams. This does not permit changes of
        // existing streams.
        let read = requests(&[
            "INFO",
            "STREAM.NAMES",
            "STREAM.INFO.*",
            "STREAM.CREATE.*",
            "STREAM.MSG.GET.*",
            "DIRECT.GET.>",
            "CONSUMER.CREATE.>",
            "CONSUMER.INFO.>",
            "CONSUMER.MSG.NEXT.>",
            "CONSUMER.DELETE.>",
        ]);
        match self {
            FleetRole::Host => {
                let write = requests(&["STREAM.PURGE.*", "STREAM.MSG.DELETE.*"]);
                let own =
                    ["log.>", "blob.>", "sum.>", "own.>", "host.*", "audit", "ask.>", "relay.>"];
                [read, write, subjects(&own)].concat()
            }
            FleetRole::Gateway => [
                read,
                subjects(&["audit", "ask.*.*.here", "ask.*.*.relay", "ask.*.*.adopt", "relay.*.h"]),
            ]
            .concat(),
            FleetRole::Operator => {
                let mut allowed = requests(&["INFO", "STREAM.NAMES", "STREAM.INFO.*"]);
                for stream in [format!("{cell}-hosts"), format!("{cell}-audit")] {
                    allowed.extend(requests(&[
                        &format!("DIRECT.GET.{stream}"),
                        &format!("CONSUMER.CREATE.{stream}"),
                        &format!("CONSUMER.CREATE.{stream}.>"),
                        &format!("CONSUMER.INFO.{stream}.>"),
                        &format!("CONSUMER.MSG.NEXT.{stream}.>"),
                        &format!("CONSUMER.DELETE.{stream}.>"),
                    ]));
                }
                [allowed, subjects(&["ask.*.*.here", "ask.*.*.drain"])].concat()
            }
        }
    }

    /// The subjects that it may subscribe to.
    fn subscribe_subjects(self, cell: &str) -> Vec<String> {
        // Operator commands such as `jackfield host drain` may use the certificates of a host or
        // gateway.
        let member = [format!("{MEMBER_INBOX}.>"), format!("{OPERATOR_INBOX}.>")];
        match self {
            FleetRole::Host => {
                let own = [format!("{cell}.ask.>"), format!("{cell}.relay.>")];
                member.into_iter().chain(own).collect()
            }
            FleetRole::Gateway => member.into_iter().chain([format!("{cell}.relay.*.g")]).collect(),
            FleetRole::Operator => vec![format!("{OPERATOR_INBOX}.>")],
        }
    }
}

/// Formats the `authorization` block for the servers of a cell.
pub(crate) fn format_authorization(cell: &str) -> String {
    let mut text = format!(
        "# Written by `jackfield fleet certs` for the cell `{cell}`: the permissions of each role.\n\
         authorization {{\n  users: [\n"
    );
    for role in FleetRole::ALL {
        let name = role.certificate_name();
        let block = |label: &str, subjects: &[String]| {
            let quoted: Vec<_> = subjects.iter().map(|it| format!("          \"{it}\"")).collect();
            let quoted = quoted.join("\n");
            format!("        {label}: {{ allow: [\n{quoted}\n        ] }}\n")
        };
        let publish = block("publish", &role.publish_subjects(cell));
        let subscribe = block("subscribe", &role.subscribe_subjects(cell));
        // Hosts respond to requests in the inbox of the sender.
        let responses =
            if role == FleetRole::Host { "        allow_responses: true\n" } else { "" };
        write!(
            text,
            "    {{\n      user: \"{name}\"\n      permissions: {{\n{publish}{subscribe}{responses}      }}\n    }}\n"
        )
        .expect("writing to a string never fails");
    }
    text.push_str("  ]\n}\n");
    text
}
