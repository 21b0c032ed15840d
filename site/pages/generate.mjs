// Writes the content of the site from the Markdown of the repository: pages with front matter, links between them, pictures, and the sidebar.
//
//   node site/pages/generate.mjs REPOSITORY PROJECT REST.json ADMIN.json
//
// Every page of docs/ must have a place: one that docs/guide/README.md or docs/decisions/README.md does not list fails the build.

import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { outsideCode, plain, splitTitle } from './markdown.mjs';
import { apiPage } from './openapi.mjs';

/** Stands for the address of the site; site/pages/relative.mjs replaces it by a relative one. */
const BASE = '/__octoprox__/';
/** A reference page above this size becomes one page for each of its sections. */
const SPLIT_ABOVE = 100_000;
const OPERATIONS_SECTION = 'Running a hub';

const [repository, project, restFile, adminFile] = process.argv.slice(2);
const read = (path) => readFileSync(join(repository, path), 'utf8');
const has = (path) => existsSync(join(repository, path));
const list = (folder, end) => (has(folder) ? readdirSync(join(repository, folder)).filter((name) => name.endsWith(end)).sort().map((name) => `${folder}/${name}`) : []);
const upper = (text) => text[0].toUpperCase() + text.slice(1);

/** Source path → {slug, title, description, body, label, subject}. */
const pages = new Map();

function add(path, { slug = slugOf(path), text = read(path), ...more } = {}) {
  const page = { slug, ...splitTitle(text, path), ...more };
  page.label ??= page.title.replace(/:.*/, '');
  pages.set(path, page);
  return path;
}

function slugOf(path) {
  return path.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '').replace(/\.md$/, '').replace(/\/$/, '').toLowerCase();
}

/** Rows `[label](page.md) | subject` of the tables below a heading, by the heading that follows. */
function indexTables(path, from) {
  const groups = [];
  for (const part of from ? read(path).split(from)[1].split(/^## /m)[0].split(/^### /m).slice(1) : [read(path)]) {
    const rows = [...part.matchAll(/^\| \[([^\]]+)\]\(([^)]+\.md)\) \| (.*) \|$/gm)];
    groups.push([part.split('\n')[0], rows.map(([, label, target, subject]) => ({ label: upper(label), path: posix.join(dirname(path), target), subject: plain(subject) }))]);
  }
  return groups;
}

/** The pages of a folder in the order of its index; fails if the two differ. */
function listed(folder, groups) {
  const rows = groups.flatMap(([, rows]) => rows);
  const named = new Set(rows.map(({ path }) => path));
  const missing = list(folder, '.md').filter((path) => !path.endsWith('/README.md') && !named.has(path));
  if (missing.length) throw new Error(`${folder}/README.md does not list ${missing.join(', ')}`);
  for (const { path, label, subject } of rows) add(path, { label, subject });
  return groups.map(([name, rows]) => [name, rows.map(({ path }) => path)]);
}

// --- Pages by group ---------------------------------------------------------------------------------

add('README.md', { slug: 'start', title: 'Install and get started', label: 'Get started' });
add('docs/guide/README.md', { label: 'Find your way' });
add('docs/concepts.md');

const guide = listed('docs/guide', indexTables('docs/guide/README.md', '## All pages'));
const operations = guide.find(([name]) => name === OPERATIONS_SECTION)?.[1];
if (!operations) throw new Error(`docs/guide/README.md has no section "${OPERATIONS_SECTION}"`);
const decisions = listed('docs/decisions', indexTables('docs/decisions/README.md'));
const tutorials = list('docs/tutorials', '.md').map((path) => add(path));
const cookbook = add('docs/cookbook/README.md', { text: cookbookText() });
const others = list('docs', '.md').filter((path) => !pages.has(path)).map((path) => add(path));
const packaging = ['packaging/README.md', 'packaging/helm/octoprox/README.md'].map((path) => add(path, { slug: path.includes('helm') ? 'helm' : 'packaging' }));
add('SECURITY.md', { slug: 'report-a-vulnerability', label: 'Report a vulnerability' });
add('docs/decisions/README.md', { label: 'Overview' });
const about = ['CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'].map((path) => add(path));
add('LICENSE', { slug: 'license', text: `# License\n\nOctoprox is licensed under the Apache License 2.0.\n\n\`\`\`text\n${read('LICENSE')}\n\`\`\`\n` });

const folders = list('docs', '').filter((path) => statSync(join(repository, path)).isDirectory());
const unknown = folders.filter((path) => !/\/(cookbook|decisions|guide|pictures|reference|tutorials)$/.test(path));
if (unknown.length) throw new Error(`site/pages/generate.mjs has no place for ${unknown.join(', ')}`);

