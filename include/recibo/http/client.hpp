// The one way out: a request to somebody else's server, within bounds of time, size and address (K29). Notifications,
// status look-ups, verification keys and subscription confirmations all go through here.
// A name is looked up once, each of its addresses is judged, and the connection goes to an address that passed: a name that
// answers differently the next time gains nothing. Redirects are answers like any other. TLS is always verified.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/core/network.hpp"
#include "recibo/core/url.hpp"
#include "recibo/http/message.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace recibo::http {

// Whom we believe: the system's certificates and those of more authorities. Immutable; shared by the clients of all threads.
class tls_trust;
// `more`: certificates of authorities in PEM, beside the system's own; empty: none. Reads the system's files.
// permanent::invalid_configuration   `more` holds no certificate
result<std::shared_ptr<const tls_trust>> load_tls_trust(const std::string& more);

// Name → addresses. One per client, on its thread.
class name_resolver {
 public:
  virtual ~name_resolver() = default;
  // Never empty. transient::resolve_failed   the name is not known, or nobody answers. Heeds cancellation.
  virtual boost::asio::awaitable<result<std::vector<ip_bytes>>> resolve(std::string host) = 0;
};
// The system's: files, DNS and whatever else nsswitch.conf says, asked on threads of its own, one for each name that is being
// looked up, so that a name that hangs holds up nobody who asks for another.
std::shared_ptr<name_resolver> make_system_resolver(boost::asio::any_io_executor executor);

// What a caller asks of one request.
struct outbound_rules {
  // From the call to the last byte of the answer; and the part of it until the connection stands, name and TLS included.
  std::chrono::milliseconds timeout{15'000}, connect_timeout{5'000};
  // Largest status line with headers, and largest body after transfer decoding, in bytes.
  std::size_t head_limit = 16 << 10, body_limit = 64 << 10;
  // A longer body, or one that breaks off, is cut and the answer stands; else it is an error. For who wants the status only.
  bool cut_body = false;
  // http:// too, to an address within `allow`.
  bool plain_http = false;
  // Networks that may be reached although they are private; see may_reach.
  std::vector<network> allow;
  // Connections to this host that are kept open after an answer; 0: as many as the client keeps of any.
  std::size_t keep_idle = 0;
};

struct outbound_request {
  std::string method = "GET";
  http_url url;
  // Beside Host, Content-Length and Connection, which are the client's.
  header_list headers;
  std::string body;
  // It may arrive twice without harm: sent again when a kept connection turns out to be dead. GET and HEAD always may.
  bool repeatable = false;
};

struct outbound_answer {
  int status = 0;
  header_list headers;
  std::string body;
  // False: the body is cut, see outbound_rules::cut_body.
  bool whole = true;
};

struct client_options {
  std::shared_ptr<const tls_trust> trust;
  // nullptr: the system's.
  std::shared_ptr<name_resolver> resolver;
  // Hosts, in lower case, that are not looked up: where they are reached. The address is judged like any other, TLS asks for the
  // host's own name.
  std::map<std::string, ip_endpoint, std::less<>> connect_to;
  // Connections kept open after an answer: for one destination, in all, for how long unused, and for how long at most, so
  // that a destination that moves is followed.
  std::size_t idle_per_destination = 4, idle_most = 256;
  std::chrono::milliseconds idle_timeout{30'000}, lifetime{300'000};
};

// Belongs to the thread of its executor. Requests in hand outlive it without harm.
class client {
 public:
  client(boost::asio::any_io_executor executor, client_options options);
  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  // One answer, whatever its status; 1xx are read over.
  // permanent::url_refused          no URL, or http:// where it is not allowed
  // permanent::malformed_field      a method or header that cannot be sent
  // permanent::address_refused      the name leads to no address that may be reached
  // permanent::certificate_refused  expired, of another host, of an authority that we do not know
  // permanent::answer_too_large     over a limit of `rules`
  // permanent::answer_malformed     no HTTP/1.1, or a framing that has two readings
  // transient::resolve_failed, connect_failed, tls_failed, deadline_passed: nothing of the request was sent
  // uncertain::answer_unknown       sent, at least in part, and no whole answer read
  // Details may be shown; they name host and address, never path, query, headers or body.
  // Cancelling the caller (a drain) ends it at once, by the same errors or by operation_aborted.
  boost::asio::awaitable<result<outbound_answer>> send(outbound_request what, outbound_rules rules);

  // Connections that are kept and not in use.
  std::size_t idle() const noexcept;
  // Closes those, and keeps no more: for the drain.
  void close_idle();

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::http
