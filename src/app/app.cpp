#include "recibo/app/app.hpp"

#include "confirm.hpp"
#include "drain_guard.hpp"
#include "readiness.hpp"
#include "reload.hpp"
#include "upkeep.hpp"

#include "recibo/api/service.hpp"
#include "recibo/async/task_group.hpp"
#include "recibo/async/worker.hpp"
#include "recibo/config/snapshot.hpp"
#include "recibo/http/client.hpp"
#include "recibo/http/server.hpp"
#include "recibo/notify/dispatcher.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/observe/look_ups.hpp"
#include "recibo/observe/metrics.hpp"
#include "recibo/observe/notifications.hpp"
#include "recibo/observe/rotation.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/receive/callback_url.hpp"
#include "recibo/receive/endpoint.hpp"
#include "recibo/receive/extract.hpp"
#include "recibo/receive/keys.hpp"
#include "recibo/reconcile/status_checks.hpp"
#include "recibo/record/recorder.hpp"
#include "recibo/storage/strays.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <malloc.h>

#include <csignal>

namespace recibo::app {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
// How long over its time-out a drain may take in all: its steps have time-outs of their own, a few seconds each.
constexpr std::chrono::seconds drain_grace{25};
// How long a drain waits for destinations; what they have not answered by then is sent again by whoever comes next.
constexpr std::chrono::seconds dispatch_limit{2};
// A reload is answered without it where the database takes longer.
constexpr std::chrono::seconds strays_limit{5};
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

observe::metric_labels labels_of(const config::settings& s) {
  observe::metric_labels out;
  for (const auto& [name, p] : s.providers) {
    observe::metric_labels::provider one;
    one.name = name;
    if (const auto table = s.workflows.find(p.workflow); table != s.workflows.end())
      for (const auto& state : table->second->states()) one.states.push_back(state.name);
    for (const auto& secret : p.keys.secrets) one.secrets.push_back(secret.name);
    if (p.callback_url)
      for (const auto& secret : s.callback_urls.keys.secrets) one.secrets.push_back(receive::recorded_name(secret.name));
    out.providers.push_back(std::move(one));
  }
  out.queues = {"parked", "review", "failed", "timers", "overdue", "stranded"};
  for (const auto& state : limited_states(s)) out.queues.push_back("operations:" + state);
  for (const auto& [name, of] : s.providers)
    if (of.status) out.queues.push_back("look_ups:" + name);
  for (const auto& [name, of] : s.providers)
    if (of.list) out.queues.push_back("event_list:" + name);
  for (const auto& [name, to] : s.destinations) out.queues.push_back("outbox:" + name);
  out.config_digest = s.digest;
  return out;
}

std::vector<observe::rotation_metrics::ending> ends_of(const config::settings& s) {
  std::vector<observe::rotation_metrics::ending> out;
  for (const auto& [name, p] : s.providers) {
    for (const auto& secret : p.keys.secrets)
      if (secret.until) out.push_back({name, secret.name, *secret.until});
    if (!p.callback_url) continue;
    for (const auto& secret : s.callback_urls.keys.secrets)
      if (secret.until) out.push_back({name, receive::recorded_name(secret.name), *secret.until});
  }
  return out;
}

class counted final : public receive::meter {
 public:
  counted(observe::metrics& to, process::hearing& ears) : to_(to), ears_(ears) {}
  void callback(std::string_view provider, std::string_view what) noexcept override {
    to_.callback(provider, what);
    if (process::is_its_voice(what)) ears_.heard(provider, steady_clock::now());
  }
  void signature_failure(std::string_view provider, std::string_view reason) noexcept override {
    to_.signature_failure(provider, reason);
  }
  void stage(std::string_view provider, std::string_view stage, std::chrono::duration<double> took) noexcept override {
    to_.stage(provider, stage, took.count());
  }
  void secret_used(std::string_view provider, std::string_view name, sys_micros at) noexcept override {
    to_.secret_used(provider, name, at);
  }

