// tls of a listener: the files that it names, read and checked as a whole.
#include "sections.hpp"

#include "recibo/core/file.hpp"

#include <system_error>

namespace recibo::config {
namespace {

constexpr std::size_t pem_bytes_max = 256 << 10;

// What is behind a key that names a file of PEM; nullopt, with the complaint made, when it cannot be read.
std::optional<std::string> read_pem(reading& r, const field& f, std::string& path) {
  if (!read_text(r, f, path, 4096)) return std::nullopt;
  const std::string shown = std::string(f.name) + ": " + (f.value->expanded ? "this file" : "the file " + in_quotes(path));
  file_reading read = read_file(r.folder() / path, pem_bytes_max);
  if (!read) {
    r.error(f.at, shown + ' ' + to_string(read.why, pem_bytes_max));
    return std::nullopt;
  }
  r.also_read.add("file").add(path).add(binary(sha256(read.bytes)));
  return std::move(read.bytes);
}

void judge_access(reading& r, const field& f, const std::string& path) {
  std::error_code bad;
  const auto status = std::filesystem::status(r.folder() / path, bad);
  if (!bad && (status.permissions() & std::filesystem::perms::others_read) != std::filesystem::perms::none)
    r.warn(f.at, "key: everybody on this machine may read this file");
}

}  // namespace

void read_tls_files(reading& r, const field& f, std::optional<tls>& out) {
  section s(r, f);
  const field certificate = s.require("certificate", "PEM of the listener's certificate, then of its issuers"),
              key = s.require("key", "PEM of the certificate's private key"), client_ca = s.get("client_ca");
  tls made;
  std::string key_path;
  auto certificate_pem = certificate ? read_pem(r, certificate, made.certificate) : std::nullopt;
  auto key_pem = key ? read_pem(r, key, key_path) : std::nullopt;
  auto client_pem = client_ca ? read_pem(r, client_ca, made.client_ca) : std::nullopt;
  if (key_pem) judge_access(r, key, key_path);
  if (!certificate_pem || !key_pem || (client_ca && !client_pem)) return;
  if (client_ca && client_pem->empty()) {
    // Empty text means that nobody is asked, and this one wanted to ask.
    r.error(client_ca.at, "client_ca: this file is empty");
    return;
  }
  tls_pem pem;
  pem.certificate = std::move(*certificate_pem);
  pem.key = secret(std::move(*key_pem));
  if (client_pem) pem.client_ca = std::move(*client_pem);
  tls_reading checked = read_tls(pem, r.now());
  const auto place = [&](const tls_fault& fault) -> const field& {
    switch (fault.where) {
      case tls_fault::part::certificate: return certificate;
      case tls_fault::part::key: return key;
      case tls_fault::part::client_ca: return client_ca;
    }
    return certificate;
  };
  for (const tls_fault& fault : checked.problems) r.error(place(fault).at, std::string(place(fault).name) + ": " + fault.why);
  for (const tls_fault& fault : checked.warnings) r.warn(place(fault).at, std::string(place(fault).name) + ": " + fault.why);
  if (!checked.context) return;
  made.context = std::move(checked.context);
  out = std::move(made);
}

}  // namespace recibo::config
