#include "explain.hpp"

#include "commands.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/core/ascii.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/file.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/verify/callback_token.hpp"
#include "recibo/verify/diagnose.hpp"

#include <algorithm>
#include <charconv>
#include <ostream>

namespace recibo::commands {
namespace {

using header_list = std::vector<std::pair<std::string, std::string>>;

struct request {
  std::string method = "POST", path, query, body;
  header_list headers;
  std::size_t beyond = 0;  // bytes that were captured behind the body: no part of the request
};

// What the service would never take is no request of its own; the largest body that can be configured, and a head.
constexpr std::size_t captured_max = 65 << 20;

// Four times what `limits.header` may be: no service takes such a head, whatever it is configured to.
constexpr std::size_t head_max = 256 << 10;

std::optional<std::string> read_captured(const std::string& path, context& ctx) {
  file_reading read = read_file(path, captured_max, true);
  if (read) return std::move(read.bytes);
  *ctx.err << "recibo verify: " << path << ' ' << to_string(read.why, captured_max) << '\n';
  return std::nullopt;
}

// Of a line: its end in CR LF too.
std::string_view trimmed(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return trim(line);
}

// "POST /path?query HTTP/1.1".
bool take_request_line(std::string_view line, request& out) {
  const std::size_t blank = line.find(' '), last = line.rfind(' ');
  if (blank == std::string_view::npos || last == blank) return false;
  out.method = line.substr(0, blank);
  const std::string_view target = line.substr(blank + 1, last - blank - 1);
  const std::size_t question = std::min(target.find('?'), target.size());
  out.path = target.substr(0, question);
  out.query = target.substr(std::min(question + 1, target.size()));
  return true;
}

bool take_header(std::string_view line, request& out) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  out.headers.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  return true;
}

// The head of a request as it was captured: lines end in LF or CR LF. What is behind the empty line stays in `text`; false:
// it is no head, or (with `whole`) the empty line is missing.
bool take_head(std::string_view& text, bool whole, request& out) {
  for (bool first = true; !text.empty() || whole; first = false) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos && whole) return false;
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() && !first) return true;
    const std::size_t blank = line.find(' ');
    // Before a colon a header has no blank; curl writes none either.
    const bool is_request_line = first && line.find("HTTP/") != std::string_view::npos && line.find(':') > blank;
    if (whole && first && !is_request_line) return false;
    if (is_request_line ? !take_request_line(line, out) : !take_header(line, out)) return false;
  }
  return !out.headers.empty();
}

// What the head says of the body's length; nullopt: nothing, or nothing that can be relied on.
std::optional<std::size_t> told_length(const header_list& headers) {
  std::optional<std::size_t> out;
  for (const auto& [name, value] : headers) {
    if (same_text(name, "transfer-encoding")) return std::nullopt;
    if (!same_text(name, "content-length")) continue;
    std::size_t said = 0;
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, said);
    if (read.ec != std::errc() || read.ptr != end || (out && *out != said)) return std::nullopt;
    out = said;
  }
  return out;
}

// The same where it differs from what was captured.
std::optional<std::size_t> other_length(const request& what) {
  const auto said = told_length(what.headers);
  return said && *said != what.body.size() ? said : std::nullopt;
}

std::optional<request> read_request(const captured_request& asked, context& ctx) {
  const bool in_one = !asked.file.empty();
  const std::string& named = in_one ? asked.file : asked.headers_file;
  const auto text = read_captured(named, ctx);
  if (!text) return std::nullopt;
  request out;
  std::string_view rest = *text;
  if (const std::size_t end = std::min(text->find("\n\n"), text->find("\n\r\n")); std::min(end, text->size()) > head_max) {
    *ctx.err << "recibo verify: " << named << ": the head is longer than 256 KiB, which no service takes\n";
    return std::nullopt;
  }
  if (!take_head(rest, in_one, out)) {
    *ctx.err << "recibo verify: " << named << (in_one ? " holds no HTTP request" : " holds no headers") << '\n';
    return std::nullopt;
  }
  if (in_one) {
    out.body = rest;
    // As a server reads it: an editor or a copy has often put a line end behind it.
    if (const auto said = told_length(out.headers); said && *said < out.body.size()) {
      out.beyond = out.body.size() - *said;
      out.body.resize(*said);
    }
  } else if (!asked.body_file.empty()) {
    auto body = read_captured(asked.body_file, ctx);
    if (!body) return std::nullopt;
    out.body = std::move(*body);
  }
  return out;
}

