// A chunked body, decoded strictly (RFC 9112 section 7.1; K10, K21): every line ends in CR LF, sizes are hexadecimal digits and
// nothing else, extensions are read over and bounded, trailers are checked and dropped. Each rule is applied at the first byte
// that breaks it, so that a sender is not waited for who has already gone wrong.
// Pure: bytes may come in any pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::http {

class chunk_reader {
 public:
  // What the front of the bytes was.
  struct piece {
    std::size_t taken = 0;         // of the bytes that were given
    std::string_view data;         // of the body, within what was taken
    bool new_size = false;         // the size of a chunk became known: left() says it
    std::string_view broken = {};  // the rule that is broken; nothing may be read after it
  };

  // Largest trailer block, in bytes.
  explicit chunk_reader(std::size_t trailers_most) : trailers_most_(trailers_most) {}

  // Takes at least one byte unless it is done or broken; stops behind a size, so that it can be judged, and behind the end.
  piece take(std::string_view bytes);
  bool done() const noexcept { return at_ == place::end; }
  // Of the present chunk's data.
  std::uint64_t left() const noexcept { return left_; }

 private:
  enum class place {
    size,      // the line of a chunk's size
    data,      // its data
    after_cr,  // CR behind the data
    after_lf,  // LF behind that
    trailers,  // lines behind the last chunk
    end,
  };

  // One character of a line: false when the line is not complete with it.
  bool put(char c, std::string_view& broken);
  std::string_view end_size();
  std::string_view end_trailer();

  const std::size_t trailers_most_;
  place at_ = place::size;
  std::uint64_t left_ = 0;
  std::string line_;  // without its end
  bool cr_ = false;
  std::size_t extensions_ = 0, trailers_ = 0;  // bytes so far
};

}  // namespace recibo::http
