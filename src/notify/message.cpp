#include "recibo/notify/message.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/core/url.hpp"
#include "recibo/verify/keyed_hash.hpp"

#include <chrono>

namespace recibo::notify {

storage::operation_view put_back(storage::operation_then found, const storage::claimed_notification& to,
                                 const transition::workflow& table) {
  auto o = std::move(found.operation);
  o.state = found.renamed ? found.renamed->state : to.state.empty() ? table.initial() : to.state;
  o.version = to.version;
  o.state_at = found.renamed ? found.renamed->at : to.state_at.value_or(o.accepted_at);
  o.updated_at = to.created_at;
  o.read_at = to.created_at;  // whether it is overdue is judged as of then
  o.result = to.result;
  o.notified = false;
  return o;
}

std::string body_of(const storage::claimed_notification& n, const storage::operation_view& o, const evidence::judged_by& by) {
  json_writer data;
  evidence::write_operation(data, o, by, evidence::audience::client, false);
  std::string text = data.take();
  text.pop_back();  // its closing brace: what moved belongs into the same object
  json_writer move;
  move.begin_object().text_or_null("event", n.event).text_or_null("from", n.from).text_or_null("to", n.to);
  if (!n.item_id.empty()) {
    move.text("item_id", n.item_id);
    move.key("item").begin_object().text("item_id", n.item_id).text("state", n.to);
    move.raw("result", n.item_result.empty() ? std::string_view("null") : std::string_view(n.item_result)).end_object();
  }
  move.end_object();
  text += ',';
  text += std::string_view(move.str()).substr(1);
  json_writer out;
  out.begin_object().text("id", to_string(n.id)).text("type", n.type).time("timestamp", n.created_at).raw("data", text);
  out.end_object();
  return out.take();
}

std::string body_of_provider(const storage::claimed_notification& n) {
  const auto& of = *n.of_provider;
  json_writer out;
  out.begin_object().text("id", to_string(n.id)).text("type", n.type).time("timestamp", n.created_at);
  out.key("data").begin_object().text("provider", of.provider).text("reason", of.reason);
  out.time("silent_since", of.silent_since).time("last_callback_at", of.heard_at).end_object().end_object();
  return out.take();
}

result<http::header_list> headers_of(const storage::claimed_notification& n, std::string_view body, const verify::keyring& keys,
                                     sys_micros now) {
  const std::string id = to_string(n.id);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  const std::string time = std::to_string(seconds);
  std::string message = id + '.' + time + '.';
  message += body;
  std::string signatures;
  for (const auto& one : keys.secrets) {
    if (!one.valid_at(now)) continue;
    if (!signatures.empty()) signatures += ' ';
    signatures += "v1," + to_base64(verify::keyed_hash(verify::hash_name::sha256, one.key.reveal(), message));
  }
  if (signatures.empty() && !keys.secrets.empty()) return misconfigured("no secret of the destination is valid now");
  http::header_list out;
  out.emplace_back("Content-Type", "application/json");
  out.emplace_back("User-Agent", "recibo/" RECIBO_VERSION);
  out.emplace_back("webhook-id", id);
  out.emplace_back("webhook-timestamp", time);
  if (!signatures.empty()) out.emplace_back("webhook-signature", std::move(signatures));
  out.emplace_back("recibo-sequence", std::to_string(n.sequence));
  return out;
}

std::string subject_of(std::string_view pattern, std::string_view type, std::string_view provider, std::string_view request_id) {
  const auto token = [](std::string_view text) {
    std::string out = text.empty() ? "-" : "";
    for (const char c : percent_encode(text)) c == '.' ? out += "%2E" : out += c;
    return out;
  };
  std::string out;
  while (!pattern.empty()) {
    if (pattern.starts_with("{type}")) {
      out += type;
      pattern.remove_prefix(6);
    } else if (pattern.starts_with("{provider}")) {
      out += token(provider);
      pattern.remove_prefix(10);
    } else if (pattern.starts_with("{request_id}")) {
      out += token(request_id);
      pattern.remove_prefix(12);
    } else {
      out += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace recibo::notify
