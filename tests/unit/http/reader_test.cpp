#include "recibo/http/reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace recibo::http {
namespace {

using testing::ElementsAre;
using testing::Pair;
using state = reader::state;

constexpr reader::limits bounds{.header = 1024, .body = 64};

// What came of a request: refused with a status and code, unfinished, or read.
struct outcome {
  state at = state::head;
  int status = 0;
  std::string code;
  request read;
  std::string left;
  friend bool operator==(const outcome& a, const outcome& b) {
    return a.at == b.at && a.status == b.status && a.code == b.code && a.read.method == b.read.method &&
           a.read.target == b.read.target && a.read.path == b.read.path && a.read.query == b.read.query &&
           a.read.headers == b.read.headers && a.read.body == b.read.body && (a.at == state::refused || a.left == b.left);
  }
};

void feed(reader& r, std::string& buffer) {
  r.read_head(buffer);
  r.read_body(buffer);
}

outcome outcome_of(reader& r, std::string left) {
  outcome o;
  o.at = r.at();
  o.left = std::move(left);
  if (r.at() == state::refused) {
    o.status = r.reason().status;
    o.code = r.reason().code;
  } else if (r.at() == state::done) {
    o.read = r.request();
  }
  return o;
}

outcome read_at_once(std::string bytes, reader::limits limits = bounds) {
  reader r(limits);
  feed(r, bytes);
  return outcome_of(r, bytes);
}

// The bytes arrive in pieces that end at the given places.
outcome read_in_pieces(const std::string& bytes, const std::vector<std::size_t>& ends) {
  reader r(bounds);
  std::string buffer;
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    buffer.append(bytes, from, end - from);
    from = end;
    feed(r, buffer);
    if (r.at() == state::refused || r.at() == state::done) break;
  }
  if (r.at() == state::done) buffer.append(bytes, from);
  return outcome_of(r, buffer);
}

// However the bytes are split, the reading is the same.
outcome read(const std::string& bytes) {
  const outcome whole = read_at_once(bytes);
  std::vector<std::size_t> each;
  for (std::size_t i = 1; i <= bytes.size(); ++i) each.push_back(i);
  EXPECT_EQ(read_in_pieces(bytes, each), whole) << "byte by byte: " << bytes;
  for (std::size_t i = 1; i < bytes.size(); ++i)
    EXPECT_EQ(read_in_pieces(bytes, {i, bytes.size()}), whole) << "split at " << i << ": " << bytes;
  return whole;
}

TEST(Reader, KeepsTargetHeadersAndBodyAsTheyCame) {
  const std::string bytes =
      std::string(
          "POST /callbacks/p%31?a=%2F&b HTTP/1.1\r\nHost: example\r\nX-SIGNATURE: \t one \t\r\nx-signature:two\r\nX-Empty:\r\n"
          "X-Text: h\xc3\xa9llo\r\nContent-Length: 6\r\n\r\n") +
      std::string("a\0b\r\nc", 6) + "GET ";
  const outcome whole = read(bytes);
  ASSERT_EQ(whole.at, state::done);
  EXPECT_EQ(whole.read.method, "POST");
  EXPECT_EQ(whole.read.target, "/callbacks/p%31?a=%2F&b");
  EXPECT_EQ(whole.read.path, "/callbacks/p%31");
  EXPECT_EQ(whole.read.query, "a=%2F&b");
  EXPECT_THAT(whole.read.headers, ElementsAre(Pair("Host", "example"), Pair("X-SIGNATURE", "one"), Pair("x-signature", "two"),
                                              Pair("X-Empty", ""), Pair("X-Text", "h\xc3\xa9llo"), Pair("Content-Length", "6")));
  EXPECT_EQ(whole.read.body, std::string("a\0b\r\nc", 6));
  EXPECT_EQ(whole.left, "GET ");
}

TEST(Reader, ChunksMayBeCutAnywhere) {
  const outcome o = read(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "5\r\nhello\r\n"
      "1;name=value;quoted=\"a;b\"\r\n \r\n"
      "0000A\r\n0123456789\r\n"
      "0\r\n\r\n"
      "NEXT");
  ASSERT_EQ(o.at, state::done);
  EXPECT_EQ(o.read.body, "hello 0123456789");
  EXPECT_EQ(o.left, "NEXT");
}

TEST(Reader, AnEmptyChunkedBodyIsEmpty) {
  const outcome o = read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  ASSERT_EQ(o.at, state::done);
  EXPECT_EQ(o.read.body, "");
}

