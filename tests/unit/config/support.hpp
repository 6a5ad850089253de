// What the tests of the configuration share: a made-up environment, and problems as one line of text each.
#pragma once

#include "recibo/config/load.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::config::testing {

inline environment env_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    if (it == values.end()) return std::nullopt;
    return it->second;
  };
}

inline std::vector<std::string> lines_of(const std::vector<diagnostic>& list) {
  std::vector<std::string> out;
  for (const auto& d : list) out.push_back(std::to_string(d.line) + ":" + std::to_string(d.column) + ": " + d.message);
  return out;
}

inline loaded load(std::string_view text, std::map<std::string, std::string> env = {}) {
  return load_text("test.yaml", text, RECIBO_TEST_DATA "/config", env_of(std::move(env)));
}

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The environment of config/recibo.yaml, as `./dev up` makes it.
inline std::map<std::string, std::string> example_env() {
  return {{"RECIBO_DATABASE_URL", "postgresql://canary-user:canary-password@127.0.0.1/recibo"},
          {"ACME_SECRET", "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5IQ=="},
          {"STRIPE_SECRET", "whsec_canary-stripe"},
          {"GITHUB_SECRET", "canary-github"},
          {"LEGACY_SECRET", "canary-legacy"},
          {"LEDGER_SECRET", "whsec_Y2FuYXJ5LWxlZGdlci1jYW5hcnktbGVkZ2VyIQ=="},
          {"RECIBO_OPS_TOKEN_SHA256", std::string(63, 'a') + "1"},
          {"RECIBO_CHECKOUT_TOKEN_SHA256", std::string(63, 'a') + "2"}};
}

}  // namespace recibo::config::testing
