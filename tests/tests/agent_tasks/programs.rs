//! Programs beside direct calls: the same answers for a small part of the tokens.

use crate::cost_agent::Agent;
use anyhow::{Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::test_binaries::binary_path;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const LOGS: usize = 8;
const LINES_PER_LOG: usize = 400;
const ORDERS: usize = 300;
const CUSTOMERS: usize = 40;
const MODULES: usize = 60;
const PEOPLE: usize = 60;
/// Bytes of a large reply of a server.
const LARGE_BYTES: usize = 60_000;

/// A task, solved with direct calls and with a program.
struct Task {
    name: &'static str,
    direct: Vec<(&'static str, Value)>,
    /// The answer that a model would work out from the structured replies of the direct calls.
    answer: fn(&[Value]) -> Value,
    program: &'static str,
}

fn level(line: usize) -> &'static str {
    ["INFO", "INFO", "DEBUG", "WARN", "INFO", "ERROR", "DEBUG"][(line * 31) % 7]
}

fn fill(home: &HubHome) -> Result<()> {
    let folder = home.workspace();
    for name in ["logs", "src", "data"] {
        std::fs::create_dir(folder.join(name))?;
    }
    for log in 0..LOGS {
        let mut text = String::new();
        for line in 0..LINES_PER_LOG {
            let (hour, minute) = (line / 60, line % 60);
            let (level, ms) = (level(line + log), (line * 37 + log * 11) % 900);
            writeln!(text, "0{hour}:{minute:02} {level} request {line} took {ms} ms")?;
        }
        std::fs::write(folder.join(format!("logs/app-{log}.log")), text)?;
    }
    let orders = (0..ORDERS).map(|id| {
        let status = ["paid", "open", "paid", "cancelled"][id % 4];
        json!({"id": id, "customer": id * 7 % CUSTOMERS, "total": (id * 7919) % 500, "status": status})
    });
    std::fs::write(folder.join("data/orders.json"), orders.collect::<Value>().to_string())?;
    let mut customers = "id,name,city\n".to_owned();
    for id in 0..CUSTOMERS {
        writeln!(customers, "{id},Customer {id},{}", ["Oslo", "Porto", "Kyoto"][id % 3])?;
    }
    std::fs::write(folder.join("data/customers.csv"), customers)?;
    for module in 0..MODULES {
        let mut text = format!("//! Module {module}.\n\n");
        for line in 0..module % 9 {
            writeln!(
                text,
                "// TODO(team{}): part {line} of module {module}\nfn part_{line}() {{}}",
                line % 3
            )?;
        }
        std::fs::write(folder.join(format!("src/module_{module:02}.rs")), text)?;
    }
    Ok(())
}

fn content(reply: &Value) -> &str {
    reply["content"].as_str().unwrap()
}

fn orders(reply: &Value) -> Vec<Value> {
    serde_json::from_str(content(reply)).unwrap()
}

fn count(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.contains(word)).count()
}

fn read(path: &str) -> (&'static str, Value) {
    ("fs_read_text", json!({"path": path}))
}

fn read_logs() -> Vec<(&'static str, Value)> {
    (0..LOGS).map(|log| read(&format!("logs/app-{log}.log"))).collect()
}

fn todos() -> (&'static str, Value) {
    ("fs_search", json!({"pattern": "TODO", "path": "src", "max_results": 1000}))
}

fn took(line: &str) -> Option<u64> {
    line.split("took ").nth(1)?.strip_suffix(" ms")?.parse().ok()
}