 private:
  observe::metrics& to_;
  process::hearing& ears_;
};

class counted_notifications final : public notify::meter {
 public:
  void attempt(std::string_view destination, std::string_view result) noexcept override { to_.attempt(destination, result); }
  void settled(std::string_view destination, int attempts) noexcept override { to_.settled(destination, attempts); }
  void state(std::string_view destination, std::string_view breaker, bool paused) noexcept override {
    to_.state(destination, breaker, paused);
  }
  std::string render() const { return to_.render(); }

 private:
  observe::notification_metrics to_;
};

class counted_look_ups final : public reconcile::meter {
 public:
  void attempt(std::string_view provider, std::string_view result) noexcept override { to_.attempt(provider, result); }
  void settled(std::string_view provider, std::string_view result) noexcept override { to_.settled(provider, result); }
  void listed(std::string_view provider, std::string_view result) noexcept override { to_.listed(provider, result); }
  void state(std::string_view provider, std::string_view breaker) noexcept override { to_.state(provider, breaker); }
  std::string render() const { return to_.render(); }

 private:
  observe::look_up_metrics to_;
};

http::server_options options_of(const config::settings& s, const config::listener& at, const char* name,
                                observe::metrics& metrics) {
  http::server_options o;
  o.name = name;
  o.address = at.address;
  o.port = at.port;
  o.body_limit = s.limits.body;
  o.header_limit = s.limits.header;
  o.connection_limit = s.limits.connections;
  o.in_flight_limit = s.limits.in_flight;
  o.header_timeout = s.limits.header_timeout;
  o.body_timeout = s.limits.body_timeout;
  o.idle_timeout = s.limits.idle_timeout;
  o.trusted_proxies = s.trusted_proxies;
  o.forwarded = s.forwarded;
  o.proxy_protocol = at.proxy_protocol;
  if (at.tls) o.tls = at.tls->context;
  o.metrics = &metrics;
  metrics.certificate_expiry(name, at.tls ? std::optional(at.tls->context->not_after()) : std::nullopt);
  return o;
}

record::recorder::options recorder_options(const config::settings& s, observe::metrics& metrics,
                                           std::function<void(const std::set<std::string, std::less<>>&)> told) {
  record::recorder::options o;
  o.database_url = s.database.url;
  o.writers = s.record.writers;
  o.batch = s.record.batch;
  o.queue = s.record.queue;
  o.queue_bytes = s.limits.in_flight;
  o.metrics = &metrics;
  o.told = std::move(told);
  return o;
}

// One replica on one thread (decision 10).
class replica {
 public:
  replica(asio::io_context& context, std::shared_ptr<const config::settings> first, const std::filesystem::path& file,
          std::shared_ptr<const http::tls_trust> trust, drain_guard& guard)
      : executor_(context.get_executor()),
        guard_(guard),
        settings_(std::make_shared<config::snapshot>(first)),
        metrics_(labels_of(*first)),
        recorder_(executor_, recorder_options(*first, metrics_, [this](const auto& names) { dispatcher_.told(names); })),
        pool_(executor_, first->database.url, first->database.pool),
        health_(std::make_shared<readiness>(recorder_)),
        refusals_(std::make_shared<receive::refusals>()),
        reloader_(*settings_, file, rotation_, [this](const config::settings& s) { taken(s); }),
        watching_(executor_, "look at secrets", std::chrono::seconds(1), [this] { return look_at_secrets(); }),
        upkeep_(executor_, {*settings_, pool_, recorder_, *health_, metrics_, ears_}),
        client_(executor_, client_options(std::move(trust), *first)),
        dispatcher_(executor_,
                    {*settings_, pool_, client_, first->database.url, notified_, [this] { return upkeep_.schema_fits(); }}),
        checks_(executor_, {*settings_, pool_, client_, looked_up_, record(),
                            [](const config::provider& of, const http::request& answer, record::callback& out) {
                              receive::extract(of, answer, out);
                            },
                            receive::extract_each, [this] { return upkeep_.schema_fits(); }}),
        keys_(executor_, send(), key_options()),
        callbacks_(executor_, options_of(*first, first->callbacks, "callbacks", metrics_), callbacks_service()),
        api_(executor_, options_of(*first, first->api, "api", metrics_), api_service()),
        signals_(executor_, SIGTERM, SIGINT, SIGHUP),
        tasks_(executor_) {
    rotation_.secrets_end(ends_of(*first));
  }

