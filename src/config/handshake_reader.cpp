// handshake of a provider: `{type, token}`, or `none` where the preset brings one that is not wanted.
#include "handshake_reader.hpp"

#include "secrets.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

bool read_handshake_kind(reading& r, const field& f, handshake_kind& out) {
  std::size_t at = 0;
  if (!f || !read_choice(r, f, handshake_names(), at)) return false;
  out = static_cast<handshake_kind>(at);
  return true;
}

// What this conversation needs of the provider's secrets.
void check_handshake_secrets(reading& r, const field& f, const provider& of, handshake_kind kind) {
  const std::string name(to_string(kind));
  if (of.verify.kind == verify::scheme_kind::none) {
    r.error(f.at, "handshake: " + name + " is answered with the provider's secret, and scheme: " + of.verify.name + " has none");
    return;
  }
  const auto& all = of.keys.secrets;
  const auto in_two = [](const verify::named_secret& s) { return s.text.reveal().find('|') != std::string_view::npos; };
  if (kind == handshake_kind::braintree && !std::all_of(all.begin(), all.end(), in_two))
    r.error(f.at, "handshake: braintree needs secrets of the form public_key|private_key");
}

// It answers anybody with the HMAC of a word of his choice. Over the body alone such a word is refused as a callback
// (receive/handshakes); in content of more parts the word could stand for several of them.
void check_signs_the_body_alone(reading& r, const field& f, const verify::scheme& how) {
  if (how.kind != verify::scheme_kind::hmac) return;
  const auto* only = how.content.size() == 1 ? &how.content.front() : nullptr;
  if (only && only->what == verify::content_part::source::body && only->before.empty() && only->after.empty()) return;
  r.error(f.at, "handshake: x-twitter gives the HMAC of any word to anybody, so the signature has to be over {body} alone");
}

}  // namespace

void read_handshake(reading& r, const field& f, const verify::scheme* scheme, provider& out) {
  if (!f) return;
  if (f.value->what == node::kind::scalar && f.value->text == "none") {
    out.handshake.reset();
    return;
  }
  if (f.value->what != node::kind::map) {
    mismatch(r, f, "a map with type, or none");
    return;
  }
  section s(r, f);
  handshake read;
  const bool good = read_handshake_kind(r, s.require("type", "which provider's conversation it is"), read.kind);
  const field token = s.get("token");
  if (token) {
    read_secret one = read_one_secret(r, token, "token");
    read.token = std::move(one.secret);
    if (!one.good) return;
  }
  if (!good) return;
  const std::string name(to_string(read.kind));
  if (wants_token(read.kind) && !s.has("token")) {
    r.error(s.at(), "handshake: token is required: " + name + " sends back what it was given");
  } else if (!wants_token(read.kind) && s.has("token")) {
    r.error(s.key_at("token"), "token: the handshake " + name + " has none");
  }
  if (scheme != nullptr && wants_secret(read.kind)) check_handshake_secrets(r, f, out, read.kind);
  if (scheme != nullptr && read.kind == handshake_kind::x_twitter) check_signs_the_body_alone(r, f, *scheme);
  out.handshake = std::move(read);
}

}  // namespace recibo::config
