// Commands that readers see do no harm: they write nothing below the home directory, overwrite no settings and drop nothing that their page did not create.

/** The line that gives a page a configuration and a state directory of its own. */
const OWN_SETTINGS = /export (?:XDG_STATE_HOME=\$\(mktemp -d\) ?)?XDG_CONFIG_HOME=\$\(mktemp -d\)/;
const OWN_STATE = /export [^\n]*XDG_STATE_HOME=\$\(mktemp -d\)/;

const HOME = String.raw`["']?(?:~|\$HOME\b|\$\{HOME\}|\$XDG_\w+|\$\{XDG_\w+\}|/root|/home/)`;

/** What harms a reader. `unless` is what the page must have before it. */
const HARM = [
  { pattern: new RegExp(String.raw`(?:>>?\|?|\btee(?: -a)?) *${HOME}`), unless: OWN_SETTINGS, what: 'writes below the home directory' },
  { pattern: new RegExp(String.raw`\b(?:mkdir|touch|mv|ln|install)\b[^|;&\n]*\s${HOME}`), unless: OWN_SETTINGS, what: 'writes below the home directory' },
  { pattern: new RegExp(String.raw`\b(?:rm|truncate|shred|sed -i\S*)\b[^|;&\n]*\s${HOME}`), unless: OWN_SETTINGS, what: 'changes files below the home directory' },
  { pattern: new RegExp(String.raw`\b(?:cp|rsync)\b[^|;&\n#]*\s${HOME}[^\s|;&]*\s*(?:$|[|;&#])`), unless: OWN_SETTINGS, what: 'writes below the home directory' },
  { pattern: new RegExp(String.raw`\b\w+_DIR=${HOME}`), unless: OWN_SETTINGS, what: 'keeps data below the home directory' },
  { pattern: /\bcp (?!-n\b)(?:-\S+ )*\.env\.example \.env\b/, what: 'overwrites .env: use cp -n' },
  { pattern: /\b(?:DROP|TRUNCATE)\b(?! TABLE teas' \|\| echo)/, what: 'drops database objects' },
  { pattern: /\bgit (?:clean|reset --hard|push --force)/, unless: /\bgit init\b/, what: 'discards work' },
  { pattern: /\boctoprox (?:secret (?:set|remove)|servers (?:add|remove)|add (?!.*--search)|token revoke)(?!.*--dry-run)/, unless: new RegExp(`${OWN_SETTINGS.source}|export OCTOPROX_CONFIG=|^\`\`\`yaml octoprox\\.yaml|lines\\.yaml|>.* octoprox\\.yaml`, 'm'), what: 'changes the settings of the reader', runOnly: true },
  { pattern: /\boctoprox call memory_(?:delete|forget|upsert|import)/, unless: OWN_STATE, what: "changes the reader's memory", runOnly: true },
];

/** Files that belong to clients and shells; a block that is shown as a file may not have their names. */
const SETTINGS_FILE = /^(?:~|\$HOME|\/)/;

/** @returns {{line: number, text: string}[]} */
export function harmProblems(text) {
  const problems = [];
  let fence = null;
  let before = '';
  for (const [index, line] of text.split('\n').entries()) {
    const mark = line.match(/^\s*(`{3,}|~{3,})(.*)$/);
    if (fence === null && mark) {
      fence = { mark: mark[1], info: mark[2].trim() };
      const [, name] = fence.info.split(' ');
      if (name && SETTINGS_FILE.test(name)) problems.push({ line: index + 1, text: `a block that writes ${name}` });
    } else if (fence !== null && mark && mark[1].startsWith(fence.mark) && mark[2].trim() === '') fence = null;
    else if (fence !== null && /^(?:sh|bash|console|shell)\b/.test(fence.info)) {
      for (const { pattern, unless, what, runOnly } of HARM)
        if (pattern.test(line) && !(runOnly && fence.info !== 'sh run') && !unless?.test(before))
          problems.push({ line: index + 1, text: `a command that ${what}: ${line.trim()}. Use a directory or database of the page's own, or a set-up comment` });
    }
    before += `${line}\n`;
  }
  return problems;
}
