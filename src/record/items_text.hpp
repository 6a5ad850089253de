// What callbacks say of items, and what was decided about it, as JSON text in columns of ours. Pure.
#pragma once

#include "recibo/record/work.hpp"
#include "recibo/transition/disposition.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::record {

// parked.items: what was said, so that it can be decided once the operation is there. Empty for none.
std::string write_item_news(const std::vector<item_news>& items);
// Its inverse; what is no such text is none.
std::vector<item_news> read_item_news(std::string_view text);

// Names what a callback with this content says of one item: the `digest` of the review that it opens.
sha256_digest item_digest(std::string_view item_id, const sha256_digest& content);

// What was decided about one item.
struct item_result {
  std::string item_id;  // empty: it could not be read
  transition::disposition outcome = transition::disposition::ignored;
  std::string state;      // after it; empty: there is no such item
  std::string attention;  // why somebody has to look at it: a disposition or the kind of a review; empty: nobody has to
  std::string detail;     // the same in words, without payload
  std::size_t index = 0;  // of its first element, from 0
};

// The list in the answer, and deliveries.items: [{"item_id", "disposition", "state", "detail"}], what is not known left out;
// an element whose item cannot be read is named by its index.
std::string write_item_results(const std::vector<item_result>& results);

}  // namespace recibo::record
