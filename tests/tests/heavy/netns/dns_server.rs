//! A DNS server whose answers change.

use super::namespaces::NAME_SERVER;
use super::public_site;
use anyhow::Result;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// Successive answers of one name; the last one is repeated, or all are cycled.
#[derive(Debug, Clone)]
pub struct DnsAnswers {
    pub answers: Vec<Vec<IpAddr>>,
    pub repeats: bool,
    /// The answers belong to another name, to which this one is an alias.
    pub alias: Option<&'static str>,
}

#[derive(Default)]
pub struct DnsServer {
    stories: Mutex<HashMap<String, DnsAnswers>>,
    asked: Mutex<HashMap<(String, u16), usize>>,
}

impl DnsServer {
    /// Knows the names of the public servers and those that are added.
    pub async fn new() -> Result<Arc<Self>> {
        let socket = UdpSocket::bind((NAME_SERVER, 53)).await?;
        let names = Arc::new(Self::default());
        names.set_answers(public_site::SITE_HOST, DnsAnswers::always(public_site::PUBLIC_ADDRESSES[0]));
        for number in 0..public_site::ATTACKER_SITES {
            names.set_answers(
                &public_site::attacker(number),
                DnsAnswers::always(public_site::PUBLIC_ADDRESSES[number % 2]),
            );
        }
        let server = Arc::clone(&names);
        tokio::spawn(async move {
            let mut question = [0; 1500];
            while let Ok((count, from)) = socket.recv_from(&mut question).await {
                if let Some(answer) = server.answer(&question[..count]) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Ok(names)
    }

    pub fn set_answers(&self, name: &str, story: DnsAnswers) {
        self.stories.lock().unwrap().insert(name.to_owned(), story);
    }

    /// Starts over.
    pub fn reset(&self) {
        self.asked.lock().unwrap().clear();
    }

    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let mut labels = Vec::new();
        let mut at = 12;
        while let Some(length @ 1..) = question.get(at).map(|length| usize::from(*length)) {
            labels.push(String::from_utf8_lossy(question.get(at + 1..at + 1 + length)?).to_ascii_lowercase());
            at += 1 + length;
        }
        let kind = u16::from_be_bytes(question.get(at + 1..at + 3)?.try_into().ok()?);
        let story = self.stories.lock().unwrap().get(&labels.join(".")).cloned();
        let mut answer = question.get(..2)?.to_vec();
        // A reply with authority, without an error or saying that there is no such name.
        answer.extend([0x85, if story.is_some() { 0x80 } else { 0x83 }, 0, 1]);
        let (records, count) =
            story.map(|story| self.records(&labels.join("."), kind, &story)).unwrap_or_default();
        answer.extend(count.to_be_bytes());
        answer.extend([0; 4]);
        answer.extend(question.get(12..at + 5)?);
        answer.extend(records);
        Some(answer)
    }

    fn records(&self, name: &str, kind: u16, story: &DnsAnswers) -> (Vec<u8>, u16) {
        let turn = {
            let mut asked = self.asked.lock().unwrap();
            let asked = asked.entry((name.to_owned(), kind)).or_default();
            *asked += 1;
            *asked - 1
        };
        let last = story.answers.len() - 1;
        let turn = if story.repeats { turn % (last + 1) } else { turn.min(last) };
        let (mut records, mut count) = (Vec::new(), 0);
        // The name in the question.
        let mut owner = vec![0xc0, 12];
        if let Some(alias) = story.alias {
            let target = encode_name(alias);
            records.extend(record(&owner, CNAME, &target));
            owner = target;
            count += 1;
        }
        for address in &story.answers[turn] {
            let data = match (address, kind) {
                (IpAddr::V4(address), A) => address.octets().to_vec(),
                (IpAddr::V6(address), AAAA) => address.octets().to_vec(),
                _ => continue,
            };
            records.extend(record(&owner, kind, &data));
            count += 1;
        }
        (records, count)
    }
}

impl DnsAnswers {
    pub fn always(address: &str) -> Self {
        Self::new(&[&[address]])
    }

    pub fn new(answers: &[&[&str]]) -> Self {
        let list = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Self { answers: answers.iter().map(list).collect(), repeats: false, alias: None }
    }
}

/// A record with a TTL of zero.
fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = owner.to_vec();
    record.extend(kind.to_be_bytes());
    record.extend([0, 1, 0, 0, 0, 0]);
    record.extend((data.len() as u16).to_be_bytes());
    record.extend(data);
    record
}

fn encode_name(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| std::iter::once(label.len() as u8).chain(label.bytes()));
    labels.chain([0]).collect()
}
