#include "secrets.hpp"

#include "recibo/core/file.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>

namespace recibo::config {
namespace {

constexpr std::size_t secret_bytes_max = 64 << 10;
// Of one folder. Each costs a try for every callback that none of them signed; and what else lies in the folder is looked at too.
constexpr std::size_t folder_secrets_max = 64, folder_entries_max = 1024;

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

std::string_view blank_name(char c) noexcept {
  if (c == ' ') return "a blank";
  if (c == '\t') return "a tab";
  if (c == '\n') return "a line feed";
  if (c == '\r') return "a carriage return";
  return "whitespace";
}

// A key of raw bytes would lose one that happens to be a line feed at its end, and an archive is no key.
bool is_written(std::string_view bytes) noexcept {
  return is_utf8(bytes) && std::none_of(bytes.begin(), bytes.end(), [](char c) {
           return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
         });
}

// The secret in a file. `key` and `shown` are what messages call the setting and the file.
std::optional<std::string> read_bytes(reading& r, const field& f, const std::filesystem::path& full, const std::string& shown) {
  const std::string key = std::string(f.name) + ": ";
  file_reading read = read_file(full, secret_bytes_max);
  if (!read) {
    const bool too_long = read.why == file_reading::fault::too_long;
    r.error(f.at, key + shown + ' ' + to_string(read.why, secret_bytes_max) + (too_long ? ", too long for a secret" : ""));
    return std::nullopt;
  }
  std::string bytes = std::move(read.bytes);
  r.also_read.add("file").add(full.filename().string()).add(binary(sha256(bytes)));
  if (!is_written(bytes)) {
    r.error(f.at, key + shown + " is no text; a key of raw bytes is written down in base64 or hexadecimal");
    return std::nullopt;
  }
  if (bytes.ends_with('\n')) {
    bytes.pop_back();
    if (bytes.ends_with('\r')) bytes.pop_back();
    const std::string where = f.name == "file" ? "its end" : "the end of " + shown;
    r.warn(f.at, key + "the newline at " + where + " is not part of the secret and was cut off");
  }
  return bytes;
}

std::optional<std::string> read_secret_file(reading& r, const field& f) {
  std::string path;
  if (!read_text(r, f, path, 4096)) return std::nullopt;
  const std::string shown = f.value->expanded ? "the secret's file" : "the secret's file " + in_quotes(path);
  r.watched.push_back(r.folder() / path);
  r.also_read.add(path);
  return read_bytes(r, f, r.folder() / path, shown);
}

std::optional<std::string> read_env(reading& r, const field& f) {
  std::string name;
  if (!read_text(r, f, name, 255)) return std::nullopt;
  auto value = r.env()(name);
  if (!value) {
    r.error(f.at, "env: the environment variable " + in_quotes(name) + " is not set");
    return std::nullopt;
  }
  r.also_read.add("env").add(name).add(binary(sha256(*value)));
  return value;
}

// A scalar as a secret's text: any bytes, but no plain number or boolean, which other readers of YAML would spell anew.
std::optional<std::string> read_value(reading& r, const field& f) {
  if (!f || f.value->what == node::kind::broken) return std::nullopt;
  if (f.value->what != node::kind::scalar) {
    r.error(f.at, std::string(f.name) + ": expected text or a map with env, file or value");
    return std::nullopt;
  }
  const node& n = *f.value;
  if (is_no_text(n)) {
    r.error(f.at, std::string(f.name) + ": a number or boolean without quotes is no text; put it in quotes");
    return std::nullopt;
  }
  return n.text;
}

// Exactly one of env, file and value.
std::optional<std::string> read_origin(reading& r, section& s) {
  const field env = s.get("env"), file = s.get("file"), value = s.get("value");
  if (s.has("directory")) {
    s.get("directory");
    r.error(s.key_at("directory"),
            std::string(s.name()) + ": a directory stands in a list of secrets, where several may be valid");
    return std::nullopt;
  }
  const int origins = int{s.has("env")} + int{s.has("file")} + int{s.has("value")};
  if (origins != 1) {
    if (s.good()) r.error(s.at(), std::string(s.name()) + ": give exactly one of env, file and value");
    return std::nullopt;
  }
  if (env) return read_env(r, env);
  if (file) return read_secret_file(r, file);
  return read_value(r, value);
}

// The reason why `text` cannot be a secret; empty when it can.
std::string doubt(std::string_view text) {
  if (text.empty()) return "this secret is empty";
  if (std::all_of(text.begin(), text.end(), is_blank)) return "this secret is only whitespace";
  if (is_blank(text.front())) return "this secret begins with " + std::string(blank_name(text.front()));
  if (is_blank(text.back())) return "this secret ends in " + std::string(blank_name(text.back()));
  if (text.size() > secret_bytes_max) return "this secret is longer than 64 KiB";
  return {};
}

void read_validity(reading& r, section& s, verify::named_secret& out) {
  sys_micros at{};
  const field from = s.get("from"), until = s.get("until");
  if (from && read_time(r, from, at)) out.from = at;
  if (until && read_time(r, until, at)) out.until = at;
  if (out.from && out.until && *out.from >= *out.until) {
    r.error(until.at, "until: not after from, so that this secret is never valid");
  } else if (out.until && *out.until <= r.now()) {
    r.warn(until.at, "until: this secret is no longer valid and can be removed once another one is");
  }
}

constexpr std::string_view name_rule = "a secret's name has 1 to 63 characters of A-Z, a-z, 0-9, \".\", \"_\" and \"-\"";

bool is_secret_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
  });
}