/** Anchors that moved to a page of their own: `docs/reference/tools.md#fs_read_text` → its page. */
const moved = new Map();
const reference = list('docs/reference', '.md').flatMap((path) => {
  const text = read(path);
  return text.length > SPLIT_ABOVE ? [split(path, text)] : [add(path)];
});
const authentication = 'If tokens are set, send one as `Authorization: Bearer TOKEN`; see [authentication](../guide/authentication.md).';
for (const [name, title, file, intro] of [
  ['rest', 'REST requests', restFile, `The requests of the main port, 7000 by default. The [REST guide](../guide/rest.md) explains calls, replies and large results. ${authentication}`],
  ['admin', 'Admin requests', adminFile, `The requests of the admin port, 3100 by default. The [admin guide](../guide/admin.md) explains states and logins. ${authentication}`],
])
  reference.push(add(`docs/reference/${name}.md`, { text: apiPage({ title, intro, document: JSON.parse(readFileSync(file, 'utf8')) }) }));
add('docs/reference/README.md', { label: 'Overview', text: referenceText() });

function cookbookText() {
  const parts = list('docs/cookbook', '.yaml').map((path) => {
    const text = read(path);
    const name = path.split('/').at(-1);
    return `## ${name}\n\n${text.match(/^# (.*)/)?.[1] ?? ''}\n\n\`\`\`yaml\n${text.replace(/^# .*\n/, '').trimEnd()}\n\`\`\``;
  });
  return `# Cookbook\n\n[Declared tools](../guide/declared-tools.md) and [workflows](../guide/workflows.md) to copy into \`tools/\` and \`workflows/\`. Each is run by the tests.\n\n${parts.join('\n\n')}\n`;
}

