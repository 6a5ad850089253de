#include "answer_reader.hpp"

#include "head_rules.hpp"

#include "recibo/core/ascii.hpp"

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace recibo::http {
namespace {

using boost::system::error_code;

// Interim answers that are read over; a server that sends more of them is not answering.
constexpr int interim_most = 16;

std::string text(boost::beast::string_view v) { return std::string(v.data(), v.size()); }

// What senders do and recipients read: a status line that ends after the code ("HTTP/1.1 204") gets its blank, and a folded
// header stands on one line (RFC 9112 sections 4 and 5.2). Up to the end of the head; from `from` on, where it has been done.
void straighten_head(std::string& buffer, std::size_t from) {
  static constexpr std::string_view form = "HTTP/1.x nnn";
  const std::size_t line = buffer.find("\r\n");
  if (line == std::string::npos) return;
  if (line == form.size() && buffer.starts_with("HTTP/1.")) buffer.insert(line, 1, ' ');
  const std::size_t first = buffer.find("\r\n", line);
  // There are no headers, and what follows is the body, whatever it begins with; or it is not known yet.
  if (first + 2 >= buffer.size() || buffer[first + 2] == '\r') return;
  // What begins with a blank right after the status line goes on from no header.
  for (std::size_t i = std::max(from, first + 2); i + 2 < buffer.size(); ++i) {
    if (buffer[i] != '\r' || buffer[i + 1] != '\n') continue;
    if (buffer[i + 2] == '\r') return;
    if (buffer[i + 2] == ' ' || buffer[i + 2] == '\t') buffer[i] = buffer[i + 1] = ' ';
  }
}

}  // namespace

class answer_reader::impl {
 public:
  impl(limits b, bool h) : bounds(b), to_head(h) { parser_.emplace(*this); }

  // One message; an interim answer and the one after it are two.
  class parser final : public boost::beast::http::basic_parser<false> {
   public:
    explicit parser(impl& of) : of_(of) {
      // Both limits are ours, as in reader.cpp.
      header_limit(std::numeric_limits<std::uint32_t>::max());
      body_limit(boost::none);
      skip(of.to_head);
    }

   private:
    // Stops Beast; `refused` or `done` says why.
    static error_code stop() { return boost::beast::http::error::end_of_stream; }

    void on_request_impl(boost::beast::http::verb, boost::beast::string_view, boost::beast::string_view, int,
                         error_code&) override {}

    void on_response_impl(int code, boost::beast::string_view, int version, error_code&) override {
      of_.answer.status = code;
      of_.http_1_0 = version == 10;
    }

    void on_field_impl(boost::beast::http::field, boost::beast::string_view name, boost::beast::string_view value,
                       error_code&) override {
      // After the head these are trailers.
      if (of_.at == answer_reader::state::head) of_.answer.headers.emplace_back(text(name), text(value));
    }

    void on_header_impl(error_code& ec) override {
      if (!of_.check_head()) ec = stop();
    }

    void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}

    std::size_t on_body_impl(boost::beast::string_view bytes, error_code& ec) override {
      if (!of_.take({bytes.data(), bytes.size()})) ec = stop();
      return bytes.size();
    }

    void on_chunk_header_impl(std::uint64_t size, boost::beast::string_view extensions, error_code& ec) override {
      chunk_left = size;
      const auto control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; };
      if (!std::any_of(extensions.begin(), extensions.end(), control)) return;
      of_.refuse(permanent::answer_malformed, "A chunk extension holds a control character.");
      ec = stop();
    }

    std::size_t on_chunk_body_impl(std::uint64_t, boost::beast::string_view bytes, error_code& ec) override {
      chunk_left -= bytes.size();
      if (!of_.take({bytes.data(), bytes.size()})) ec = stop();
      return bytes.size();
    }

    void on_finish_impl(error_code&) override {}

    impl& of_;

   public:
    std::uint64_t chunk_left = 0;
  };

  void refuse(permanent what, std::string detail) {
    at = state::refused;
    why = error(what, std::move(detail));
  }

  void cut() {
    at = state::done;
    answer.whole = false;
  }

  bool check_head();
  bool take(std::string_view bytes);
  void read_head(std::string& buffer);
  void read_body(std::string& buffer);
  void end(bool clean);

  const limits bounds;
  const bool to_head;
  state at = state::head;
  error why;
  outbound_answer answer;
  bool http_1_0 = false, chunked = false, keep = false, left_over = false;
  std::optional<std::uint64_t> length;

 private:
  std::optional<parser> parser_;
  std::size_t scanned_ = 0;
  int interim_ = 0;
};

// Beast has read the headers; these are the rules that it does not know.
bool answer_reader::impl::check_head() {
  const auto& headers = answer.headers;
  const std::size_t lengths = count_header(headers, "content-length");
  const std::size_t codings = count_header(headers, "transfer-encoding");
  const auto malformed_answer = [&](const char* detail) {
    refuse(permanent::answer_malformed, detail);
    return false;
  };
  if (answer.status < 100) return malformed_answer("The answer has no status.");
  if (answer.status == 101) return malformed_answer("The answer changes to another protocol.");
  // The same length again is one length (RFC 9110 section 8.6).
  const auto length_again = [&](const auto& one) {
    return !same_text(one.first, "content-length") || one.second == *find_header(headers, "content-length");
  };
  if (codings > 1 || (lengths > 0 && codings == 1) || !std::all_of(headers.begin(), headers.end(), length_again))
    return malformed_answer("The answer tells its length more than once.");
  if (codings == 1 && (http_1_0 || !same_text(*find_header(headers, "transfer-encoding"), "chunked")))
    return malformed_answer("The answer has another Transfer-Encoding than chunked.");
  chunked = codings == 1;
  return true;
}

