#include "conninfo.hpp"

#include <libpq-fe.h>
#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

namespace recibo::postgres {
namespace {

struct fallback {
  const char* keyword;
  const char* environment;  // libpq's own variable wins over ours; null: there is none
  const char* value;
};

// A peer that vanished is noticed within about 10 s, sent to or not (decision 12). GSS encryption is off because its
// credential look-up blocks.
constexpr std::array<fallback, 8> fallbacks{{
    {"fallback_application_name", nullptr, "recibo"},
    {"keepalives", nullptr, "1"},
    {"keepalives_idle", nullptr, "5"},
    {"keepalives_interval", nullptr, "2"},
    {"keepalives_count", nullptr, "3"},
    {"tcp_user_timeout", nullptr, "10000"},
    {"gssencmode", "PGGSSENCMODE", "disable"},
    {"client_encoding", nullptr, "UTF8"},
}};

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  for (;;) {
    const auto comma = list.find(',');
    out.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

// One value for all, or one for each.
const std::string* nth(const std::vector<std::string>& list, std::size_t i) { return list.size() == 1 ? &list[0] : &list[i]; }

}  // namespace

bool target::needs_lookup() const {
  if (hostaddr || host.empty() || host.front() == '/' || host.front() == '@') return false;
  boost::system::error_code not_numeric;
  boost::asio::ip::make_address(host, not_numeric);
  return static_cast<bool>(not_numeric);
}

result<conninfo> conninfo::parse(const secret& url) {
  // The error text of libpq quotes what it could not parse, so it is thrown away.
  char* why = nullptr;
  const std::string text(url.reveal());
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> list(PQconninfoParse(text.c_str(), &why), &PQconninfoFree);
  PQfreemem(why);
  if (!list) return error(permanent::invalid_configuration, "the database URL cannot be read");

  conninfo out;
  std::vector<std::string> hosts, addresses, ports;
  for (const auto* o = list.get(); o->keyword; ++o) {
    const std::string_view keyword = o->keyword;
    auto* const place = keyword == "host" ? &hosts : keyword == "hostaddr" ? &addresses : keyword == "port" ? &ports : nullptr;
    if (!place) {
      if (o->val) out.given_.emplace_back(o->keyword, o->val);
      continue;
    }
    const char* value = o->val;
    if (!value && o->envvar) value = std::getenv(o->envvar);
    if (value && *value) *place = split(value);
  }
  const auto count = std::max({hosts.size(), addresses.size(), std::size_t{1}});
  if (hosts.empty() && addresses.empty() && ports.size() <= 1) {
    // libpq's default, or what a service file says.
    out.targets_.push_back({"", std::nullopt, ports.empty() ? "" : ports[0]});
    return out;
  }
  const bool matches = (hosts.empty() || hosts.size() == count) && (addresses.empty() || addresses.size() == count) &&
                       (ports.size() <= 1 || ports.size() == count);
  if (!matches)
    return error(permanent::invalid_configuration, "the database URL names another number of ports or addresses than of hosts");
  for (std::size_t i = 0; i < count; ++i) {
    target t;
    if (!hosts.empty()) t.host = hosts[i];
    if (!addresses.empty() && !addresses[i].empty()) t.hostaddr = addresses[i];
    if (!ports.empty()) t.port = *nth(ports, i);
    out.targets_.push_back(std::move(t));
  }
  return out;
}

const std::string* conninfo::find(std::string_view keyword) const {
  const auto at = std::find_if(given_.begin(), given_.end(), [&](const auto& o) { return o.first == keyword; });
  return at == given_.end() ? nullptr : &at->second;
}

std::vector<std::string> conninfo::passes() const {
  const auto* attrs = find("target_session_attrs");
  const char* environment = std::getenv("PGTARGETSESSIONATTRS");
  const std::string wanted = attrs ? *attrs : environment && *environment ? environment : "read-write";
  if (wanted == "prefer-standby") return {"standby", "any"};
  return {wanted};
}

std::optional<int> conninfo::connect_timeout() const {
  const auto* text = find("connect_timeout");
  int seconds = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), seconds).ec != std::errc() || seconds <= 0)
    return std::nullopt;
  return seconds;
}

bool conninfo::sets(std::string_view server_parameter) const {
  const auto* options = find("options");
  return options && options->find(server_parameter) != std::string::npos;
}

std::vector<std::pair<std::string, std::string>> conninfo::options_for(const target& at, const std::string& session_attrs) const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& o : given_) {
    if (o.first != "target_session_attrs") out.push_back(o);
  }
  for (const auto& f : fallbacks) {
    if (!find(f.keyword) && !(f.environment && std::getenv(f.environment))) out.emplace_back(f.keyword, f.value);
  }
  out.emplace_back("target_session_attrs", session_attrs);
  if (!at.host.empty()) out.emplace_back("host", at.host);
  if (at.hostaddr) out.emplace_back("hostaddr", *at.hostaddr);
  if (!at.port.empty()) out.emplace_back("port", at.port);
  return out;
}

}  // namespace recibo::postgres
