// What verifying one callback costs: 600-byte bodies, each preset of the HMAC and hash kinds, in microseconds of CPU, as JSON.
#include "recibo/core/digest.hpp"
#include "recibo/verify/verifier.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

using namespace recibo;

constexpr std::size_t body_bytes = 600;
constexpr int rounds = 7;

double cpu_us() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e6 + static_cast<double>(at.tv_nsec) / 1e3;
}

// A secret in the form that the scheme's key rule asks for.
secret secret_for(const verify::scheme& how) {
  const std::string bytes(32, 'k');
  switch (how.key.encoding) {
    case verify::text_encoding::utf8:
    case verify::text_encoding::html: return secret(bytes);  // no entity stands in it
    case verify::text_encoding::base64: return secret(how.key.strip_prefix + to_base64(bytes));
    case verify::text_encoding::hex: return secret(to_hex(bytes));
    case verify::text_encoding::pem: break;  // a public key, which no hash has
  }
  std::abort();
}

std::string body_of_600_bytes() {
  std::string out =
      R"({"id":"evt_1","type":"payment.completed","webhookTimestamp":1,"data":{"object":"charge","amount":"19.99"},"note":")";
  out.resize(body_bytes - 2, 'x');
  return out + "\"}";
}

// Median over the rounds; negative when the scheme signs inside the body or asks for what is not in this request.
double cost_us(const verify::scheme& how, int times) {
  const auto at = now();
  verify::named_secret current;
  current.name = "current";
  current.text = secret_for(how);
  if (!verify::prepare(how, current)) return -1;
  verify::keyring keys;
  keys.secrets.push_back(std::move(current));
  const std::string body = body_of_600_bytes();
  // What most senders add to a request beside the signature.
  std::vector<std::pair<std::string, std::string>> headers{
      {"Host", "hooks.example.com"},        {"User-Agent", "provider/1.0"}, {"Accept", "*/*"},
      {"Content-Type", "application/json"}, {"webhook-id", "msg_2abc"},     {"svix-id", "msg_2abc"}};
  verify::signed_message message{"POST", "https://hooks.example.com/callbacks/p", "", headers, body};
  auto signature = verify::sign(how, message, keys.secrets.front(), at);
  if (!signature) return -1;
  headers.insert(headers.end(), signature->begin(), signature->end());
  message.headers = headers;
  if (!verify::verify(how, message, keys, at)) return -1;
  std::array<double, rounds> costs{};
  for (auto& cost : costs) {
    const double began = cpu_us();
    for (int i = 0; i < times; ++i)
      if (!verify::verify(how, message, keys, at)) std::abort();
    cost = (cpu_us() - began) / times;
  }
  std::nth_element(costs.begin(), costs.begin() + rounds / 2, costs.end());
  return costs[rounds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 20'000;
  if (times < 1) return std::fputs("usage: recibo_bench_verify [TIMES]\n", stderr), 2;
  const char* separator = "{";
  for (const auto& [name, how] : verify::presets()) {
    if (how.kind != verify::scheme_kind::hmac && how.kind != verify::scheme_kind::hash) continue;
    const double cost = cost_us(how, times);
    if (cost < 0) continue;
    std::printf("%s\"%s\":%.3f", separator, name.c_str(), cost);
    separator = ",";
  }
  std::puts("}");
  return 0;
}
