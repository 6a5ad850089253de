#include "changes.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/utf8.hpp"

#include "json_spellings.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace recibo::verify {
namespace {

std::string replaced(std::string_view in, std::string_view what, std::string_view by) {
  std::string out;
  for (std::size_t at = 0; at < in.size();) {
    const std::size_t next = std::min(in.find(what, at), in.size());
    out += in.substr(at, next - at);
    if (next < in.size()) out += by;
    at = next + what.size();
  }
  return out;
}

// Bytes that were taken for Latin-1 and encoded as UTF-8 once too often, undone.
std::optional<std::string> encoded_once(std::string_view twice) {
  std::string out;
  while (!twice.empty()) {
    char32_t code = 0;
    const std::size_t length = utf8_character(twice, code);
    if (length == 0 || code > 0xff) return std::nullopt;
    out += static_cast<char>(code);
    twice.remove_prefix(length);
  }
  return out;
}

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || (text.back() >= '\t' && text.back() <= '\r'))) text.remove_suffix(1);
  return text;
}

class maker {
 public:
  maker(const question& asked, std::size_t bytes_max) : asked_(asked), bytes_max_(bytes_max) {}

  std::vector<change> make() {
    secret_validity();
    secret_forms();
    line_ends();
    secrets_of_others();
    urls();
    common_ = false;
    signature_forms();
    renamed_headers();
    schemes_of_others();
    other_hashes();
    json();
    wrappings();
    other_presets();
    return std::move(out_);
  }

 private:
  void add(cause why, subject of, std::string says, std::function<bool(trial&)> apply) {
    out_.push_back({why, of, std::move(says), std::move(apply), common_});
  }

  void secret_validity() {
    add(cause::secret_not_valid, subject::secret, "a secret that is outside its from and until", [](trial& t) {
      bool any = false;
      for (auto& one : t.keys.secrets) {
        any = any || one.from || one.until;
        one.from.reset();
        one.until.reset();
      }
      return any;
    });
  }

  // Every secret's key as `form` makes it of the secret's text; what `form` has nothing for stays as it was.
  void add_form(std::string says, std::optional<std::string> (*form)(std::string_view text)) {
    add(cause::secret_form, subject::secret, std::move(says), [form](trial& t) {
      bool any = false;
      for (auto& one : t.keys.secrets) {
        const auto key = form(one.text.reveal());
        if (!key || key->empty() || *key == one.key.reveal()) continue;
        one.key = secret(*key);
        one.ready.reset();
        any = true;
      }
      return any;
    });
  }

