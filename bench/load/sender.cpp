#include "sender.hpp"

#include <ctime>

namespace recibo::bench {

using std::chrono::steady_clock;

namespace {

// However slow the machine is, a sender comes far enough for the mix to be what it should.
constexpr std::uint64_t operations_least = 12;

}  // namespace

load::load(plan how)
    : how_(std::move(how)), clock_(context_), words_(how_.run, how_.secret), scheduled_(how_.what, 0, how_.operations) {
  for (std::uint64_t i = 0; i < how_.users; ++i) {
    senders_.emplace_back(new sender{i, connection(context_, how_.callbacks), connection(context_, how_.api),
                                     stream(how_.what, i, how_.operations)});
  }
  if (!how_.book.empty()) book_ = std::fopen(how_.book.c_str(), "w");
}

load::~load() {
  if (book_) std::fclose(book_);
}

bool load::run() {
  for (auto& s : senders_) {
    if (how_.what != phase::registers && !s->callbacks.open()) return false;
    if (how_.what != phase::callbacks && !s->api.open()) return false;
  }
  began_ = last_ = steady_clock::now();
  if (how_.rate > 0) {
    for (auto& s : senders_) idle_.push_back(s.get());
    fall_due();
  } else {
    for (auto& s : senders_) go_on(*s);
  }
  context_.run();
  report_.seconds = std::chrono::duration<double>(last_ - began_).count();
  return true;
}

void load::go_on(sender& who) {
  if (how_.time.count() > 0 && who.steps.operations() >= operations_least && steady_clock::now() - began_ >= how_.time) return;
  if (const auto what = who.steps.next()) send(who, *what, steady_clock::now());
}

std::string load::request(const step& what) {
  if (what.what == step_kind::registration) {
    const auto body = words_.registration_body(what);
    return "POST /v1/operations HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
           how_.token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  const auto body = words_.callback_body(what);
  const auto timestamp = std::to_string(std::time(nullptr));
  auto signature = words_.signature(timestamp, body);
  if (what.what == step_kind::badly_signed) signature[0] = signature[0] == '0' ? '1' : '0';
  return "POST " + how_.callbacks_path +
         " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nX-Timestamp: " + timestamp +
         "\r\nX-Signature: sha256=" + signature + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

void load::send(sender& who, const step& what, instant due) {
  auto& through = what.what == step_kind::registration ? who.api : who.callbacks;
  through.exchange(request(what), [this, &who, what, due](const answer& got) {
    take(what, got, due);
    if (how_.rate > 0) {
      idle_.push_back(&who);
      hand_out();
    } else {
      go_on(who);
    }
  });
}

void load::take(const step& what, const answer& got, instant due) {
  last_ = steady_clock::now();
  const bool accepted = got.status >= 200 && got.status < 300;
  const bool registration = what.what == step_kind::registration;
  std::string word = got.replayed ? "duplicate" : registration ? "registered" : got.disposition;
  if (got.status == 0) word = "unanswered";
  if (got.status >= 300) word = "HTTP " + std::to_string(got.status);
  ++report_.answers[word];
  if (!accepted) return;
  if (registration) {
    ++report_.registrations;
  } else {
    ++report_.callbacks;
    report_.latencies_us.push_back(
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::microseconds>(last_ - due).count()));
  }
  if (!book_) return;
  const auto id = words_.request_id(what);
  if (registration) {
    std::fprintf(book_, "%s\t\t%s\n", id.c_str(), word.c_str());
  } else {
    std::fprintf(book_, "%s\t%s\t%s\n", id.c_str(), words_.key(what).c_str(), word.c_str());
  }
}

void load::fall_due() {
  const auto at = [&](std::uint64_t n) {
    return began_ +
           std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(static_cast<double>(n) / how_.rate));
  };
  const auto now = steady_clock::now();
  while (!over_ && at(fallen_due_) <= now) {
    const auto what = scheduled_.next();
    if (!what || (how_.time.count() > 0 && at(fallen_due_) - began_ >= how_.time)) {
      over_ = true;
    } else {
      due_.emplace_back(*what, at(fallen_due_++));
    }
  }
  hand_out();
  if (over_) return;
  clock_.expires_at(at(fallen_due_));
  clock_.async_wait([this](boost::system::error_code) { fall_due(); });
}

void load::hand_out() {
  while (!due_.empty() && !idle_.empty()) {
    auto* who = idle_.back();
    idle_.pop_back();
    const auto [what, due] = due_.front();
    due_.pop_front();
    send(*who, what, due);
  }
}

}  // namespace recibo::bench
