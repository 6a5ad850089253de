#include "support/cluster.hpp"

#include "recibo/storage/migrator.hpp"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace recibo::test {
namespace fs = std::filesystem;
namespace {

constexpr int socket_port = 5432;  // part of the socket's name, when there is no TCP
constexpr const char* template_name = "recibo_template";

// The newest installed server.
fs::path programs() {
  if (const char* given = std::getenv("RECIBO_PG_BIN")) return given;
  fs::path best;
  int newest = 0;
  const fs::path root = "/usr/lib/postgresql";
  if (fs::exists(root)) {
    for (const auto& entry : fs::directory_iterator(root)) {
      const int version = std::atoi(entry.path().filename().c_str());
      if (version > newest && fs::exists(entry.path() / "bin/postgres")) {
        newest = version;
        best = entry.path() / "bin";
      }
    }
  }
  if (best.empty()) throw std::runtime_error("PostgreSQL is not installed (no /usr/lib/postgresql/*/bin/postgres)");
  return best;
}

pid_t spawn(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool bound =
      bind(s, reinterpret_cast<sockaddr*>(&at), size) == 0 && getsockname(s, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  close(s);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(at.sin_port);
}

std::unique_ptr<cluster>& shared_one() {
  static std::unique_ptr<cluster> one;
  return one;
}

}  // namespace

cluster::cluster(options o) : options_(std::move(o)), bin_(programs()), as_{"setpriv"} {
  std::string name = (fs::temp_directory_path() / "rcb-pg-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  base_ = name;
  data_ = base_ / "data";
  socket_ = base_ / "s";
  if (socket_.string().size() > 90)
    throw std::runtime_error("the socket folder has too long a path: set TMPDIR to a shorter one");
  try {
    initialise();
    start();
  } catch (...) {
    stop(how::immediate);
    fs::remove_all(base_);
    throw;
  }
}

cluster::~cluster() {
  stop(how::immediate);
  std::error_code ignored;
  fs::remove_all(base_, ignored);
}

void cluster::initialise() {
  fs::create_directory(data_);
  fs::create_directory(socket_);
  fs::permissions(data_, fs::perms::owner_all);
  if (geteuid() == 0) {  // PostgreSQL refuses to run as root
    const passwd* postgres = getpwnam("postgres");
    if (!postgres) throw std::runtime_error("there is no user postgres");
    fs::permissions(base_, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
    for (const auto& folder : {data_, socket_}) {
      if (chown(folder.c_str(), postgres->pw_uid, postgres->pw_gid) != 0) throw std::runtime_error("chown failed");
    }
    as_.insert(as_.end(), {"--reuid=postgres", "--regid=postgres", "--init-groups", "--inh-caps=+dac_override",
                           "--ambient-caps=+dac_override"});
  }
  auto words = as_;
  words.insert(words.end(), {bin_ / "initdb", "-D", data_, "-U", "recibo", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
                             "--no-instructions"});
  if (wait_for(spawn(words, base_ / "log")) != 0) throw std::runtime_error("initdb failed: " + log());
}

void cluster::start() {
  if (port_ == 0) port_ = options_.tcp ? free_port() : socket_port;
  auto words = as_;
  words.insert(words.end(), {"--pdeathsig=INT", bin_ / "postgres", "-D", data_, "-k", socket_, "-p", std::to_string(port_)});
  const std::string on_off = options_.fsync ? "on" : "off";
  std::vector<std::string> settings{options_.tcp ? "listen_addresses=127.0.0.1" : "listen_addresses=", "fsync=" + on_off,
                                    "full_page_writes=" + on_off, "shared_buffers=32MB", "max_connections=100"};
  settings.insert(settings.end(), options_.settings.begin(), options_.settings.end());
  for (auto& s : settings) words.insert(words.end(), {"-c", std::move(s)});
  server_ = spawn(words, base_ / "log");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (PQping(url().c_str()) != PQPING_OK) {
    int status = 0;
    if (waitpid(server_, &status, WNOHANG) == server_) {
      server_ = -1;
      throw std::runtime_error("postgres ended: " + log());
    }
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("postgres does not come up: " + log());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void cluster::stop(how h) {
  if (server_ <= 0) return;
  kill(server_, h == how::fast ? SIGINT : SIGQUIT);
  wait_for(server_);
  server_ = -1;
}

std::string cluster::url(std::string_view name, std::string_view user) const {
  std::ostringstream out;
  out << "postgresql://" << user << "@/" << name << "?host=" << socket_.string() << "&port=" << port_;
  return out.str();
}

std::string cluster::tcp_url(std::string_view name, std::string_view user) const {
  std::ostringstream out;
  out << "postgresql://" << user << "@127.0.0.1:" << port_ << "/" << name;
  return out.str();
}

std::string cluster::sql(std::string_view name, const std::string& text) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> c(PQconnectdb(url(name).c_str()), &PQfinish);
  PQsetNoticeProcessor(
      c.get(), [](void*, const char*) {}, nullptr);
  const std::unique_ptr<PGresult, decltype(&PQclear)> r(PQexec(c.get(), text.c_str()), &PQclear);
  const auto status = PQresultStatus(r.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) throw std::runtime_error(PQerrorMessage(c.get()));
  return PQntuples(r.get()) > 0 ? PQgetvalue(r.get(), 0, 0) : "";
}

std::string cluster::log() const {
  std::ifstream in(base_ / "log");
  return {std::istreambuf_iterator<char>(in), {}};
}

cluster& cluster::shared() {
  auto& one = shared_one();
  if (!one) one = std::make_unique<cluster>();
  return *one;
}

void cluster::end_shared() { shared_one().reset(); }

database::database(content c, cluster& in) : in_(in) {
  static int count = 0;
  name_ = "test_" + std::to_string(++count);
  std::string from = "template0";
  if (c == content::migrated) {
    from = template_name;
    const bool there =
        in_.sql("postgres", std::string("SELECT 1 FROM pg_database WHERE datname = '") + template_name + "'") == "1";
    if (!there) {
      in_.sql("postgres", std::string("CREATE DATABASE ") + template_name);
      const auto done = storage::migrate(secret(in_.url(template_name)));
      if (!done) {
        in_.sql("postgres", std::string("DROP DATABASE ") + template_name + " WITH (FORCE)");
        throw std::runtime_error("the migrations failed: " + done.error().detail);
      }
    }
  }
  in_.sql("postgres", "CREATE DATABASE " + name_ + " TEMPLATE " + from + " STRATEGY wal_log");
}

database::~database() {
  if (!in_.running()) return;
  try {
    in_.sql("postgres", "DROP DATABASE " + name_ + " WITH (FORCE)");
  } catch (const std::exception&) {
    // The cluster goes away with all of its databases.
  }
}

}  // namespace recibo::test
