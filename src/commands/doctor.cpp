// recibo doctor: is everything there that serving needs? With --live or --ready it asks an instance that runs, so that a
// container without curl can be watched.
#include "commands.hpp"

#include "exchange.hpp"
#include "wait.hpp"

#include "recibo/app/look.hpp"
#include "recibo/config/load.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/strays.hpp"

#include <CLI/CLI.hpp>

#include <ostream>
#include <vector>

namespace recibo::commands {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// For the database to answer, all in all.
constexpr std::chrono::seconds database_patience{5};
constexpr milliseconds health_patience{3'000};

struct doctor_wishes {
  bool live = false, ready = false, json = false;
  std::string url;
  tls_manners tls;
  bool insecure = false;
};

// One line of what was found.
struct finding {
  std::string check;
  bool fine = true;
  std::string detail;
};

class findings {
 public:
  void add(std::string check, bool fine, std::string detail) {
    all_.push_back({std::move(check), fine, std::move(detail)});
    fine_ = fine_ && fine;
  }
  bool fine() const noexcept { return fine_; }

  void print(std::ostream& to, bool json) const {
    if (json) {
      json_writer out;
      out.begin_object().flag("fine", fine_).key("checks").begin_array();
      for (const finding& f : all_)
        out.begin_object().text("check", f.check).flag("fine", f.fine).text("detail", f.detail).end_object();
      out.end_array().end_object();
      to << out.str() << '\n';
      return;
    }
    for (const finding& f : all_) {
      const std::string name = f.check + std::string(f.check.size() < 14 ? 14 - f.check.size() : 1, ' ');
      to << (f.fine ? "fine   " : "WRONG  ") << name << f.detail << '\n';
    }
  }

 private:
  std::vector<finding> all_;
  bool fine_ = true;
};

std::string counted(std::int64_t n, const char* one) { return std::to_string(n) + " " + one + (n == 1 ? "" : "s"); }

std::string milliseconds_text(std::chrono::microseconds d) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(std::chrono::abs(d)).count()) + " ms";
}

// What the configuration says, with every problem and warning. nullptr: it is refused.
std::shared_ptr<const config::settings> look_at_configuration(const std::string& file, findings& to) {
  const auto loaded = config::load_file(file);
  for (const auto& p : loaded.problems) to.add("configuration", false, to_string(p));
  for (const auto& w : loaded.warnings) to.add("configuration", true, to_string(w));
  if (!loaded.settings) return nullptr;
  const config::settings& s = *loaded.settings;
  if (s.database.url.empty()) {
    to.add("configuration", false, "database.url is needed to serve");
    return nullptr;
  }
  to.add("configuration", true,
         file + ": " + counted(static_cast<std::int64_t>(s.providers.size()), "provider") + ", " +
             counted(static_cast<std::int64_t>(s.workflows.size()), "workflow"));
  return loaded.settings;
}

// False: the database is away.
bool look_at_database(const config::settings& s, findings& to) {
  boost::asio::io_context context;
  postgres::pool pool(context.get_executor(), s.database.url, 1);
  const auto began = steady_clock::now();
  const app::look seen = wait_for(context, app::look_at(pool, s, false, began + database_patience));
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - began);
  result<std::vector<storage::stray_destination>> strays;
  if (seen.reached && seen.schema_fits) {
    std::vector<std::string> configured;
    for (const auto& [name, of] : s.destinations) configured.push_back(name);
    context.restart();
    strays = wait_for(context, storage::find_strays(pool, std::move(configured), began + database_patience));
  }
  pool.close();
  if (!seen.reached) {
    const error why = seen.why_not.value_or(error(transient::database_away));
    to.add("database", false, std::string(code_word(why.code)) + (why.detail.empty() ? "" : ": " + why.detail));
    return false;
  }
  to.add("database", !seen.read_only,
         seen.read_only ? "it can be read but not written: a standby, or made read-only"
                        : "answered within " + milliseconds_text(took));
  to.add("schema", seen.schema_fits, seen.schema_fits ? "fits this binary (" RECIBO_VERSION ")" : seen.schema_why);
  if (!seen.schema_fits) return true;
  to.add("partitions", seen.partitions_ahead >= app::partitions_ahead_min,
         counted(seen.partitions_ahead / std::chrono::hours(24), "day") + " ahead");
  to.add("clock", std::chrono::abs(seen.clock_skew) <= seen.clock_skew_max,
         milliseconds_text(seen.clock_skew) + " from the database's; " + milliseconds_text(seen.clock_skew_max) + " are borne");
  if (!strays)
    to.add("destinations", false, std::string(storage::strays_unknown));
  else
    for (const auto& one : *strays)
      if (one.waiting > 0) to.add("destinations", false, storage::told(one));
  return true;
}

