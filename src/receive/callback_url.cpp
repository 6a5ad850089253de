#include "recibo/receive/callback_url.hpp"

#include "recibo/core/url.hpp"
#include "recibo/verify/callback_token.hpp"

namespace recibo::receive {

std::string callback_path(std::string_view provider, std::string_view token) {
  std::string out = "/callbacks/" + percent_encode(provider);
  if (!token.empty()) out.append("/").append(token);
  return out;
}

std::string callback_token(const config::settings& settings, std::string_view provider, std::string_view request_id,
                           sys_micros accepted_at, sys_micros now) {
  const auto from = settings.providers.find(provider);
  if (from == settings.providers.end() || !from->second.callback_url) return {};
  std::optional<sys_micros> expires;
  if (const auto& keep = from->second.callback_url->expires) {
    expires = accepted_at + *keep;
    if (*expires <= now) return {};
  }
  return verify::mint_callback_token(settings.callback_urls.keys, provider, request_id, expires, now);
}

std::string callback_url(const config::settings& settings, std::string_view provider, std::string_view request_id,
                         sys_micros accepted_at, sys_micros now) {
  const std::string token = callback_token(settings, provider, request_id, accepted_at, now);
  return token.empty() ? token : settings.callback_urls.base + callback_path(provider, token);
}

std::string recorded_name(std::string_view secret_name) { return "callback-url/" + std::string(secret_name); }

}  // namespace recibo::receive
