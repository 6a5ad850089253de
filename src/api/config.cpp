// GET /v1/config and POST /v1/config/reload (R38).
#include "handlers.hpp"

#include <filesystem>
#include <utility>

namespace recibo::api {
namespace {

void write_diagnostics(json_writer& out, const std::vector<config::diagnostic>& all) {
  out.begin_array();
  for (auto d : all) {
    // Where in the file, not where on the machine.
    d.file = std::filesystem::path(d.file).filename().string();
    out.begin_object().text("file", d.file).number("line", d.line).number("column", d.column).text("message", d.message);
    out.text("text", config::to_string(d)).end_object();
  }
  out.end_array();
}

void write_last_reload(json_writer& out, const inside& in) {
  const auto last = in.with.last_reload ? in.with.last_reload() : std::nullopt;
  out.key("last_reload");
  if (!last) {
    out.null();
    return;
  }
  out.begin_object().time("at", last->at).text("by", last->by).text("result", last->what.taken ? "taken" : "refused");
  out.key("problems");
  write_diagnostics(out, last->what.problems);
  out.key("warnings");
  write_diagnostics(out, last->what.warnings);
  out.end_object();
}

boost::asio::awaitable<http::response> read_config(inside& in, call& of) {
  json_writer out;
  out.begin_object().text("digest", of.settings->digest).raw("settings", config::effective_json(*of.settings));
  write_last_reload(out, in);
  out.end_object();
  co_return answer_json(200, std::move(out));
}

boost::asio::awaitable<http::response> reload_config(inside& in, call& of) {
  const auto came = co_await in.with.reload(of.who.name);
  if (!came.taken) {
    const auto count = std::to_string(came.problems.size());
    auto refused = refuse(
        of, error(permanent::invalid_configuration, "The file has " + count + " problem(s); the configuration in force stays."));
    json_writer errors;
    write_diagnostics(errors, came.problems);
    add_member(refused, "errors", errors.str());
    co_return refused;
  }
  json_writer out;
  out.begin_object().text("digest", came.digest).key("warnings");
  write_diagnostics(out, came.warnings);
  out.end_object();
  co_return answer_json(200, std::move(out));
}

}  // namespace

void add_config(endpoint_table& to) {
  to.schemas.emplace_back("Diagnostic",
                          object({required("file", string()), required("line", integer()), required("column", integer()),
                                  required("message", string()),
                                  required("text", about(string(), "file:line:column: … as `recibo check` says it."))}));
  to.schemas.emplace_back(
      "LastReload",
      object({required("at", instant()),
              required("by", about(string(), "SIGHUP, the name of a token, or what made the service read it by itself.")),
              required("result", about(one_of({"taken", "refused"}), "Refused: what was in force before still is.")),
              required("problems", list(component("Diagnostic"))), required("warnings", list(component("Diagnostic")))}));
  endpoint read;
  read.method = "GET";
  read.path = "/v1/config";
  read.id = "readConfig";
  read.tag = "config";
  read.summary = "The configuration in force; secrets by their names only.";
  read.who.least = config::role::operator_;
  read.answers = {{200,
                   "In the shape of the file.",
                   object({required("digest", about(string(), "SHA-256 of what was read, hex.")), required("settings", map()),
                           or_null("last_reload", component("LastReload"))}),
                   "application/json",
                   {}}};
  read.run = read_config;
  to.endpoints.push_back(std::move(read));

  endpoint reload;
  reload.method = "POST";
  reload.path = "/v1/config/reload";
  reload.id = "reloadConfig";
  reload.tag = "config";
  reload.summary = "Reads the configuration again, all or nothing; as SIGHUP does.";
  reload.who.least = config::role::admin;
  reload.answers = {{200,
                     "Taken.",
                     object({required("digest", string()), required("warnings", list(component("Diagnostic")))}),
                     "application/json",
                     {}}};
  reload.run = reload_config;
  to.endpoints.push_back(std::move(reload));
}

}  // namespace recibo::api
