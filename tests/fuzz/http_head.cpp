// The reader of requests: however the bytes are cut into pieces, it reads the same request or refuses it the same way.
// Input: where to cut, then the bytes.
#include "fuzz.hpp"

#include "recibo/http/reader.hpp"

#include <string>

using namespace recibo;

namespace {

struct outcome {
  http::reader::state at;
  std::string refused;
  http::request request;
};

outcome read(std::string_view first, std::string_view second) {
  http::reader reader({512, 1024});
  std::string buffer;
  for (const std::string_view piece : {first, second}) {
    buffer += piece;
    if (reader.at() == http::reader::state::head) reader.read_head(buffer);
    if (reader.at() == http::reader::state::body) reader.read_body(buffer);
  }
  outcome out{reader.at(), {}, {}};
  if (out.at == http::reader::state::refused) {
    out.refused = reader.reason().code;
  } else if (out.at != http::reader::state::head) {
    out.request = reader.request();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const std::size_t cut = text.empty() ? 0 : data[0] % (text.size() + 1);
  const outcome whole = read(text, {}), pieces = read(text.substr(0, cut), text.substr(cut));
  fuzz::must(whole.at == pieces.at, "the end is the same in one piece and in two");
  fuzz::must(whole.refused == pieces.refused, "so is the reason");
  fuzz::must(whole.request.method == pieces.request.method && whole.request.target == pieces.request.target, "the request line");
  fuzz::must(whole.request.headers == pieces.request.headers, "the headers");
  if (whole.at != http::reader::state::done) return 0;
  fuzz::must(whole.request.body == pieces.request.body, "and the body");
  for (const auto& [name, value] : whole.request.headers) {
    fuzz::must(!name.empty() && name.find_first_of(" \t\r\n:") == std::string::npos, "a header's name is a token");
    fuzz::must(value.find_first_of("\r\n") == std::string::npos && value.find('\0') == std::string::npos, "a value is one line");
  }
  return 0;
}
