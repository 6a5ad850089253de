// What is wrong with a chunked body is said at the byte that is wrong: a sender who waits for an answer then gets one.
#include "../../../src/http/chunks.hpp"

#include <gtest/gtest.h>

namespace recibo::http::chunks_cases {
namespace {

struct outcome {
  bool done = false;
  std::string broken, data;
  std::size_t taken = 0;
};

outcome read(std::string_view bytes, std::size_t step = 1) {
  chunk_reader r(256);
  outcome out;
  while (out.taken < bytes.size() && !r.done() && out.broken.empty()) {
    const auto one = r.take(bytes.substr(out.taken, step));
    out.data.append(one.data);
    out.broken = one.broken;
    out.taken += one.taken;
  }
  out.done = r.done();
  return out;
}

TEST(Chunks, AreReadInAnyPieces) {
  const std::string bytes =
      "5\r\nhello\r\n1;n=v ; q=\"a;\\\"b\" \t;x\r\n \r\n00A\r\n0123456789\r\n0;last\r\nX-Late: 1\r\n\r\nNEXT";
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, bytes.size()}) {
    const outcome o = read(bytes, step);
    EXPECT_TRUE(o.done) << o.broken;
    EXPECT_EQ(o.data, "hello 0123456789");
    EXPECT_EQ(bytes.substr(o.taken), "NEXT");
  }
}

// Each ends in the byte that is wrong, and no byte more is needed to see it.
TEST(Chunks, TheFirstWrongByteIsEnough) {
  for (const std::string_view bytes : {"\n",
                                       "\r",
                                       "x",
                                       " ",
                                       "-",
                                       "+",
                                       ";",
                                       "5\n",
                                       "5\rx",
                                       "5\r\r",
                                       "5 \r\n",
                                       "5x\r\n",
                                       "5;\r\n",
                                       "5;=\r\n",
                                       "5;a=\r\n",
                                       "5;a=\"b\r\n",
                                       "5;a b\r\n",
                                       "5;\x01",
                                       "10000000000000005\r\n",
                                       "2\r\nabc",
                                       "2\r\nab\n",
                                       "2\r\nab\rx",
                                       "0\r\n ",
                                       "0\r\n\t",
                                       "0\r\n\n",
                                       "0\r\nX: 1\r\n ",
                                       "0\r\nX: 1\n",
                                       "0\r\nX\r\n",
                                       "0\r\n: 1\r\n",
                                       "0\r\nX Y: 1\r\n",
                                       "0\r\nX : 1\r\n",
                                       "0\r\nContent-Length: 1\r\n",
                                       "0\r\ntransfer-encoding: x\r\n",
                                       "0\r\nX: \x01"}) {
    for (const std::size_t step : {std::size_t{1}, bytes.size()}) {
      const outcome o = read(bytes, step);
      EXPECT_FALSE(o.broken.empty()) << bytes;
      EXPECT_EQ(o.taken, bytes.size()) << bytes;
    }
  }
}

TEST(Chunks, ExtensionsAndTrailersAreBounded) {
  EXPECT_FALSE(read("5;a=" + std::string(2000, 'x')).broken.empty());
  std::string many;
  for (int i = 0; i < 40; ++i) many += "1;a=" + std::string(900, 'x') + "\r\ny\r\n";
  EXPECT_EQ(read(many, many.size()).broken, "The chunk extensions are too long.");
  EXPECT_FALSE(read("0\r\nX: " + std::string(300, 'x')).broken.empty());
  std::string lines = "0\r\n";
  for (int i = 0; i < 40; ++i) lines += "X: 12345\r\n";
  EXPECT_EQ(read(lines, lines.size()).broken, "The trailers are too long.");
}

TEST(Chunks, TheSizeIsKnownBeforeItsData) {
  chunk_reader r(256);
  const auto one = r.take("fFf\r\nabc");
  EXPECT_TRUE(one.new_size);
  EXPECT_EQ(one.taken, 5u);
  EXPECT_EQ(r.left(), 0xfffu);
}

}  // namespace
}  // namespace recibo::http::chunks_cases
