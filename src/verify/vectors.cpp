#include "recibo/verify/vectors.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/foreign_key.hpp"
#include "recibo/verify/verifier.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>

namespace recibo::verify {
namespace {

using nlohmann::json;

// A vector as the verifier takes it. Reads throw json::exception, which run_vectors() catches.
class vector_run {
 public:
  explicit vector_run(const json& v) : vector_(v) {}

  std::string run() {
    const auto preset = presets().find(vector_.at("preset").get<std::string>());
    if (preset == presets().end())
      return "the preset " + vector_.at("preset").get<std::string>() + " is not served by this build";
    how_ = preset->second;
    if (how_.timestamp && vector_.contains("tolerance_s")) {
      const json& tolerance = vector_["tolerance_s"];
      how_.timestamp->tolerance.reset();
      if (!tolerance.is_null()) how_.timestamp->tolerance = std::chrono::seconds(tolerance.get<std::int64_t>());
    }
    if (const auto why = read_http_options()) return *why;
    for (const json& text : vector_.at("secrets")) {
      named_secret one;
      one.name = secret_name(keys_.secrets.size());
      one.text = secret(text.get<std::string>());
      if (!prepare(how_, one)) return "invalid: a secret of it cannot be used";
      keys_.secrets.push_back(std::move(one));
    }
    std::vector<std::pair<std::string, std::string>> headers;
    for (const json& h : vector_.at("headers")) headers.emplace_back(h.at(0).get<std::string>(), h.at(1).get<std::string>());
    const auto body = from_base64(vector_.at("body_base64").get<std::string>());
    if (!body) return "its body is not base64";
    const auto method = vector_.at("method").get<std::string>(), url = vector_.at("url").get<std::string>();
    const std::size_t question = url.find('?');
    const std::string query = question == std::string::npos ? "" : url.substr(question + 1);
    const sys_micros at{std::chrono::seconds(vector_.at("now_unix").get<std::int64_t>())};
    return judge({method, url, query, headers, *body}, at);
  }

 private:
  static std::string secret_name(std::size_t i) { return "secret-" + std::to_string(i + 1); }

  std::string judge(const signed_message& message, sys_micros at) {
    const auto needed = which_key(how_, message, keys_, at);
    if (!needed) return refused(needed.error());
    std::optional<fetched_key> fetched;
    if (*needed) {
      const json certificates = vector_.value("options", json::object()).value("certs", json::object());
      const auto found = certificates.find((*needed)->url);
      if (found == certificates.end()) return "invalid: the key that it names is not in the vector";
      certificate_rules recorded;
      recorded.strict = false;
      auto read = read_fetched_key(how_, **needed, found->get<std::string>(), recorded, at);
      if (!read) return refused(read.error());
      fetched = std::move(*read);
    }
    const auto verdict = verify(how_, message, keys_, at, fetched ? &*fetched : nullptr);
    return verdict ? "valid" : refused(verdict.error());
  }

  static std::string refused(const error& why) { return "invalid: " + std::string(code_word(why.code)); }

  // `keys` and `required_components` of RFC 9421. What a vector does not require is not required, but for something.
  std::optional<std::string> read_http_options() {
    if (how_.kind != scheme_kind::http_signatures) return std::nullopt;
    const json options = vector_.value("options", json::object());
    const json required = options.value("required_components", json());
    how_.http.required.emplace();
    how_.http.nothing_suffices = required.is_array() && required.empty();
    if (required.is_array()) how_.http.required = required.get<std::vector<std::string>>();
    // Named, because a temporary would be gone before the loop begins.
    const json keys = options.value("keys", json::object());
    for (const auto& [id, key] : keys.items()) {
      http_signature_key one;
      one.id = id;
      one.secret = secret_name(key.value("key_index", std::size_t{0}));
      const auto algorithm = http_algorithm_of(key.at("alg").get<std::string>());
      if (!algorithm) return "its algorithm is not served by this build";
      one.algorithm = *algorithm;
      const auto encoding = key.value("encoding", std::string("pem"));
      one.encoding = encoding == "base64" ? text_encoding::base64
                     : encoding == "hex"  ? text_encoding::hex
                     : encoding == "utf8" ? text_encoding::utf8
                                          : text_encoding::pem;
      how_.http.keys.push_back(std::move(one));
    }
    return std::nullopt;
  }

  const json& vector_;
  scheme how_;
  keyring keys_;
};

}  // namespace

result<std::vector<vector_outcome>> run_vectors(std::string_view text) {
  const json all = json::parse(text, nullptr, false);
  if (!all.is_array()) return error(permanent::malformed_json, "no JSON array of vectors");
  std::vector<vector_outcome> out;
  for (const json& v : all) {
    try {
      out.push_back({v.at("name").get<std::string>(), v.at("expect").get<std::string>(), vector_run(v).run()});
    } catch (const json::exception&) {
      return error(permanent::malformed_json, "element " + std::to_string(out.size()) + " is no vector");
    }
  }
  return out;
}

}  // namespace recibo::verify
