#include "recibo/evidence/invariants.hpp"

#include "operation_checker.hpp"
#include "recibo/core/digest.hpp"

#include <map>
#include <memory>
#include <utility>

namespace recibo::evidence {
namespace {

using boost::asio::awaitable;

class verification {
 public:
  verification(postgres::connection& on, const verify_options& how, const std::function<void(const violation&)>& tell)
      : read_(on), how_(how), tell_(tell) {}

  awaitable<result<verify_report>> run();

 private:
  void report(std::string request_id, std::string_view rule, std::string what);
  void report(std::string_view rule, const std::vector<storage::finding>& findings);
  awaitable<result<void>> load_workflows();
  awaitable<result<void>> check_all();
  awaitable<result<void>> check_one(const std::string& request_id);
  awaitable<result<void>> check_page(const std::vector<storage::verify_operation>& page);
  awaitable<result<void>> start(const storage::verify_operation& o, std::unique_ptr<operation_checker>& checker);
  void finish(operation_checker& checker);

  storage::verify_reader read_;
  const verify_options& how_;
  const std::function<void(const violation&)>& tell_;
  verify_report report_;
  storage::horizon oldest_;
  std::map<std::int64_t, std::shared_ptr<const transition::workflow>> tables_;
  std::vector<storage::verify_item> items_;  // of the operation in hand
};

void verification::report(std::string request_id, std::string_view rule, std::string what) {
  ++report_.violations;
  violation v;
  v.request_id = std::move(request_id);
  v.rule = rule;
  v.what = std::move(what);
  tell_(v);
}

void verification::report(std::string_view rule, const std::vector<storage::finding>& findings) {
  for (const auto& f : findings) report(f.request_id.value_or(f.operation ? to_string(*f.operation) : ""), rule, f.what);
}

awaitable<result<void>> verification::load_workflows() {
  auto all = co_await read_.workflows();
  if (!all) co_return all.error();
  for (const auto& w : *all) {
    auto table = transition::workflow::parse(w.definition);
    const bool sound = table && table->digest() == w.digest && table->version_key() == w.version_key &&
                       sha256(w.definition) == w.digest && table->name() == w.name;
    if (!sound)
      report("", "workflows",
             "the stored version " + std::to_string(w.version_key) + " of " + w.name + " is not what its digest says");
    if (table) tables_.emplace(w.version_key, std::make_shared<const transition::workflow>(std::move(*table)));
  }
  co_return result<void>();
}

awaitable<result<void>> verification::start(const storage::verify_operation& o, std::unique_ptr<operation_checker>& checker) {
  items_.clear();
  if (o.items > 0) {
    auto found = co_await read_.items(o.id);
    if (!found) co_return found.error();
    items_ = std::move(*found);
  }
  const auto find = [this](std::int64_t key) -> const transition::workflow* {
    const auto table = tables_.find(key);
    return table == tables_.end() ? nullptr : table->second.get();
  };
  checker = std::make_unique<operation_checker>(
      o, find, oldest_, [this, &o](std::string_view rule, std::string what) { report(o.request_id, rule, std::move(what)); });
  checker->begin(items_);
  co_return result<void>();
}

void verification::finish(operation_checker& checker) {
  checker.finish(items_);
  report_.retired += checker.retired();
  ++report_.operations;
}

// The audit rows of the page come in the order of their operations, so that one pass meets each with its own.
awaitable<result<void>> verification::check_page(const std::vector<storage::verify_operation>& page) {
  const auto first = page.front().id, last = page.back().id;
  auto current = page.begin();
  std::unique_ptr<operation_checker> checker;
  auto started = co_await start(*current, checker);
  if (!started) co_return started.error();
  operation_id at = first;
  std::int64_t sequence = 0;
  for (bool more = true; more;) {
    auto facts = co_await read_.facts(at, sequence, last, how_.facts_per_page);
    if (!facts) co_return facts.error();
    for (const auto& f : *facts) {
      // Rows of an operation that is gone are found by the whole checks.
      while (current != page.end() && current->id < f.operation) {
        finish(*checker);
        if (++current == page.end()) break;
        started = co_await start(*current, checker);
        if (!started) co_return started.error();
      }
      if (current != page.end() && current->id == f.operation) {
        checker->next(f);
        ++report_.facts;
      }
      at = f.operation;
      sequence = f.sequence;
    }
    more = facts->size() == static_cast<std::size_t>(how_.facts_per_page);
  }
  while (current != page.end()) {
    finish(*checker);
    if (++current == page.end()) break;
    started = co_await start(*current, checker);
    if (!started) co_return started.error();
  }
  auto strays = co_await read_.strays(first, last, oldest_.deliveries);
  if (!strays) co_return strays.error();
  report("references", *strays);
  co_return result<void>();
}

awaitable<result<void>> verification::check_one(const std::string& request_id) {
  auto id = co_await read_.find(request_id);
  if (!id) co_return id.error();
  if (!*id) {
    report_.found = false;
    co_return result<void>();
  }
  auto page = co_await read_.one(**id);
  if (!page) co_return page.error();
  co_return co_await check_page(*page);
}

awaitable<result<void>> verification::check_all() {
  operation_id after;
  while (true) {
    auto page = co_await read_.operations(after, how_.operations_per_page);
    if (!page) co_return page.error();
    if (page->empty()) break;
    after = page->back().id;
    auto checked = co_await check_page(*page);
    if (!checked) co_return checked.error();
  }
  for (const auto& check : storage::whole_checks()) {
    auto findings = co_await read_.whole(check, oldest_, how_.lease_grace.count());
    if (!findings) co_return findings.error();
    report(check.rule, *findings);
  }
  co_return result<void>();
}

awaitable<result<verify_report>> verification::run() {
  auto begun = co_await read_.begin();
  if (!begun) co_return begun.error();
  auto oldest = co_await read_.oldest();
  if (!oldest) co_return oldest.error();
  oldest_ = *oldest;
  auto loaded = co_await load_workflows();
  if (!loaded) co_return loaded.error();
  result<void> checked;
  if (how_.request_id) {
    checked = co_await check_one(*how_.request_id);
  } else {
    checked = co_await check_all();
  }
  if (!checked) co_return checked.error();
  auto ended = co_await read_.end();
  if (!ended) co_return ended.error();
  co_return report_;
}

}  // namespace

awaitable<result<verify_report>> verify_evidence(postgres::connection& on, verify_options how,
                                                 std::function<void(const violation&)> tell) {
  verification v(on, how, tell);
  co_return co_await v.run();
}

}  // namespace recibo::evidence