function split(path, text) {
  const [head, ...sections] = text.split(/^## /m);
  const folder = path.replace(/\.md$/, '');
  const { title } = splitTitle(`${head}\n`, path);
  const children = sections.map((section) => {
    const name = section.split('\n')[0].trim();
    const child = `${folder}/${name.toLowerCase().replaceAll(' ', '-')}.md`;
    const body = outsideCode(section.slice(section.indexOf('\n')), (prose) => prose.replace(/^#(#+ )/gm, '$1'));
    const names = [...section.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading);
    add(child, { text: `# ${title}: ${name}\n${body}`, label: name, description: `${upper(name)} ${title.toLowerCase()}: ${names.join(', ')}.` });
    for (const anchor of [...names, name]) moved.set(`${path}#${anchor}`, anchor === name ? child : `${child}#${anchor}`);
    return [child, name, names];
  });
  const rows = children.map(([child, name, names]) => {
    const file = posix.relative(dirname(path), child);
    return `| [${name}](${file}) | ${names.map((one) => `[\`${one}\`](${file}#${one})`).join(' ')} |`;
  });
  add(path, { text: `# ${title}\n\nAll native ${title.toLowerCase()}, with their parameters, results and examples.\n\n| toolbox | ${title.toLowerCase()} |\n|---|---|\n${rows.join('\n')}\n`, label: title });
  return { label: title, items: [path, ...children.map(([child]) => child)] };
}

function referenceText() {
  const paths = reference.map((item) => item.items?.[0] ?? item);
  const rows = paths.map((path) => `| [${pages.get(path).title}](${path.split('/').at(-1)}) | ${pages.get(path).description} |`);
  return `# Reference\n\nGenerated from the program, so that it matches this version.\n\n| page | content |\n|---|---|\n${rows.join('\n')}\n| [workflow.schema.json](workflow.schema.json) | JSON Schema of workflow files, for editors. |\n`;
}

// --- Links and pictures -----------------------------------------------------------------------------

const assets = new Set();

function linkTo(from, target) {
  const [file, anchor] = target.split('#');
  const path = file ? posix.normalize(posix.join(dirname(from), file)).replace(/\/$/, '') : from;
  const key = anchor && moved.get(`${path}#${anchor}`);
  if (key) return linkTo('.', key);
  const page = pages.get(path) ?? pages.get(`${path}/README.md`);
  if (page) return `${BASE}${page.slug}/${anchor ? `#${anchor}` : ''}`;
  if (!has(path)) throw new Error(`${from}: the link ${target} leads nowhere`);
  if (path.startsWith('docs/') && statSync(join(repository, path)).isFile()) {
    assets.add(path);
    return `${BASE}${path.replace(/^docs\//, '')}`;
  }
  return null;
}

/** Output of a command needs no highlighting: a plain block is a tenth of the size. */
function plainOutput(text) {
  return text.replace(/^```text\n([\s\S]*?)^```$/gm, (_, output) => {
    const escaped = output.trimEnd().replaceAll('&', '&amp;').replaceAll('<', '&lt;');
    return `<pre class="output scrolls"><code>${escaped}</code></pre>`;
  });
}

function render(path, body) {
  return outsideCode(plainOutput(body), (prose) => {
    const inline = [];
    const kept = prose.replace(/(?<!`)(`+)(?!`)[\s\S]+?(?<!`)\1(?!`)/g, (code) => `\u0000${inline.push(code) - 1}\u0000`);
    const linked = kept.replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, picture, text, target) => {
      if (/^[a-z]+:/.test(target)) return whole;
      const link = linkTo(path, target);
      if (picture && target.endsWith('.svg')) return figure(posix.join(dirname(path), target), text);
      return link ? `${picture}[${text}](${link})` : `${text} (\`${posix.join(dirname(path), target)}\`)`;
    });
    return linked.replace(/\u0000(\d+)\u0000/g, (_, index) => inline[index]);
  });
}

const drawn = new Set();

/** A diagram in the page itself, so that it takes the colours of the theme. */
function figure(path, text) {
  drawn.add(path);
  const svg = read(path).replace(/<!--.*?-->\s*/, '').replaceAll('\n', '');
  return `<figure class="diagram scrolls" role="group" aria-label="${text.replaceAll('"', '&quot;')}">${svg}</figure>`;
}

// --- Landing page -----------------------------------------------------------------------------------

function landing() {
  const intro = plain(splitTitle(read('README.md'), 'README.md').body.split('\n\n')[0]);
  const starts = read('docs/guide/README.md').split('## Where to start')[1].split(/^## /m)[0];
  const cards = [...starts.matchAll(/^\*\*(.+?)\*\* ?([^\n]*):\n\n((?:\d\. .*\n)+)/gm)].map(([, who, wants, items]) => {
    const links = [...items.matchAll(/^\d\. (.*)$/gm)].map(([, item]) => {
      const [names, about] = item.replace(/\.$/, '').split(/: (.*)/);
      const linked = names.replace(/\[([^\]]+)\]\(([^)]+)\)/g, (_, text, target) => `<a href="${linkTo('docs/guide/README.md', target)}">${text === 'README' ? 'Get started' : text}</a>`);
      return `<li>${linked}<span>${plain(about)}</span></li>`;
    });
    return `<section class="card"><h2>${who}</h2><p>${wants}</p><ol>${links.join('')}</ol></section>`;
  });
  if (cards.length !== 3) throw new Error('docs/guide/README.md: "Where to start" must have three readers');
  const features = [...read('README.md').split('## Features')[1].split(/^## /m)[0].matchAll(/^- \*\*(.+?)\.?\*\* ([\s\S]*?)(?=\n- |\n\n|(?![\s\S]))/gm)];
  const items = features.map(([, name, text]) => `<div><h3>${name}</h3>\n\n${render('README.md', text.replaceAll('\n  ', ' '))}\n\n</div>`);
  const front = {
    title: 'Octoprox', description: intro, template: 'splash', tableOfContents: false,
    hero: { title: 'Octoprox', tagline: intro, actions: [
      { text: 'Get started', link: `${BASE}start/`, icon: 'right-arrow' },
      { text: 'Guide', link: `${BASE}guide/`, variant: 'secondary' },
      { text: 'Reference', link: `${BASE}reference/`, variant: 'minimal' },
    ] },
  };
  return [front, `<div class="cards not-content">${cards.join('')}</div>\n\n${figure('docs/pictures/hub.svg', 'Octoprox between agents and servers')}\n\n## Features\n\n<div class="features">\n\n${items.join('\n\n')}\n\n</div>\n`];
}

// --- Output -----------------------------------------------------------------------------------------

function write(slug, front, body) {
  const file = join(project, 'src/content/docs', `${slug}.md`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `---\n${JSON.stringify(front)}\n---\n\n${body}`);
}

for (const [path, { slug, title, description, body, subject }] of pages)
  write(slug, { title, description: description || `${title}.`, ...(subject && { subject }) }, render(path, body));
write('index', ...landing());
const unused = list('docs/pictures', '.svg').filter((path) => !drawn.has(path));
if (unused.length) throw new Error(`no page shows ${unused.join(', ')}`);
for (const path of ['docs/reference/workflow.schema.json', ...list('docs/pictures', '.png'), ...assets]) {
  const to = join(project, 'public', path.replace(/^docs\//, ''));
  mkdirSync(dirname(to), { recursive: true });
  cpSync(join(repository, path), to);
}

const item = (path) => (path.items ? { label: path.label, collapsed: true, items: path.items.map((one, index) => (index ? item(one) : { ...item(one), label: 'Overview' })) } : { label: pages.get(path).label, slug: pages.get(path).slug });
const group = (label, paths, collapsed = false) => ({ label, collapsed, items: paths.map(item) });
const sidebar = [
  group('Start', ['README.md', 'docs/guide/README.md', 'docs/concepts.md']),
  ...(tutorials.length ? [group('Tutorials', tutorials)] : []),
  ...guide.filter(([name]) => name !== OPERATIONS_SECTION).map(([name, paths]) => group(name, name === 'What agents see' ? [...paths, cookbook] : paths)),
  group('Operations and security', [...operations, ...others, 'SECURITY.md', ...packaging]),
  group('Reference', ['docs/reference/README.md', ...reference]),
  group('Decisions', ['docs/decisions/README.md', ...decisions.flatMap(([, paths]) => paths)], true),
  group('Project', [...about, 'LICENSE'], true),
];
writeFileSync(join(project, 'sidebar.json'), JSON.stringify(sidebar, null, 1));
console.log(`${pages.size + 1} pages`);
