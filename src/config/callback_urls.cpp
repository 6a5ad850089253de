// callback_urls, and callback_url of a provider: URLs that belong to one operation each (R42).
#include "secrets.hpp"
#include "sections.hpp"

#include "recibo/verify/callback_token.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

void read_base(reading& r, const field& f, callback_urls& out) {
  std::string text;
  http_url parts;
  if (!f || !read_http_url(r, f, text, &parts)) return;
  if (text.find('?') != std::string::npos) {
    r.error(f.at, "base: a query stands behind the path, and /callbacks/... is put behind this");
    return;
  }
  if (!parts.tls) r.warn(f.at, "base: http shows the token in each of these URLs to whoever is on the way");
  while (text.ends_with('/')) text.pop_back();
  out.base = std::move(text);
}

void read_methods(reading& r, const field& f, minted_url& out) {
  constexpr choice<bool> words[] = {{"GET", true}, {"POST", false}};
  out.get = out.post = false;
  for (const field& one : elements(r, f)) {
    bool get = false;
    if (read_word(r, one, get, words)) (get ? out.get : out.post) = true;
  }
  if (f.value->what == node::kind::list && f.value->items.empty())
    r.error(f.at, "methods: the list is empty, so that no callback could come");
}

}  // namespace

void read_callback_urls(reading& r, const field& f, settings& out) {
  if (!f) return;
  section s(r, f);
  read_base(r, s.require("base", "the URL by which the callbacks listener is reached from outside"), out.callback_urls);
  const field list = s.require("secrets", "the tokens in the URLs are made with them");
  for (read_secret& one : read_secret_list(r, list)) {
    if (!one.good) continue;
    if (one.secret.text.reveal().size() < verify::callback_secret_min) {
      r.error(one.at, "secrets: a secret for callback URLs has at least 32 bytes, for example of `openssl rand -base64 32`");
      continue;
    }
    out.callback_urls.keys.secrets.push_back(std::move(one.secret));
  }
  const auto& all = out.callback_urls.keys.secrets;
  if (!all.empty() && std::none_of(all.begin(), all.end(), [&](const auto& one) { return one.valid_at(r.now()); }))
    r.warn(list.at, "secrets: none of them is valid now; no callback URL can be made, and none is accepted");
}

void read_minted_url(reading& r, const field& f, const settings& so_far, provider& out) {
  const bool alone = out.verify.name == "callback-url";
  if (!f && !alone) return;
  minted_url minted;
  if (f && !(f.value->what == node::kind::scalar && f.value->text == "required")) {
    if (f.value->what != node::kind::map) return mismatch(r, f, "required, or a map with methods and expires");
    section s(r, f);
    if (const field methods = s.get("methods")) read_methods(r, methods, minted);
    if (const field expires = s.get("expires")) {
      std::chrono::seconds value{};
      if (expires.value->what == node::kind::scalar && expires.value->text == "off") {
        minted.expires.reset();
        r.warn(expires.at, "expires: off; a URL that leaks is good for ever");
      } else if (read_duration(r, expires, value, "1m", "36500d")) {
        minted.expires = value;
      }
    }
  }
  if (so_far.callback_urls.base.empty() || so_far.callback_urls.keys.secrets.empty())
    r.error(f.at, "callback_url: callback_urls at the top of the file is required: its base and secrets make these URLs");
  out.callback_url = minted;
}

}  // namespace recibo::config
