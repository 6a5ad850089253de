// The benchmarks: node bench/run.mjs [name…] [--quick] [--json FILE] [--list] (and --smoke, for the test that it runs at all).
// Timings never fail; a lost or doubled callback does (exit 1). Wrong use is exit 2. bench/README.md tells how to read them.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const files = {
  'write-path': './lib/write_path.mjs',
  latency: './lib/latency.mjs',
  connections: './lib/connections.mjs',
  verify: './lib/verify.mjs',
  notify: './lib/notify.mjs',
};
const say = (text) => process.stdout.write(`${text}\n`);

function wrongUse(message) {
  process.stderr.write(`bench: ${message}\n`);
  process.exit(2);
}

function wishes() {
  const options = { quick: { type: 'boolean' }, smoke: { type: 'boolean' }, list: { type: 'boolean' }, json: { type: 'string' } };
  let parsed;
  try {
    parsed = parseArgs({ options, allowPositionals: true });
  } catch (error) {
    wrongUse(error.message);
  }
  const { values, positionals } = parsed;
  const names = Object.keys(files);
  for (const name of positionals) if (!names.includes(name)) wrongUse(`there is no benchmark ${name}; there are: ${names.join(', ')}`);
  return { ...values, chosen: positionals.length > 0 ? [...new Set(positionals)] : names, size: values.smoke ? 'smoke' : values.quick ? 'quick' : 'full' };
}

const wanted = wishes();
if (wanted.list) {
  for (const [name, file] of Object.entries(files)) say(`${name.padEnd(12)} ${(await import(file)).summary}`);
  process.exit(0);
}
const results = {};
let sound = true;
for (const name of wanted.chosen) {
  const since = Date.now();
  say(`${name}:`);
  const one = await (await import(files[name])).bench({ size: wanted.size, say });
  results[name] = one.result;
  sound &&= one.sound;
  say(`${name} took ${((Date.now() - since) / 1000).toFixed(0)} s`);
  if (wanted.json) writeFileSync(wanted.json, `${JSON.stringify(results, null, 2)}\n`);
}
if (!sound) say('something was lost or recorded twice');
process.exit(sound ? 0 : 1);
