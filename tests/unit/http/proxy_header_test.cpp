// The PROXY protocol, both versions. Source of the layouts: HAProxy's proxy-protocol.txt, section 2.
#include "../../../src/http/proxy_header.hpp"

#include <gtest/gtest.h>

namespace recibo::http::proxy_header_cases {
namespace {

using namespace std::string_literals;
using state = proxy_header::state;

struct outcome {
  state at = state::more;
  std::size_t taken = 0;
  std::string source;  // "-": none
  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome read(std::string_view bytes, std::size_t step) {
  proxy_header h;
  outcome out;
  // As the session does it: what was not taken is seen again.
  for (std::size_t seen = 0; out.taken < bytes.size() && h.at() == state::more;) {
    seen = std::min(bytes.size(), std::max(seen, out.taken) + step);
    out.taken += h.take(bytes.substr(out.taken, seen - out.taken));
  }
  out.at = h.at();
  // How far it was read does not matter then.
  if (h.at() == state::broken) out.taken = 0;
  out.source = h.source() ? to_string(*h.source()) : "-";
  return out;
}

outcome read(std::string_view bytes) {
  const outcome whole = read(bytes, bytes.size());
  for (const std::size_t step : {1u, 2u, 5u, 16u}) EXPECT_EQ(read(bytes, step), whole) << bytes;
  return whole;
}

const std::string signature = "\r\n\r\n\0\r\nQUIT\n"s;

std::string binary(unsigned char command, unsigned char family, const std::string& rest) {
  std::string out = signature;
  out += static_cast<char>(command);
  out += static_cast<char>(family);
  out += static_cast<char>(rest.size() >> 8);
  out += static_cast<char>(rest.size() & 0xff);
  return out + rest;
}

const std::string v4 = "\xcb\x00\x71\x07\x0a\x00\x00\x01\x12\x34\x1f\x90"s;
const std::string v6 = "\x20\x01\x0d\xb8"s + std::string(11, '\0') + "\x07"s + "\x20\x01\x0d\xb8"s + std::string(11, '\0') +
                       "\x08"s + "\x12\x34\x1f\x90"s;

TEST(ProxyHeader, NamesTheClient) {
  struct row {
    std::string bytes;
    const char* source;
  };
  const row rows[] = {
      {"PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n", "203.0.113.7"},
      {"PROXY TCP6 2001:db8::7 2001:db8::8 1 65535\r\n", "2001:db8::7"},
      {"PROXY TCP6 ::ffff:203.0.113.7 ::ffff:10.0.0.1 0 0\r\n", "203.0.113.7"},
      {"PROXY UNKNOWN\r\n", "-"},
      {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", "-"},
      {binary(0x21, 0x11, v4), "203.0.113.7"},
      {binary(0x21, 0x11, v4 + "\x03\x00\x04\x11\x22\x33\x44"s), "203.0.113.7"},
      {binary(0x21, 0x21, v6), "2001:db8::7"},
      {binary(0x21, 0x00, ""), "-"},
      {binary(0x21, 0x31, std::string(216, 'x')), "-"},
      {binary(0x20, 0x00, ""), "-"},
      {binary(0x20, 0x11, v4), "-"},
      {binary(0x21, 0x11, v4 + std::string(1024 - 16 - 12, '\0')), "203.0.113.7"},
  };
  for (const row& r : rows) {
    const outcome o = read(r.bytes + "GET / HTTP/1.1\r\n");
    EXPECT_EQ(o.at, state::done) << r.bytes;
    EXPECT_EQ(o.taken, r.bytes.size()) << "and not a byte of the client's: " << r.bytes;
    EXPECT_EQ(o.source, r.source) << r.bytes;
  }
}

TEST(ProxyHeader, WhatIsNoneIsRefused) {
  const std::string rows[] = {
      "GET / HTTP/1.1\r\n",
      "\x16\x03\x01\x02\x00"s,
      "PROXY\r\n",
      "PROXY  TCP4 203.0.113.7 10.0.0.1 1 2\r\n",
      "proxy TCP4 203.0.113.7 10.0.0.1 1 2\r\n",
      "PROXY TCP5 203.0.113.7 10.0.0.1 1 2\r\n",
      "PROXY UDP4 203.0.113.7 10.0.0.1 1 2\r\n",
      "PROXY TCP4 203.0.113.7 10.0.0.1 1\r\n",
      "PROXY TCP4 203.0.113.7 10.0.0.1 1 2 3\r\n",
      "PROXY TCP4 203.0.113.7 10.0.0.1 1 65536\r\n",
      "PROXY TCP4 203.0.113.7 10.0.0.1 01 2\r\n",
      "PROXY TCP4 203.0.113.7 10.0.0.1 -1 2\r\n",
      "PROXY TCP4 203.0.113 10.0.0.1 1 2\r\n",
      "PROXY TCP4 2001:db8::7 2001:db8::8 1 2\r\n",
      "PROXY TCP6 203.0.113.7 10.0.0.1 1 2\r\n",
      "PROXY TCP4 203.0.113.7 10.0.0.1 1 2\n\r\n",
      "PROXY TCP4 203.0.113.7\r10.0.0.1 1 2\r\n",
      "PROXY UNKNOWN " + std::string(120, 'x') + "\r\n",
      "\r\n\r\n\0\r\nQUIX\n"s,
      "\r\nGET / HTTP/1.1\r\n",
      binary(0x11, 0x11, v4),
      binary(0x22, 0x11, v4),
      binary(0x21, 0x12, v4),
      binary(0x21, 0x11, v4.substr(1)),
      binary(0x21, 0x21, v4),
      binary(0x21, 0x41, v4),
      binary(0x21, 0x11, v4 + std::string(1024, '\0')),
      binary(0x20, 0x00, std::string(1024, '\0')),
  };
  for (const std::string& bytes : rows) EXPECT_EQ(read(bytes).at, state::broken) << bytes;
}

TEST(ProxyHeader, WaitsForTheRest) {
  for (const std::string& bytes : {"PROXY TCP4 203.0.113.7"s, "P"s, signature, binary(0x21, 0x11, v4).substr(0, 20)})
    EXPECT_EQ(read(bytes).at, state::more) << bytes;
}

}  // namespace
}  // namespace recibo::http::proxy_header_cases
