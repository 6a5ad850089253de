// The typed configuration (contract section 6). Only config/ reads YAML; everybody else reads this.
// Immutable once loaded: a reload makes a new one and swaps the shared_ptr (R38).
#pragma once

#include "recibo/config/handshake.hpp"
#include "recibo/config/listener.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/core/network.hpp"
#include "recibo/core/secret.hpp"
#include "recibo/core/url.hpp"
#include "recibo/transition/decide.hpp"
#include "recibo/transition/workflow.hpp"
#include "recibo/verify/keyring.hpp"
#include "recibo/verify/scheme.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::config {

struct database {
  secret url;        // any libpq URL or conninfo, several hosts too
  secret owner_url;  // empty: the service URL migrates too
  int pool = 8;
};

struct limits {
  std::size_t body = 1 << 20;    // bytes
  std::size_t header = 8 << 10;  // bytes of request line and headers
  int connections = 20000;
  std::size_t in_flight = 64u << 20;  // bytes of bodies not yet answered
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{75'000};  // keep-alive: longer than usual balancers' 60 s (K22)
};

struct record {
  int writers = 2;
  int batch = 128;
  int queue = 4096;
};

struct outbox {
  std::chrono::milliseconds lease{30'000};  // how long a claimed notification stays with the replica that took it
};

// What holds for every exception that a person has to decide (R25).
struct reviews {
  std::chrono::seconds due{24 * 3600};           // from its opening until it should be decided
  std::string owner = "operations";              // who has to act where the state names nobody
  std::chrono::seconds parked_after{24 * 3600};  // a parked callback that waits so long is an exception too
};

// What holds for every outbound request.
struct outbound {
  std::string ca;  // PEM of authorities that are believed beside the system's
  // Host, in lower case, to where it is reached instead of being looked up. TLS and the rules for addresses are as ever.
  std::map<std::string, ip_endpoint> connect_to;
};

// From least to most, but for the last.
enum class role {
  support,    // customer-safe words
  reader,     // what is on record; raw bodies want the permission `payload`
  operator_,  // events by hand, and a look at the configuration
  admin,      // takes a new configuration
  client,     // stands apart: accepts operations, and reads those of its own name
};
std::string_view to_string(role r) noexcept;

// Callback URLs that belong to one operation each (R42, verify/callback_token.hpp).
struct callback_urls {
  std::string base;      // what stands before "/callbacks/…" in the world: no slash at its end; empty: none are made
  verify::keyring keys;  // what tokens are made with, current first
};

struct token {
  std::string name;
  config::role role = role::reader;
  bool payload = false;  // permission `payload`
  std::string sha256;    // lower-case hex digest of the token
  std::optional<sys_micros> expires;
};

// Where a value of the callback stands. Exactly one place; for a composite key several sources follow each other.
struct source {
  enum class place {
    json,    // a pointer into the body
    header,  // a header
    query,   // a field of the URL's query
    form,    // a field of a form in the body
  };
  place from = place::json;
  std::string name;                                // JSON Pointer, header (lower case), query or form field
  std::optional<std::string> then;                 // a JSON Pointer into the text found there, which is JSON itself
  std::optional<verify::timestamp_format> format;  // for times
  bool unsigned_accept = false;
  bool minor_unit = false;  // for amounts: counted in the currency's smallest unit (ISO 4217), as cents are
};
using sources = std::vector<source>;  // one, or the parts of a composite key or of a joined word; empty: not configured

// Where a callback speaks of items of its operation (R7). Sources stand in JSON and are relative to the element.
struct item_rule {
  std::optional<std::string> each;  // JSON Pointer to the elements; nullopt: the body is about one item
  sources item_id, event, occurred_at, sequence;
  std::map<std::string, source> result;
};

struct extract {
  sources request_id, idempotency_key, event, sequence, occurred_at, reference, amount, currency, account;
  std::map<std::string, source> result;  // the allow-list (R39): name → source
  std::optional<item_rule> items;
  // JSON Pointer to the events of one request (R41; config/each.hpp), each read by itself: then every source in JSON is relative
  // to the element, also those of `items`.
  std::optional<std::string> each;
};

// What an unknown request ID means (R11).
enum class unmatched {
  park,       // waits for its registration
  reject,     // 404
  register_,  // makes the operation
  ignore,     // counted only
};
inline constexpr std::array<std::pair<std::string_view, unmatched>, 4> unmatched_words{{{"park", unmatched::park},
                                                                                        {"reject", unmatched::reject},
                                                                                        {"register", unmatched::register_},
                                                                                        {"ignore", unmatched::ignore}}};
std::string_view to_string(unmatched u) noexcept;

struct answers {
  // By disposition word ("conflict", "unprocessable", …): the status instead of the default.
  std::map<std::string, int> status;
  std::optional<std::string> body;
  std::string content_type = "application/json";
};

struct rate {
  double per_second = 0;
  double burst = 0;
};

// Where keys come from that are not among the secrets (verify.fetch). The URL of a certificate is in the request itself.
struct key_source {
  std::string url;  // for keys by ID; {id} is the ID's place, if it stands in the URL
  std::vector<std::pair<std::string, secret>> headers;
  secret client_id, client_secret;  // Plaid's
  std::vector<network> allow;       // networks that may be reached although they are private
};

// What makes two callbacks of one key the same.
enum class content_rule {
  fields,  // what was extracted
  bytes,   // the whole body
};

// Within what a key of a callback means one thing (R4).
enum class key_scope {
  operation,  // the default: within its operation
  provider,   // within its provider: the same key for another operation is a conflict
};

// Whether each operation of a provider has a callback URL of its own, and nothing else is accepted (R42).
struct minted_url {
  bool get = false, post = true;                            // methods that bring callbacks
  std::optional<std::chrono::seconds> expires{90 * 86400};  // after the registration; nullopt: never
};

// How much waits for operations that nobody registers (R43).
struct parking {
  int per_identity = 1000;                     // callbacks under one request ID or reference; more are refused
  std::optional<std::chrono::seconds> expire;  // then they are given up, on record; nullopt: never
};

// Spaced repetitions (R19, R23): `first`, then growing with jitter up to `max`.
struct retry_rule {
  int attempts = 12;
  std::chrono::seconds first{5}, max{6 * 3600};
};

struct provider;

// How a provider is asked.
struct asking_rule {
  url_template url;
  std::string url_text;
  std::vector<std::pair<std::string, secret>> headers;  // with what authenticates us; names in lower case
  std::vector<network> allow;                           // networks that may be reached although they are private
  std::chrono::milliseconds timeout{10'000};
  std::size_t body_limit = 256 << 10;
  retry_rule retry{8, std::chrono::seconds(5), std::chrono::seconds(3600)};
  config::rate rate{10, 10};  // of all replicas together
  // The provider as its answers are read: their places and words.
  std::shared_ptr<const provider> reads;
};

// How a provider is asked what it knows of an operation (R23, R40); what is fetched is the key.
struct status_rule : asking_rule {
  bool by_reference = false, by_request_id = false;  // the gaps of `url`
  int concurrency = 4;                               // of all replicas together
  std::vector<std::string> states;                   // entering one of them asks
  bool before_retry = true;                          // the event `retry` asks first
  // The provider's words for: nothing has happened, and nothing will come of it any more. Only they, and that the operation is
  // not known, let a `retry` be raised.
  std::vector<std::string> safe_to_retry;
};

// How a provider's list of events is read after an outage (R44). Its elements have the keys of the callbacks that never came.
struct list_rule : asking_rule {
  verify::timestamp_format since = verify::timestamp_format::rfc3339;  // how {since} is written
  // The query parameter of every page but the first; empty: there is one page. Its value is what stands at `next` in the page
  // before, or, without that, a number that is counted up from `first`.
  std::string parameter;
  std::optional<std::string> next;  // JSON Pointer
  int first = 1;
  int pages = 1000;      // at most
  bool instead = false;  // after an outage, instead of asking about every operation
};

struct provider {
  std::string name;
  verify::scheme verify;
  verify::keyring keys;
  config::key_source key_source;
  config::extract extract;
  // The provider's word → the workflow's event; "ignore" is kept as that word.
  std::map<std::string, std::string, std::less<>> events;
  std::string workflow;
  config::unmatched unmatched = unmatched::park;
  config::parking parking;
  std::optional<minted_url> callback_url;
  config::answers answers;
  std::optional<config::rate> rate;
  key_scope scope = key_scope::operation;
  content_rule content = content_rule::fields;
  transition::order_rule order = transition::order_rule::table;
  std::chrono::milliseconds answer_within{10'000};
  std::optional<std::chrono::seconds> silence_alert;
  // Fewer callbacks than `at_least` within so long: as if it had gone silent (R30).
  struct expected {
    std::int64_t at_least = 1;
    std::chrono::seconds within{};
  };
  std::optional<expected> expected_rate;
  std::string public_url;  // for schemes that sign the URL
  // Instead of it: scheme and host as a trusted proxy saw them, with this request's own path and query.
  bool public_url_forwarded = false;
  std::optional<config::handshake> handshake;
  // How it sends again what was not answered 2xx, where that is known of its preset: from the first attempt to the second, and to
  // the last.
  std::optional<std::chrono::seconds> resend_gap, resend_span;
  // How long claimed keys stay; nullopt: as long as the operation (R4).
  std::optional<std::chrono::seconds> keep_keys;
  // By state of the workflow: this provider's limit instead of the workflow's; nullopt: `limit: none`.
  std::map<std::string, std::optional<transition::limit>, std::less<>> limits;
  std::optional<status_rule> status;
  std::optional<list_rule> list;
  // `mode: hint`: a callback names an operation and brings no news; it is looked up.
  bool hints = false;
};

// What follows a dead notification of the same operation (decision 6).
enum class on_dead {
  hold,  // waits until somebody replays or discards it
  skip,  // goes on
};

// A stream of NATS JetStream, instead of an endpoint that is posted to (decision 31).
struct nats_target {
  // "recibo.{provider}.{type}": each gap becomes one token of the subject.
  std::string subject;
  // What the broker asks for: a user and a password, a token, a JWT with the seed of the key that it names, or nothing.
  std::string user;
  secret password, token, jwt, seed;
};

struct destination {
  std::string name, url;
  // Who looks after it; shown with what it did not take.
  std::string owner;
  std::optional<nats_target> nats;
  verify::keyring keys;             // of scheme standard-webhooks; `key` holds the bytes to sign with
  std::vector<std::string> events;  // patterns: "*", "operation.*" or exact types
  retry_rule retry;
  std::vector<std::string> allow;  // networks (CIDR) that may be reached although they are private
  config::on_dead on_dead = config::on_dead::hold;
  // One attempt may take so long, and so many may be under way at once from one replica.
  std::chrono::milliseconds timeout{15'000};
  int concurrency = 16;
  // Paused when nothing was taken for so long.
  std::chrono::seconds pause_after{3 * 86400};
  // `url` and `allow` as they are used. Of NATS: host, port and whether it is TLS.
  http_url parsed_url;
  std::vector<network> allow_networks;
  // Scheme, host and port: path and query may hold a token.
  std::string origin() const;
  // Whether a notification of this type goes there.
  bool subscribes(std::string_view type) const noexcept;
};

struct settings {
  listener callbacks{.address = "0.0.0.0", .port = 8080}, api{.address = "127.0.0.1", .port = 8081};
  // Whose X-Forwarded-*, Forwarded and PROXY headers count.
  std::vector<network> trusted_proxies;
  forwarded_headers forwarded = forwarded_headers::any;
  config::database database;
  config::limits limits;
  config::record record;
  config::outbox outbox;
  config::reviews reviews;
  config::outbound outbound;
  config::callback_urls callback_urls;
  std::vector<token> tokens;
  std::map<std::string, provider, std::less<>> providers;
  // Shared, because operations in flight keep the table they were read with.
  std::map<std::string, std::shared_ptr<const transition::workflow>, std::less<>> workflows;
  std::map<std::string, destination, std::less<>> destinations;
  std::chrono::seconds retain_payloads{90 * 86400}, retain_deliveries{400 * 86400}, retain_operations{400 * 86400};
  // Attempts to deliver notifications; what became of each notification stays with it.
  std::chrono::seconds retain_attempts{90 * 86400};
  std::chrono::milliseconds drain_delay{5'000}, drain_timeout{30'000};
  std::string log_level = "info", log_format = "json";
  std::string otlp;
  // SHA-256 over the file and everything it included, hex; shown by /v1/config and recibo_config_info.
  std::string digest;
};

}  // namespace recibo::config