  void secret_forms() {
    using text = std::string_view;
    using made = std::optional<std::string>;
    add_form("the secret's text as it stands, neither decoded nor shortened", [](text t) -> made { return std::string(t); });
    add_form("the secret decoded from base64", [](text t) -> made { return from_base64(t); });
    add_form("the secret decoded from base64 behind its prefix whsec_",
             [](text t) -> made { return t.starts_with("whsec_") ? from_base64(t.substr(6)) : std::nullopt; });
    add_form("the secret's text behind its prefix whsec_",
             [](text t) -> made { return t.starts_with("whsec_") ? made(t.substr(6)) : std::nullopt; });
    add_form("the secret decoded from hexadecimal", [](text t) -> made { return from_hex(t); });
    add_form("the secret decoded from base64url", [](text t) -> made { return from_base64url(t); });
    add_form("a line feed behind the secret's text", [](text t) -> made { return std::string(t) + '\n'; });
    add_form("a carriage return and a line feed behind the secret's text",
             [](text t) -> made { return std::string(t) + "\r\n"; });
    add_form("a blank behind the secret's text", [](text t) -> made { return std::string(t) + ' '; });
    add_form("the secret's text in quotes", [](text t) -> made { return '"' + std::string(t) + '"'; });
    add_form("the secret's text without the quotes around it", [](text t) -> made {
      if (t.size() < 3 || t.front() != t.back() || (t.front() != '"' && t.front() != '\'')) return std::nullopt;
      return std::string(t.substr(1, t.size() - 2));
    });
    add_form("the secret's text in small letters", [](text t) -> made {
      std::string out(t);
      std::transform(out.begin(), out.end(), out.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      return out;
    });
  }

  void add_body(std::string says, std::string body) {
    if (body == asked_.message.body) return;
    add(cause::body_changed, subject::body, std::move(says), [kept = std::make_shared<std::string>(std::move(body))](trial& t) {
      t.body = *kept;
      return true;
    });
  }

  void line_ends() {
    constexpr std::string_view mark = "\xef\xbb\xbf";
    const std::string_view body = asked_.message.body;
    if (body.size() > bytes_max_) return;
    const std::string text(body);
    if (body.ends_with('\n')) add_body("the line feed at the end of the body removed", text.substr(0, text.size() - 1));
    if (body.ends_with("\r\n")) add_body("the line end (CR LF) of the body removed", text.substr(0, text.size() - 2));
    add_body("the blanks and line ends at the end of the body removed", std::string(without_blanks_at_end(body)));
    add_body("a line feed added to the body", text + '\n');
    add_body("a line end (CR LF) added to the body", text + "\r\n");
    if (body.find("\r\n") != std::string_view::npos)
      add_body("line ends in the body written as LF", replaced(body, "\r\n", "\n"));
    if (body.find('\n') != std::string_view::npos)
      add_body("line ends in the body written as CR LF", replaced(replaced(body, "\r\n", "\n"), "\n", "\r\n"));
    if (body.starts_with(mark)) add_body("the byte order mark before the body removed", text.substr(mark.size()));
    add_body("a byte order mark before the body", std::string(mark) + text);
  }

  void json() {
    if (asked_.message.body.size() > bytes_max_) return;
    auto spellings = json_spellings(asked_.message.body);
    for (auto& one : spellings) add_body("its JSON " + std::string(one.how), one.text);
    for (auto& one : spellings) add_body("its JSON " + std::string(one.how) + ", with a line feed at its end", one.text + '\n');
  }

  void wrappings() {
    const std::string_view body = asked_.message.body;
    if (body.size() > bytes_max_) return;
    if (auto plain = from_base64(body); plain && !plain->empty()) add_body("the body decoded from base64", std::move(*plain));
    if (auto once = encoded_once(body); once && *once != body)
      add_body("the body's characters encoded as UTF-8 once instead of twice", std::move(*once));
    if (body.find("\\/") != std::string_view::npos) add_body("slashes in the body not escaped", replaced(body, "\\/", "/"));
    if (body.find('+') != std::string_view::npos) add_body("blanks in the form written as %20", replaced(body, "+", "%20"));
    if (body.find("%20") != std::string_view::npos) add_body("blanks in the form written as +", replaced(body, "%20", "+"));
    add_body("an empty body", "");
  }

  void signature_forms() {
    constexpr std::pair<signature_encoding, std::string_view> encodings[] = {{signature_encoding::hex, "hexadecimal"},
                                                                             {signature_encoding::base64, "base64"},
                                                                             {signature_encoding::base64url, "base64url"}};
    for (const auto& [encoding, word] : encodings) {
      if (encoding == asked_.how.signature.encoding) continue;
      add(cause::signature_form, subject::signature, "the signature read as " + std::string(word), [e = encoding](trial& t) {
        t.how.signature.encoding = e;
        return t.how.kind != scheme_kind::token;
      });
    }
    for (const std::string_view prefix : {"", "sha256=", "sha1=", "sha512=", "v0=", "v1=", "hmac-sha256 ", "Bearer "}) {
      if (prefix == asked_.how.signature.prefix) continue;
      const std::string says =
          prefix.empty() ? "no prefix before the signature" : "the prefix \"" + std::string(prefix) + "\" before the signature";
      add(cause::signature_form, subject::signature, says, [p = std::string(prefix)](trial& t) {
        t.how.signature.prefix = p;
        return true;
      });
    }
  }

  void renamed_headers() {
    if (asked_.how.signature.from != place::header) return;
    std::vector<std::string> seen = asked_.how.signature.names;
    for (const auto& [name, value] : asked_.message.headers) {
      const std::string small = lower(name);
      // Shorter than any hash: a date, a length, a name.
      if (value.size() < 20 || name.size() > 100 || seen.size() > 40 || std::find(seen.begin(), seen.end(), small) != seen.end())
        continue;
      seen.push_back(small);
      add(cause::header_renamed, subject::scheme, "the signature in the header " + small, [small](trial& t) {
        t.how.signature.names = {small};
        t.how.signature.numbered.clear();
        return true;
      });
    }
  }

  static bool has_secrets(const other_sender& one) {
    return one.how != nullptr && one.keys != nullptr && one.how->kind != scheme_kind::none;
  }

  void secrets_of_others() {
    for (const other_sender& one : asked_.others) {
      if (!has_secrets(one)) continue;
      add(cause::other_provider, subject::secret, "a secret of the provider " + std::string(one.name),
          [keys = one.keys](trial& t) {
            t.keys = *keys;
            t.rekey();
            return true;
          });
    }
  }

  void schemes_of_others() {
    for (const other_sender& one : asked_.others) {
      if (!has_secrets(one)) continue;
      add(cause::other_provider, subject::scheme, "scheme and secrets of the provider " + std::string(one.name),
          [how = one.how, keys = one.keys](trial& t) {
            t.how = *how;
            t.keys = *keys;
            if (t.how.timestamp) t.how.timestamp->tolerance.reset();
            return true;
          });
    }
  }

  void add_url(std::string says, std::string url) {
    if (url == asked_.message.url) return;
    add(cause::url_differs, subject::url, std::move(says), [url = std::move(url)](trial& t) {
      t.url = url;
      return true;
    });
  }

  std::string header(std::string_view wanted) const {
    for (const auto& [name, value] : asked_.message.headers) {
      const bool same = name.size() == wanted.size() && std::equal(name.begin(), name.end(), wanted.begin(), [](char a, char b) {
                          return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
                        });
      if (same && value.size() < 256) return value;
    }
    return {};
  }

  // Scheme, authority, path and query of the configured URL, written otherwise.
  void urls() {
    const std::string_view url = asked_.message.url;
    const std::size_t colon = url.find("://");
    if (url.empty() || colon == std::string_view::npos || url.size() > 8192) return;
    const std::string scheme(url.substr(0, colon));
    const std::string_view rest = url.substr(colon + 3);
    const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
    const std::string authority(rest.substr(0, slash));
    const std::size_t question = std::min(rest.find('?'), rest.size());
    const std::string path(rest.substr(slash, question - slash)), query(rest.substr(question));
    const std::string other = scheme == "https" ? "http" : "https";
    const std::string host =
        authority.substr(0, authority.find(':', authority.rfind(']') == std::string::npos ? 0 : authority.rfind(']')));
    const std::string port = scheme == "https" ? ":443" : ":80";
    add_url("the URL with " + other + "://", other + "://" + authority + path + query);
    add_url("the URL without its port", scheme + "://" + host + path + query);
    add_url("the URL with the port " + port.substr(1), scheme + "://" + host + port + path + query);
    add_url("the URL with a slash at the end of its path", scheme + "://" + authority + path + "/" + query);
    if (path.size() > 1 && path.ends_with('/'))
      add_url("the URL without the slash at the end of its path",
              scheme + "://" + authority + path.substr(0, path.size() - 1) + query);
    add_url("the URL without its query", scheme + "://" + authority + path);
    for (const auto name : {"host", "x-forwarded-host"}) {
      const std::string said = header(name);
      if (said.empty()) continue;
      for (const auto& s : {scheme, other})
        add_url("the URL with the host of the header " + std::string(name) + " and " + s + "://",
                s + "://" + said + path + query);
    }
  }

  void other_hashes() {
    constexpr std::pair<hash_name, std::string_view> hashes[] = {{hash_name::sha256, "SHA-256"},
                                                                 {hash_name::sha1, "SHA-1"},
                                                                 {hash_name::sha512, "SHA-512"},
                                                                 {hash_name::sha384, "SHA-384"}};
    if (asked_.how.kind != scheme_kind::hmac && asked_.how.kind != scheme_kind::hash) return;
    for (const auto& [hash, word] : hashes) {
      if (hash == asked_.how.hash) continue;
      add(cause::other_scheme, subject::scheme, "the hash " + std::string(word), [h = hash](trial& t) {
        t.how.hash = h;
        return true;
      });
    }
    const auto add_content = [&](std::string says, std::vector<content_part> content) {
      add(cause::other_scheme, subject::scheme, std::move(says), [c = std::move(content)](trial& t) {
        t.how.content = c;
        return t.how.kind == scheme_kind::hmac;
      });
    };
    content_part body, time, dot;
    body.what = content_part::source::body;
    time.what = content_part::source::timestamp;
    dot.names = {"."};
    add_content("the body alone as what is signed", {body});
    if (asked_.how.timestamp) {
      add_content("{timestamp}.{body} as what is signed", {time, dot, body});
      add_content("{timestamp}{body} as what is signed", {time, body});
    }
  }

  void other_presets() {
    for (const auto& [name, how] : presets()) {
      if (name == asked_.how.name) continue;
      add(cause::other_scheme, subject::scheme, "the preset " + name, [preset = &how](trial& t) {
        t.how = *preset;
        if (t.how.timestamp) t.how.timestamp->tolerance.reset();
        t.rekey();
        return true;
      });
    }
  }

  const question& asked_;
  std::size_t bytes_max_;
  bool common_ = true;
  std::vector<change> out_;
};

}  // namespace

trial::trial(const question& asked)
    : how(asked.how),
      url(asked.message.url),
      query(asked.message.query),
      body(asked.message.body),
      keys(asked.keys),
      as_sent(&asked.message),
      fetched(asked.fetched) {}

result<std::string> trial::run(sys_micros now) const {
  return verify(how, {as_sent->method, url, query, as_sent->headers, body}, keys, now, fetched);
}

void trial::rekey() {
  for (auto& one : keys.secrets) {
    one.key = secret();
    one.ready.reset();
    // One that cannot be a key of this scheme keeps an empty one, which matches nothing.
    if (!prepare(how, one)) one.key = secret();
  }
}

std::vector<change> changes_for(const question& asked, std::size_t bytes_max) { return maker(asked, bytes_max).make(); }

}  // namespace recibo::verify