bool read_secret_name(reading& r, const field& f, std::string& out) {
  std::string name;
  if (!read_text(r, f, name, 63)) return false;
  if (f.value->expanded) {
    r.error(f.at, "name: names are shown, so they are written out and not taken from the environment");
    return false;
  }
  if (!is_secret_name(name)) {
    r.error(f.at, "name: " + std::string(name_rule));
    return false;
  }
  out = name;
  return true;
}

// Text, doubts and the name that must not hold the text, for a secret whose text was read.
void take_text(reading& r, const field& f, std::string text, position name_at, read_secret& out) {
  // Lines around a PEM key mean nothing, and YAML's block style always ends in one.
  if (text.starts_with("-----BEGIN ")) text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (const std::string why = doubt(text); !why.empty()) {
    r.error(f.at, std::string(f.name) + ": " + why);
    return;
  }
  if (out.secret.name.find(text) != std::string::npos) {
    r.error(name_at, "name: it holds the secret itself, and names are shown");
    return;
  }
  out.good = true;
  out.secret.text = secret(std::move(text));
}

// The names of the files in a folder, sorted. Those that begin with a dot are somebody's housekeeping (Kubernetes keeps what
// its links lead to behind ..data), and folders hold no secret.
std::optional<std::vector<std::string>> file_names(reading& r, const field& f, const std::filesystem::path& folder) {
  std::vector<std::string> out;
  std::error_code bad;
  std::filesystem::directory_iterator it(folder, bad);
  for (std::size_t seen = 0; !bad && it != std::filesystem::directory_iterator(); it.increment(bad)) {
    if (++seen > folder_entries_max || out.size() > folder_secrets_max) break;
    std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with('.') && !it->is_directory(ignored)) out.push_back(std::move(name));
  }
  if (bad) {
    r.error(f.at, "directory: the folder of secrets cannot be read");
    return std::nullopt;
  }
  if (out.size() > folder_secrets_max) {
    r.error(f.at, "directory: there are more than " + std::to_string(folder_secrets_max) + " files in the folder of secrets");
    return std::nullopt;
  }
  if (it != std::filesystem::directory_iterator()) {
    r.error(f.at, "directory: there are more than " + std::to_string(folder_entries_max) +
                      " entries in the folder; give secrets one of their own");
    return std::nullopt;
  }
  std::sort(out.begin(), out.end());
  return out;
}

