// One vector of tests/data/vectors as a request that a test may change before it is judged.
#pragma once

#include "support.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/foreign_key.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

namespace recibo::verify::testing {

struct vector_request {
  scheme how;
  std::string method, url, body;
  headers sent;
  keyring keys;
  sys_micros now{};
  std::map<std::string, std::string> certificates;  // by URL
  std::optional<fetched_key> fetched;

  signed_message message() const {
    const auto question = url.find('?');
    return {method, url, question == std::string::npos ? std::string_view() : std::string_view(url).substr(question + 1), sent,
            body};
  }
  std::string& header(std::string_view name) {
    for (auto& [one, value] : sent) {
      if (one == name) return value;
    }
    return sent.emplace_back(name, "").second;
  }
  void drop(std::string_view name) {
    std::erase_if(sent, [&](const auto& h) { return h.first == name; });
  }
  std::string judge() const { return verdict(verify(how, message(), keys, now, fetched ? &*fetched : nullptr)); }
};

// For schemes other than RFC 9421, whose keys stand elsewhere in the vector.
inline vector_request load_vector(std::string_view name) {
  std::ifstream in(RECIBO_TEST_DATA "/vectors/signatures.json");
  const auto all = nlohmann::json::parse(in);
  for (const auto& v : all) {
    if (v["name"] != name) continue;
    vector_request out;
    out.how = presets().at(v["preset"].get<std::string>());
    out.method = v["method"].get<std::string>();
    out.url = v["url"].get<std::string>();
    out.body = from_base64(v["body_base64"].get<std::string>()).value();
    for (const auto& h : v["headers"]) out.sent.emplace_back(h[0].get<std::string>(), h[1].get<std::string>());
    out.keys = make_keys(out.how, v["secrets"].get<std::vector<std::string>>());
    out.now = at_unix(v["now_unix"].get<std::int64_t>());
    if (v.contains("options") && v["options"].contains("certs")) {
      out.certificates = v["options"]["certs"].get<std::map<std::string, std::string>>();
      const auto& [url, pem] = *out.certificates.begin();
      out.fetched = fetched_key{url, public_key_from_pem(pem).value(), std::nullopt};
    }
    return out;
  }
  ADD_FAILURE() << "there is no vector " << name;
  return {};
}

inline std::string base64url(std::string_view bytes) {
  std::string out = to_base64(bytes);
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (out.ends_with('=')) out.pop_back();
  return out;
}

}  // namespace recibo::verify::testing