std::string validity(const verify::named_secret& one, sys_micros at) {
  if (one.from && at < *one.from) return "not valid before " + to_rfc3339(*one.from);
  if (one.until && *one.until <= at) return "not valid since " + to_rfc3339(*one.until);
  return "valid";
}

// What the path says of the operation, where each has a URL of its own. Never the token itself: this is shown and kept.
struct url_report {
  bool wanted = false, fine = true;
  std::string says;
};

url_report look_at_url(const config::settings& settings, const config::provider& p, const request& what, sys_micros at) {
  url_report out;
  if (!p.callback_url) return out;
  out.wanted = true;
  const std::size_t slash = what.path.rfind('/');
  const auto token = std::string_view(what.path).substr(slash == std::string::npos ? 0 : slash + 1);
  const auto read = verify::verify_callback_token(settings.callback_urls.keys, p.name, token, at);
  out.fine = read.has_value();
  if (what.path.empty())
    out.says = "not known: the request line is missing";
  else if (read)
    out.says = "of the operation " + read->request_id + ", made with the secret " + read->secret_name;
  else
    out.says = std::string(code_word(read.error().code)) + " (" + read.error().detail + ')';
  return out;
}

struct report {
  const config::provider& provider;
  const request& what;
  sys_micros at;
  const verify::findings& found;
  const verify::diagnosis& result;
  url_report url;
};

void print_places(const report& r, std::ostream& out) {
  for (const auto& one : r.found.signatures) {
    out << "signature:  in " << one.name << ": ";
    if (one.times == 0)
      out << "not there\n";
    else
      out << (one.times == 1 ? "there" : "there " + std::to_string(one.times) + " times") << ", " << one.length
          << " characters\n";
  }
  if (!r.provider.verify.timestamp) return;
  const auto& rule = *r.provider.verify.timestamp;
  std::string names;
  for (const auto& name : rule.names) names += (names.empty() ? "" : ", ") + name;
  out << "time stamp: in " << names << ": " << r.found.timestamp.value_or("not there");
  if (r.found.age) {
    const auto age = r.found.age->count();
    out << ", " << (age < 0 ? -age : age) << " s " << (age < 0 ? "ahead of " : "before ") << to_rfc3339(r.at);
  }
  out << (rule.tolerance ? ", tolerance " + std::to_string(rule.tolerance->count()) + " s" : std::string(", tolerance off"))
      << '\n';
}

void print(const report& r, std::ostream& out) {
  const auto& how = r.provider.verify;
  out << "scheme: " << how.name << '\n';
  if (r.url.wanted) out << "URL:        " << r.url.says << '\n';
  print_places(r, out);
  out << "body:       " << r.what.body.size() << " bytes, SHA-256 " << to_hex(binary(sha256(r.what.body))) << '\n';
  if (r.what.beyond > 0)
    out << "            " << r.what.beyond << (r.what.beyond == 1 ? " byte" : " bytes")
        << " behind it are beyond its Content-Length and were left out\n";
  if (const auto said = other_length(r.what))
    out << "            Content-Length says " << *said << " bytes: what was captured is not what was sent\n";
  if (r.found.content) out << "signed:     " << r.found.content_size << " bytes: " << *r.found.content << '\n';
  for (const auto& one : r.provider.keys.secrets) {
    const bool made = r.result.verdict && r.result.secret == one.name;
    out << "secret:     " << one.name << ": " << validity(one, r.at) << (made ? ", made this signature" : "") << '\n';
  }
  if (r.result.verdict && !r.url.fine) {
    out << "does not verify: the callback URL is not this provider's for any operation\n";
    return;
  }
  if (r.result.verdict) {
    out << "verifies" << (r.result.secret.empty() ? "" : ", by the secret " + r.result.secret) << '\n';
    return;
  }
  const auto& why = r.result.verdict.error();
  out << "does not verify: " << code_word(why.code);
  if (!why.detail.empty()) out << " (" << why.detail << ')';
  out << "\nmost likely: " << verify::to_string(r.result.why) << ". " << r.result.explanation << '\n';
}