  void start() {
    recorder_.start();
    upkeep_.start();
    watching_.start();
    dispatcher_.start();
    checks_.start();
    callbacks_.start();
    api_.start();
    tasks_.spawn("signals", wait_for_signals());
    const auto s = settings_->get();
    log::info("listening", {{"listener", "callbacks"},
                            {"address", s->callbacks.address},
                            {"port", callbacks_.port()},
                            {"tls", s->callbacks.tls.has_value()}});
    log::info("listening",
              {{"listener", "api"}, {"address", s->api.address}, {"port", api_.port()}, {"tls", s->api.tls.has_value()}});
  }

 private:
  receive::callbacks::record_function record() {
    return [this](record::work what, steady_clock::time_point until) { return recorder_.record(std::move(what), until); };
  }

  static http::client_options client_options(std::shared_ptr<const http::tls_trust> trust, const config::settings& s) {
    http::client_options o;
    o.trust = std::move(trust);
    o.connect_to.insert(s.outbound.connect_to.begin(), s.outbound.connect_to.end());
    return o;
  }

  receive::key_cache::fetch_function send() {
    return [this](http::outbound_request what, http::outbound_rules rules) {
      return client_.send(std::move(what), std::move(rules));
    };
  }

  static receive::key_cache::options key_options() {
    receive::key_cache::options o;
    auto authorities = verify::trust_store::system();
    if (authorities) o.authorities = std::move(*authorities);
    return o;
  }

  std::shared_ptr<http::service> callbacks_service() {
    receive::callbacks::parts p;
    p.settings = settings_;
    p.record = record();
    p.health = health_;
    p.counts = std::make_shared<counted>(metrics_, ears_);
    p.fetch = [this](const config::provider& from, std::string url, steady_clock::time_point until) {
      return fetch_confirmation(client_, std::move(url), from.key_source.allow, until);
    };
    p.keys = [this](std::shared_ptr<const config::settings> s, const config::provider& from, verify::needed_key what,
                    std::string peer, steady_clock::time_point until) {
      return keys_.get(std::move(s), from, std::move(what), std::move(peer), until);
    };
    p.vouch = [this](std::string_view provider, std::string_view peer) { keys_.vouch(provider, peer); };
    p.refused = refusals_;
    return std::make_shared<receive::callbacks>(std::move(p));
  }

  std::shared_ptr<http::service> api_service() {
    api::dependencies d{*settings_,
                        record(),
                        pool_,
                        *health_,
                        [this] { return metrics_.render() + rotation_.render() + notified_.render() + looked_up_.render(); },
                        [this](std::string actor) { return reload(std::move(actor)); },
                        [this] { return reloader_.last(); },
                        refusals_};
    return std::make_shared<api::api_service>(std::move(d));
  }

  // What nobody sends any more is said with it.
  asio::awaitable<api::reloaded> reload(std::string actor) {
    auto out = reloader_.reload(actor);
    if (!out.taken) co_return out;
    std::vector<std::string> configured;
    for (const auto& [name, to] : settings_->get()->destinations) configured.push_back(name);
    const auto strays = co_await storage::find_strays(pool_, std::move(configured), steady_clock::now() + strays_limit);
    if (!strays) {
      out.warnings.push_back({"destinations", 0, 0, std::string(storage::strays_unknown), config::severity::warning});
      co_return out;
    }
    for (const auto& one : *strays)
      if (one.waiting > 0) out.warnings.push_back({"destinations", 0, 0, storage::told(one), config::severity::warning});
    co_return out;
  }

