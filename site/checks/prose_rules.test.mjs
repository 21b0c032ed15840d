// The rules for prose find what was planted, and nothing in plain text.

import assert from 'node:assert';
import test from 'node:test';
import { harmProblems } from './prose_harmless.mjs';
import { proseProblems } from './prose_rules.mjs';

const words = (count) => Array.from({ length: count }, () => 'w').join(' ');

const PLANTED = [
  ['# Title\n\nSet it in order to see more.', 3, 'in order to'],
  ['It is simply a file.', 1, 'simply'],
  ['One line.\nIt is\njust a file.', 3, 'just'],
  ['The client is told about it.', 1, 'is told'],
  ['For more, click here.', 1, 'click here'],
  ['It works!', 1, 'exclamation'],
  ['## Set Up The Hub', 1, 'Set Up The Hub'.split(' ').slice(1).join(', ')],
  [`${words(41)}.`, 1, '41 words'],
  [`- ${words(10)}.\n- ${words(41)}.`, 2, '41 words'],
  ['x'.repeat(161), 1, '161 characters'],
  ['| a | It is simply so |', 1, 'simply'],
];

const PLAIN = [
  `${words(20)}\n${words(20)}. ${words(20)}\n${words(20)}.`,
  '## Reverse proxy with TLS: Caddy',
  '```sh\nsimply just do it!\n```',
  'Call `just` with `simply`.',
  'Adjust it. A just-in-time build.',
  '![A picture](a.png)',
  `| ${'x'.repeat(200)} |`,
  'An error of the program: `a\nsimply b`.',
];

test('planted violations are found', () => {
  for (const [text, line, part] of PLANTED) {
    const found = proseProblems(text);
    assert.ok(found.some((problem) => problem.line === line && problem.text.includes(part)), `${JSON.stringify(text)}: ${JSON.stringify(found)}`);
  }
});

test('plain text passes', () => {
  for (const text of PLAIN) assert.deepStrictEqual(proseProblems(text), [], text);
});

test('guides address the reader', () => {
  assert.strictEqual(proseProblems('We recommend our hub.', { guide: true }).length, 2);
  assert.deepStrictEqual(proseProblems('We recommend our hub.'), []);
});

const OWN = '```sh run\nexport XDG_CONFIG_HOME=$(mktemp -d) XDG_STATE_HOME=$(mktemp -d)\n```\n';

const HARMFUL = [
  "echo '{}' > ~/.cursor/mcp.json",
  'cat >> "$HOME/.zshrc" <<X',
  'octoprox tools | tee ~/tools.txt',
  'mkdir -p ~/.claude',
  'mkdir notes && mv notes ~/notes',
  'cp clock.py ~/clock.py',
  'rm -rf ~/.npm/_npx',
  "sed -i 's/a/b/' ~/.config/octoprox/octoprox.yaml",
  'printf x > $XDG_CONFIG_HOME/octoprox/octoprox.yaml',
  'cp .env.example .env',
  'OCTOPROX_STATE_DIR=$HOME/worker octoprox worker',
  "psql -c 'DROP SCHEMA hubs CASCADE'",
  'TRUNCATE teas;',
  'git reset --hard',
  'octoprox servers remove notion',
  'octoprox secret set GITHUB_TOKEN',
  "octoprox call memory_delete entity_names='[\"Ada\"]'",
];

const HARMLESS = [
  'octoprox init --dry-run',
  'cp -a ~/.local/state/octoprox backup   # of ~',
  'cp -n .env.example .env',
  "octoprox call db_query sql='SELECT 1; DROP TABLE teas' || echo refused",
  'octoprox add notion --dry-run',
  'cat notes.md 2>&1 > out.txt',
  'export OCTOPROX_TOOLS=$(mktemp -d)     # in your set-up a directory such as ~/tools',
];

test('commands that harm a reader are found', () => {
  for (const line of HARMFUL) assert.strictEqual(harmProblems(`\`\`\`sh run\n${line}\n\`\`\`\n`).length, 1, line);
  assert.strictEqual(harmProblems('```json ~/.cursor/mcp.json\n{}\n```\n').length, 1);
});

test('commands that harm nobody pass', () => {
  for (const line of HARMLESS) assert.deepStrictEqual(harmProblems(`\`\`\`sh run\n${line}\n\`\`\`\n`), [], line);
  const own = ['printf x > "$XDG_CONFIG_HOME/octoprox/octoprox.yaml"', 'octoprox servers remove notion', 'octoprox call memory_forget x=1'];
  for (const line of own) assert.deepStrictEqual(harmProblems(`${OWN}\`\`\`sh run\n${line}\n\`\`\`\n`), [], line);
});

test('the set-up of a page is not read as prose', () => {
  assert.deepStrictEqual(proseProblems('# A\n\n<!-- setup\nsimply just do it!\n-->\n\nText.'), []);
});
