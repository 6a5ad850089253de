// recibo workflow migrate NAME: puts operations under the version of a workflow that the configuration has (decision 7).
#pragma once

#include "commands.hpp"

#include <string>
#include <vector>

namespace recibo::commands {

struct workflow_migration {
  std::string name;
  std::vector<std::string> map;  // "old=new"
  std::string reason, actor;
  bool ended = false, dry_run = false;
};

// The exit code: 1 where operations are left under other versions.
int migrate_workflow(const workflow_migration& asked, context& ctx);

}  // namespace recibo::commands