  asio::awaitable<bool> look_at_secrets() {
    reloader_.look_at_secrets();
    co_return false;
  }

  void taken(const config::settings& s) {
    metrics_.configure(labels_of(s));
    rotation_.secrets_end(ends_of(s));
    callbacks_.set_options(options_of(s, s.callbacks, "callbacks", metrics_));
    api_.set_options(options_of(s, s.api, "api", metrics_));
  }

  asio::awaitable<void> wait_for_signals() {
    for (;;) {
      const auto [failed, number] = co_await signals_.async_wait(quietly);
      if (failed) co_return;
      if (number == SIGHUP) {
        reloader_.reload("SIGHUP");
        continue;
      }
      log::info("draining", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
      co_await drain();
      co_return;
    }
  }

  asio::awaitable<void> drain() {
    const auto s = settings_->get();
    const auto until = steady_clock::now() + s->drain_timeout;
    guard_.arm(until + drain_grace);
    guard_.at("connections");
    health_->begin_drain();
    callbacks_.announce_drain();
    api_.announce_drain();
    asio::steady_timer timer(executor_);
    timer.expires_after(std::min(s->drain_delay, s->drain_timeout));
    co_await timer.async_wait(quietly);
    callbacks_.drain();
    api_.drain();
    while (callbacks_.connections() + api_.connections() > 0 && steady_clock::now() < until) {
      timer.expires_after(milliseconds(20));
      co_await timer.async_wait(quietly);
    }
    // Before the recorder, which takes what they bring.
    guard_.at("look-ups");
    co_await checks_.stop(steady_clock::now() + dispatch_limit);
    guard_.at("recorder");
    co_await recorder_.drain(std::max(until, steady_clock::now() + milliseconds(100)));
    callbacks_.stop();
    api_.stop();
    keys_.stop();
    // What the last callbacks brought is delivered by whoever runs on, or after the next start.
    guard_.at("notifications");
    co_await dispatcher_.stop(steady_clock::now() + dispatch_limit);
    client_.close_idle();
    guard_.at("upkeep");
    co_await watching_.stop(steady_clock::now() + milliseconds(100));
    co_await upkeep_.stop(steady_clock::now() + milliseconds(500));
    pool_.close();
    guard_.at("the end of the process");
    log::info("drained");
  }

  asio::any_io_executor executor_;
  drain_guard& guard_;
  std::shared_ptr<config::snapshot> settings_;
  observe::metrics metrics_;
  observe::rotation_metrics rotation_;
  process::hearing ears_;
  record::recorder recorder_;
  postgres::pool pool_;
  std::shared_ptr<readiness> health_;
  std::shared_ptr<receive::refusals> refusals_;
  reloader reloader_;
  async::worker watching_;
  upkeep upkeep_;
  http::client client_;
  counted_notifications notified_;
  notify::dispatcher dispatcher_;
  counted_look_ups looked_up_;
  reconcile::status_checks checks_;
  receive::key_cache keys_;
  http::server callbacks_, api_;
  asio::signal_set signals_;
  async::task_group tasks_;
};

}  // namespace

int serve(std::shared_ptr<const config::settings> settings, const std::filesystem::path& file) {
  log::init(settings->log_level, settings->log_format, log::stream::standard_output);
  std::signal(SIGPIPE, SIG_IGN);
  // Large bodies come from the kernel and go back to it, instead of leaving the heap at its highest mark.
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  auto trust = http::load_tls_trust(settings->outbound.ca);
  if (!trust) {
    log::error("cannot call others", {{"error", trust.error().detail}});
    return 2;
  }
  // Outlives all that it watches the end of.
  drain_guard guard;
  asio::io_context context(1);
  try {
    replica here(context, std::move(settings), file, std::move(*trust), guard);
    here.start();
    context.run();
  } catch (const boost::system::system_error& e) {
    log::error("cannot listen", {{"error", std::string(e.what())}});
    return 2;
  }
  return 0;
}

}  // namespace recibo::app
