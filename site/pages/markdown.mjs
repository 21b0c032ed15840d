// What the generator of the site and the prose checks share: reading Markdown line by line, without its code.

/** Commands that a page needs as a test, and that no reader sees. */
const SETUP = /^<!-- setup\n[\s\S]*?^-->\n+/gm;

/** The page without them. */
function withoutSetup(text) {
  return text.replace(SETUP, '');
}

/** Lines of a page, each with its number and whether it belongs to a fenced or indented block of code. */
export function* markdownLines(text) {
  let fence = null;
  let previousBlank = true;
  let indented = false;
  // Line numbers stay those of the file.
  const visible = text.replace(SETUP, (setup) => setup.replace(/[^\n]/g, ''));
  for (const [index, line] of visible.split('\n').entries()) {
    const mark = line.match(/^\s*(`{3,}|~{3,})/)?.[1];
    const blank = line.trim() === '';
    let code = fence !== null;
    if (fence === null && mark) [fence, code] = [mark, true];
    else if (fence !== null && mark && mark.startsWith(fence) && line.trim() === mark) fence = null;
    indented = !code && /^( {4}|\t)/.test(line) && (indented || previousBlank) ? true : indented && blank;
    yield { number: index + 1, line, code: code || indented };
    previousBlank = blank;
  }
}

/** The text with every stretch outside of code passed through `change`. */
export function outsideCode(text, change) {
  const out = [];
  let prose = [];
  const flush = () => {
    if (prose.length) out.push(change(prose.join('\n')));
    prose = [];
  };
  for (const { line, code } of markdownLines(text)) {
    if (code) {
      flush();
      out.push(line);
    } else prose.push(line);
  }
  flush();
  return out.join('\n');
}

/** Title (the first heading), description (the first paragraph) and the text below the title. */
export function splitTitle(text, path) {
  const match = withoutSetup(text).replace(/^<!--[\s\S]*?-->\s*/, '').match(/^# (.+)\n+([\s\S]*)$/);
  if (!match) throw new Error(`${path}: the first line must be a heading "# …"`);
  const [, title, body] = match;
  const paragraph = body.match(/^(?![#|`\-!<>\s])[\s\S]*?(?=\n\n|\n```|$)/)?.[0] ?? '';
  return { title: plain(title), description: firstSentences(plain(paragraph), 200), body };
}

/** Markdown as plain text: no links, emphasis or code marks. */
export function plain(text) {
  return text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[*`]/g, '').replace(/\s+/g, ' ').trim();
}

function firstSentences(text, limit) {
  let taken = '';
  for (const sentence of text.match(/[^.]+(?:\.(?!\s)[^.]*)*(?:\.|$)/g) ?? []) {
    if (taken && taken.length + sentence.length > limit) break;
    taken += sentence;
  }
  return taken.trim().replace(/:$/, '.');
}