bool answer_reader::impl::take(std::string_view bytes) {
  const std::size_t room = bounds.body - std::min(bounds.body, answer.body.size());
  answer.body.append(bytes.substr(0, room));
  if (bytes.size() <= room) return true;
  if (bounds.cut_body) {
    cut();
  } else {
    refuse(permanent::answer_too_large, "The body of the answer is larger than " + std::to_string(bounds.body) + " bytes.");
  }
  return false;
}

void answer_reader::impl::read_head(std::string& buffer) {
  straighten_head(buffer, scanned_);
  const head_scan scan = scan_head(buffer, scanned_);
  if (scan.broken) return refuse(permanent::answer_malformed, "The answer is not HTTP/1.1.");
  const std::size_t size = scan.end ? *scan.end : buffer.size();
  if (size > bounds.head || (!scan.end && size == bounds.head))
    return refuse(permanent::answer_too_large,
                  "Status line and headers of the answer are larger than " + std::to_string(bounds.head) + " bytes.");
  if (!scan.end) {
    // What is no HTTP at all is not waited for.
    static constexpr std::string_view begin = "HTTP/1.";
    if (!begin.starts_with(std::string_view(buffer).substr(0, begin.size())))
      return refuse(permanent::answer_malformed, "The answer is not HTTP/1.1.");
    scanned_ = buffer.size() < 3 ? 0 : buffer.size() - 3;
    return;
  }
  error_code ec;
  const std::size_t taken = parser_->put(boost::asio::const_buffer(buffer.data(), *scan.end), ec);
  if (at == state::refused) return;
  if (ec || taken != *scan.end || !parser_->is_header_done())
    return refuse(permanent::answer_malformed, "Status line or headers of the answer are not acceptable HTTP/1.1.");
  buffer.erase(0, taken);
  scanned_ = 0;
  if (answer.status < 200) {
    if (++interim_ > interim_most) return refuse(permanent::answer_malformed, "There are too many interim answers.");
    answer = {};
    parser_.emplace(*this);
    return;
  }
  keep = parser_->keep_alive();
  if (const auto told = parser_->content_length()) length = *told;
  at = parser_->is_done() ? state::done : state::body;
  if (at == state::body && length && *length > bounds.body && !bounds.cut_body)
    refuse(permanent::answer_too_large, "The body of the answer is larger than " + std::to_string(bounds.body) + " bytes.");
}

void answer_reader::impl::read_body(std::string& buffer) {
  std::size_t used = 0;
  while (!parser_->is_done()) {
    const std::size_t left = buffer.size() - used;
    // Between chunks five bytes follow at least ("0", two line ends); Beast asserts that it has them.
    if (left == 0 || (chunked && parser_->chunk_left == 0 && left < 5)) break;
    error_code ec;
    used += parser_->put(boost::asio::const_buffer(buffer.data() + used, left), ec);
    if (at != state::body) return;
    if (ec == boost::beast::http::error::need_more) {
      // What is left is an unfinished chunk header or trailer block.
      if (buffer.size() - used > bounds.head)
        return refuse(permanent::answer_malformed, "A chunk header or the trailers of the answer are too long.");
      break;
    }
    if (ec) return refuse(permanent::answer_malformed, "The chunked body of the answer is malformed.");
  }
  buffer.erase(0, used);
  if (parser_->is_done()) at = state::done;
}

void answer_reader::impl::end(bool clean) {
  keep = false;
  if (at == state::done || at == state::refused) return;
  if (at == state::body && clean && !length && !chunked) {
    at = state::done;
  } else if (at == state::body && bounds.cut_body) {
    cut();
  } else {
    why =
        error(uncertain::answer_unknown, at == state::body ? "The answer broke off." : "The connection ended without an answer.");
    at = state::refused;
  }
}

answer_reader::answer_reader(limits bounds, bool to_head) : impl_(std::make_unique<impl>(bounds, to_head)) {}
answer_reader::~answer_reader() = default;

void answer_reader::read(std::string& buffer) {
  while (impl_->at == state::head && !buffer.empty()) {
    const std::size_t before = buffer.size();
    impl_->read_head(buffer);
    if (buffer.size() == before) break;
  }
  if (impl_->at == state::body) impl_->read_body(buffer);
  // Bytes behind an answer that nobody asked for: whatever they are, they are not the next answer.
  if (impl_->at == state::done && !buffer.empty()) impl_->left_over = true;
}

void answer_reader::end(bool clean) { impl_->end(clean); }
answer_reader::state answer_reader::at() const noexcept { return impl_->at; }
const error& answer_reader::why() const noexcept { return impl_->why; }
outbound_answer& answer_reader::answer() noexcept { return impl_->answer; }

bool answer_reader::keep_alive() const noexcept {
  return impl_->at == state::done && impl_->keep && impl_->answer.whole && !impl_->left_over;
}

}  // namespace recibo::http
