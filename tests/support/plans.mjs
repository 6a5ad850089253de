// What PostgreSQL reads for the statements of the service, from auto_explain's log: complaints about whatever reads a table that
// grows by anything but the beginning of an index, or much of it so.
import { readFileSync } from 'node:fs';

// For a cluster whose plans are looked at.
export const planSettings = {
  shared_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_format': 'json',
  log_line_prefix: '%u@%d ',
  autovacuum: 'off',
};

// In bytes; a table, or an index, of a few pages.
const small = 128 * 1024;
// Lists look at windows of rows, for a bounded time.
const windowed = /^WITH w AS MATERIALIZED \(SELECT s\.id\b.* LIMIT \$\d+\), page AS MATERIALIZED/;
// Rows that a step of any other statement may look at.
const many = 6_000;
const scans = new Set(['Seq Scan', 'Index Scan', 'Index Only Scan', 'Bitmap Index Scan']);
// What may stand between the limit and a scan that begins at the end of its index.
const between = new Set(['Limit', 'LockRows', 'Subquery Scan', 'Append', 'Merge Append', 'Result']);

// The plans of the service's role in a database, from that byte of the log on: [{ sql, plan }].
export function plansOf(logFile, database, from = 0, user = 'recibo_service') {
  const out = [];
  for (const entry of readFileSync(logFile).subarray(from).toString('utf8').split(/\n(?!\t)/)) {
    if (!entry.startsWith(`${user}@${database} LOG:`)) continue;
    const at = entry.indexOf('plan:\n');
    if (at < 0) continue;
    const said = JSON.parse(entry.slice(at + 6).replaceAll('\n\t', '\n'));
    out.push({ sql: said['Query Text'], plan: said.Plan });
  }
  return out;
}

// `client`: to learn what the indexes begin with, and how large they are: plans are made anew, so that what is small may be read
// whole. Each statement and complaint once.
export async function complaintsAbout(plans, client) {
  const { rows } = await client.query(
    `SELECT i.indexrelid::regclass::text AS name, regexp_replace(i.indrelid::regclass::text, '^recibo\\.', '') AS relation, i.indrelid::regclass::text AS full,
            pg_get_indexdef(i.indexrelid, 1, true) AS first, a.amname AS method, pg_relation_size(i.indexrelid)::int AS size,
            pg_relation_size(i.indrelid)::int AS table_size
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam WHERE c.relnamespace = 'recibo'::regnamespace`,
  );
  const indexes = new Map(rows.map((r) => [r.name.replace(/^recibo\./, ''), r]));
  const sizes = new Map(rows.flatMap((r) => [[r.name.replace(/^recibo\./, ''), r.size], [r.full.replace(/^recibo\./, ''), r.table_size]]));
  const complaints = new Map();
  const walk = (sql, node, above) => {
    const type = node['Node Type'];
    const index = indexes.get(node['Index Name']);
    const table = node['Relation Name'] ?? index?.relation;
    const complain = (what) => complaints.set(`${what}\n${sql}`, `${what} in\n${sql}\n`);
    if (scans.has(type) && (sizes.get(node['Index Name'] ?? table) ?? 0) > small) {
      const condition = node['Index Cond'];
      if (type === 'Seq Scan') complain(`all of ${table} is read`);
      else if (condition === undefined) {
        if (node.Filter !== undefined || !above.includes('Limit')) complain(`all of ${node['Index Name']} is read`);
      } else if (index?.method === 'btree' && !new RegExp(`(^|[(. ])${index.first.replace(/[^\w]/g, '\\$&')}\\)?(::\\w+)?(,[^)]*\\))? (=|<|>)`).test(condition)) {
        complain(`${node['Index Name']} is read by ${condition}, without ${index.first}`);
      }
    }
    const looked = ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0)) * (node['Actual Loops'] ?? 0);
    if (looked > many && !windowed.test(sql)) complain(`${looked} rows are looked at by ${type} of ${node['Index Name'] ?? table ?? 'what was read'}`);
    const next = type === 'Limit' ? ['Limit'] : between.has(type) ? [...above, type] : [];
    for (const child of node.Plans ?? []) walk(sql, child, next);
  };
  for (const { sql, plan } of plans) walk(sql, plan, []);
  return [...complaints.values()];
}
