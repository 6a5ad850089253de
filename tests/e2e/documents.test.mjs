// The README and docs/ as a new user takes them: every command that is printed runs as printed, every piece of configuration is
// accepted, every link leads somewhere. It uses this checkout's own `./dev up`, as the reader does, or the one that runs here.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import YAML from 'yaml';
import { atExit } from '../support/cleanup.mjs';
import { blocks, commandsOf, documents, inlineCommands, links } from '../support/documents.mjs';
import { binary, run, sourceFolder } from '../support/process.mjs';

const readme = documents().find(({ name }) => name === 'README.md');
// They run this very test, or take the place of the service that the other commands talk to.
const tried = ['./dev up', './dev test'];

// Runs a script as a terminal in the root of the checkout would.
function shell(script, { timeout = 120_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-o', 'pipefail', '-e'], { cwd: sourceFolder, stdio: ['pipe', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
    child.stdin.end(script);
  });
}

// `./dev up`, until it says that it serves.
async function devUp() {
  const child = spawn('./dev', ['up'], { cwd: sourceFolder, stdio: ['ignore', 'pipe', 'pipe'] });
  const forget = atExit(() => child.kill('SIGTERM'));
  let output = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  const serves = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`./dev up does not serve:\n${output}`)), 300_000);
    const take = (chunk) => {
      output += chunk;
      if (!/Ctrl-C stops the service/.test(output) && !/serves here/.test(output)) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    ended.then((code) => {
      clearTimeout(timer);
      if (/serves here/.test(output)) resolve();
      else reject(new Error(`./dev up ended with ${code}:\n${output}`));
    });
  });
  await serves;
  return {
    output: () => output,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      forget();
    },
  };
}

// What differs from one run to the next, and from one machine to the next.
const normal = (text) =>
  text
    .split('\n')
    .filter((line) => !/^-   took \d+ s$/.test(line) && !/^ {4}\.\.\. /.test(line) && !/^- (Reading the package|Installing|Creating a private)/.test(line))
    .join('\n')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, 'ID')
    .replace(/demo-[0-9a-f]{12}/g, 'demo-ID')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, 'TIME')
    .replace(/process \d+/g, 'process N')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/ports \d+ \(callbacks\) and \d+ \(API\)/, 'ports')
    .replace(/: pending after \d+ attempts?$/gm, ': pending') // nobody is there to take it
    .trim();

describe('the documents, as a new user takes them', () => {
  let service;
  before(async () => {
    service = await devUp();
  });
  after(() => service?.stop());

  test('`./dev up` prints what the README shows', () => {
    if (/serves here/.test(service.output())) return; // another one was there first, and printed it
    const shown = /<!-- example: begin[^>]*-->\n```text\n([\s\S]*?)```/.exec(readme.text)?.[1];
    assert.ok(shown, 'the README shows a run between its "example" marks');
    assert.equal(normal(service.output()), normal(shown));
  });

  test('what `./dev up` says to try next works', async () => {
    const next = /Next, in another terminal in this folder:\n((?: {2}.*\n)+)/.exec(service.output())?.[1];
    assert.ok(next, service.output());
    const { code, output } = await shell(`exec 2>&1\n${next}`);
    assert.equal(code, 0, output);
    assert.match(output, /"disposition": ?"review"/);
  });

  for (const document of documents()) {
    const runnable = blocks(document).filter(({ language }) => ['bash', 'sh', 'shell'].includes(language));
    if (runnable.length > 0) {
      test(`${document.name}: its commands run as printed`, async () => {
        const script = runnable.filter(({ excuse }) => !excuse).map(({ text, line }) => `: line ${line}\n${text}`);
        const { code, output } = await shell(`exec 2>&1\n${script.join('\n')}`);
        assert.equal(code, 0, `a command of ${document.name} failed:\n${output.slice(-4000)}`);
        if (document.name !== readme.name) return;
        assert.match(output, /HTTP\/1\.1 200 OK[\s\S]*"disposition": ?"applied"/, 'the first callback is applied');
        assert.match(output, /Idempotent-Replayed: true/i, 'the second one is a replay');
        assert.match(output, /"state": ?"completed"/);
      });
    }
    for (const command of blocks(document).filter(({ excuse }) => !excuse).flatMap(commandsOf)) {
      if (tried.includes(command)) continue;
      test(`${document.name}: $ ${command}`, async () => {
        const { code, output } = await shell(command);
        assert.equal(code, 0, output);
      });
    }
  }
});

