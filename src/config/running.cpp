// The sections about running the service: database, record, outbox, reviews, retention, drain, log, tracing.
#include "secrets.hpp"
#include "sections.hpp"

namespace recibo::config {

void read_database(reading& r, const field& f, settings& out) {
  section s(r, f);
  if (const field url = s.get("url")) read_secret_text(r, url, out.database.url);
  if (const field url = s.get("owner_url")) read_secret_text(r, url, out.database.owner_url);
  if (const field pool = s.get("pool")) read_int(r, pool, out.database.pool, 1, 1000);
}

void read_record(reading& r, const field& f, settings& out) {
  section s(r, f);
  const field queue = s.get("queue");
  if (const field writers = s.get("writers")) read_int(r, writers, out.record.writers, 1, 64);
  if (const field batch = s.get("batch")) read_int(r, batch, out.record.batch, 1, 1000);
  if (queue) read_int(r, queue, out.record.queue, 1, 1'000'000);
  if (out.record.queue < out.record.batch) r.error(queue ? queue.at : s.at(), "record: queue is less than batch");
}

void read_outbox(reading& r, const field& f, settings& out) {
  section s(r, f);
  if (const field lease = s.get("lease")) read_duration(r, lease, out.outbox.lease, "1s", "1h");
}

void read_reviews(reading& r, const field& f, settings& out) {
  section s(r, f);
  if (const field due = s.get("due")) read_duration(r, due, out.reviews.due, "1s", "3650d");
  if (const field owner = s.get("owner")) read_text(r, owner, out.reviews.owner, 255);
  if (const field after = s.get("parked_after")) read_duration(r, after, out.reviews.parked_after, "1s", "3650d");
}

void read_retention(reading& r, const field& f, settings& out) {
  section s(r, f);
  const field payloads = s.get("payloads"), operations = s.get("operations");
  if (payloads) read_duration(r, payloads, out.retain_payloads, "1d", "36500d");
  if (const field deliveries = s.get("deliveries")) read_duration(r, deliveries, out.retain_deliveries, "1d", "36500d");
  if (const field attempts = s.get("attempts")) read_duration(r, attempts, out.retain_attempts, "1d", "36500d");
  if (operations) read_duration(r, operations, out.retain_operations, "1d", "36500d");
  if (out.retain_payloads > out.retain_deliveries)
    r.error(payloads ? payloads.at : s.at(), "retention: payloads are kept longer than the deliveries that they belong to");
  if (out.retain_operations < out.retain_deliveries)
    r.error(operations ? operations.at : s.at(), "retention: operations go before their deliveries");
}

void read_drain(reading& r, const field& f, settings& out) {
  section s(r, f);
  const field delay = s.get("delay"), timeout = s.get("timeout");
  if (delay) read_duration(r, delay, out.drain_delay, "0s", "10m");
  if (timeout) read_duration(r, timeout, out.drain_timeout, "100ms", "1h");
  if (out.drain_delay > out.drain_timeout)
    r.error(timeout ? timeout.at : s.at(), "drain: timeout ends before delay, so that nothing in flight could finish");
}

void read_log(reading& r, const field& f, settings& out) {
  constexpr choice<std::string_view> levels[] = {
      {"trace", "trace"}, {"debug", "debug"}, {"info", "info"}, {"warn", "warn"}, {"error", "error"}};
  constexpr choice<std::string_view> formats[] = {{"json", "json"}, {"text", "text"}};
  section s(r, f);
  std::string_view word;
  if (const field level = s.get("level"); level && read_word(r, level, word, levels)) out.log_level = word;
  if (const field format = s.get("format"); format && read_word(r, format, word, formats)) out.log_format = word;
}

void read_tracing(reading& r, const field& f, settings& out) {
  section s(r, f);
  if (const field otlp = s.get("otlp")) read_http_url(r, otlp, out.otlp);
}

}  // namespace recibo::config
