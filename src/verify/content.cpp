#include "content.hpp"

#include "asymmetric.hpp"
#include "url_forms.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

// The fields of the form in the body; nullopt: there is a body that is no form, or one with too many fields.
std::optional<const fields*> posted_form(reading& from) {
  if (from.message().body.empty()) return nullptr;
  if (!from.is_form()) return std::nullopt;
  const fields* const all = from.form_fields();
  if (all == nullptr) return std::nullopt;
  return all;
}

// Parts that are made here; nullopt: their source is absent.
std::optional<std::string> made_text(const scheme& how, const content_part& part, reading& from) {
  const signed_message& message = from.message();
  switch (part.what) {
    case content_part::source::url_hubspot:
      if (message.url.empty()) return std::nullopt;
      return hubspot_url(message.url);
    case content_part::source::url_plivo: {
      const auto form = posted_form(from);
      if (message.url.empty() || !form) return std::nullopt;
      return plivo_url(message.url, *form);
    }
    case content_part::source::form_sorted: {
      const auto form = posted_form(from);
      // A body of another kind is covered by its hash in the URL, or it is not covered at all.
      if (!form && (from.is_form() || !how.body_hash)) return std::nullopt;
      return form && *form != nullptr ? sorted_names_and_values(**form) : std::string();
    }
    case content_part::source::body_crc32: return crc32_decimal(message.body);
    case content_part::source::literal:
    case content_part::source::body:
    case content_part::source::timestamp:
    case content_part::source::method:
    case content_part::source::secret:
    case content_part::source::url:
    case content_part::source::header:
    case content_part::source::query:
    case content_part::source::json:
    case content_part::source::form: break;
  }
  return std::nullopt;
}

}  // namespace

void signed_content::add_spellings(const scheme& how, std::string_view url) {
  spellings_.push_back(url);
  for (const url_variant one : how.url_variants) {
    std::string text = spelled(url, one);
    if (std::find(spellings_.begin(), spellings_.end(), text) == spellings_.end()) spellings_.push_back(keep(std::move(text)));
  }
  variants_ = spellings_.size();
}

result<signed_content> signed_content::gather(const scheme& how, reading& from, std::string_view time) {
  using source = content_part::source;
  signed_content out;
  out.pieces_.reserve(how.content.size() + 2);
  for (const content_part& part : how.content) {
    occurrence found{1, {}};
    const signed_message& message = from.message();
    switch (part.what) {
      case source::literal: found.value = part.names.front(); break;
      case source::body: found.value = message.body; break;
      case source::timestamp: found.value = time; break;
      case source::method: found.value = message.method; break;
      case source::secret: break;
      case source::url: found = {message.url.empty() ? 0 : 1, message.url}; break;
      case source::header: found = from.header(part.names); break;
      case source::query: found = from.query(part.names); break;
      case source::json: found = from.json(part.names); break;
      case source::form: found = from.form(part.names); break;
      case source::url_hubspot:
      case source::url_plivo:
      case source::form_sorted:
      case source::body_crc32: {
        auto text = made_text(how, part, from);
        found.times = text ? 1 : 0;
        if (text) found.value = out.keep(std::move(*text));
        break;
      }
    }
    if (found.times > 1) return error(permanent::signature_repeated, "a header or field that is signed stands more than once");
    if (found.times == 0) {
      // An empty string in its place would let a request without the field pass as one with an empty field.
      if (part.optional) continue;
      if (!part.fallback) return error(permanent::content_missing, "a header or field that is signed is absent");
      found.value = *part.fallback;
    }
    if (part.lower) found.value = out.keep(lower(found.value));
    if (!part.before.empty()) out.pieces_.push_back(part.before);
    if (part.what == source::secret) out.secrets_.push_back(out.pieces_.size());
    if (part.what == source::url && !how.url_variants.empty()) {
      if (out.urls_.empty()) out.add_spellings(how, message.url);
      out.urls_.push_back(out.pieces_.size());
    }
    out.pieces_.push_back(found.value);
    if (!part.or_with.empty()) {
      out.or_with_.emplace_back(out.pieces_.size(), part.or_with);
      out.pieces_.emplace_back();
      out.variants_ = 2;
    }
    if (!part.after.empty()) out.pieces_.push_back(part.after);
  }
  return out;
}

const std::vector<std::string_view>& signed_content::with(std::string_view key, std::size_t variant) {
  for (const std::size_t at : secrets_) pieces_[at] = key;
  for (const std::size_t at : urls_) pieces_[at] = spellings_[variant];
  for (const auto& [at, text] : or_with_) pieces_[at] = variant == 0 ? std::string_view() : text;
  return pieces_;
}

}  // namespace recibo::verify
