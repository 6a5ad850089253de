// What the README and docs/ print as commands and configuration, so that it can be tried as printed.
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { sourceFolder } from './process.mjs';

// A block that a test cannot run says so in a comment right above it, with the reason, for the reader too.
const excuse = /<!-- not run by the tests: (.+?) -->\s*$/;

// Every Markdown file a user reads, with its name from the root of the checkout.
export function documents() {
  const found = [];
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.name === 'node_modules') continue;
      if (entry.isDirectory()) walk(join(folder, entry.name));
      else if (entry.name.endsWith('.md')) found.push(join(folder, entry.name));
    }
  };
  found.push(join(sourceFolder, 'README.md'));
  walk(join(sourceFolder, 'docs'));
  return found.sort().map((path) => ({ name: relative(sourceFolder, path), text: readFileSync(path, 'utf8') }));
}

// The fenced blocks of a document in order: {language, text, line, excuse?}.
export function blocks({ name, text }) {
  const found = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const fence = /^( *)(```+)(\w*)/.exec(lines[at]);
    if (!fence) continue;
    const end = lines.findIndex((line, i) => i > at && line.trim() === fence[2]);
    if (end < 0) throw new Error(`${name}:${at + 1}: this block does not end`);
    const body = lines.slice(at + 1, end).map((line) => line.slice(fence[1].length));
    found.push({ language: fence[3], text: `${body.join('\n')}\n`, line: at + 1, excuse: excuse.exec(lines.slice(0, at).join('\n'))?.[1] });
    at = end;
  }
  return found;
}

// A console block shows a prompt before each command; what follows is output.
export const commandsOf = (block) =>
  block.language === 'console'
    ? block.text.split('\n').filter((line) => line.startsWith('$ ')).map((line) => line.slice(2).replace(/\s+# .*$/, '').trim())
    : [];

// Commands named within the text, in backquotes: `recibo audit verify [REQUEST_ID]`, `./dev psql -c '…'`.
export function inlineCommands({ text }) {
  const prose = text.replace(/^( *)(```+)[\s\S]*?^\1\2\s*$/gm, '');
  return [...prose.matchAll(/`((?:recibo|\.\/dev) [a-z][^`]*)`/g)].map(([, command]) => command);
}

// The folder and file links of a document: [text](path) without a scheme.
export function links({ text }) {
  const prose = text.replace(/^( *)(```+)[\s\S]*?^\1\2\s*$/gm, '');
  return [...prose.matchAll(/\]\(([^)#\s]+)(?:#[^)\s]*)?\)/g)].map(([, target]) => target).filter((target) => !/^[a-z]+:/.test(target));
}
