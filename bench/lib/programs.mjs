// Where the built programs are, and how they are run: as children of this process that end with it.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atExit, endSync } from '../../tests/support/cleanup.mjs';
import { binary } from '../../tests/support/process.mjs';

export const folder = join(dirname(fileURLToPath(import.meta.url)), '..');

export function program(name) {
  const file = join(dirname(binary()), 'bench', name);
  if (!existsSync(file)) throw new Error(`${name} is not built: ./dev build ${name}`);
  return file;
}

export function start(command, args, { env = process.env, stdin = 'ignore' } = {}) {
  const child = spawn('setpriv', ['--pdeathsig=KILL', command, ...args], { env, stdio: [stdin, 'pipe', 'pipe'] });
  const forget = atExit(() => endSync(child.pid, 'SIGKILL', 1_000));
  child.text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8');
    child[name].on('data', (chunk) => (child.text[name] += chunk));
  }
  child.ended = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      forget();
      resolve({ code, signal, ...child.text });
    });
  });
  return child;
}

// Runs a program to its end; its standard output. Throws when it fails.
export async function output(command, args, options) {
  const { code, signal, stdout, stderr } = await start(command, args, options).ended;
  if (code !== 0) throw new Error(`${command.split('/').at(-1)} ended with ${code ?? signal}: ${stderr.trim()}${stdout.trim()}`);
  return stdout;
}

// The first line that a program says, as JSON.
export async function firstLine(child) {
  while (!child.text.stdout.includes('\n')) {
    const ended = await Promise.race([child.ended, new Promise((resolve) => child.stdout.once('data', () => resolve(null)))]);
    if (ended && !child.text.stdout.includes('\n')) throw new Error(`a program ended early: ${ended.stderr}`);
  }
  return JSON.parse(child.text.stdout.slice(0, child.text.stdout.indexOf('\n')));
}

// The load generator: bench/load/main.cpp tells the options.
export async function load(options) {
  const args = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]));
  return JSON.parse(await output(program('recibo_load'), args));
}
