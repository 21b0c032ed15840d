// Rules for the prose of the documentation. Each returns problems with the line they are on; code is not read.

import { markdownLines } from './markdown.mjs';

/** Words to avoid, and what to write instead. */
const AVOID = [
  ['in order to', 'to'],
  ['simply', 'nothing: leave it out'],
  ['just', 'only, or nothing'],
  ['easily', 'nothing: leave it out'],
  ['obviously', 'nothing: leave it out'],
  ['of course', 'nothing: leave it out'],
  ['basically', 'nothing: leave it out'],
  ['please', 'the imperative alone'],
  ['utili[sz]es?', 'use'],
  ['leverages?', 'use'],
  ['is able to', 'can'],
  ['are able to', 'can'],
  ['due to the fact that', 'because'],
  ['at this point in time', 'now'],
  ['a number of', 'some, or the number'],
  ['the fact that', 'that'],
  ['has the ability to', 'can'],
  ['prior to', 'before'],
  ['subsequent to', 'after'],
  ['it should be noted', 'nothing: say it'],
  ['note that', 'nothing: say it'],
  ['is told', 'learns, or is notified'],
  ['are told', 'learn, or are notified'],
  ['was told', 'was reported'],
  ['click here', 'the name of what the link leads to'],
  ['here be', 'plain words'],
  ['seamless(?:ly)?', 'nothing: leave it out'],
  ['powerful', 'what it does'],
  ['blazing(?:ly)?', 'the measured number'],
  ['robust', 'what it withstands'],
  ['etc', 'the whole list, or "such as"'],
  ['e\\.g\\.,? etc', 'one of them'],
  ['via', 'with, over or through'],
];

/** Capitalised words that headings may have after their first word. */
const NAMES = new Set('API APIs Apps Caddy Chromium Claude Code Compose Desktop Cursor DevTools Docker GET GitHub GitLab Helm HTML HTTP Inter JavaScript JSON Kubernetes Landlock Linux Markdown MCP NATS Node OAuth OpenAPI OpenTelemetry Playwright PostgreSQL Prometheus Python REST Rust SDK SearXNG SQL SQLite SSH TLS TypeScript Unreleased URI URIs URL VS YAML Octoprox PDF PDFs CLI User-Agent npm C I Agent'.split(' '));

const MAX_WORDS = 40;
const MAX_LINE = 160;

/** @returns {{line: number, text: string}[]} */
export function proseProblems(text, { guide = false } = {}) {
  const problems = [];
  for (const paragraph of paragraphs(text)) {
    for (const [pattern, instead] of AVOID) report(paragraph, new RegExp(`(?<![\\w-])${pattern}(?![\\w-])`, 'gi'), (found) => `"${found}": write ${instead}`);
    report(paragraph, /\w!(?=\s|$)/g, () => 'an exclamation mark');
    if (guide) report(paragraph, /(?<![\w-])(we|our|ours|us|let's)(?![\w-])/gi, (found) => `"${found}": name who does it, or address the reader`);
    if (paragraph.kind === 'text')
      for (const sentence of sentences(paragraph.text)) {
        const words = sentence.text.split(/\s+/).filter((word) => /\w/.test(word)).length;
        if (words > MAX_WORDS) add(paragraph, sentence.start, `a sentence of ${words} words; the limit is ${MAX_WORDS}`);
      }
    if (paragraph.kind === 'heading') {
      const words = paragraph.text.replace(/^#+\s+/, '').split(/\s+/);
      const wrong = words.filter((word, index) => index > 0 && !words[index - 1].endsWith(':') && /^[A-Z]/.test(word) && !NAMES.has(word.replace(/[^\w-].*$/, '')) && !/\d|_/.test(word));
      if (wrong.length) add(paragraph, 0, `a heading with capitals: ${wrong.join(', ')}`);
    }
  }
  for (const { number, line, code } of markdownLines(text))
    if (!code && line.length > MAX_LINE && !/^\s*\||\]\(|^\[/.test(line)) problems.push({ line: number, text: `${line.length} characters in a line; the limit is ${MAX_LINE}` });
  return problems.sort((a, b) => a.line - b.line);

  function add(paragraph, at, what) {
    problems.push({ line: paragraph.line + paragraph.text.slice(0, at).split('\n').length - 1, text: what });
  }
  function report(paragraph, pattern, what) {
    for (const match of paragraph.text.matchAll(pattern)) add(paragraph, match.index, what(match[0].replace(/\s+/g, ' ')));
  }
}

/** Headings, table rows and runs of other lines, without inline code and link targets. */
function paragraphs(text) {
  const found = [];
  let open = null;
  for (const { number, line, code } of markdownLines(text)) {
    const bare = line.replace(/`[^`]*`/g, 'x').replace(/\]\([^)]*\)/g, ']').replace(/<!--.*?-->/g, '');
    const kind = /^#/.test(line) ? 'heading' : /^\s*\|/.test(line) ? 'row' : 'text';
    if (code || bare.trim() === '') open = null;
    else if (kind !== 'text' || /^\s*([-*]|\d+\.)\s/.test(line) || !open) {
      found.push({ kind, line: number, text: bare });
      open = kind === 'text' ? found.at(-1) : null;
    } else open.text += `\n${bare}`;
  }
  // Inline code may go over the end of a line.
  for (const paragraph of found) paragraph.text = paragraph.text.replace(/`[^`]*`/g, (code) => code.replace(/[^\n]/g, 'x'));
  return found;
}

function sentences(text) {
  return [...text.matchAll(/(?:[^.?!:;]|[.?!:;](?!\s))+[.?!:;]?/g)].map((match) => ({ start: match.index + match[0].search(/\S|$/), text: match[0] }));
}
