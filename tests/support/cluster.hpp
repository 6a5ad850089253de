// A private PostgreSQL: its own data folder and socket folder, started as user postgres when we are root, stopped and
// removed at the end, and by the kernel when this process is killed.
#pragma once

#include "recibo/core/secret.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::test {

class cluster {
 public:
  struct options {
    bool fsync = false;                 // off for speed; on where a test kills the server
    bool tcp = false;                   // also listen on 127.0.0.1
    std::vector<std::string> settings;  // more "name=value"
  };
  enum class how {
    fast,       // sessions are ended, then a clean stop
    immediate,  // as a crash: recovery at the next start
  };

  cluster() : cluster(options{}) {}
  // From the main thread: the kernel ends the server when the thread that started it ends.
  // Makes and starts it; throws std::runtime_error with the server's log when it does not come up.
  explicit cluster(options o);
  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  // The one that all tests of this process share; started at the first call. Nobody stops or kills it.
  static cluster& shared();
  static void end_shared();

  void start();
  void stop(how h = how::fast);
  bool running() const noexcept { return server_ > 0; }

  // Over the unix socket; superuser `recibo` owns everything.
  std::string url(std::string_view database = "postgres", std::string_view user = "recibo") const;
  std::string tcp_url(std::string_view database = "postgres", std::string_view user = "recibo") const;
  int tcp_port() const noexcept { return port_; }
  const std::filesystem::path& socket_folder() const noexcept { return socket_; }

  // Runs SQL in `database` and returns the first column of the first row, or "". Throws on an error.
  std::string sql(std::string_view database, const std::string& text) const;

 private:
  void initialise();
  std::string log() const;
  options options_;
  std::filesystem::path base_, data_, socket_, bin_;
  std::vector<std::string> as_;
  int port_ = 0;
  pid_t server_ = -1;
};

// A database of its own for one test, dropped at the end.
class database {
 public:
  enum class content {
    migrated,  // all migrations applied: a clone of a template, made once (0.1 s)
    empty,     // nothing in it
  };
  explicit database(content c = content::migrated, cluster& in = cluster::shared());
  ~database();
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  const std::string& name() const noexcept { return name_; }
  // As the owner, and as the role under which the service runs.
  secret url() const { return secret(in_.url(name_)); }
  secret service_url() const { return secret(in_.url(name_, "recibo_service")); }
  std::string sql(const std::string& text) const { return in_.sql(name_, text); }

 private:
  cluster& in_;
  std::string name_;
};

}  // namespace recibo::test