describe('what the documents say', () => {
  test('names commands and options that exist', async () => {
    const help = new Map();
    const helpOf = async (words) => {
      const key = words.join(' ');
      if (!help.has(key)) {
        const { code, stdout } = await run([...words, '--help']);
        help.set(key, code === 0 ? stdout : undefined);
      }
      return help.get(key);
    };
    const dev = readFileSync(join(sourceFolder, 'dev'), 'utf8');
    for (const document of documents()) {
      for (const command of inlineCommands(document)) {
        const words = command.split(/\s+/);
        if (words[0] === './dev') {
          assert.match(dev, new RegExp(`^  ${words[1].replace(/[^a-z]/g, '')}\\b`, 'm'), `${document.name}: \`${command}\` is not in ./dev help`);
          continue;
        }
        // `serve|migrate` names several; capitals, brackets and dots stand for what the user puts there.
        for (const name of words[1].split('|')) {
          const text = await helpOf([name]);
          assert.ok(text !== undefined, `${document.name}: \`${command}\`: no such command`);
          for (const [option] of command.matchAll(/(?<=[\s[])--[a-z][a-z-]*/g)) {
            const deeper = words[2] && /^[a-z]+$/.test(words[2]) ? await helpOf([name, words[2]]) : undefined;
            assert.ok(`${text}${deeper ?? ''}`.includes(option), `${document.name}: \`${command}\`: no option ${option}`);
          }
        }
      }
    }
  });

  test('links to files that are there', () => {
    for (const document of documents()) {
      for (const target of links(document)) {
        const path = join(sourceFolder, dirname(document.name), target);
        assert.ok(existsSync(path), `${document.name} links to ${target}`);
      }
    }
  });

  test('names addresses of the API that exist', async () => {
    const { stdout } = await run(['openapi']);
    const paths = Object.keys(JSON.parse(stdout).paths).map((path) => path.replace(/\{[^}]*\}/g, '{}'));
    for (const { name, text } of documents()) {
      if (name.startsWith('docs/decisions/')) continue; // they also speak of what is planned
      for (const [, path] of text.matchAll(/(?:GET|POST) (\/v1\/[^\s`"?…,;)]*)/g)) {
        assert.ok(paths.includes(path.replace(/\{[^}]*\}/g, '{}').replace(/\/$/, '')), `${name}: ${path} is not in the OpenAPI document`);
      }
    }
  });

  test('shows configuration that `recibo check` takes', async () => {
    const example = YAML.parse(readFileSync(join(sourceFolder, 'config', 'recibo.yaml'), 'utf8'));
    const folder = mkdtempSync(join(tmpdir(), 'recibo-'));
    try {
      for (const document of documents()) {
        for (const block of blocks(document)) {
          if (block.language !== 'yaml' || block.excuse) continue;
          const shown = YAML.parse(block.text);
          // A block may show a whole file, some of its sections, or one provider's `verify`.
          const whole = structuredClone(example);
          if (shown.verify !== undefined) whole.providers.shown = { ...whole.providers.legacy, ...shown };
          else for (const [section, value] of Object.entries(shown)) whole[section] = Array.isArray(value) ? value : { ...whole[section], ...value };
          const path = join(folder, 'recibo.yaml');
          writeFileSync(path, YAML.stringify(whole));
          // Every variable that the file names, and has no value for itself, gets one of the right form.
          const names = [...readFileSync(path, 'utf8').matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name);
          const env = Object.fromEntries(names.map((name) => [name, valueFor(name)]));
          const { code, stdout, stderr } = await run(['check', '--config', path], { env });
          assert.equal(code, 0, `${document.name}:${block.line}: ${stdout}${stderr}`);
        }
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function valueFor(name) {
  if (/PORT$/.test(name)) return '0';
  if (/URL$/.test(name)) return 'postgresql:///recibo';
  if (/(SHA256|HEX)$/.test(name)) return createHash('sha256').update(name).digest('hex');
  return `whsec_${Buffer.from(`${name}-`.repeat(8).slice(0, 32)).toString('base64')}`;
}

test('the binary that is tried is the one that the documents name', () => {
  assert.ok(existsSync(binary()));
  assert.ok(existsSync(join(sourceFolder, '.dev', 'build', 'release', 'recibo')), 'the documents speak of the release build');
});
