// The rules for prose find what was planted, and nothing in plain text.

import assert from 'node:assert';
import test from 'node:test';
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