void print_json(const report& r, std::ostream& to) {
  json_writer out;
  out.begin_object().text("provider", r.provider.name).text("scheme", r.provider.verify.name).time("at", r.at);
  out.key("signatures").begin_array();
  for (const auto& one : r.found.signatures) {
    out.begin_object().text("name", one.name).number("times", one.times);
    out.number("length", static_cast<std::int64_t>(one.length)).end_object();
  }
  out.end_array().key("timestamp");
  if (r.provider.verify.timestamp) {
    const auto& tolerance = r.provider.verify.timestamp->tolerance;
    out.begin_object().text("text", r.found.timestamp);
    out.number("age_s", r.found.age ? std::optional<std::int64_t>(r.found.age->count()) : std::nullopt);
    out.number("tolerance_s", tolerance ? std::optional<std::int64_t>(tolerance->count()) : std::nullopt).end_object();
  } else {
    out.null();
  }
  out.key("body").begin_object().number("bytes", static_cast<std::int64_t>(r.what.body.size()));
  out.number("beyond_content_length", static_cast<std::int64_t>(r.what.beyond));
  out.text("sha256", to_hex(binary(sha256(r.what.body)))).end_object().key("signed");
  if (r.found.content)
    out.begin_object()
        .number("bytes", static_cast<std::int64_t>(r.found.content_size))
        .text("shown", *r.found.content)
        .end_object();
  else
    out.null();
  out.key("secrets").begin_array();
  for (const auto& one : r.provider.keys.secrets)
    out.begin_object().text("name", one.name).text("validity", validity(one, r.at)).end_object();
  out.end_array();
  if (r.url.wanted) out.text("callback_url", r.url.says);
  out.flag("verifies", r.result.verdict.has_value() && r.url.fine);
  if (r.result.verdict)
    out.null("reason");
  else
    out.text("reason", code_word(r.result.verdict.error().code));
  out.text("cause", verify::to_string(r.result.why)).text_or_null("explanation", r.result.explanation);
  out.text_or_null("secret", r.result.secret).end_object();
  to << out.str() << '\n';
}

}  // namespace

int explain(const captured_request& asked, context& ctx) {
  const auto settings = load_settings(ctx);
  if (!settings) return ctx.exit_code;
  const auto provider = settings->providers.find(asked.provider);
  if (provider == settings->providers.end()) {
    *ctx.err << "recibo verify: no provider " << asked.provider << " in " << ctx.config << '\n';
    return exit_wrong;
  }
  const auto what = read_request(asked, ctx);
  if (!what) return exit_wrong;
  sys_micros at = now();
  if (!asked.at.empty()) {
    const auto said = parse_rfc3339(asked.at);
    if (!said) {
      *ctx.err << "recibo verify: --at wants an instant with its offset, such as 2026-10-01T10:00:00Z\n";
      return exit_wrong;
    }
    at = *said;
  }
  const config::provider& p = provider->second;
  const std::string known = p.callback_url ? settings->callback_urls.base + what->path : p.public_url;
  const std::string url = verify::called_url(asked.public_url.empty() ? known : asked.public_url, what->query);
  const verify::signed_message message{what->method, url, what->query, what->headers, what->body};
  std::vector<verify::other_sender> others;
  for (const auto& [name, one] : settings->providers)
    if (name != p.name) others.push_back({name, &one.verify, &one.keys});
  const auto found = verify::look_into(p.verify, message, at);
  const auto result = verify::diagnose({p.verify, message, p.keys, at, others, {}});
  const report all{p, *what, at, found, result, look_at_url(*settings, p, *what, at)};
  if (asked.json)
    print_json(all, *ctx.out);
  else
    print(all, *ctx.out);
  return result.verdict && all.url.fine ? exit_fine : exit_not_so;
}

}  // namespace recibo::commands
