#include "signed_pieces.hpp"

#include "recibo/verify/signed_digest.hpp"

#include "collect.hpp"
#include "content.hpp"
#include "reading.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

std::string_view time_in(const scheme& how, reading& from) {
  if (!how.timestamp) return {};
  switch (how.timestamp->from) {
    case place::header: return from.header(how.timestamp->names).value;
    case place::element: {
      const auto signatures = collect(how, from);
      return signatures ? signatures->time.value : std::string_view();
    }
    case place::json: return from.json(how.timestamp->names).value;
    case place::form: return from.form(how.timestamp->names).value;
    case place::claim: break;
  }
  return {};
}

// Of the item that is being looked at.
std::optional<std::vector<std::string>> pieces_of(const scheme& how, reading& from, std::string_view secret) {
  auto content = signed_content::gather(how, from, time_in(how, from));
  if (!content) return std::nullopt;
  const auto& pieces = content->with(secret);
  return std::vector<std::string>(pieces.begin(), pieces.end());
}

}  // namespace

std::string time_text(const scheme& how, const signed_message& message) {
  reading from(how, message);
  return std::string(time_in(how, from));
}

std::optional<std::vector<std::string>> signed_pieces(const scheme& how, const signed_message& message, std::string_view secret) {
  if (how.content.empty()) return std::nullopt;
  reading from(how, message);
  return pieces_of(how, from, secret);
}

sha256_digest signed_digest(const scheme& how, const signed_message& message) {
  if (how.content.empty()) return sha256(message.body);
  reading from(how, message);
  canonical bytes;
  const std::size_t items = std::min(from.items(), items_max);
  for (std::size_t i = 0; i < items; ++i) {
    from.at_item(i);
    const auto pieces = pieces_of(how, from, {});
    if (!pieces) return sha256(message.body);
    for (std::string_view piece : *pieces) {
      // What the verifier takes with and without a text at its end is one content, whichever way it came.
      for (const auto& part : how.content)
        if (!part.or_with.empty() && piece.ends_with(part.or_with)) piece.remove_suffix(part.or_with.size());
      bytes.add(piece);
    }
  }
  return sha256(bytes.bytes());
}

}  // namespace recibo::verify
