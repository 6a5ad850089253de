// A libpq URL or conninfo string, taken apart: which hosts to try, and the options to hand to libpq for each.
// libpq tries hosts by itself too, but without a time limit for each (connect_timeout works in its blocking calls only):
// a first host that swallows packets would eat the whole deadline. So we go through them ourselves.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/core/secret.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::postgres {

struct target {
  std::string host;                     // name, address or socket folder; empty: libpq's default
  std::optional<std::string> hostaddr;  // numeric address; then no name is looked up
  std::string port;

  // Whether libpq would ask the resolver, which blocks.
  bool needs_lookup() const;
};

class conninfo {
 public:
  // permanent::invalid_configuration   libpq cannot parse it. The detail never quotes it: it may hold a password.
  static result<conninfo> parse(const secret& url);

  const std::vector<target>& targets() const noexcept { return targets_; }
  // The target_session_attrs to go through the hosts with, one pass each.
  std::vector<std::string> passes() const;
  // connect_timeout of the URL, in seconds.
  std::optional<int> connect_timeout() const;
  // Whether the URL's `options` set this server parameter itself.
  bool sets(std::string_view server_parameter) const;

  // Keywords and values for PQconnectStartParams; a target without host and port leaves them to libpq.
  std::vector<std::pair<std::string, std::string>> options_for(const target& at, const std::string& session_attrs) const;

 private:
  const std::string* find(std::string_view keyword) const;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<target> targets_;
};

}  // namespace recibo::postgres