fn log_tasks() -> Vec<Task> {
    vec![
        Task {
            name: "errors of each log",
            direct: read_logs(),
            answer: |replies| replies.iter().map(|log| count(content(log), " ERROR ")).collect(),
            program: "const counts = [];\nfor (let i = 0; i < 8; i++) {\n  const {content} = await tools.fs_read_text({path: `logs/app-${i}.log`});\n  counts.push(content.split('\\n').filter(line => line.includes(' ERROR ')).length);\n}\nreturn counts",
        },
        Task {
            name: "slowest request of all logs",
            direct: read_logs(),
            answer: |replies| {
                replies.iter().flat_map(|log| content(log).lines()).filter_map(took).max().into()
            },
            program: "const logs = await Promise.all([0,1,2,3,4,5,6,7].map(i => tools.fs_read_text({path: `logs/app-${i}.log`})));\nreturn Math.max(...logs.flatMap(log => [...log.content.matchAll(/took (\\d+) ms/g)].map(m => +m[1])))",
        },
        Task {
            name: "levels in one log",
            direct: vec![read("logs/app-3.log")],
            answer: |replies| {
                let mut levels = BTreeMap::new();
                for line in content(&replies[0]).lines() {
                    *levels.entry(line.split(' ').nth(1).unwrap()).or_insert(0) += 1;
                }
                json!(levels)
            },
            program: "const levels: Record<string, number> = {};\nfor (const line of (await tools.fs_read_text({path: 'logs/app-3.log'})).content.trim().split('\\n')) {\n  const level = line.split(' ')[1];\n  levels[level] = (levels[level] ?? 0) + 1;\n}\nreturn levels",
        },
        Task {
            name: "a log in pages",
            direct: (0..LINES_PER_LOG / 50)
                .map(|page| {
                    let (first, last) = (page * 50 + 1, page * 50 + 50);
                    ("fs_read_text", json!({"path": "logs/app-5.log", "start_line": first, "end_line": last}))
                })
                .collect(),
            answer: |replies| replies.iter().map(|page| count(content(page), " WARN ")).sum::<usize>().into(),
            program: "let warnings = 0, next: number | undefined = 1;\nwhile (next && next <= 400) {\n  const page = await tools.fs_read_text({path: 'logs/app-5.log', start_line: next, end_line: next + 49});\n  warnings += page.content.split('\\n').filter(line => line.includes(' WARN ')).length;\n  next += 50;\n}\nreturn warnings",
        },
    ]
}

fn order_tasks() -> Vec<Task> {
    vec![
        Task {
            name: "revenue of paid orders",
            direct: vec![read("data/orders.json")],
            answer: |replies| {
                let paid = orders(&replies[0]).into_iter().filter(|order| order["status"] == "paid");
                paid.map(|order| order["total"].as_u64().unwrap()).sum::<u64>().into()
            },
            program: "const orders = JSON.parse((await tools.fs_read_text({path: 'data/orders.json'})).content);\nreturn orders.filter(o => o.status === 'paid').reduce((sum, o) => sum + o.total, 0)",
        },
        Task {
            name: "revenue by city, a join of two files",
            direct: vec![read("data/orders.json"), read("data/customers.csv")],
            answer: |replies| {
                let cities: Vec<&str> = content(&replies[1])
                    .lines()
                    .skip(1)
                    .map(|line| line.rsplit(',').next().unwrap())
                    .collect();
                let mut sums = BTreeMap::new();
                for order in orders(&replies[0]) {
                    let city = cities[order["customer"].as_u64().unwrap() as usize];
                    *sums.entry(city).or_insert(0) += order["total"].as_u64().unwrap();
                }
                json!(sums)
            },
            program: "const read = async path => (await tools.fs_read_text({path})).content;\nconst city = Object.fromEntries((await read('data/customers.csv')).trim().split('\\n').slice(1).map(l => l.split(',')).map(([id, , city]) => [id, city]));\nconst sums = {};\nfor (const o of JSON.parse(await read('data/orders.json'))) sums[city[o.customer]] = (sums[city[o.customer]] ?? 0) + o.total;\nreturn sums",
        },
        Task {
            name: "best customer",
            direct: vec![read("data/orders.json")],
            answer: |replies| {
                let mut sums = BTreeMap::new();
                for order in orders(&replies[0]) {
                    *sums.entry(order["customer"].as_u64().unwrap()).or_insert(0) +=
                        order["total"].as_u64().unwrap();
                }
                sums.into_iter().max_by_key(|(id, sum)| (*sum, u64::MAX - id)).map(|(id, _)| id).into()
            },
            program: "const sums = new Map();\nfor (const o of JSON.parse((await tools.fs_read_text({path: 'data/orders.json'})).content)) sums.set(o.customer, (sums.get(o.customer) ?? 0) + o.total);\nreturn [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0][0]",
        },
        Task {
            name: "open orders over 450",
            direct: vec![read("data/orders.json")],
            answer: |replies| {
                let all = orders(&replies[0]).into_iter();
                let open =
                    all.filter(|order| order["status"] == "open" && order["total"].as_u64() > Some(450));
                open.map(|order| order["id"].clone()).collect()
            },
            program: "const orders = JSON.parse((await tools.fs_read_text({path: 'data/orders.json'})).content);\nreturn orders.filter(o => o.status === 'open' && o.total > 450).map(o => o.id)",
        },
    ]
}

