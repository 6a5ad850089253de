#include "recibo/http/reader.hpp"

#include "head_rules.hpp"

#include <ostream>

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <limits>

namespace recibo::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;

error_code stop() noexcept { return beast::http::make_error_code(beast::http::error::bad_value); }

std::string_view view(beast::string_view text) noexcept { return {text.data(), text.size()}; }

}  // namespace

class reader::impl final : public beast::http::basic_parser<true> {
 public:
  explicit impl(limits b) : bounds(b) {
    // Both limits are ours: Beast counts the header in pieces, and would refuse a body before the service has seen the head.
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(boost::none);
  }

  void refuse(refusal why) {
    at = reader::state::refused;
    reason = std::move(why);
  }

  void read_head(std::string& buffer);
  void read_body(std::string& buffer);

  const limits bounds;
  reader::state at = reader::state::head;
  refusal reason;
  http::request request;
  head_facts facts;
  std::uint64_t received = 0;
  bool discard = false;

 private:
  bool take_body(std::string_view bytes);

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code& ec) override {
    request.method = view(method);
    request.target = view(target);
    facts.http_1_0 = version == 10;
    if (!split_target(request)) {
      refuse(malformed_request("The request target is not a path."));
      ec = stop();
    }
  }

  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value, error_code&) override {
    // After the head these are trailers.
    if (at == reader::state::head) request.headers.emplace_back(view(name), view(value));
  }

  void on_header_impl(error_code& ec) override {
    facts.keep_alive = basic_parser::keep_alive();
    if (auto broken = check_head(request.headers, facts)) {
      refuse(std::move(*broken));
      ec = stop();
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}

  std::size_t on_body_impl(beast::string_view bytes, error_code& ec) override {
    if (!take_body(view(bytes))) ec = stop();
    return bytes.size();
  }

  void on_chunk_header_impl(std::uint64_t size, beast::string_view extensions, error_code& ec) override {
    chunk_left_ = size;
    const auto control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; };
    if (std::any_of(extensions.begin(), extensions.end(), control)) {
      refuse(malformed_request("A chunk extension holds a control character."));
      ec = stop();
    } else if (size > bounds.body - std::min<std::uint64_t>(received, bounds.body)) {
      refuse(too_large());
      ec = stop();
    }
  }

  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, error_code& ec) override {
    chunk_left_ -= bytes.size();
    if (!take_body(view(bytes))) ec = stop();
    return bytes.size();
  }

  void on_finish_impl(error_code&) override {}

  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  refusal too_large() const {
    return {413, "body_too_large", "The body is larger than " + std::to_string(bounds.body) + " bytes."};
  }

  bool begun_ = false;
  std::size_t scanned_ = 0;
  std::uint64_t chunk_left_ = 0;
};

bool reader::impl::take_body(std::string_view bytes) {
  if (bytes.size() > bounds.body - std::min<std::uint64_t>(received, bounds.body)) {
    refuse(too_large());
    return false;
  }
  received += bytes.size();
  if (!discard) request.body.append(bytes);
  return true;
}

void reader::impl::read_head(std::string& buffer) {
  // RFC 9112 section 2.2: an empty line before the request line is read over, once.
  if (!begun_) {
    if (buffer.empty() || buffer == "\r") return;
    begun_ = true;
    if (buffer.starts_with("\r\n")) buffer.erase(0, 2);
  }
  const head_scan scan = scan_head(buffer, scanned_);
  if (scan.broken) return refuse(malformed_request(std::string(*scan.broken)));
  const std::size_t size = scan.end ? *scan.end : buffer.size();
  if (size > bounds.header || (!scan.end && size == bounds.header)) {
    return refuse(
        {431, "header_too_large", "Request line and headers are larger than " + std::to_string(bounds.header) + " bytes."});
  }
  if (!scan.end) {
    // The last two characters may belong to a line end that is not complete.
    scanned_ = buffer.size() < 3 ? 0 : buffer.size() - 3;
    return;
  }
  if (auto other = other_version(buffer)) return refuse(std::move(*other));
  error_code ec;
  const std::size_t taken = put(boost::asio::const_buffer(buffer.data(), *scan.end), ec);
  if (at == reader::state::refused) return;
  if (ec || taken != *scan.end || !is_header_done())
    return refuse(malformed_request("Request line or headers are not acceptable HTTP/1.1."));
  buffer.erase(0, taken);
  at = is_done() ? reader::state::done : reader::state::body;
}

void reader::impl::read_body(std::string& buffer) {
  if (!facts.chunked && facts.content_length > bounds.body) return refuse(too_large());
  std::size_t used = 0;
  while (!is_done()) {
    const std::size_t left = buffer.size() - used;
    // Between chunks five bytes follow at least ("0", two line ends); Beast asserts that it has them.
    if (left == 0 || (facts.chunked && chunk_left_ == 0 && left < 5)) break;
    error_code ec;
    const std::size_t taken = put(boost::asio::const_buffer(buffer.data() + used, left), ec);
    used += taken;
    if (at == reader::state::refused) return;
    if (ec == beast::http::error::need_more) {
      // What is left is an unfinished chunk header or trailer block.
      if (buffer.size() - used > bounds.header) return refuse(malformed_request("A chunk header or the trailers are too long."));
      break;
    }
    if (ec) return refuse(malformed_request("The chunked body is malformed."));
  }
  buffer.erase(0, used);
  if (is_done()) at = reader::state::done;
}

reader::reader(limits bounds) : impl_(std::make_unique<impl>(bounds)) {}
reader::~reader() = default;

void reader::read_head(std::string& buffer) {
  if (impl_->at == state::head) impl_->read_head(buffer);
}

void reader::read_body(std::string& buffer) {
  if (impl_->at == state::body) impl_->read_body(buffer);
}

reader::state reader::at() const noexcept { return impl_->at; }
const refusal& reader::reason() const noexcept { return impl_->reason; }
http::request& reader::request() noexcept { return impl_->request; }
bool reader::http_1_0() const noexcept { return impl_->facts.http_1_0; }
bool reader::keep_alive() const noexcept { return impl_->facts.keep_alive; }
bool reader::expects_continue() const noexcept { return impl_->facts.expects_continue; }

std::optional<std::uint64_t> reader::content_length() const noexcept {
  if (impl_->facts.chunked) return std::nullopt;
  return impl_->facts.content_length;
}

void reader::discard_body() noexcept { impl_->discard = true; }
std::uint64_t reader::received() const noexcept { return impl_->received; }

}  // namespace recibo::http
