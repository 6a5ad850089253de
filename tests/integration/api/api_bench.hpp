// The API on a database of its own: requests go in as the session would hand them over, callbacks through the recorder.
#pragma once

#include "recibo/api/service.hpp"
#include "recibo/config/load.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/evidence/invariants.hpp"
#include "recibo/record/recorder.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace recibo::test {

struct plain_health final : http::health {
  http::response livez() override { return {}; }
  http::response readyz() override { return {}; }
};

inline std::shared_ptr<const config::settings> api_settings() {
  static const std::string provider =
      "    verify: {scheme: stripe, secrets: [whsec_test_secret_of_a_provider]}\n"
      "    extract: {request_id: /request_id, reference: /reference, idempotency_key: /event_id, event: /status, amount: "
      "/amount, currency: /currency, "
      "result: {code: /code}}\n"
      "    events: {processing: progress, succeeded: complete, failed: fail}\n    workflow: desk\n";
  static const auto token = [](const std::string& name, const std::string& role, const std::string& more = "") {
    return "    - {name: " + name + ", role: " + role + more + ", sha256: '" + to_hex(binary(sha256("token-" + name))) + "'}\n";
  };
  static const std::string text =
      "api:\n  tokens:\n" + token("checkout", "client") + token("storefront", "client") +
      token("ops", "operator", ", permissions: [payload]") + token("viewer", "reader") + token("helpdesk", "support") +
      token("root", "admin") + "providers:\n  p1:\n" + provider + "    unmatched: park\n  p2:\n" + provider +
      "    unmatched: register\n" +
      "workflows:\n  desk:\n    initial: accepted\n    states:\n"
      "      accepted: {label: 'Accepted, waiting', limit: {after: 15m, event: overdue}, owner: checkout}\n"
      "      processing: {label: In progress, limit: none, owner: ops}\n      unknown: {label: Being checked, limit: none, "
      "owner: ops}\n"
      "      completed: {label: Completed, terminal: true, done: true}\n      failed: {label: Rejected, terminal: true}\n"
      "      cancelled: {label: Cancelled, terminal: true}\n"
      "    transitions:\n"
      "      - {from: accepted, event: submitted, to: processing, by: client}\n"
      "      - {from: accepted, event: cancel, to: cancelled, by: [client, operator]}\n"
      "      - {from: accepted, event: overdue, to: unknown, by: clock}\n"
      "      - {from: accepted, event: progress, to: processing, by: provider}\n"
      "      - {from: [accepted, processing, unknown], event: complete, to: completed, by: provider}\n"
      "      - {from: [accepted, processing, unknown], event: fail, to: failed, by: provider}\n"
      "      - {from: [processing, unknown], event: resolve, to: completed, by: operator, evidence: statement}\n"
      "destinations:\n  ledger: {url: 'https://ledger.example/hooks', secret: 'ledger-secret-ledger-secret-12', events: "
      "['operation.*']}\n";
  const auto read = config::load_text("fixture", text, ".");
  if (!read.settings) throw std::runtime_error(config::to_string(read.problems.front()));
  return read.settings;
}

struct answered {
  int status = 0;
  std::string body;
  http::header_list headers;
  std::string content_type;

  json_value json() const {
    auto value = parse_json(body);
    if (!value) throw std::runtime_error("no JSON: " + body);
    return *value;
  }
  // The entries of a list.
  std::vector<json_value> data() const { return json().find("data")->elements; }
  // The text at a path of members: "state", "retry_safe/safe", "data/0/request_id".
  std::string at(std::string_view path) const {
    const auto whole = json();
    const auto* here = &whole;
    while (!path.empty()) {
      const auto name = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(path.size(), name.size() + 1));
      if (here->is(json_value::kind::array)) {
        const auto i = std::stoul(std::string(name));
        if (i >= here->elements.size()) return "(absent)";
        here = &here->elements[i];
      } else {
        here = here->find(name);
      }
      if (here == nullptr) return "(absent)";
    }
    if (here->is(json_value::kind::boolean)) return here->boolean ? "true" : "false";
    if (here->is(json_value::kind::null)) return "null";
    if (here->is(json_value::kind::string) || here->is(json_value::kind::number)) return here->text;
    return *canonical_json(*here);
  }
  std::string header(std::string_view name) const { return std::string(http::find_header(headers, name).value_or("")); }
};

class api_bench {
 public:
  api_bench()
      : settings(api_settings()),
        snapshot(settings),
        pool(context.get_executor(), db.service_url(), 2),
        recorder(context.get_executor(), recorder_options()),
        service(dependencies()) {
    recorder.start();
  }
  ~api_bench() {
    pool.close();
    const auto stop = [this]() -> boost::asio::awaitable<void> { co_await recorder.drain(soon()); };
    run_coro(context, stop);
  }

