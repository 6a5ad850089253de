// One HTTP request and its answer, for the commands that talk to a running instance.
#pragma once

#include "recibo/http/message.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::config {
struct listener;
}

namespace recibo::commands {

struct target {
  bool tls = false;
  std::string host, port;
  std::string path;  // with the query; begins with "/"
};

// http:// or https://host[:port][/path[?query]]; nothing else is spoken here.
std::optional<target> parse_target(std::string_view url);
// "host:port" as the Host header wants it.
std::string host_of(const target& to);
// Of a listener of ours, without a path: on this machine unless it listens at one address only.
std::string base_url(const config::listener& of);

// For https.
struct tls_manners {
  // Whether the other side's certificate must be of an authority that this machine trusts, and of that host.
  bool verify = true;
  // What is shown where a certificate is asked for: files in PEM form; empty: nothing.
  std::string certificate, key;
};

struct exchanged {
  // What went wrong, for people; empty: there is an answer.
  std::string failed;
  int status = 0;
  std::string reason;  // the phrase behind the status
  http::header_list headers;
  std::string body;
};

// Sends `request`, whole as it goes over the wire, and reads one answer. Blocks: `patience` for each step at most.
exchanged exchange(const target& to, const std::string& request, std::chrono::milliseconds patience,
                   const tls_manners& manners = {});

}  // namespace recibo::commands
