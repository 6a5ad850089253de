#include "chunks.hpp"

#include "head_rules.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::http {
namespace {

// A chunk's line, and the extensions of a whole body: nobody needs them, and each costs time.
constexpr std::size_t size_line_most = 1024, extensions_most = 16 << 10;

bool is_hex(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void skip_blanks(std::string_view& text) noexcept { text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size())); }

bool skip_token(std::string_view& text) noexcept {
  std::size_t n = 0;
  while (n < text.size() && is_token_char(text[n])) ++n;
  text.remove_prefix(n);
  return n > 0;
}

bool skip_quoted(std::string_view& text) noexcept {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

// *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
bool are_extensions(std::string_view text) noexcept {
  while (!text.empty()) {
    skip_blanks(text);
    if (!text.starts_with(';')) return false;
    text.remove_prefix(1);
    skip_blanks(text);
    if (!skip_token(text)) return false;
    std::string_view rest = text;
    skip_blanks(rest);
    if (!rest.starts_with('=')) continue;
    rest.remove_prefix(1);
    skip_blanks(rest);
    if (!(rest.starts_with('"') ? skip_quoted(rest) : skip_token(rest))) return false;
    text = rest;
  }
  return true;
}

}  // namespace

chunk_reader::piece chunk_reader::take(std::string_view bytes) {
  piece out;
  while (out.taken < bytes.size() && at_ != place::end && out.broken.empty()) {
    const char c = bytes[out.taken];
    switch (at_) {
      case place::size:
        ++out.taken;
        if (line_.empty() && !cr_ && !is_hex(c)) {
          out.broken = "A chunk does not begin with its size.";
        } else if (put(c, out.broken)) {
          out.broken = end_size();
          out.new_size = out.broken.empty();
          return out;
        } else if (line_.size() > size_line_most) {
          out.broken = "The line of a chunk's size is too long.";
        }
        break;
      case place::data: {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - out.taken));
        out.data = bytes.substr(out.taken, count);
        out.taken += count;
        left_ -= count;
        if (left_ == 0) at_ = place::after_cr;
        return out;
      }
      case place::after_cr:
        ++out.taken;
        if (c != '\r') out.broken = "A chunk is longer than its size, or does not end in CR LF.";
        at_ = place::after_lf;
        break;
      case place::after_lf:
        ++out.taken;
        if (c != '\n') out.broken = "A chunk does not end in CR LF.";
        at_ = place::size;
        break;
      case place::trailers:
        ++out.taken;
        if (++trailers_ > trailers_most_) {
          out.broken = "The trailers are too long.";
        } else if (line_.empty() && (c == ' ' || c == '\t')) {
          out.broken = "A trailer is folded or begins with a blank.";
        } else if (put(c, out.broken)) {
          out.broken = end_trailer();
        }
        break;
      case place::end: break;
    }
  }
  return out;
}

bool chunk_reader::put(char c, std::string_view& broken) {
  if (cr_) {
    cr_ = false;
    if (c == '\n') return true;
    broken = "A line of the chunked body ends in CR without LF.";
  } else if (c == '\r') {
    cr_ = true;
  } else if (c == '\n') {
    broken = "A line of the chunked body ends in LF without CR.";
  } else if (is_control(c) && c != '\t') {
    broken = "A line of the chunked body holds a control character.";
  } else {
    line_ += c;
  }
  return false;
}

std::string_view chunk_reader::end_size() {
  const char* const end = line_.data() + line_.size();
  const auto [rest, failed] = std::from_chars(line_.data(), end, left_, 16);
  if (failed != std::errc()) return "A chunk's size is no number, or too large.";
  const std::string_view extensions(rest, static_cast<std::size_t>(end - rest));
  if (!are_extensions(extensions)) return "What follows a chunk's size is no chunk extension.";
  extensions_ += extensions.size();
  if (extensions_ > extensions_most) return "The chunk extensions are too long.";
  line_.clear();
  at_ = left_ == 0 ? place::trailers : place::data;
  return {};
}

std::string_view chunk_reader::end_trailer() {
  if (line_.empty()) {
    at_ = place::end;
    return {};
  }
  std::string_view rest = line_;
  const auto name = rest.substr(0, rest.find(':'));
  if (name.size() == rest.size() || name.empty() || !std::all_of(name.begin(), name.end(), is_token_char))
    return "A trailer is no header.";
  if (same_text(name, "content-length") || same_text(name, "transfer-encoding")) return "A trailer speaks of the framing.";
  line_.clear();
  return {};
}

}  // namespace recibo::http