  using headers = http::header_list;
  answered call(std::string method, std::string target, const std::string& token, std::string body = "", headers more = {}) {
    http::request r;
    r.method = std::move(method);
    r.target = target;
    r.path = target.substr(0, target.find('?'));
    if (const auto q = target.find('?'); q != std::string::npos) r.query = target.substr(q + 1);
    r.headers = std::move(more);
    if (!token.empty()) r.headers.emplace_back("Authorization", "Bearer token-" + token);
    if (!body.empty()) r.headers.emplace_back("Content-Type", "application/json");
    r.body = std::move(body);
    r.peer = "127.0.0.1";
    r.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    r.arrived = std::chrono::steady_clock::now();
    if (auto refused = service.refuse_early(r)) return of(std::move(*refused));
    return of(wait(service.handle(r)));
  }
  answered get(std::string target, const std::string& token = "viewer") { return call("GET", std::move(target), token); }
  answered accept(const std::string& body, const std::string& token = "checkout", headers more = {}) {
    return call("POST", "/v1/operations", token, body, std::move(more));
  }
  answered raise(const std::string& request_id, const std::string& body, const std::string& token = "checkout",
                 headers more = {}) {
    return call("POST", "/v1/operations/" + request_id + "/events", token, body, std::move(more));
  }

  // A callback of p1 as extraction would make it.
  record::callback callback(const std::string& request_id, const std::string& key, const std::string& said,
                            const std::string& amount = "", const std::string& provider = "p1") {
    record::callback c;
    c.settings = settings;
    c.provider = &settings->providers.at(provider);
    c.received_at = now();
    c.id = make_id<delivery_id>(c.received_at);
    c.peer = "127.0.0.1";
    c.secret_name = "secret-1";
    c.body = R"({"request_id":")" + request_id + R"(","event_id":")" + key + R"(","status":")" + said + R"(","amount":")" +
             amount + R"("})";
    c.content_type = "application/json";
    c.body_digest = sha256(c.body);
    c.request_id = request_id;
    canonical bytes;
    bytes.add(key);
    c.key = bytes.bytes();
    c.key_text = key;
    c.event_raw = said;
    const auto mapped = c.provider->events.find(said);
    if (mapped != c.provider->events.end()) c.event = mapped->second;
    if (!amount.empty()) {
      c.amount = decimal{amount};
      c.currency = "EUR";
    }
    c.result = R"({"code":"7"})";
    c.content_digest = sha256(said + "/" + amount + "/" + request_id);
    return c;
  }
  record::outcome record(record::work what) {
    auto came = wait(recorder.record(std::move(what), soon()));
    if (!came) throw std::runtime_error(std::string(code_word(came.error().code)) + ": " + came.error().detail);
    return *came;
  }

  // What `recibo audit verify` would print.
  std::vector<std::string> violations(std::optional<std::string> only = std::nullopt, evidence::verify_options how = {}) {
    std::vector<std::string> out;
    how.request_id = std::move(only);
    const auto all = [&]() -> boost::asio::awaitable<result<evidence::verify_report>> {
      postgres::session_options unhurried;
      unhurried.statement_timeout = std::chrono::milliseconds(0);
      auto opened = co_await postgres::connection::open(context.get_executor(), db.service_url(), soon(), unhurried);
      if (!opened) co_return opened.error();
      std::function<void(const evidence::violation&)> tell = [&](const evidence::violation& v) {
        out.push_back(v.request_id + ": " + v.rule + ": " + v.what);
      };
      co_return co_await evidence::verify_evidence(**opened, how, std::move(tell));
    };
    report = wait(all());
    if (!report) throw std::runtime_error(std::string(code_word(report.error().code)) + ": " + report.error().detail);
    return out;
  }

  template <class T>
  T wait(boost::asio::awaitable<T> what) {
    std::optional<T> value;
    std::exception_ptr failure;
    bool done = false;
    boost::asio::co_spawn(context, std::move(what), [&](std::exception_ptr e, T came) {
      failure = e;
      done = true;
      value.emplace(std::move(came));
    });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done && context.run_one_until(until) != 0) {
    }
    if (failure) std::rethrow_exception(failure);
    if (!done) throw std::runtime_error("it has not finished");
    return std::move(*value);
  }

  database db;
  boost::asio::io_context context{1};
  std::shared_ptr<const config::settings> settings;
  config::snapshot snapshot;
  postgres::pool pool;
  record::recorder recorder;
  plain_health health;
  api::reloaded next_reload;
  std::vector<std::string> reloads;
  api::api_service service;
  result<evidence::verify_report> report{evidence::verify_report{}};

 private:
  record::recorder::options recorder_options() const {
    record::recorder::options o;
    o.database_url = db.service_url();
    return o;
  }
  api::dependencies dependencies() {
    return {snapshot,
            [this](record::work w, std::chrono::steady_clock::time_point until) { return recorder.record(std::move(w), until); },
            pool,
            health,
            [] { return std::string("recibo_build_info 1\n"); },
            [this](std::string actor) { return reload(std::move(actor)); }};
  }
  boost::asio::awaitable<api::reloaded> reload(std::string actor) {
    reloads.push_back(std::move(actor));
    co_return next_reload;
  }
  static answered of(http::response r) { return {r.status, std::move(r.body), std::move(r.headers), std::move(r.content_type)}; }
};

}  // namespace recibo::test
