#include "src/http/answer_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace recibo::http {
namespace {

struct reading {
  answer_reader::state at;
  error why;
  outbound_answer answer;
  bool keep;
};

constexpr answer_reader::limits small{512, 64, false};

// Fed in pieces of `step` bytes, and then the connection ends unless the answer is there.
reading read_all(const std::string& bytes, std::size_t step, bool to_head = false, answer_reader::limits bounds = small,
                 bool clean = true) {
  answer_reader from(bounds, to_head);
  std::string buffer;
  const auto over = [&] { return from.at() == answer_reader::state::done || from.at() == answer_reader::state::refused; };
  for (std::size_t i = 0; i < bytes.size() && !over(); i += step) {
    buffer += bytes.substr(i, step);
    from.read(buffer);
  }
  const bool keep = from.keep_alive();
  if (!over()) from.end(clean);
  return {from.at(), from.why(), from.answer(), keep};
}

const std::string ok = "HTTP/1.1 200 OK\r\n";

TEST(AnswerReader, ReadsEveryFramingInEverySplit) {
  struct row {
    std::string bytes;
    int status;
    std::string body;
    bool keep, to_head = false;
  };
  const std::vector<row> rows = {
      {ok + "Content-Length: 5\r\n\r\nhello", 200, "hello", true},
      {ok + "Content-Length: 0\r\n\r\n", 200, "", true},
      {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-Trailer: 1\r\n\r\n", 200, "hello", true},
      {ok + "transfer-encoding: Chunked\r\n\r\n0\r\n\r\n", 200, "", true},
      {ok + "\r\nuntil the end", 200, "until the end", false},
      {ok + "Connection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
      {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, "", true},
      {"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n", 302, "", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nok", 200,
       "ok", true},
      {ok + "Content-Length: 5000000\r\n\r\n", 200, "", true, true},
      {ok + "Transfer-Encoding: chunked\r\n\r\n", 200, "", true, true},
      {"HTTP/1.1 599 \r\nContent-Length: 1\r\n\r\nx", 599, "x", true},
      {"HTTP/1.1 204\r\n\r\n", 204, "", true},
      {"HTTP/1.1 103\r\n\r\nHTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
      {ok + "X-A: a\r\n b\r\n\tc\r\nContent-Length: 2\r\n\r\n k", 200, " k", true},
      {ok + "Content-Length:\r\n 2\r\n\r\n\r\n", 200, "\r\n", true},
      {ok + "Content-Length: 2\r\ncontent-length: 2\r\n\r\nok", 200, "ok", true},
      {ok + "\r\n ok", 200, " ok", false},
      {ok + "\r\n\tok\r\n ok", 200, "\tok\r\n ok", false},
      {ok + "\r\n\r\n ok", 200, "\r\n ok", false},
      {ok + "\r\n", 200, "", false},
      {"HTTP/1.1 200\r\n\r\n ok", 200, " ok", false},
      {"HTTP/1.1 103 Early Hints\r\n\r\n" + ok + "\r\n ok", 200, " ok", false},
      {ok + "X-A: a\r\n\r\n ok\r\n ok", 200, " ok\r\n ok", false},
  };
  for (const row& r : rows) {
    for (std::size_t step = 1; step <= r.bytes.size(); ++step) {
      const auto got = read_all(r.bytes, step, r.to_head);
      ASSERT_EQ(got.at, answer_reader::state::done) << r.bytes << " by " << step << ": " << got.why.detail;
      EXPECT_EQ(got.answer.status, r.status);
      EXPECT_EQ(got.answer.body, r.body) << r.bytes << " by " << step;
      EXPECT_EQ(got.keep, r.keep) << r.bytes << " by " << step;
      EXPECT_TRUE(got.answer.whole);
      EXPECT_EQ(find_header(got.answer.headers, "x-trailer"), std::nullopt);
      EXPECT_EQ(find_header(got.answer.headers, "link"), std::nullopt);
    }
  }
}

TEST(AnswerReader, RefusesWhatHasTwoReadings) {
  const std::vector<std::string> rows = {
      "SSH-2.0-OpenSSH_9\r\n",
      "\x15\x03\x01\x00\x02\x02\x0a",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 2000 x\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
      ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
      ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      ok + "Content-Length: -1\r\n\r\n",
      ok + "Content-Length: 2x\r\n\r\nok",
      ok + "Content-Length: 99999999999999999999\r\n\r\n",
      ok + " b\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
      ok + std::string("X: a\0b\r\n\r\n", 10),
      ok + "no colon\r\n\r\n",
      ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n\r\n",
      ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
      ok + "Transfer-Encoding: chunked\r\n\r\n2;a=\x01\r\nhe\r\n0\r\n\r\n",
  };
  for (const auto& bytes : rows) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      const auto got = read_all(bytes, step);
      EXPECT_EQ(got.at, answer_reader::state::refused) << bytes;
      EXPECT_EQ(got.why.code, permanent::answer_malformed) << bytes << ": " << got.why.detail;
    }
  }
  std::string interim;
  for (int i = 0; i < 50; ++i) interim += "HTTP/1.1 102 Processing\r\n\r\n";
  EXPECT_EQ(read_all(interim, 100).why.code, permanent::answer_malformed);
}

TEST(AnswerReader, IsBounded) {
  const std::string big(65, 'x');
  const std::vector<std::string> rows = {
      ok + "X: " + std::string(600, 'x') + "\r\nContent-Length: 0\r\n\r\n",
      ok + "X: " + std::string(600, 'x'),
      ok + "Content-Length: 65\r\n\r\n",
      ok + "Content-Length: 18446744073709551615\r\n\r\n",
      ok + "Transfer-Encoding: chunked\r\n\r\n41\r\n" + big + "\r\n0\r\n\r\n",
      ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + big,
      ok + "\r\n" + big,
  };
  for (const auto& bytes : rows) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{50}, bytes.size()}) {
      const auto got = read_all(bytes, step);
      EXPECT_EQ(got.why.code, permanent::answer_too_large) << bytes << ": " << got.why.detail;
    }
  }
  const std::string trailers = ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(600, 'x');
  EXPECT_EQ(read_all(trailers, 100).why.code, permanent::answer_malformed);
  EXPECT_EQ(read_all(ok + "Content-Length: 64\r\n\r\n" + std::string(64, 'x'), 10).answer.body.size(), 64u);
}