fn search_tasks() -> Vec<Task> {
    vec![
        Task {
            name: "files with the most matches",
            direct: vec![todos()],
            answer: |replies| {
                let mut counts: BTreeMap<String, usize> = BTreeMap::new();
                for hit in replies[0]["matches"].as_array().unwrap() {
                    *counts.entry(hit["path"].as_str().unwrap().to_owned()).or_default() += 1;
                }
                let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
                counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
                json!(counts.into_iter().take(3).map(|(path, _)| path).collect::<Vec<_>>())
            },
            program: "const {matches} = await tools.fs_search({pattern: 'TODO', path: 'src', max_results: 1000});\nconst counts = {};\nfor (const m of matches) counts[m.path] = (counts[m.path] ?? 0) + 1;\nreturn Object.entries(counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 3).map(([path]) => path)",
        },
        Task {
            name: "matches of each team",
            direct: vec![todos()],
            answer: |replies| {
                let mut teams = BTreeMap::new();
                for hit in replies[0]["matches"].as_array().unwrap() {
                    let text = hit["text"].as_str().unwrap();
                    let team = text.split(['(', ')']).nth(1).unwrap().to_owned();
                    *teams.entry(team).or_insert(0) += 1;
                }
                json!(teams)
            },
            program: "const teams = {};\nfor (const {text} of (await tools.fs_search({pattern: 'TODO', path: 'src', max_results: 1000})).matches) {\n  const team = text.match(/\\((\\w+)\\)/)[1];\n  teams[team] = (teams[team] ?? 0) + 1;\n}\nreturn teams",
        },
        Task {
            name: "files without a match",
            direct: vec![("fs_glob", json!({"pattern": "src/*.rs"})), todos()],
            answer: |replies| {
                let hits = replies[1]["matches"].as_array().unwrap();
                let paths = replies[0]["paths"].as_array().unwrap().iter();
                paths.filter(|path| hits.iter().all(|hit| hit["path"] != **path)).cloned().collect()
            },
            program: "const [files, todos] = await Promise.all([tools.fs_glob({pattern: 'src/*.rs'}), tools.fs_search({pattern: 'TODO', path: 'src', max_results: 1000})]);\nconst found = new Set(todos.matches.map(m => m.path));\nreturn files.paths.filter(path => !found.has(path))",
        },
        Task {
            name: "largest files",
            direct: vec![("fs_list", json!({"path": "src", "long_format": true}))],
            answer: |replies| {
                let mut entries = replies[0]["entries"].as_array().unwrap().clone();
                entries.sort_by_key(|entry| {
                    (u64::MAX - entry["size"].as_u64().unwrap(), entry["name"].to_string())
                });
                entries.iter().take(2).map(|entry| entry["name"].clone()).collect()
            },
            program: "const {entries} = await tools.fs_list({path: 'src'});\nreturn entries.sort((a, b) => b.size - a.size || (a.name < b.name ? -1 : 1)).slice(0, 2).map(e => e.name)",
        },
        Task {
            name: "lines of all modules",
            direct: vec![(
                "fs_read_many",
                json!({"paths": (0..MODULES).map(|module| format!("src/module_{module:02}.rs")).collect::<Vec<_>>()}),
            )],
            answer: |replies| {
                let files = replies[0]["files"].as_array().unwrap().iter();
                files.map(|file| file["line_count"].as_u64().unwrap()).sum::<u64>().into()
            },
            program: "const {paths} = await tools.fs_glob({pattern: 'src/*.rs'});\nconst {files} = await tools.fs_read_many({paths});\nreturn files.reduce((sum, file) => sum + file.line_count, 0)",
        },
    ]
}

