// recibo_load: sends registrations and callbacks as fast as they are answered, or at a constant rate, and prints what came of
// it as JSON. Also holds idle connections open. Loopback only: it is for measuring, not for use against anybody.
#include "sender.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

namespace {

using namespace recibo::bench;
using boost::asio::ip::tcp;

tcp::endpoint loopback(std::uint16_t port) { return {boost::asio::ip::address_v4::loopback(), port}; }

std::uint32_t quantile(const std::vector<std::uint32_t>& sorted, double q) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

void print(const report& what) {
  auto sorted = what.latencies_us;
  std::sort(sorted.begin(), sorted.end());
  std::printf(R"({"seconds":%.6f,"registrations":%llu,"callbacks":%llu,"p50_us":%u,"p99_us":%u,"max_us":%u,"answers":{)",
              what.seconds, static_cast<unsigned long long>(what.registrations), static_cast<unsigned long long>(what.callbacks),
              quantile(sorted, 0.5), quantile(sorted, 0.99), sorted.empty() ? 0 : sorted.back());
  const char* separator = "";
  for (const auto& [word, count] : what.answers) {
    std::printf(R"(%s"%s":%llu)", separator, word.c_str(), static_cast<unsigned long long>(count));
    separator = ",";
  }
  std::puts("}}");
}

// Opens connections, has each one answered once, and holds them until the input ends.
int hold_idle(std::uint16_t port, std::size_t count) {
  boost::asio::io_context context(1);
  std::vector<std::unique_ptr<connection>> held;
  std::size_t answered = 0;
  for (std::size_t i = 0; i < count; ++i) {
    held.push_back(std::make_unique<connection>(context, loopback(port)));
    if (!held.back()->open()) return std::fprintf(stderr, "connection %zu was refused\n", i), 1;
    held.back()->exchange("GET /livez HTTP/1.1\r\nHost: bench\r\n\r\n",
                          [&](const answer& got) { answered += got.status == 200; });
    context.restart();
    context.run();
  }
  std::printf("{\"held\":%zu}\n", answered);
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  return answered == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Sends signed callbacks to this machine and counts the answers."};
  plan how;
  std::uint16_t callbacks = 0, api = 0;
  std::int64_t milliseconds = 10'000;
  std::size_t idle = 0;
  const std::map<std::string, phase> phases{
      {"mix", phase::mix}, {"registers", phase::registers}, {"callbacks", phase::callbacks}};
  app.add_option("--callbacks", callbacks, "port of the callbacks listener")->required();
  app.add_option("--api", api, "port of the API listener");
  app.add_option("--path", how.callbacks_path, "path of the callbacks");
  app.add_option("--token", how.token, "bearer token for registrations");
  app.add_option("--secret", how.secret, "of the signature");
  app.add_option("--run", how.run, "begins every name, so that runs do not meet");
  app.add_option("--phase", how.what, "what is sent")->transform(CLI::CheckedTransformer(phases));
  app.add_option("--users", how.users, "senders, with a connection to each listener");
  app.add_option("--operations", how.operations, "operations of each sender; with a rate: of all");
  app.add_option("--time", milliseconds, "milliseconds; 0: until all operations are through");
  app.add_option("--rate", how.rate, "steps a second, open loop; 0: closed loop");
  app.add_option("--book", how.book, "file for every accepted ID");
  app.add_option("--idle", idle, "only hold so many idle connections until the input ends");
  CLI11_PARSE(app, argc, argv);
  if (idle > 0) return hold_idle(callbacks, idle);
  how.callbacks = loopback(callbacks);
  how.api = loopback(api);
  how.time = std::chrono::milliseconds(milliseconds);
  load sending(std::move(how));
  if (!sending.run()) return std::fputs("no connection\n", stderr), 1;
  print(sending.result());
  return 0;
}
