// A recorder on a database of its own, and the work that tests give it.
#pragma once

#include "recibo/config/load.hpp"
#include "recibo/record/recorder.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace recibo::test {

inline std::shared_ptr<const config::settings> fixture_settings() {
  static const std::string provider =
      "    verify: {scheme: hmac, algorithm: sha256, signature: {header: X-Signature, prefix: 'sha256=', encoding: hex}, signed: "
      "'{timestamp}.{body}', timestamp: {header: X-Timestamp, unit: seconds}, tolerance: 5m, secrets: [test-secret-A]}\n"
      "    extract: {request_id: /request_id, reference: /reference, idempotency_key: /event_id, event: /status, occurred_at: "
      "/occurred_at, amount: /amount, currency: /currency}\n"
      "    events: {processing: progress, succeeded: complete, failed: fail}\n    workflow: fixture\n";
  static const std::string text =
      "providers:\n  p1:\n" + provider + "    unmatched: park\n  p2:\n" + provider + "    unmatched: park\n  strict:\n" +
      provider + "    unmatched: reject\n  open:\n" + provider +
      "    unmatched: register\n"
      "workflows:\n  fixture:\n    initial: accepted\n    states:\n"
      "      accepted: {label: Accepted, limit: none, owner: ops}\n      processing: {label: Processing, limit: none, owner: "
      "ops}\n"
      "      completed: {label: Completed, terminal: true, done: true}\n      failed: {label: Failed, terminal: true}\n"
      "      cancelled: {label: Cancelled, terminal: true}\n"
      "    transitions:\n"
      "      - {from: accepted, event: submitted, to: processing, by: client}\n"
      "      - {from: accepted, event: cancel, to: cancelled, by: client}\n"
      "      - {from: accepted, event: progress, to: processing, by: provider}\n"
      "      - {from: [accepted, processing], event: complete, to: completed, by: provider}\n"
      "      - {from: [accepted, processing], event: fail, to: failed, by: provider}\n"
      "destinations:\n  ledger: {url: 'https://ledger.example/hooks', secret: 'ledger-secret-ledger-secret-12', events: "
      "['operation.*']}\n";
  const auto read = config::load_text("fixture", text, ".");
  if (!read.settings) throw std::runtime_error(config::to_string(read.problems.front()));
  return read.settings;
}

class bench_of_work {
 public:
  explicit bench_of_work(const database& db, int writers = 2, int batch = 128, int queue = 4096) : settings(fixture_settings()) {
    record::recorder::options o;
    o.database_url = db.service_url();
    o.writers = writers;
    o.batch = batch;
    o.queue = queue;
    o.queue_bytes = 16u << 20;
    made_ = std::make_unique<record::recorder>(context.get_executor(), std::move(o));
    made_->start();
  }
  record::recorder& recorder() { return *made_; }

  // Runs all at once and returns what came of each, in order.
  std::vector<result<record::outcome>> all(std::vector<record::work> works,
                                           std::chrono::milliseconds within = std::chrono::seconds(10)) {
    std::vector<std::optional<result<record::outcome>>> got(works.size());
    std::size_t left = works.size();
    for (std::size_t i = 0; i < works.size(); ++i) {
      auto one = [](record::recorder& to, record::work w, std::chrono::milliseconds time,
                    std::optional<result<record::outcome>>& into) -> boost::asio::awaitable<void> {
        into = co_await to.record(std::move(w), std::chrono::steady_clock::now() + time);
      };
      boost::asio::co_spawn(context, one(*made_, std::move(works[i]), within, got[i]), [&](const std::exception_ptr& e) {
        EXPECT_FALSE(e);
        --left;
      });
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (left > 0 && context.run_one_until(until) != 0) {
    }
    EXPECT_EQ(left, 0U);
    std::vector<result<record::outcome>> out;
    for (auto& g : got) out.push_back(g ? std::move(*g) : result<record::outcome>(error(transient::our_fault, "no answer")));
    return out;
  }
  result<record::outcome> one(record::work w, std::chrono::milliseconds within = std::chrono::seconds(10)) {
    std::vector<record::work> works;
    works.push_back(std::move(w));
    return all(std::move(works), within).front();
  }
  void drain() {
    auto stop = [this]() -> boost::asio::awaitable<void> {
      co_await made_->drain(std::chrono::steady_clock::now() + std::chrono::seconds(10));
    };
    run_coro(context, stop);
  }
  ~bench_of_work() { drain(); }

  record::registration registration(std::string request_id, std::string provider = "p1",
                                    std::vector<std::string> references = {}) {
    record::registration r;
    r.settings = settings;
    r.accepted_at = now();
    r.id = make_id<operation_id>(r.accepted_at);
    r.request_id = std::move(request_id);
    r.request_id_given = true;
    r.client = "checkout";
    r.provider = std::move(provider);
    r.workflow = settings->workflows.at("fixture");
    r.references = std::move(references);
    r.amount = decimal{"19.99"};
    r.currency = "EUR";
    r.intent = sha256(r.provider + "/" + r.request_id + "/" + r.amount->text);
    return r;
  }

  // As extraction would make it of a callback with these fields.
  record::callback callback(std::string request_id, const std::string& key, std::string event, std::string provider = "p1",
                            std::string amount = "19.99") {
    record::callback c;
    c.settings = settings;
    c.provider = &settings->providers.at(provider);
    c.received_at = now();
    c.id = make_id<delivery_id>(c.received_at);
    c.peer = "127.0.0.1";
    c.secret_name = "secret-1";
    c.body = "{\"request_id\":\"" + request_id + "\",\"event_id\":\"" + key + "\",\"status\":\"" + event + "\",\"amount\":\"" +
             amount + "\"}";
    c.content_type = "application/json";
    c.body_digest = sha256(c.body);
    c.request_id = std::move(request_id);
    canonical bytes;
    bytes.add(key);
    c.key = bytes.bytes();
    c.key_text = key;
    c.event_raw = event;
    const auto mapped = c.provider->events.find(event);
    if (mapped != c.provider->events.end()) c.event = mapped->second;
    c.amount = decimal{amount};
    c.currency = "EUR";
    c.content_digest = sha256(event + "/" + amount + "/" + c.request_id);
    return c;
  }

  record::event event(std::string request_id, std::string name, std::vector<std::string> references = {}) {
    record::event e;
    e.settings = settings;
    e.at = now();
    e.request_id = std::move(request_id);
    e.client = "checkout";
    e.actor = "checkout";
    e.name = std::move(name);
    e.references = std::move(references);
    e.fingerprint = sha256(e.name + e.request_id);
    return e;
  }

  boost::asio::io_context context{1};
  std::shared_ptr<const config::settings> settings;

 private:
  std::unique_ptr<record::recorder> made_;
};

}  // namespace recibo::test
