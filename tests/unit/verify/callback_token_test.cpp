// Callback URLs' tokens: one operation at one provider, for a time (R42).
#include "recibo/verify/callback_token.hpp"

#include "recibo/core/digest.hpp"

#include <gtest/gtest.h>

#include <set>

namespace recibo::verify {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const sys_micros noon = sys_micros(std::chrono::seconds(1'790'848'800));

named_secret named(std::string name, std::string text) {
  named_secret out;
  out.name = std::move(name);
  out.text = secret(std::move(text));
  return out;
}

keyring ring() { return {{named("new", std::string(32, 'n')), named("old", std::string(32, 'o'))}}; }

std::string minted(const keyring& keys, std::optional<sys_micros> expires = noon + hours(1)) {
  return mint_callback_token(keys, "faxes", "req-1", expires, noon);
}

// "request ID by secret", or the word of the refusal.
std::string judged(const keyring& keys, std::string_view provider, std::string_view token, sys_micros now = noon) {
  const auto read = verify_callback_token(keys, provider, token, now);
  return read ? read->request_id + " by " + read->secret_name : std::string(code_word(read.error().code));
}

TEST(CallbackToken, NamesItsOperationAndItsSecret) {
  EXPECT_EQ(judged(ring(), "faxes", minted(ring())), "req-1 by new");
  EXPECT_EQ(minted(ring()), minted(ring())) << "asked again, it is the same";
  EXPECT_NE(minted(ring()), minted(ring(), noon + hours(2)));
}

TEST(CallbackToken, IsOfOneProvider) { EXPECT_EQ(judged(ring(), "letters", minted(ring())), "signature_mismatch"); }

TEST(CallbackToken, TakesIdentitiesOfEveryLengthAndNeverMixesFields) {
  for (const std::size_t length : {std::size_t(1), std::size_t(36), std::size_t(255)}) {
    const std::string id(length, 'x');
    const auto token = mint_callback_token(ring(), "p", id, std::nullopt, noon);
    EXPECT_LE(token.size(), callback_token_max);
    EXPECT_EQ(judged(ring(), "p", token), id + " by new");
  }
  // Joined as text, these two would be one.
  auto moved = *from_base64url(mint_callback_token(ring(), "p", "qr", std::nullopt, noon));
  moved.erase(moved.size() - 2, 1);
  EXPECT_EQ(judged(ring(), "pq", to_base64url(moved)), "signature_mismatch");
}

TEST(CallbackToken, EveryChangedBitAndEveryCutIsRefused) {
  const std::string token = minted(ring());
  const std::string bytes = *from_base64url(token);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(judged(ring(), "faxes", to_base64url(changed)), "signature_mismatch") << "bit " << bit;
  }
  for (std::size_t size = 0; size < token.size(); ++size)
    EXPECT_EQ(judged(ring(), "faxes", token.substr(0, size)), "signature_mismatch") << size;
}

TEST(CallbackToken, HasOneSpelling) {
  const std::string id = "req-22";  // 47 bytes: one character of padding
  const auto token = mint_callback_token(ring(), "faxes", id, std::nullopt, noon);
  EXPECT_EQ(judged(ring(), "faxes", token), id + " by new");
  for (const auto& other : {token + "=", token + "A", token + "%20", " " + token, token + "/"})
    EXPECT_EQ(judged(ring(), "faxes", other), "signature_mismatch") << other;
  // The last character of 47 bytes carries two bits that mean nothing.
  std::string loose = token;
  loose.back() = static_cast<char>(loose.back() + 1);
  EXPECT_EQ(judged(ring(), "faxes", loose), "signature_mismatch");
  EXPECT_EQ(judged(ring(), "faxes", std::string(100'000, 'A')), "signature_mismatch");
}

TEST(CallbackToken, EndsWithTheSecondItNames) {
  const std::string token = minted(ring(), noon + seconds(10));
  EXPECT_EQ(judged(ring(), "faxes", token, noon + seconds(9)), "req-1 by new");
  EXPECT_EQ(judged(ring(), "faxes", token, noon + seconds(10)), "timestamp_stale");
  EXPECT_EQ(judged(ring(), "faxes", minted(ring(), std::nullopt), noon + hours(24 * 36500)), "req-1 by new");
}

TEST(CallbackToken, RotatesWithoutAGap) {
  keyring before{{named("old", std::string(32, 'o'))}};
  const std::string token = minted(before);
  EXPECT_EQ(judged(ring(), "faxes", token), "req-1 by old") << "the second secret of the ring";
  EXPECT_EQ(judged(ring(), "faxes", minted(ring())), "req-1 by new") << "new ones are made with the first";
  keyring after = ring();
  after.secrets[1].until = noon;
  EXPECT_EQ(judged(after, "faxes", token), "signature_mismatch");
  after.secrets[0].from = noon + seconds(1);
  EXPECT_EQ(minted(after), "") << "no secret is valid";
  EXPECT_EQ(judged({}, "faxes", token), "signature_mismatch");
  // An empty text is no key: anybody could compute with it.
  keyring empty{{named("empty", "")}};
  EXPECT_EQ(minted(empty), "");
}

}  // namespace
}  // namespace recibo::verify
