// Reads the configuration file into settings, all or nothing, and says everything that is wrong with it at once (R32, R38).
// May be called again at any time: a reload is a second load_file() whose settings replace the first's.
#pragma once

#include "recibo/config/settings.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::config {

enum class severity {
  error,    // the configuration is refused
  warning,  // it is taken, and somebody should know
};

// One thing that is wrong, and where. The message never holds a secret, nor what `${NAME}` stood for.
struct diagnostic {
  std::string file;
  int line = 0;    // from 1; 0: the file as a whole
  int column = 0;  // from 1, in characters
  std::string message;
  config::severity severity = config::severity::error;
};

// "config/recibo.yaml:12:5: error: …", as compilers say it, so that editors jump there.
std::string to_string(const diagnostic& d);

// How `${NAME}` and `{env: NAME}` are looked up; nullopt: not set.
using environment = std::function<std::optional<std::string>(const std::string& name)>;
// The environment of this process.
environment process_environment();

// Where settings came from, to read their secrets again and nothing else.
struct origin {
  secret text;                   // of the file
  std::filesystem::path folder;  // where its `{file: …}` start
  // Files and folders of secrets that were read.
  std::vector<std::filesystem::path> watched;
};

struct loaded {
  // Both are set exactly when `problems` is empty.
  std::shared_ptr<const config::settings> settings;
  std::shared_ptr<const config::origin> origin;
  // Both in the order of the file.
  std::vector<diagnostic> problems, warnings;
};

// Never throws. Files named by `{file: …}` are relative to the folder of `path`. Reads no database and no network.
// `database.url` may be absent (a warning): who needs the database looks at settings.database.url.empty().
// `kinds`: a service that runs already waits for nobody at the other end of a pipe.
enum class file_kinds { any, regular };
loaded load_file(const std::filesystem::path& path, const environment& env = process_environment(),
                 file_kinds kinds = file_kinds::any);

// The same for text that is already in memory; `name` stands in the diagnostics, `folder` is where `{file: …}` starts.
loaded load_text(const std::string& name, std::string_view text, const std::filesystem::path& folder,
                 const environment& env = process_environment());

// The same configuration with its secrets, environment and files read again: edits of the file itself wait until somebody
// asks for them. `name` stands in the diagnostics.
loaded load_again(const std::string& name, const origin& in_force, const environment& env = process_environment());

// What the files and folders of `paths` look like from outside: another value when one was replaced, written, added or
// removed, links followed. Reads no content.
std::string look_of(const std::vector<std::filesystem::path>& paths);

// The settings as JSON for GET /v1/config, in the shape of the file: secrets as their names, URLs of the database as set or
// not (a password may stand anywhere in them), digests of tokens left out.
std::string effective_json(const settings& s);

}  // namespace recibo::config