fn server_tasks() -> Vec<Task> {
    vec![
        Task {
            name: "length of a large reply",
            direct: vec![("one__fix_big", json!({"bytes": LARGE_BYTES}))],
            answer: |_| json!(LARGE_BYTES),
            program: "return (await tools.one.fix_big({bytes: 60000})).length",
        },
        Task {
            name: "a word in large replies of two servers",
            direct: ["one__fix_big", "two__fix_big"]
                .map(|tool| (tool, json!({"bytes": LARGE_BYTES})))
                .to_vec(),
            answer: |_| json!([LARGE_BYTES / 16, LARGE_BYTES / 16]),
            program: "const texts = await Promise.all(['one', 'two'].map(server => tools[server].fix_big({bytes: 60000})));\nreturn texts.map(text => text.split('abcdef').length - 1)",
        },
        Task {
            name: "a join across two servers",
            direct: (0..12)
                .flat_map(|n| {
                    ["one__fix_echo", "two__fix_echo"]
                        .map(|tool| (tool, json!({"text": format!("{n}").repeat(200)})))
                })
                .collect(),
            answer: |replies| {
                let text = |reply: &Value| reply["text"].as_str().unwrap().len();
                replies.chunks(2).map(|pair| text(&pair[0]) + text(&pair[1])).sum::<usize>().into()
            },
            program: "let sum = 0;\nfor (let n = 0; n < 12; n++) {\n  const args = {text: String(n).repeat(200)};\n  const [a, b] = await Promise.all([tools.one.fix_echo(args), tools.two.fix_echo(args)]);\n  sum += a.text.length + b.text.length;\n}\nreturn sum",
        },
        Task {
            name: "one moment in many zones",
            direct: ZONES
                .map(|zone| ("time_convert", json!({"datetime": "2027-03-05T14:30", "to_timezone": zone})))
                .to_vec(),
            answer: |replies| {
                let late =
                    replies.iter().filter(|reply| reply["converted"].as_str().unwrap()[11..13] >= *"18");
                late.map(|reply| reply["to_timezone"].clone()).collect()
            },
            program: "const zones = 'Asia/Tokyo Asia/Kolkata Asia/Dubai Europe/Paris Africa/Cairo America/Lima America/Chicago Pacific/Auckland Australia/Sydney Europe/London America/Bogota Asia/Seoul'.split(' ');\nconst times = await Promise.all(zones.map(to_timezone => tools.time_convert({datetime: '2027-03-05T14:30', to_timezone})));\nreturn times.filter(t => t.converted.slice(11, 13) >= '18').map(t => t.to_timezone)",
        },
        Task {
            name: "people with most observations",
            direct: vec![("memory_query", json!({"entity_type": "person", "max_results": 200}))],
            answer: |replies| {
                let people = replies[0]["entities"].as_array().unwrap().iter();
                let mut names: Vec<&str> = people
                    .filter(|person| person["observation_count"].as_u64() >= Some(4))
                    .map(|person| person["name"].as_str().unwrap())
                    .collect();
                names.sort_unstable();
                json!(names)
            },
            program: "const {entities} = await tools.memory_query({entity_type: 'person', max_results: 200});\nreturn entities.filter(p => p.observation_count >= 4).map(p => p.name).sort()",
        },
        Task {
            name: "all pages of the memory",
            direct: (0..PEOPLE / 10)
                .map(|page| ("memory_list", json!({"limit": 10, "offset": page * 10})))
                .collect(),
            answer: |replies| {
                let pages = replies.iter().flat_map(|page| page["entities"].as_array().unwrap());
                pages.map(|entity| entity["observation_count"].as_u64().unwrap()).sum::<u64>().into()
            },
            program: "let sum = 0, offset: number | undefined = 0;\nwhile (offset !== undefined) {\n  const page = await tools.memory_list({limit: 10, offset});\n  sum += page.entities.reduce((n, e) => n + e.observation_count, 0);\n  offset = page.next_offset;\n}\nreturn sum",
        },
        Task {
            name: "who likes what, counted",
            direct: vec![("memory_query", json!({"entity_type": "person", "max_results": 200}))],
            answer: |replies| {
                let people = replies[0]["entities"].as_array().unwrap().iter();
                let all = people.flat_map(|person| person["observations"].as_array().unwrap());
                all.filter(|text| **text == "likes tea").count().into()
            },
            program: "const {entities} = await tools.memory_query({entity_type: 'person', max_results: 200});\nreturn entities.flatMap(p => p.observations).filter(text => text === 'likes tea').length",
        },
    ]
}