// K10: a late X-Signature does not count.
TEST(Reader, TrailersAreDropped) {
  const outcome o = read(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Signature\r\n\r\n"
      "2\r\nhi\r\n0\r\nX-Signature: forged\r\nConnection: close\r\n\r\n");
  ASSERT_EQ(o.at, state::done);
  EXPECT_EQ(o.read.body, "hi");
  EXPECT_THAT(o.read.headers,
              ElementsAre(Pair("Host", "a"), Pair("Transfer-Encoding", "chunked"), Pair("Trailer", "X-Signature")));
}

TEST(Reader, TrailersDoNotDecideWhatBecomesOfTheConnection) {
  reader r(bounds);
  std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n";
  feed(r, bytes);
  EXPECT_EQ(r.at(), state::done);
  EXPECT_TRUE(r.keep_alive());
}

// K21: each of these is refused, however it is split.
TEST(Reader, InDoubtItRefuses) {
  struct row {
    const char* name;
    std::string bytes;
    int status = 400;
    const char* code = "malformed_request";
  };
  const row rows[] = {
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
      {"two hosts, other case", "GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n"},
      {"no host", "GET / HTTP/1.1\r\nX: a\r\n\r\n"},
      {"host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
      {"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
      {"equal lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
      {"unequal lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"},
      {"list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx"},
      {"signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx"},
      {"negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx"},
      {"empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nx"},
      {"hexadecimal length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx"},
      {"endless length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\nx"},
      {"length and coding", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"coding and length", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n"},
      {"coding twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"identity then chunked",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"list of codings", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"chunked not last", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
      {"other coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"},
      {"almost chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"empty coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n"},
      {"coding in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"folded header", "GET / HTTP/1.1\r\nHost: a\r\nX: one\r\n two\r\n\r\n"},
      {"folded with a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: one\r\n\ttwo\r\n\r\n"},
      {"blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"blank line of blanks", "GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n"},
      {"bare LF in the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
      {"bare LF in a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
      {"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
      {"bare CR", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
      {"NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n"},
      {"NUL in a name", "GET / HTTP/1.1\r\nHost: a\r\nX" + std::string(1, '\0') + ": b\r\n\r\n"},
      {"escape in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[31m\r\n\r\n"},
      {"blank before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
      {"no colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"},
      {"empty name", "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
      {"name that is no token", "GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n"},
      {"two blanks in the request line", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"blank after the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {"no version", "GET /\r\nHost: a\r\n\r\n"},
      {"HTTP/0.9, and nothing more", "GET /\r\n"},
      {"HTTP/2 preface, its first line", "PRI * HTTP/2.0\r\n", 505, "http_version_not_supported"},
      {"a first byte of no method", "{\"a\":1}"},
      {"PROXY header that nobody expects", "PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n"},
      {"authority form", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"asterisk form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"other scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no authority", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"raw bytes in the target", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"method that is no token", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"TLS on a plain port", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9)},
      {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"other expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\n", 417,
       "expectation_failed"},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http_version_not_supported"},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505, "http_version_not_supported"},
      {"length over the limit", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\n\r\n", 413, "body_too_large"},
      {"header over the limit", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1024, 'x') + "\r\n\r\n", 431,
       "header_too_large"},
      {"target over the limit", "GET /" + std::string(1024, 'x'), 431, "header_too_large"},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.name);
    const outcome o = read(r.bytes);
    EXPECT_EQ(o.at, state::refused);
    EXPECT_EQ(o.status, r.status);
    EXPECT_EQ(o.code, r.code);
  }
}

TEST(Reader, BrokenChunksAreRefused) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  struct row {
    const char* name;
    std::string body;
    int status = 400;
  };
  const row rows[] = {
      {"no size", "\r\nhello\r\n0\r\n\r\n"},
      {"bare LF after the size, and nothing more", "5\n"},
      {"folded trailer", "0\r\nX: a\r\n b\r\n\r\n"},
      {"folded trailer, and nothing more", "0\r\nX: a\r\n\t"},
      {"blank before a trailer's colon", "0\r\nX : a\r\n\r\n"},
      {"blank after the size", "5 \r\nhello\r\n0\r\n\r\n"},
      {"size that is no number", "xyz\r\nhello\r\n0\r\n\r\n"},
      {"hexadecimal prefix", "0x5\r\nhello\r\n0\r\n\r\n"},
      {"negative size", "-5\r\nhello\r\n0\r\n\r\n"},
      {"size over 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"},
      {"data longer than its size", "4\r\nhello\r\n0\r\n\r\n"},
      {"bare LF after the size", "5\nhello\r\n0\r\n\r\n"},
      {"bare CR after the size", "5\rhello\r\n0\r\n\r\n"},
      {"bare LF after the data", "5\r\nhello\n0\r\n\r\n"},
      {"bare LF in an extension", "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"},
      {"extension without a name", "5;=b\r\nhello\r\n0\r\n\r\n"},
      {"trailer that is no header", "0\r\nX Y\r\n\r\n"},
      {"framing in the trailers", "0\r\nContent-Length: 5\r\n\r\n"},
      {"endless extension", "5;a=" + std::string(2000, 'x')},
      {"endless trailers", "0\r\nX: " + std::string(2000, 'x')},
      {"one chunk over the limit", "41\r\n" + std::string(65, 'x') + "\r\n0\r\n\r\n", 413},
      {"chunks over the limit", "20\r\n" + std::string(32, 'x') + "\r\n21\r\n" + std::string(33, 'x') + "\r\n0\r\n\r\n", 413},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.name);
    const outcome o = read(head + r.body);
    EXPECT_EQ(o.at, state::refused);
    EXPECT_EQ(o.status, r.status);
  }
}

TEST(Reader, BodiesOfExactlyTheLimitAreRead) {
  const std::string body(bounds.body, 'x');
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 64\r\n\r\n" + body).read.body, body);
  EXPECT_EQ(read("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n" + std::string(32, 'x') + "\r\n20\r\n" +
                 std::string(32, 'x') + "\r\n0\r\n\r\n")
                .read.body,
            body);
}

TEST(Reader, AHeadOfExactlyTheLimitIsRead) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  head += std::string(bounds.header - head.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(head.size(), bounds.header);
  EXPECT_EQ(read(head).at, state::done);
  head.insert(head.size() - 4, "x");
  EXPECT_EQ(read(head).status, 431);
}

TEST(Reader, FormsOfTheTarget) {
  struct row {
    const char *target, *path, *query;
  };
  const row rows[] = {
      {"/", "/", ""},
      {"/a/b?c=d?e", "/a/b", "c=d?e"},
      {"//a//", "//a//", ""},
      {"/a?", "/a", ""},
      {"http://example:8080/a?b", "/a", "b"},
      {"HTTP://example", "/", ""},
      {"https://example?b", "/", "b"},
  };
  for (const row& r : rows) {
    const outcome o = read(std::string("GET ") + r.target + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(o.at, state::done) << r.target;
    EXPECT_EQ(o.read.target, r.target);
    EXPECT_EQ(o.read.path, r.path);
    EXPECT_EQ(o.read.query, r.query);
  }
}

TEST(Reader, UnknownMethodsAreRead) {
  const outcome o = read("M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(o.at, state::done);
  EXPECT_EQ(o.read.method, "M-SEARCH");
}

TEST(Reader, OneEmptyLineBeforeTheRequestIsReadOver) { EXPECT_EQ(read("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").at, state::done); }

TEST(Reader, WhetherTheConnectionIsKept) {
  struct row {
    const char* head;
    bool kept;
  };
  const row rows[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
  };
  for (const row& r : rows) {
    reader one(bounds);
    std::string bytes = r.head;
    feed(one, bytes);
    EXPECT_EQ(one.at(), state::done) << r.head;
    EXPECT_EQ(one.keep_alive(), r.kept) << r.head;
  }
}

TEST(Reader, TheHeadIsKnownBeforeTheBody) {
  reader r(bounds);
  std::string bytes = "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 64\r\n\r\n";
  r.read_head(bytes);
  EXPECT_EQ(r.at(), state::body);
  EXPECT_TRUE(r.expects_continue());
  EXPECT_EQ(r.content_length(), 64u);
  EXPECT_EQ(r.request().path, "/x");
  EXPECT_EQ(r.request().headers.size(), 3u);
}

TEST(Reader, ALengthOverTheLimitIsRefusedOnlyWhenTheBodyIsReached) {
  reader r(bounds);
  std::string bytes = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\n\r\n";
  r.read_head(bytes);
  EXPECT_EQ(r.at(), state::body);
  r.read_body(bytes);
  EXPECT_EQ(r.reason().status, 413);
}

TEST(Reader, AnExpectationOfHttp10IsIgnored) {
  reader r(bounds);
  std::string bytes = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx";
  feed(r, bytes);
  EXPECT_EQ(r.at(), state::done);
  EXPECT_FALSE(r.expects_continue());
  EXPECT_TRUE(r.http_1_0());
}

TEST(Reader, ADiscardedBodyIsCountedAndNotKept) {
  reader r(bounds);
  std::string bytes = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloNEXT";
  r.read_head(bytes);
  r.discard_body();
  r.read_body(bytes);
  EXPECT_EQ(r.at(), state::done);
  EXPECT_EQ(r.received(), 5u);
  EXPECT_EQ(r.request().body, "");
  EXPECT_EQ(bytes, "NEXT");
}

}  // namespace
}  // namespace recibo::http