TEST(AnswerReader, CutsForWhoWantsTheStatusOnly) {
  constexpr answer_reader::limits cut{512, 64, true};
  const std::string big(200, 'x');
  for (const auto& bytes :
       {ok + "Content-Length: 200\r\n\r\n" + big, ok + "Transfer-Encoding: chunked\r\n\r\nc8\r\n" + big + "\r\n0\r\n\r\n",
        ok + "\r\n" + big, ok + "Content-Length: 200\r\n\r\n" + std::string(64, 'x')}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{50}, bytes.size()}) {
      const auto got = read_all(bytes, step, false, cut);
      EXPECT_EQ(got.at, answer_reader::state::done) << bytes;
      EXPECT_EQ(got.answer.status, 200);
      EXPECT_EQ(got.answer.body, std::string(64, 'x'));
      EXPECT_FALSE(got.answer.whole);
      EXPECT_FALSE(got.keep);
    }
  }
  EXPECT_EQ(read_all("HTTP/1.1 200", 3, false, cut).why.code, uncertain::answer_unknown);
}

TEST(AnswerReader, AnAnswerThatBreaksOffIsNone) {
  for (const auto& bytes : {std::string(), std::string("HTTP/1.1 2"), ok, ok + "Content-Length: 5\r\n\r\nhell",
                            ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", std::string("HTTP/1.1 100 Continue\r\n\r\n")}) {
    const auto got = read_all(bytes, 3);
    EXPECT_EQ(got.at, answer_reader::state::refused) << bytes;
    EXPECT_EQ(got.why.code, uncertain::answer_unknown) << bytes;
  }
  // Without a length, only a proper end is one.
  EXPECT_EQ(read_all(ok + "\r\nhell", 3, false, small, false).why.code, uncertain::answer_unknown);
  EXPECT_EQ(read_all(ok + "\r\nhell", 3, false, small, true).answer.body, "hell");
}

TEST(AnswerReader, WhatFollowsUnaskedEndsTheConnection) {
  EXPECT_FALSE(read_all(ok + "Content-Length: 2\r\n\r\nok" + ok + "Content-Length: 0\r\n\r\n", 1000).keep);
  EXPECT_FALSE(read_all("HTTP/1.1 204 No Content\r\n\r\nx", 1000).keep);
}

}  // namespace
}  // namespace recibo::http
