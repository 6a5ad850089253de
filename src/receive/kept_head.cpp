#include "recibo/receive/kept_head.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <array>

namespace recibo::receive {
namespace {

constexpr std::array<std::string_view, 4> never{"authorization", "proxy-authorization", "cookie", "set-cookie"};
constexpr std::array<std::string_view, 15> authenticating{"auth",    "cookie", "signature", "-sign",  "sig",
                                                          "secret",  "token",  "password",  "passwd", "credential",
                                                          "api-key", "apikey", "hmac",      "jwt",    "cert"};
constexpr std::array<std::string_view, 10> idle{
    "host",   "connection",      "content-length", "content-type",    "transfer-encoding",
    "accept", "accept-encoding", "user-agent",     "accept-language", "expect"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool is_read(const config::provider& how, config::source::place where, std::string_view name) {
  const auto& e = how.extract;
  const auto names_it = [&](const config::source& one) { return one.from == where && lower(one.name) == name; };
  for (const config::sources* list : {&e.request_id, &e.idempotency_key, &e.event, &e.sequence, &e.occurred_at, &e.reference,
                                      &e.amount, &e.currency, &e.account}) {
    if (std::any_of(list->begin(), list->end(), names_it)) return true;
  }
  return std::any_of(e.result.begin(), e.result.end(), [&](const auto& one) { return names_it(one.second); });
}

bool may_keep(const config::provider& how, config::source::place where, std::string_view name) {
  if (std::find(never.begin(), never.end(), name) != never.end()) return false;
  if (is_read(how, where, name)) return true;
  if (std::find(idle.begin(), idle.end(), name) != idle.end()) return false;
  return std::none_of(authenticating.begin(), authenticating.end(),
                      [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

std::string kept_query(const config::provider& how, std::string_view query) {
  std::string out;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto field = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto encoded = field.substr(0, field.find('='));
    const auto name = lower(http::percent_decode(encoded, true).value_or(std::string(encoded)));
    if (field.size() > kept_value_max || !is_utf8(field) || !may_keep(how, config::source::place::query, name)) continue;
    if (!out.empty()) out += '&';
    out += field;
  }
  return out;
}

}  // namespace

std::string keep_head(const config::provider& how, const http::request& from, std::string_view url_of) {
  auto query = kept_query(how, from.query);
  if (query.size() > kept_head_max) query.clear();
  std::size_t left = kept_head_max - query.size();
  json_writer out;
  out.begin_object();
  if (!url_of.empty()) out.text("url_of", url_of);
  out.text("query", query).key("headers").begin_array();
  for (const auto& [name, value] : from.headers) {
    const auto size = name.size() + value.size();
    if (value.size() > kept_value_max || size > left || !is_utf8(name) || !is_utf8(value)) continue;
    if (!may_keep(how, config::source::place::header, lower(name))) continue;
    left -= size;
    out.begin_array().text(name).text(value).end_array();
  }
  out.end_array().end_object();
  return out.take();
}

std::string restore_head(std::string_view kept, http::request& out) {
  const auto read = parse_json(kept);
  if (!read) return {};
  const auto* url = read->find("url_of");
  const std::string url_of = url == nullptr ? std::string() : url->text;
  if (const auto* query = read->find("query")) out.query = query->text;
  const auto* headers = read->find("headers");
  if (headers == nullptr) return url_of;
  for (const auto& pair : headers->elements)
    if (pair.elements.size() == 2) out.headers.emplace_back(pair.elements[0].text, pair.elements[1].text);
  return url_of;
}

}  // namespace recibo::receive
