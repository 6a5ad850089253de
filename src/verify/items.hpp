// for_each: a scheme whose check runs for every element of an array in the body (Adyen).
#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace recibo::verify {

// "/items/*/inner" → "/items" and "/inner"; nullopt: not exactly one "*" as a whole token.
std::optional<std::pair<std::string_view, std::string_view>> split_at_star(std::string_view pointer) noexcept;

// How many elements the array at `pointer` has, by way of objects only. nullopt: the document is not strict JSON, or there
// is no array. One pass, nothing kept; over `most` elements nothing more is read, and more than `most` is the answer.
std::optional<std::size_t> count_elements(std::string_view document, std::string_view pointer, std::size_t most);

}  // namespace recibo::verify
