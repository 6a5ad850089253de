// verify: what the check of one signature costs, against the providers' own packages for Node.js, which use OpenSSL too.
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { median, short, spread, table } from './meter.mjs';
import { output, program } from './programs.mjs';

export const summary = 'microseconds of CPU to verify a 600-byte callback, by preset';

const body = `{"id":"evt_1","type":"payment.completed","note":"${'x'.repeat(600)}`.slice(0, 598) + '"}';

function stripeCheck() {
  const secret = 'whsec_benchmark_of_the_stripe_package';
  const stamp = Math.floor(Date.now() / 1000);
  const header = `t=${stamp},v1=${createHmac('sha256', secret).update(`${stamp}.${body}`).digest('hex')}`;
  const { webhooks } = new Stripe('sk_test_benchmark');
  return () => webhooks.signature.verifyHeader(body, header, secret, 300);
}

function standardCheck() {
  const hook = new Webhook(`whsec_${Buffer.alloc(32, 'k').toString('base64')}`);
  const now = new Date();
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(now / 1000)), 'webhook-signature': hook.sign('msg_1', now, body) };
  return () => hook.verify(body, headers);
}

function costUs(check, times) {
  for (let i = 0; i < times / 4; ++i) check();
  const before = process.cpuUsage();
  for (let i = 0; i < times; ++i) check();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

export async function bench({ size, say }) {
  const times = { full: 20_000, quick: 4_000, smoke: 50 }[size];
  const rounds = size === 'smoke' ? 1 : 5;
  const checks = { stripe: stripeCheck(), 'standard-webhooks': standardCheck() };
  const mine = [];
  const theirs = [];
  for (let round = 0; round < rounds; ++round) {
    mine.push(JSON.parse(await output(program('recibo_bench_verify'), [String(times)])));
    theirs.push(Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, costUs(check, times)])));
  }
  const us = Object.fromEntries(Object.keys(mine[0]).map((name) => [name, short(median(mine.map((m) => m[name])))]));
  const ratios = Object.fromEntries(Object.keys(checks).map((name) => [name, spread(theirs.map((t, round) => t[name] / mine[round][name]))]));
  const rows = Object.entries(us).map(([name, cost]) => [name, cost, name in ratios ? ratios[name].median : '']);
  say(table([['preset', 'us', 'times faster than its package'], ...rows]));
  const slowest = Math.max(...Object.values(us));
  say(`slowest ${short(slowest)} us; wanted: under 5`);
  return { result: { ratios, us, slowest_us: slowest }, sound: true };
}
