// AWS SNS: some members of the JSON body, line by line, signed by a certificate that the body names by URL (AWS docs,
// "Verifying the signatures of Amazon SNS messages"). Anybody can make a topic of their own and have it signed by AWS, so the
// topics that are meant are the secrets of this scheme.
#include "recibo/core/digest.hpp"

#include "asymmetric.hpp"
#include "host.hpp"
#include "kinds.hpp"

#include <array>

namespace recibo::verify {
namespace {

enum member : std::size_t {
  message,
  message_id,
  subject,
  subscribe_url,
  timestamp,
  token,
  topic,
  type,
  version,
  signature,
  certificate_url,
  member_count,
};

constexpr std::array<std::string_view, member_count> pointers{
    "/Message",  "/MessageId", "/Subject",          "/SubscribeURL", "/Timestamp",     "/Token",
    "/TopicArn", "/Type",      "/SignatureVersion", "/Signature",    "/SigningCertURL"};

// Names as they are signed, in the order of the alphabet. A confirmation signs what a notification does not have, and no subject.
constexpr std::array notification_members{message, message_id, subject, timestamp, topic, type};
constexpr std::array confirmation_members{message, message_id, subscribe_url, timestamp, token, topic, type};

struct notice {
  json_reading read;
  hash_name hash = hash_name::sha1;
  std::span<const member> signed_members;
  std::string made{};  // the signature, decoded

  // nullopt: absent, or not a text.
  std::optional<std::string_view> text(member which) const noexcept {
    const auto& v = read.values[which];
    if (!v || v->kind != json_value::kind::string) return std::nullopt;
    return v->text;
  }
};

result<notice> read_notice(reading& from) {
  notice out;
  out.read = read_json(from.message().body, pointers);
  if (out.read.broken) return error(permanent::signature_missing, "the body is no strict JSON");
  if (!out.text(signature) || out.text(signature)->empty()) return error(permanent::signature_missing, "there is no Signature");
  auto made = from_base64(*out.text(signature));
  if (!made || made->empty()) return error(permanent::signature_missing, "the Signature is not base64");
  out.made = std::move(*made);
  const auto version_text = out.text(version);
  if (version_text == "1") {
    out.hash = hash_name::sha1;
  } else if (version_text == "2") {
    out.hash = hash_name::sha256;
  } else {
    return error(permanent::signature_mismatch, "an unknown SignatureVersion");
  }
  const auto type_text = out.text(type);
  if (type_text == "Notification") {
    out.signed_members = notification_members;
  } else if (type_text == "SubscriptionConfirmation" || type_text == "UnsubscribeConfirmation") {
    out.signed_members = confirmation_members;
  } else {
    return error(permanent::content_missing, "an unknown Type");
  }
  for (const member one : out.signed_members) {
    // Only the subject may be absent, and then its lines are left out. Null, a number or an object is never signed.
    if (out.text(one) || (one == subject && !out.read.values[subject])) continue;
    return error(permanent::content_missing, "a member that is signed is absent or no text");
  }
  return out;
}

result<needed_key> certificate_of(const notice& said) {
  const auto url = said.text(certificate_url);
  if (!url) return error(permanent::signature_missing, "there is no SigningCertURL");
  const auto parts = plain_https(*url);
  if (!parts || !is_sns_url(*url) || !parts->path.ends_with(".pem") || parts->path.find('?') != std::string_view::npos)
    return error(permanent::signature_mismatch, "SigningCertURL is not one of AWS SNS");
  needed_key out;
  out.url = *url;
  return out;
}

// The name of the secret that is this topic; empty where no topics are given.
result<std::string> topic_name(const notice& said, const keyring& keys, sys_micros now) {
  if (keys.secrets.empty()) return std::string();
  const std::string_view arn = *said.text(topic);
  for (const named_secret& one : keys.secrets) {
    if (usable(one, now) && equal_constant_time(one.key.reveal(), arn)) return one.name;
  }
  return error(permanent::signature_mismatch, "a topic that is not among those of the configuration");
}

}  // namespace

result<std::optional<needed_key>> sns_key(reading& from, const keyring& keys, sys_micros now) {
  const auto said = read_notice(from);
  if (!said) return said.error();
  if (const auto known = topic_name(*said, keys, now); !known) return known.error();
  auto needed = certificate_of(*said);
  if (!needed) return needed.error();
  return std::optional(std::move(*needed));
}

result<std::string> verify_sns(const scheme& how, reading& from, const keyring& keys, sys_micros now,
                               const fetched_key* fetched) {
  const auto said = read_notice(from);
  if (!said) return said.error();
  const auto tolerance = how.timestamp ? how.timestamp->tolerance : std::nullopt;
  if (const auto fine = judge_time(timestamp_format::rfc3339, tolerance, *said->text(timestamp), now); !fine) return fine.error();
  auto name = topic_name(*said, keys, now);
  if (!name) return name;
  const auto needed = certificate_of(*said);
  if (!needed) return needed.error();
  const auto key = take_fetched(*needed, fetched, now);
  if (!key) return key.error();

  std::vector<std::string_view> pieces;
  for (const member one : said->signed_members) {
    const auto text = said->text(one);
    if (!text) continue;
    pieces.insert(pieces.end(), {pointers[one].substr(1), "\n", *text, "\n"});
  }
  if (!signed_by(**key, signing_method::rsa_pkcs1, said->hash, pieces, said->made))
    return error(permanent::signature_mismatch, "the certificate's key did not make this signature");
  return name;
}

}  // namespace recibo::verify
