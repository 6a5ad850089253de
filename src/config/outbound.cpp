// outbound: what holds for every request that this service makes.
#include "sections.hpp"

#include "recibo/verify/public_key.hpp"

#include <fstream>
#include <system_error>

namespace recibo::config {
namespace {

constexpr std::size_t authorities_bytes_max = 4 << 20;

// The file's text, relative to the configuration; its content is part of the settings.
std::optional<std::string> read_authorities(reading& r, const field& f) {
  std::string path;
  if (!read_text(r, f, path, 4096)) return std::nullopt;
  const std::string shown = f.value->expanded ? "this file" : "the file " + in_quotes(path);
  const std::filesystem::path full = r.folder() / path;
  std::error_code bad;
  if (!std::filesystem::is_regular_file(full, bad)) {
    r.error(f.at, "ca: " + shown + " is no file that can be read");
    return std::nullopt;
  }
  std::ifstream in(full, std::ios::binary);
  std::string bytes(authorities_bytes_max + 1, '\0');
  if (in) in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in && !in.eof()) {
    r.error(f.at, "ca: " + shown + " cannot be read");
    return std::nullopt;
  }
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (bytes.size() > authorities_bytes_max || !verify::trust_store::from_pem(bytes)) {
    r.error(f.at, "ca: " + shown + " does not hold certificates in PEM");
    return std::nullopt;
  }
  r.also_read.add("ca").add(path).add(binary(sha256(bytes)));
  return bytes;
}

}  // namespace

void read_outbound(reading& r, const field& f, settings& out) {
  section s(r, f);
  if (const field ca = s.get("ca")) {
    if (auto text = read_authorities(r, ca)) out.outbound.ca = std::move(*text);
  }
}

}  // namespace recibo::config
