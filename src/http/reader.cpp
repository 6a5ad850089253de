#include "recibo/http/reader.hpp"

#include "chunks.hpp"
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

// Beast reads the head. The body is read here: Beast waits for more bytes where a line end is already wrong, and takes folded
// trailers.
class reader::impl final : public beast::http::basic_parser<true> {
 public:
  explicit impl(limits b) : bounds(b), chunks_(b.header) {
    // Our own limit counts the head as a whole.
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
  void keep(std::string_view bytes);
  bool read_chunks(std::string_view bytes, std::size_t& used);

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
    request.headers.emplace_back(view(name), view(value));
  }

  void on_header_impl(error_code& ec) override {
    facts.keep_alive = basic_parser::keep_alive();
    if (auto broken = check_head(request.headers, facts)) {
      refuse(std::move(*broken));
      ec = stop();
    }
  }

  // Never called: the body is not given to Beast.
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  refusal too_large() const {
    return {413, "body_too_large", "The body is larger than " + std::to_string(bounds.body) + " bytes."};
  }

  bool begun_ = false;
  std::size_t scanned_ = 0;
  chunk_reader chunks_;
};

void reader::impl::keep(std::string_view bytes) {
  received += bytes.size();
  if (!discard) request.body.append(bytes);
}

void reader::impl::read_head(std::string& buffer) {
  // RFC 9112 section 2.2: an empty line before the request line is read over, once.
  if (!begun_) {
    if (buffer.empty() || buffer == "\r") return;
    begun_ = true;
    if (buffer.starts_with("\r\n")) buffer.erase(0, 2);
  }
  if (auto broken = check_start(std::string_view(buffer).substr(0, bounds.header))) return refuse(std::move(*broken));
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
  error_code ec;
  const std::size_t taken = put(boost::asio::const_buffer(buffer.data(), *scan.end), ec);
  if (at == reader::state::refused) return;
  if (ec || taken != *scan.end || !is_header_done())
    return refuse(malformed_request("Request line or headers are not acceptable HTTP/1.1."));
  buffer.erase(0, taken);
  at = facts.chunked || facts.content_length > 0 ? reader::state::body : reader::state::done;
}

void reader::impl::read_body(std::string& buffer) {
  std::size_t used = 0;
  if (facts.chunked) {
    if (!read_chunks(buffer, used)) return;
    if (chunks_.done()) at = reader::state::done;
  } else {
    if (facts.content_length > bounds.body) return refuse(too_large());
    used = static_cast<std::size_t>(std::min<std::uint64_t>(facts.content_length - received, buffer.size()));
    keep(std::string_view(buffer).substr(0, used));
    if (received == facts.content_length) at = reader::state::done;
  }
  buffer.erase(0, used);
}

// False when it was refused.
bool reader::impl::read_chunks(std::string_view bytes, std::size_t& used) {
  while (used < bytes.size() && !chunks_.done()) {
    const chunk_reader::piece one = chunks_.take(bytes.substr(used));
    if (!one.broken.empty()) {
      refuse(malformed_request(std::string(one.broken)));
      return false;
    }
    if (one.new_size && chunks_.left() > bounds.body - received) {
      refuse(too_large());
      return false;
    }
    keep(one.data);
    used += one.taken;
  }
  return true;
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
