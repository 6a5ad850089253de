// answers of a provider: other statuses by disposition, and another body of a 2xx.
#include "answers_reader.hpp"

#include "recibo/transition/disposition.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

using transition::disposition;

enum class leeway {
  success_only,    // it is on record: anything but a 2xx would make the provider send it again
  final,           // a 2xx, or a 4xx that says "never again"
  final_or_later,  // nothing was kept, so that 503 is honest too
};

leeway of(disposition d) noexcept {
  switch (d) {
    case disposition::conflict:
    case disposition::unprocessable: return leeway::final;
    case disposition::unknown_operation: return leeway::final_or_later;
    case disposition::applied:
    case disposition::redundant:
    case disposition::partial:
    case disposition::duplicate:
    case disposition::stale:
    case disposition::parked:
    case disposition::review:
    case disposition::unmapped:
    case disposition::ignored:
    case disposition::hint: return leeway::success_only;
  }
  return leeway::success_only;
}

constexpr disposition all[] = {disposition::applied,
                               disposition::redundant,
                               disposition::partial,
                               disposition::duplicate,
                               disposition::stale,
                               disposition::parked,
                               disposition::review,
                               disposition::conflict,
                               disposition::unmapped,
                               disposition::unprocessable,
                               disposition::unknown_operation,
                               disposition::ignored,
                               disposition::hint};

bool fits(int status, leeway l) noexcept {
  const bool success = status >= 200 && status < 300;
  // 401, 408 and 429 mean something else to senders: other credentials, send again.
  const bool final_refusal = status >= 400 && status < 500 && status != 401 && status != 408 && status != 429;
  switch (l) {
    case leeway::success_only: return success;
    case leeway::final: return success || final_refusal;
    case leeway::final_or_later: return success || final_refusal || status == 503;
  }
  return false;
}

void read_status(reading& r, const field& f, disposition d, answers& out) {
  int status = 0;
  if (!read_int(r, f, status, 200, 599)) return;
  const leeway l = of(d);
  if (!fits(status, l)) {
    const std::string_view allowed = l == leeway::success_only ? "2xx, because the callback is on record then"
                                     : l == leeway::final      ? "2xx, or 4xx other than 401, 408 and 429"
                                                               : "2xx, 503, or 4xx other than 401, 408 and 429";
    r.error(f.at, std::string(f.name) + ": " + std::to_string(status) + " does not fit; it may be " + std::string(allowed));
    return;
  }
  if (status == 410 || status == 406)
    r.warn(f.at, std::string(f.name) + ": " + std::to_string(status) + " makes some senders disable the endpoint");
  out.status[std::string(f.name)] = status;
}

bool is_media_type(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size()) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/.+-;= \"_!#$&^").find(c) != std::string_view::npos;
  });
}

}  // namespace

void read_answers(reading& r, const field& f, answers& out) {
  section s(r, f);
  for (const disposition d : all) {
    if (const field status = s.get(transition::to_string(d))) read_status(r, status, d, out);
  }
  if (const field body = s.get("body")) {
    std::string text;
    if (read_text(r, body, text, 4096)) {
      out.body = text == "none" ? "" : text;
      if (!out.body->empty()) out.content_type = "text/plain; charset=utf-8";
    }
  }
  if (const field type = s.get("content_type")) {
    std::string text;
    if (read_text(r, type, text, 127)) {
      if (is_media_type(text)) {
        out.content_type = text;
      } else {
        r.error(type.at, "content_type: expected a media type such as text/plain; charset=utf-8");
      }
    }
  }
  for (const auto& [word, status] : out.status) {
    if ((status == 204 || status == 205) && out.body != "")
      r.error(s.key_at(word), word + ": " + std::to_string(status) + " has no body, so that `body: none` belongs beside it");
  }
}

}  // namespace recibo::config
