#include "answer.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/observe/log.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace recibo::http {
namespace {

std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "";  // the phrase may be empty, the blank before it may not
  }
}

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); });
}

// The headers that decide where a message ends, and what this file writes itself.
constexpr std::array<std::string_view, 9> own{"connection",  "content-length", "content-type",      "date",
                                              "keep-alive",  "traceresponse",  "transfer-encoding", "x-content-type-options",
                                              "x-request-id"};

bool is_own(std::string_view name) noexcept {
  return std::any_of(own.begin(), own.end(), [&](std::string_view one) { return same_text(one, name); });
}

}  // namespace

bool may_have_body(int status) noexcept { return status >= 200 && status != 204 && status != 304; }

std::string head_of(const response& of, const answer_frame& frame) {
  std::string out;
  out.reserve(512);
  const auto line = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  out.append("HTTP/1.1 ").append(std::to_string(of.status)).append(" ").append(reason_of(of.status)).append("\r\n");
  line("Date", frame.date);
  const bool with_body = may_have_body(of.status);
  if (((with_body && !of.body.empty()) || of.typed) && is_field_value(of.content_type)) line("Content-Type", of.content_type);
  if (with_body) line("Content-Length", std::to_string(of.body.size()));
  line("X-Content-Type-Options", "nosniff");
  line("X-Request-Id", frame.trace_id);
  line("traceresponse", frame.trace_response);
  for (const auto& [name, value] : of.headers) {
    if (!is_token(name) || !is_field_value(value) || is_own(name)) {
      // A Location made of foreign text, say: the answer must not become two.
      log::error("a response header is left out", {{"header", name}});
      continue;
    }
    line(name, value);
  }
  if (!frame.keep) {
    line("Connection", "close");
  } else if (frame.http_1_0) {
    line("Connection", "keep-alive");
  }
  out += "\r\n";
  return out;
}

std::string http_date(std::int64_t unix_seconds) {
  static constexpr std::array<const char*, 7> days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_seconds at{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT", days[std::chrono::weekday(day).c_encoding()],
                static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text.data();
}

}  // namespace recibo::http