// {directory, name, from, until}: each file is a secret and lends it its name, behind `name` and a dot where there is one.
void read_directory(reading& r, const field& where, std::vector<read_secret>& out) {
  section s(r, where);
  s.hide_unknown("a directory of secrets takes name, from, until and directory");
  std::string prefix, path;
  verify::named_secret common;
  const field name = s.get("name"), f = s.get("directory");
  if (name && read_secret_name(r, name, prefix)) prefix += '.';
  read_validity(r, s, common);
  if (!f || !read_text(r, f, path, 4096)) return;
  const std::filesystem::path folder = r.folder() / path;
  r.watched.push_back(folder);
  r.also_read.add("directory").add(path);
  const auto names = file_names(r, f, folder);
  if (!names) {
    // It is said; that there is no secret needs no saying.
    out.push_back({{}, f.at, false});
    return;
  }
  if (names->empty()) r.warn(f.at, "directory: there is no file in the folder of secrets");
  for (const auto& one : *names) {
    read_secret& made = out.emplace_back();
    made.at = f.at;
    made.secret = common;
    made.secret.name = prefix + one;
    if (!is_secret_name(made.secret.name)) {
      r.error(f.at, "directory: the file " + in_quotes(one) + " gives its secret no good name: " + std::string(name_rule));
      continue;
    }
    r.watched.push_back(folder / one);
    if (auto text = read_bytes(r, f, folder / one, "the file " + in_quotes(one))) take_text(r, f, std::move(*text), f.at, made);
  }
}

}  // namespace

read_secret read_one_secret(reading& r, const field& f, std::string fallback_name) {
  read_secret out;
  out.at = f.at;
  out.secret.name = std::move(fallback_name);
  if (!f || f.value->what == node::kind::broken) return out;

  std::optional<std::string> text;
  position name_at = f.at;
  bool name_good = true;
  if (f.value->what == node::kind::map) {
    section s(r, f);
    s.hide_unknown("a secret takes name, from, until and one of env, file, value and directory");
    const field name = s.get("name");
    if (name) {
      name_at = name.at;
      name_good = read_secret_name(r, name, out.secret.name);
    }
    text = read_origin(r, s);
    read_validity(r, s, out.secret);
  } else {
    text = read_value(r, f);
  }
  if (!text) return out;
  take_text(r, f, std::move(*text), name_at, out);
  out.good = out.good && name_good;
  return out;
}

std::vector<read_secret> read_secret_list(reading& r, const field& f) {
  std::vector<read_secret> out;
  if (!f || f.value->what == node::kind::broken) return out;
  if (f.value->what != node::kind::list) {
    r.error(f.at, std::string(f.name) + ": expected a list of secrets");
    return out;
  }
  if (f.value->items.empty()) r.error(f.at, std::string(f.name) + ": the list is empty; one secret at least is required");
  std::size_t place = 0;
  for (const auto& item : f.value->items) {
    const std::string name = "secret-" + std::to_string(++place);
    if (item.find("directory") != nullptr) {
      read_directory(r, {f.name, &item, item.at, {}}, out);
      continue;
    }
    if (item.what == node::kind::null) {
      r.error(item.at, std::string(f.name) + ": this secret is empty");
      out.push_back({{}, item.at, false});
      continue;
    }
    out.push_back(read_one_secret(r, {f.name, &item, item.at, {}}, name));
  }
  if (place > 0 && out.empty())
    r.error(f.at, std::string(f.name) + ": there is no secret in the directory; one at least is required");
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < i && out[i].good; ++j) {
      if (!out[j].good) continue;
      if (out[i].secret.name == out[j].secret.name) {
        r.error(out[i].at, std::string(f.name) + ": the name " + in_quotes(out[i].secret.name) + " is taken by another secret");
        out[i].good = false;
      } else if (equal_constant_time(out[i].secret.text.reveal(), out[j].secret.text.reveal())) {
        r.error(out[i].at, std::string(f.name) + ": the same value as " + in_quotes(out[j].secret.name));
        out[i].good = false;
      }
    }
  }
  return out;
}

bool read_secret_text(reading& r, const field& f, secret& out) {
  if (!f || f.value->what == node::kind::broken) return false;
  std::optional<std::string> text;
  if (f.value->what == node::kind::map) {
    section s(r, f);
    s.hide_unknown("this takes one of env, file and value");
    text = read_origin(r, s);
  } else {
    text = read_value(r, f);
  }
  if (!text) return false;
  if (!text->empty()) {
    if (const std::string why = doubt(*text); !why.empty()) {
      r.error(f.at, std::string(f.name) + ": " + why);
      return false;
    }
  }
  out = secret(std::move(*text));
  return true;
}

}  // namespace recibo::config
