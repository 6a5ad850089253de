// recibo migrate, as far as it goes without a database.
#include "../src/commands/commands.hpp"

#include "recibo/config/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace recibo::commands::migrate_cases {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct result {
  int code = -1;
  std::string out, err;
};

class Migrate : public testing::Test {
 protected:
  Migrate() {
    std::string name = (std::filesystem::temp_directory_path() / "recibo-migrate-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Migrate() override { std::filesystem::remove_all(folder_); }

  result run(const std::string& database, std::vector<std::string> args) {
    const auto config = folder_ / "recibo.yaml";
    std::ofstream(config) << "database: " << database << "\n";
    std::ostringstream out, err;
    context ctx;
    ctx.config = config;
    ctx.out = &out;
    ctx.err = &err;
    CLI::App app("test", "recibo");
    add_migrate(app, ctx);
    args.insert(args.begin(), {"recibo", "migrate"});
    std::vector<const char*> argv;
    for (const auto& arg : args) argv.push_back(arg.c_str());
    const int code = run_app(app, ctx, static_cast<int>(argv.size()), argv.data());
    return {code, out.str(), err.str()};
  }

 private:
  std::filesystem::path folder_;
};

constexpr const char* nobody = "{url: 'postgresql://u:hunter2@127.0.0.1:1/none'}";

TEST_F(Migrate, DatabaseThatIsAwayIsThree) {
  const auto r = run(nobody, {});
  EXPECT_EQ(r.code, exit_away) << r.err;
  EXPECT_THAT(r.err, HasSubstr("database_away"));
  EXPECT_THAT(r.err, Not(HasSubstr("hunter2")));
  EXPECT_EQ(r.out, "");
}

TEST_F(Migrate, TheOwnersUrlComesFirst) {
  const auto r = run("{url: 'postgresql://u@127.0.0.1:1/none', owner_url: 'postgresql://u:hunter2@h:1%zz/none'}", {});
  EXPECT_EQ(r.code, exit_wrong) << r.err;  // the owner's cannot be read; the other one would be away
  EXPECT_THAT(r.err, Not(HasSubstr("hunter2")));
}

TEST_F(Migrate, UndoingWantsAYes) {
  const auto refused = run(nobody, {"--down-to", "0"});
  EXPECT_EQ(refused.code, exit_wrong);
  EXPECT_THAT(refused.err, HasSubstr("--yes"));
  EXPECT_EQ(run(nobody, {"--down-to", "0", "--yes"}).code, exit_away);
  EXPECT_EQ(run(nobody, {"--down-to", "0", "--dry-run"}).code, exit_away);
}

TEST_F(Migrate, NegativeVersionIsWrongUse) { EXPECT_EQ(run(nobody, {"--down-to", "-1"}).code, exit_wrong); }

}  // namespace
}  // namespace recibo::commands::migrate_cases
