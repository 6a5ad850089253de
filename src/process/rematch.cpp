#include "recibo/process/rematch.hpp"

#include "recibo/observe/log.hpp"

namespace recibo::process {
namespace {

namespace oid = postgres::oid;
constexpr std::chrono::seconds time_limit{5};
constexpr std::int32_t operations_max = 100;

const postgres::statement find_missed{
    "find_missed",
    "SELECT request_id FROM ("
    "SELECT o.request_id FROM recibo.parked_identities i JOIN recibo.operations o ON o.request_id = i.identity AND o.provider = "
    "i.provider "
    "WHERE i.kind = 'request_id' AND i.provider = ANY($2) "
    "UNION "
    "SELECT o.request_id FROM recibo.parked_identities i JOIN recibo.parked p ON p.id = i.parked AND p.request_id IS NULL "
    "JOIN recibo.aliases a ON a.provider = i.provider AND a.alias = i.identity JOIN recibo.operations o ON o.id = a.operation "
    "WHERE i.kind = 'reference' AND i.provider = ANY($2)) missed LIMIT $1",
    {oid::int4, oid::text_array}};

}  // namespace

boost::asio::awaitable<int> rematch_once(postgres::pool& pool, const config::snapshot& settings, const record_function& record) {
  postgres::parameters with;
  // Of providers that are still configured: for others nobody can say what an event means.
  postgres::binary_array providers(oid::text);
  for (const auto& [name, p] : settings.get()->providers) providers.add(name);
  with.int4(operations_max).array(std::move(providers));
  const auto missed = co_await pool.query(find_missed, std::move(with), std::chrono::steady_clock::now() + time_limit);
  if (!missed) co_return 0;
  int done = 0;
  for (int i = 0; i < missed->size(); ++i) {
    record::rematch work;
    work.settings = settings.get();
    work.request_id = missed->string(i, 0);
    const auto applied = co_await record(std::move(work), std::chrono::steady_clock::now() + time_limit);
    if (!applied) {
      log::warn("re-match put off", {{"code", code_word(applied.error().code)}});
      continue;
    }
    log::warn("parked callbacks were met late", {{"request_id", applied->request_id}});
    ++done;
  }
  co_return done;
}

}  // namespace recibo::process