int examine(context& ctx, const doctor_wishes& w) {
  findings found;
  const auto settings = look_at_configuration(ctx.config, found);
  const bool reached = settings && look_at_database(*settings, found);
  found.print(*ctx.out, w.json);
  if (!settings) return exit_wrong;
  if (!reached) return exit_away;
  return found.fine() ? exit_fine : exit_not_so;
}

// The URL to ask; empty, with the complaint made, when there is none.
std::string health_url(context& ctx, const doctor_wishes& w) {
  const char* const path = w.live ? "/livez" : "/readyz";
  std::string url = w.url;
  if (url.empty()) {
    const auto settings = load_settings(ctx);
    if (!settings) return {};
    // The listener that asks the least of its clients.
    const auto demanding = [](const config::listener& l) {
      return l.proxy_protocol || (l.tls && l.tls->context->asks_clients());
    };
    const bool other = demanding(settings->callbacks) && !demanding(settings->api) && w.tls.certificate.empty();
    const config::listener& asked = other ? settings->api : settings->callbacks;
    if (asked.port == 0) {
      *ctx.err << "recibo doctor: the configuration takes any free port (port 0): give the URL\n";
      ctx.exit_code = exit_wrong;
      return {};
    }
    url = base_url(asked);
  }
  const auto to = parse_target(url);
  if (!to) {
    *ctx.err << "recibo doctor: the URL wants to be http://host[:port] or https://host[:port]\n";
    ctx.exit_code = exit_wrong;
    return {};
  }
  if (to->path == "/") url.append(url.ends_with('/') ? path + 1 : path);
  return url;
}

int ask(context& ctx, const doctor_wishes& w) {
  const std::string url = health_url(ctx, w);
  if (url.empty()) return ctx.exit_code;
  const target to = *parse_target(url);
  const std::string request = "GET " + to.path + " HTTP/1.1\r\nHost: " + host_of(to) +
                              "\r\nUser-Agent: recibo-doctor/" RECIBO_VERSION "\r\nConnection: close\r\n\r\n";
  tls_manners manners = w.tls;
  // Our own listener's certificate is for the name that others know it by.
  manners.verify = !w.insecure && !w.url.empty();
  const exchanged came = exchange(to, request, health_patience, manners);
  if (!came.failed.empty()) {
    *ctx.err << "recibo doctor: " << url << ": " << came.failed << '\n';
    return exit_away;
  }
  *ctx.out << (w.json ? came.body : std::to_string(came.status) + ' ' + came.body) << '\n';
  return came.status == 200 ? exit_fine : exit_not_so;
}

}  // namespace

void add_doctor(CLI::App& app, context& ctx) {
  const auto w = std::make_shared<doctor_wishes>();
  CLI::App* const command = app.add_subcommand(
      "doctor",
      "Check configuration, database, schema, partitions and clock; or ask an instance that runs whether it is live or ready");
  CLI::Option* const live =
      command->add_flag("--live", w->live, "Ask /livez of a running instance instead: 0 live, 3 nobody answers");
  command->add_flag("--ready", w->ready, "Ask /readyz of a running instance instead: 0 ready, 1 not, 3 nobody answers")
      ->excludes(live);
  command->add_option(
      "url", w->url,
      "Which instance to ask, http:// or https://host:port (default: a listener of the configuration, on this machine)");
  CLI::Option* const certificate =
      command->add_option("--certificate", w->tls.certificate, "PEM file to show where a client certificate is asked for");
  CLI::Option* const key = command->add_option("--key", w->tls.key, "PEM file of its private key");
  certificate->needs(key);
  key->needs(certificate);
  command->add_flag("--insecure", w->insecure, "Take any certificate of the instance that is asked");
  command->add_flag("--json", w->json, "As JSON, for programs");
  command->callback([&ctx, w] {
    if (!w->url.empty() && !w->live && !w->ready) {
      *ctx.err << "recibo doctor: a URL goes with --live or --ready\n";
      ctx.exit_code = exit_wrong;
      return;
    }
    ctx.exit_code = w->live || w->ready ? ask(ctx, *w) : examine(ctx, *w);
  });
}

}  // namespace recibo::commands
