// `${NAME}` and `${NAME:-default}` within one scalar.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::config {

struct expansion {
  std::string text;
  // Whether anything came from the environment or from a default.
  bool replaced = false;
  struct problem {
    std::size_t nth;   // which `${` of the scalar, from 0
    std::string name;  // of the variable; empty when it could not be read
    std::string message;
  };
  std::vector<problem> problems;
  // Variables that were found, with their values.
  std::vector<std::pair<std::string, std::string>> used;
};

expansion expand(std::string_view text, const std::function<std::optional<std::string>(const std::string&)>& env);

}  // namespace recibo::config
