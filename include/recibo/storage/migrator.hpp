// Brings the schema up, or down, with the migrations that are part of the binary, and says whether the binary may serve on
// the schema that it finds (decision 13: N−1 serves on schema N).
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/embedded.hpp"
#include "recibo/core/error.hpp"
#include "recibo/core/secret.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::postgres {
class connection;
class pool;
}  // namespace recibo::postgres

namespace recibo {

// The files of migrations/, put into the binary at build time.
std::span<const embedded_file> embedded_migrations();

}  // namespace recibo

namespace recibo::storage {

// One numbered pair of files; borrows their text.
struct migration {
  int version = 0;
  std::string name;  // "0002_operations"
  std::string_view up, down;
  sha256_digest checksum{};   // of `up`
  std::string oldest_binary;  // the oldest binary that may serve once it is applied
};

// Pairs up `NNNN_subject.up.sql` and `.down.sql`, in order of their numbers. Each up file opens with a comment that has a
// line `-- oldest-binary: 0.1.0`. Pure.
// permanent::check_failed   a number twice, half a pair, another name, or no such line
result<std::vector<migration>> read_migrations(std::span<const embedded_file> files);

struct migrate_options {
  bool dry_run = false;        // only say what would be done
  std::optional<int> down_to;  // undo all migrations above this one, newest first
  std::span<const embedded_file> files = embedded_migrations();
  // For all of it: connecting, waiting for another migrator, the work.
  std::chrono::seconds limit{600};
};

struct migration_report {
  int from = 0, to = 0;           // the newest applied version before and after; 0: none
  std::vector<std::string> done;  // names, in the order in which they were, or would be, applied or undone
};

// Applies what is missing, each migration in a transaction of its own, under an advisory lock: of several at once one
// works and the others find nothing left to do. What was applied before must be unchanged. The detail of an error names
// the migration and may quote the server, for the operator's terminal.
// permanent::schema_mismatch         an applied migration has another content, or is not known when going down
// permanent::check_failed            a migration was refused by the server
// permanent::invalid_configuration   the URL cannot be read
// transient::database_away, database_busy
// uncertain::commit_unknown          run it again: it finds the truth
boost::asio::awaitable<result<migration_report>> migrate(boost::asio::any_io_executor executor, secret url, migrate_options how);
// The same, on an io_context of its own: for commands and tests. Blocks.
result<migration_report> migrate(const secret& url, const migrate_options& how = {});

// What the database says about its schema, held against this binary.
struct schema_status {
  int version = 0;            // newest applied; 0: none
  int needed = 0;             // newest that this binary brings
  std::string oldest_binary;  // the most recent demand among the applied migrations
  bool fits = false;
  std::string why;  // a sentence for people, when it does not fit
};

// The newest embedded migration: what this binary needs at least.
int schema_version_needed();

// The service role may ask. transient::… when the database did not answer.
boost::asio::awaitable<result<schema_status>> schema_state(postgres::connection& on, std::chrono::steady_clock::time_point until);
boost::asio::awaitable<result<schema_status>> schema_state(postgres::pool& on, std::chrono::steady_clock::time_point until);

// As numbers: "0.10.0" is newer than "0.9.1". A missing part is 0; what follows a '-' or '+' does not count. Pure.
bool newer_version(std::string_view a, std::string_view b) noexcept;

}  // namespace recibo::storage