pub const ZONES: [&str; 12] = [
    "Asia/Tokyo",
    "Asia/Kolkata",
    "Asia/Dubai",
    "Europe/Paris",
    "Africa/Cairo",
    "America/Lima",
    "America/Chicago",
    "Pacific/Auckland",
    "Australia/Sydney",
    "Europe/London",
    "America/Bogota",
    "Asia/Seoul",
];

#[tokio::test]
async fn programs_give_the_answers_of_direct_calls_for_a_tenth_of_the_tokens() -> Result<()> {
    let server = json!({"command": binary_path("mcp-fixture")?, "args": ["stdio"]});
    let home = HubHome::new(&json!({"servers": {"one": server, "two": server}}))?;
    fill(&home)?;
    let mut direct = Agent::new(&home).await?;
    let people = (0..PEOPLE).map(|n| {
        let facts: Vec<String> = (0..n % 5)
            .map(|fact| ["likes tea", "cycles", "sings", "paints", "reads"][fact].to_owned())
            .collect();
        json!({"name": format!("Person {n}"), "type": "person", "observations": facts})
    });
    direct.call("memory_upsert_entities", json!({"entities": people.collect::<Value>()})).await?;
    let tasks: Vec<Task> =
        log_tasks().into_iter().chain(order_tasks()).chain(search_tasks()).chain(server_tasks()).collect();
    assert_eq!(tasks.len(), 20);
    let (mut all_direct, mut all_programs) = (0, 0);
    println!("| task | direct, tokens | program, tokens |\n|---|---|---|");
    for task in tasks {
        let mut agent = Agent::with(direct);
        let mut replies = Vec::new();
        for (tool, arguments) in &task.direct {
            replies.push(agent.call_whole(tool, arguments.clone()).await?);
        }
        let (expected, tokens) = ((task.answer)(&replies), agent.tokens());
        let mut agent = Agent::with(agent);
        let reply = agent.try_call("run_code", json!({"code": task.program})).await?;
        ensure!(!reply.is_error, "{}: {}", task.name, reply.text);
        let answer: Value = serde_json::from_str(&reply.text)?;
        assert_eq!(answer, expected, "{}", task.name);
        println!("| {} | {tokens} | {} |", task.name, agent.tokens());
        (all_direct, all_programs) = (all_direct + tokens, all_programs + agent.tokens());
        direct = agent;
    }
    println!("| all | {all_direct} | {all_programs} |");
    ensure!(
        all_programs * 10 <= all_direct,
        "{all_programs} tokens of programs, {all_direct} of direct calls"
    );
    Ok(())
}
