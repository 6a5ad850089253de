// Tables of what is refused, each with every problem and its exact place.
#include "unit/config/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace recibo::config {
namespace {

using testing::lines_of;
using testing::load;

// In `text` a "^" stands before each place where a problem is expected, twice for two; `problems` are their messages in
// that order. A message that begins with its own line and column has no mark.
struct bad {
  const char* name;
  std::string text;
  std::vector<std::string> problems;
};

// Takes the marks out of `text`, and puts the places where they stood in front of the messages.
std::vector<std::string> take_marks(std::string& text, const std::vector<std::string>& problems) {
  std::vector<std::string> places, out;
  std::string clean;
  int line = 1, column = 1;
  for (const char c : text) {
    if (c == '^') {
      places.push_back(std::to_string(line) + ":" + std::to_string(column) + ": ");
      continue;
    }
    clean += c;
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  text = clean;
  std::size_t next = 0;
  for (const auto& p : problems) {
    const bool placed = !p.empty() && p.front() >= '0' && p.front() <= '9';
    EXPECT_TRUE(placed || next < places.size()) << "a mark is missing for: " << p;
    out.push_back(placed || next == places.size() ? p : places[next++] + p);
  }
  EXPECT_EQ(next, places.size()) << "more marks than messages";
  return out;
}

std::string name_of(const ::testing::TestParamInfo<bad>& one) { return one.param.name; }

// --- one line of a provider: the other lines are fine ---------------------------------------------------------------

class BadProvider : public ::testing::TestWithParam<bad> {};

TEST_P(BadProvider, IsReportedWhereItStands) {
  const std::string& line = GetParam().text;
  std::string text = "providers:\n  p:\n";
  const auto put = [&](const std::string& key, const std::string& usual) {
    const std::string bare = line.substr(line.find_first_not_of('^'));
    text += "    " +
            (bare.starts_with(key + ":") || line == "no " + key ? line == "no " + key ? "answer_within: 5s" : line : usual) +
            "\n";
  };
  put("verify", "verify: {scheme: github, secrets: [s3cret]}");
  put("extract", "extract: {request_id: /id, idempotency_key: /key, event: /type}");
  put("events", "events: {done: complete}");
  put("more", "unmatched: park");
  if (line.starts_with("+ ")) text += "    " + line.substr(2) + "\n";
  const auto expected = take_marks(text, GetParam().problems);
  EXPECT_EQ(lines_of(load(text, {{"EMPTY", ""}, {"BLANK", "  "}, {"NEWLINE", "s3cret\n"}}).problems), expected) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Verify, BadProvider,
    ::testing::Values(
        bad{"Absent", "no verify", {"2:3: p: verify is required: how its callbacks are authenticated"}},
        bad{"NoMap", "verify: ^github", {"verify: expected a map, found \"github\""}},
        bad{"NoScheme", "^verify: {secrets: [s3cret]}", {"verify: scheme is required: how callbacks are verified"}},
        bad{"UnknownScheme",
            "verify: {scheme: ^stripes, secrets: [s3cret]}",
            {"scheme: there is none named \"stripes\"; did you mean \"stripe\"?"}},
        bad{"SchemeInTheWordsOfOthers",
            "verify: {scheme: ^hmac-sha256, secrets: [s3cret]}",
            {"scheme: there is none named \"hmac-sha256\"; an HMAC of one's own is `scheme: hmac` with `algorithm: sha256`"}},
        bad{"SchemeInCapitals",
            "verify: {scheme: ^HMAC_SHA512, secrets: [s3cret]}",
            {"scheme: there is none named \"HMAC_SHA512\"; an HMAC of one's own is `scheme: hmac` with `algorithm: sha512`"}},
        bad{"KeysOfASchemeWithout",
            "verify: {scheme: github, secrets: [s3cret], ^fetch: {}}",
            {"fetch: the keys of this scheme are its secrets; none are fetched"}},
        bad{"KeysNorSecrets",
            "^verify: {scheme: plaid}",
            {"verify: secrets is required: the provider's public keys; or give fetch, which says how they are got"}},
        bad{"KeysNoMap", "verify: {scheme: plaid, fetch: ^fetch}", {"fetch: expected a map, found \"fetch\""}},
        bad{"KeysWithoutCredentials",
            "verify: {scheme: plaid, ^^fetch: {}}",
            {"fetch: client_id is required: Plaid hands out keys to its customers only",
             "fetch: secret is required: Plaid hands out keys to its customers only"}},
        bad{"KeysWithoutHeaders",
            "verify: {scheme: circle, ^fetch: {}}",
            {"fetch: headers is required: this provider's API wants to know who asks, by Authorization"}},
        bad{"KeysByHttp",
            "verify: {scheme: circle, fetch: {url: ^\"http://api.test/{id}\", headers: {Authorization: x1}}}",
            {"url: keys are fetched by https only: whoever changes them on the way could sign"}},
        bad{"KeysWithoutId",
            "verify: {scheme: circle, fetch: {url: ^\"https://api.test/\", headers: {Authorization: x1}}}",
            {"url: {id} is missing, where the key's ID goes"}},
        bad{"KeysIdInHost",
            "verify: {scheme: circle, fetch: {url: ^\"https://{id}.test/\", headers: {Authorization: x1}}}",
            {"url: not a URL that can be used: a gap may stand in the path and the query only, never where it could change the "
             "host"}},
        bad{"KeysHeaderOfTheClient",
            "verify: {scheme: circle, fetch: {headers: {^Host: x1}}}",
            {"headers: host is set by the client itself"}},
        bad{"KeysAllow",
            "verify: {scheme: circle, fetch: {headers: {Authorization: x1}, allow: [^ledger]}}",
            {"allow: expected a network such as 10.0.0.0/8 or fd00::/8, with zeros behind its prefix"}},
        bad{"KeysOfCertificatesHaveNoUrl",
            "verify: {scheme: paypal, secrets: [id1], fetch: {^url: \"https://a.test/\"}}",
            {"fetch: unknown key \"url\""}},
        bad{"UnknownKey",
            "verify: {scheme: github, secrets: [s3cret], ^tolerence: 5m}",
            {"verify: unknown key \"tolerence\"; did you mean \"tolerance\"?"}},
        bad{"NoSecrets",
            "^verify: {scheme: github}",
            {"verify: secrets is required: a provider without a secret would accept anybody"}},
        bad{"SecretsWithNothing", "verify: {scheme: github, ^secrets: }", {"secrets: there is nothing behind this key"}},
        bad{"SecretsEmpty",
            "verify: {scheme: github, secrets: ^[]}",
            {"secrets: the list is empty; one secret at least is required"}},
        bad{"SecretsNoList", "verify: {scheme: github, secrets: ^s3cret}", {"secrets: expected a list of secrets"}},
        bad{"SecretEmpty", "verify: {scheme: github, secrets: [^\"\"]}", {"secrets: this secret is empty"}},
        bad{"SecretNull", "verify: {scheme: github, secrets: [^~]}", {"secrets: this secret is empty"}},
        bad{"SecretBlank", "verify: {scheme: github, secrets: [^\" \\t\"]}", {"secrets: this secret is only whitespace"}},
        bad{"SecretFromEmptyVariable", "verify: {scheme: github, secrets: [^\"${EMPTY}\"]}", {"secrets: this secret is empty"}},
        bad{"SecretFromBlankVariable",
            "verify: {scheme: github, secrets: [^\"${BLANK}\"]}",
            {"secrets: this secret is only whitespace"}},
        bad{"SecretWithNewline",
            "verify: {scheme: github, secrets: [^\"${NEWLINE}\"]}",
            {"secrets: this secret ends in a line feed"}},
        bad{"SecretWithBlank", "verify: {scheme: github, secrets: [^\" s3cret\"]}", {"secrets: this secret begins with a blank"}},
        bad{"SecretNumber",
            "verify: {scheme: github, secrets: [^123456]}",
            {"secrets: a number or boolean without quotes is no text; put it in quotes"}},
        bad{"SecretTwice", "verify: {scheme: github, secrets: [s3cret, ^s3cret]}", {"secrets: the same value as \"secret-1\""}},
        bad{"SecretNameTwice",
            "verify: {scheme: github, secrets: [{name: a, value: x1}, ^{name: a, value: x2}]}",
            {"secrets: the name \"a\" is taken by another secret"}},
        bad{"SecretNameHoldsValue",
            "verify: {scheme: github, secrets: [{name: ^my-s3cret, value: s3cret}]}",
            {"name: it holds the secret itself, and names are shown"}},
        bad{"SecretNameWithBlank",
            "verify: {scheme: github, secrets: [{name: ^a b, value: s3cret}]}",
            {"name: a secret's name has 1 to 63 characters of A-Z, a-z, 0-9, \".\", \"_\" and \"-\""}},
        bad{"SecretWithoutOrigin",
            "verify: {scheme: github, secrets: [^{name: a}]}",
            {"secrets: give exactly one of env, file and value"}},
        bad{"SecretWithTwoOrigins",
            "verify: {scheme: github, secrets: [^{env: A, value: b}]}",
            {"secrets: give exactly one of env, file and value"}},
        bad{"SecretUnknownKeyIsNotShown",
            "verify: {scheme: github, secrets: [^{^s3cret}]}",
            {"secrets: give exactly one of env, file and value",
             "secrets: unknown key; a secret takes name, from, until and one of env, file, value and directory"}},
        bad{"SecretEnvNotSet",
            "verify: {scheme: github, secrets: [{env: ^NOT_SET}]}",
            {"env: the environment variable \"NOT_SET\" is not set"}},
        bad{"SecretFileAbsent",
            "verify: {scheme: github, secrets: [{file: ^secrets/none}]}",
            {"file: the secret's file \"secrets/none\" does not exist"}},
        bad{"SecretFileIsAFolder",
            "verify: {scheme: github, secrets: [{file: ^secrets}]}",
            {"file: the secret's file \"secrets\" is a folder"}},
        bad{"SecretFileEmpty", "verify: {scheme: github, secrets: [^{file: secrets/empty}]}", {"secrets: this secret is empty"}},
        bad{"SecretFileOnlyNewline",
            "verify: {scheme: github, secrets: [^{file: secrets/newline}]}",
            {"secrets: this secret is empty"}},
        bad{"SecretFileLeadingBlank",
            "verify: {scheme: github, secrets: [^{file: secrets/leading-blank}]}",
            {"secrets: this secret begins with a blank"}},
        bad{"SecretFileTwoNewlines",
            "verify: {scheme: github, secrets: [^{file: secrets/two-newlines}]}",
            {"secrets: this secret ends in a line feed"}},
        bad{"SecretUntilBeforeFrom",
            "verify: {scheme: github, secrets: [{value: s3cret, from: 2030-01-01T00:00:00Z, until: ^2029-01-01T00:00:00Z}]}",
            {"until: not after from, so that this secret is never valid"}},
        bad{"SecretFromWithoutZone",
            "verify: {scheme: github, secrets: [{value: s3cret, from: ^2030-01-01T00:00:00}]}",
            {"from: expected an instant with its offset, such as 2027-01-31T00:00:00Z, found \"2030-01-01T00:00:00\""}},
        bad{"ToleranceWithoutTimeStamp",
            "verify: {scheme: github, secrets: [s3cret], tolerance: ^5m}",
            {"tolerance: this scheme signs no time stamp, so there is no age to check"}},
        bad{"ToleranceZero",
            "verify: {scheme: stripe, secrets: [s3cret], tolerance: ^0s}",
            {"tolerance: expected a duration from 1s to 1d, found \"0s\""}},
        bad{"ToleranceWithoutUnit",
            "verify: {scheme: stripe, secrets: [s3cret], tolerance: ^300}",
            {"tolerance: expected a duration with its unit, such as 500ms, 30s, 5m, 12h or 90d, found \"300\""}},
        bad{"ToleranceFalse",
            "verify: {scheme: stripe, secrets: [s3cret], tolerance: ^false}",
            {"tolerance: expected a duration with its unit, such as 500ms, 30s, 5m, 12h or 90d, found \"false\""}},
        bad{"PresetWithOwnKeys",
            "verify: {scheme: github, secrets: [s3cret], ^algorithm: sha1}",
            {"algorithm: the scheme github fixes this; only scheme: hmac starts from nothing"}},
        bad{"NoneWithSecrets",
            "verify: {scheme: none, ^secrets: [s3cret]}",
            {"secrets: scheme: none verifies nothing and takes no secrets"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    OwnScheme, BadProvider,
    ::testing::Values(
        bad{"NoSignature",
            "^verify: {scheme: hmac, signed: \"{body}\", secrets: [s3cret]}",
            {"verify: signature is required: where the request carries it"}},
        bad{"NothingSigned",
            "^verify: {scheme: hmac, signature: {header: X-Sig}, secrets: [s3cret]}",
            {"verify: give exactly one of signed and content, which say what is signed"}},
        bad{"UnknownAlgorithm",
            "verify: {scheme: hmac, algorithm: ^md5, signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"algorithm: expected sha1, sha256, sha384 or sha512, found \"md5\""}},
        bad{"HeaderIsNoName",
            "verify: {scheme: hmac, signature: {header: ^\"X Sig\"}, signed: \"{body}\", secrets: [s3cret]}",
            {"header: this is no name of an HTTP header"}},
        bad{"TwoNames",
            "verify: {scheme: hmac, ^signature: {header: X-Sig, names: [a]}, signed: \"{body}\", secrets: [s3cret]}",
            {"signature: give exactly one of header, names, name and numbered"}},
        bad{"PairWithoutElement",
            "verify: {scheme: hmac, ^signature: {header: X-Sig, pair: \"=\"}, signed: \"{body}\", secrets: [s3cret]}",
            {"signature: pair and element belong together"}},
        bad{"UnknownPart",
            "verify: {scheme: hmac, signature: {header: X-Sig}, signed: ^\"{bodi}\", secrets: [s3cret]}",
            {"signed: unknown part \"{bodi}\"; there are {body}, {timestamp}, {method}, {url}, {secret}, {header:name}, "
             "{query:name}, {json:/pointer} and {form:name}"}},
        bad{"PartNeverClosed",
            "verify: {scheme: hmac, signature: {header: X-Sig}, signed: ^\"{body\", secrets: [s3cret]}",
            {"signed: \"{\" is never closed; a literal one is written \"{{\""}},
        bad{"LiteralsOnly",
            "verify: {scheme: hmac, signature: {header: X-Sig}, signed: ^\"abc\", secrets: [s3cret]}",
            {"verify: nothing of the request is signed"}},
        bad{"TimeStampNowhere",
            "verify: {scheme: hmac, signature: {header: X-Sig}, signed: ^\"{timestamp}.{body}\", secrets: [s3cret]}",
            {"verify: {timestamp} is signed, and timestamp does not say where it stands"}},
        bad{"HashWithoutSecret",
            "verify: {scheme: hash, signature: {header: X-Sig}, signed: ^\"{body}\", secrets: [s3cret]}",
            {"verify: a plain hash without {secret} in it can be made by anybody"}},
        bad{"UnknownUnit",
            "verify: {scheme: hmac, signature: {header: X-Sig}, signed: \"{timestamp}{body}\", timestamp: {header: X-T, unit: "
            "^s}, secrets: [s3cret]}",
            {"unit: expected seconds, milliseconds or rfc3339, found \"s\""}},
        bad{"ForEachWithoutStar",
            "^verify: {scheme: hmac, for_each: /items, signature: {from: json, name: /sig}, content: [{json: /id}], secrets: "
            "[s3cret]}",
            {"verify: for_each: a JSON Pointer with one \"*\""}},
        bad{"ForEachWithAHeader",
            "^verify: {scheme: hmac, for_each: /items/*, signature: {header: X-Sig}, content: [{json: /id}], secrets: [s3cret]}",
            {"verify: for_each: every item carries its own signature, so that stands in JSON"}},
        bad{"UnknownKind",
            "verify: {scheme: hmac, kind: ^ed448, signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"kind: expected hmac, hash, token, ed25519, ecdsa or rsa, found \"ed448\""}},
        bad{"KindContradicts",
            "verify: {scheme: token, kind: ^rsa, signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"kind: contradicts scheme"}},
        bad{"NoPublicKey",
            "verify: {scheme: ed25519, signature: {header: X-Sig}, signed: \"{body}\", secrets: [^s3cret]}",
            {"secrets: this is no public key in PEM"}},
        bad{"PrivateKey",
            "verify: {scheme: rsa, signature: {header: X-Sig}, signed: \"{body}\", secrets: [^\"-----BEGIN PRIVATE "
            "KEY-----\\nAA\\n\"]}",
            {"secrets: this is a private key; only the provider has that, and here its public key belongs"}},
        bad{"KeyOfAnotherKind",
            "verify: {scheme: wise, secrets: [^\"MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\"]}",
            {"secrets: this scheme's keys are RSA"}},
        bad{"PemForASharedSecret",
            "verify: {scheme: hmac, key: {encoding: ^pem}, signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"encoding: pem is for public keys, and this kind has a shared secret"}},
        bad{"HashOfEd25519",
            "verify: {scheme: ed25519, ^hash: sha256, signature: {header: X-Sig}, signed: \"{body}\", secrets: "
            "[\"MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\"]}",
            {"hash: Ed25519 has a hash of its own"}},
        bad{"PartWithoutSplit",
            "verify: {scheme: hmac, key: {part: ^1}, signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"part: belongs to split"}},
        bad{"SecretWithoutItsParts",
            "verify: {scheme: braintree, secrets: [^s3cret]}",
            {"secrets: the secret has not all of its parts"}},
        bad{"BothElements",
            "verify: {scheme: hmac, key: {split: \"|\"}, signature: {header: X-Sig, pair: \"|\", element: a, "
            "^element_is_secret_part: 0}, "
            "signed: \"{body}\", secrets: [\"a|b\"]}",
            {"element_is_secret_part: in place of element; give one of them"}},
        bad{"EmptyHashFrom",
            "verify: {scheme: hmac, ^hash_from: {header: X-Alg, map: {}}, signature: {header: X-Sig}, signed: \"{body}\", "
            "secrets: "
            "[s3cret]}",
            {"hash_from: the map is empty, so that no name would be accepted"}},
        bad{"UnknownHashInMap",
            "verify: {scheme: hmac, hash_from: {header: X-Alg, map: {A: ^md5, B: sha1}}, signature: {header: X-Sig}, signed: "
            "\"{body}\", "
            "secrets: [s3cret]}",
            {"A: expected sha1, sha256, sha384 or sha512, found \"md5\""}},
        bad{"VariantsOfNoUrl",
            "^verify: {scheme: hmac, url_variants: [no_port], signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"verify: url_variants: the URL is not signed"}},
        bad{"UnknownVariant",
            "verify: {scheme: hmac, url_variants: [^any], signature: {header: X-Sig}, signed: \"{body}\", secrets: [s3cret]}",
            {"url_variants: expected no_port or default_port, found \"any\""}},
        bad{"BodyHashWithoutQuery",
            "verify: {scheme: hmac, ^body_hash: {hash: sha256}, signature: {header: X-Sig}, signed: \"{body}\", secrets: "
            "[s3cret]}",
            {"body_hash: query is required: which field of the query holds the hash"}},
        bad{"UnknownChecksum",
            "verify: {scheme: hmac, signature: {header: X-Sig}, content: [{body: true}, {body_crc32: ^hex}], secrets: [s3cret]}",
            {"body_crc32: expected decimal, found \"hex\""}},
        bad{"TwoSourcesOfAPart",
            "verify: {scheme: hmac, signature: {header: X-Sig}, content: [^{body: true, body_crc32: decimal}], secrets: "
            "[s3cret]}",
            {"content: a part has exactly one of lit, body, timestamp, method, secret, url, header, query, json, form and "
             "body_crc32"}},
        bad{"CertificateFromAnywhere",
            "verify: {scheme: rsa, ^key: {certificate_url_header: X-Cert}, signature: {header: X-Sig}, signed: "
            "\"{secret}{body}\", "
            "secrets: [s3cret]}",
            {"key: certificate_url_header and host_suffixes belong together: whose hosts a certificate is taken from"}},
        bad{"CertificateFromATopLevelDomain",
            "^verify: {scheme: rsa, key: {certificate_url_header: X-Cert, host_suffixes: [com]}, signature: {header: X-Sig}, "
            "signed: "
            "\"{secret}{body}\", secrets: [s3cret]}",
            {"verify: key: a host suffix is a domain such as example.com"}},
        bad{"UrlWithoutPublicUrl",
            "verify: {scheme: hmac, signature: {header: X-Sig}, signed: \"{url}{body}\", secrets: [s3cret]}",
            {"2:3: p: public_url is required: this scheme signs the URL as the provider knows it"}}),
    name_of);

const char* const no_url = "2:3: p: public_url is required: this scheme signs the URL as the provider knows it";

INSTANTIATE_TEST_SUITE_P(
    HttpSignatures, BadProvider,
    ::testing::Values(
        bad{"NoKeys",
            "^verify: {scheme: http-message-signatures, secrets: [s3cret]}",
            {"verify: keys is required: which keys sign, by their keyid"}},
        bad{"NoAlgorithm",
            "verify: {scheme: http-message-signatures, secrets: [s3cret], keys: {^k: {secret: secret-1}}}",
            {"k: algorithm is required: how this key signs; what a request says of it decides nothing"}},
        bad{"UnknownAlgorithm",
            "verify: {scheme: http-message-signatures, secrets: [s3cret], keys: {k: {algorithm: ^none}}}",
            {"algorithm: expected hmac-sha256, ed25519, ecdsa-p256-sha256, ecdsa-p384-sha384, rsa-pss-sha512 or rsa-v1_5-sha256, "
             "found \"none\""}},
        bad{"NothingRequired",
            "verify: {scheme: http-message-signatures, secrets: [s3cret], required_components: ^[], keys: {k: {algorithm: "
            "hmac-sha256}}}",
            {"required_components: a signature that need not cover anything proves nothing"}},
        bad{"NoComponent",
            "verify: {scheme: http-message-signatures, secrets: [s3cret], ^required_components: [\"@status\"], keys: {k: "
            "{algorithm: "
            "hmac-sha256}}}",
            {"required_components: @status is no component of a request"}},
        bad{"NoSuchSecret",
            "verify: {scheme: http-message-signatures, secrets: [^s3cret], ^keys: {k: {secret: other, algorithm: hmac-sha256}}}",
            {"secrets: no entry of keys uses this secret", "keys: \"k\" has no secret; name one of the list with secret"}},
        bad{"OneSecretTwice",
            "verify: {scheme: http-message-signatures, secrets: [s3cret], ^keys: {k: {algorithm: hmac-sha256}, l: {secret: "
            "secret-1, "
            "algorithm: hmac-sha256}}}",
            {"keys: the secret \"secret-1\" has two IDs; write it down twice if both are meant"}},
        bad{"KeysElsewhere",
            "verify: {scheme: github, secrets: [s3cret], ^keys: {k: {algorithm: hmac-sha256}}}",
            {"keys: belongs to the scheme http-message-signatures"}},
        bad{"NoUrl",
            "verify: {scheme: http-message-signatures, secrets: [s3cret], keys: {k: {algorithm: hmac-sha256}}}",
            {no_url}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Extract, BadProvider,
    ::testing::Values(
        bad{"Absent", "no extract", {"2:3: p: extract is required: where the values of a callback stand"}},
        bad{"NoIdentity",
            "^extract: {idempotency_key: /key, event: /type}",
            {"extract: request_id or reference is required: which operation a callback speaks of"}},
        bad{"NoEvent",
            "^extract: {request_id: /id, idempotency_key: /key}",
            {"extract: event is required: what happened, in the provider's words"}},
        bad{"NoKey",
            "^extract: {request_id: /id, event: /type}",
            {"extract: idempotency_key is required: what tells a callback sent again from a new one; this scheme's own is in the "
             "header x-github-delivery, which it does not sign: {header: x-github-delivery, unsigned: accept}"}},
        bad{"UnsignedKey",
            "extract: {request_id: /id, idempotency_key: ^{header: X-GitHub-Delivery}, event: /type}",
            {"idempotency_key: the signature does not cover this header, so anybody could change it; write `unsigned: accept` "
             "beside it if that is meant"}},
        bad{"UnsignedQueryKey",
            "extract: {request_id: /id, idempotency_key: ^{query: n}, event: /type}",
            {"idempotency_key: the signature does not cover this query field, so anybody could change it; write `unsigned: "
             "accept` beside it if that is meant"}},
        bad{"UnsignedIdentity",
            "extract: {request_id: ^{header: X-Request, unsigned: accept}, idempotency_key: /key, event: /type}",
            {"request_id: the signature does not cover this header, so anybody could change it; an identity outside the "
             "signature needs a URL of each operation's own (callback_url: required), or mode: hint"}},
        bad{"UnsignedReference",
            "extract: {reference: [/ref, ^{query: ref}], idempotency_key: /key, event: /type}",
            {"reference: the signature does not cover this query field, so anybody could change it; an identity outside the "
             "signature needs a URL of each operation's own (callback_url: required), or mode: hint"}},
        bad{"TwoPlaces",
            "extract: {^request_id: {json: /a, form: b}, idempotency_key: /key, event: /type}",
            {"request_id: a source has exactly one of json, header, query and form"}},
        bad{"NoPointer",
            "extract: {request_id: ^id, idempotency_key: ^\"\", event: ^/a~2}",
            {"request_id: a JSON Pointer begins with \"/\" and escapes \"~\" as \"~0\", found \"id\"",
             "idempotency_key: this text is empty",
             "event: a JSON Pointer begins with \"/\" and escapes \"~\" as \"~0\", found \"/a~2\""}},
        bad{"ListOfEvents",
            "extract: {request_id: /id, idempotency_key: /key, event: ^[/a, /b]}",
            {"event: one source; several that make one word are {join: [...]}"}},
        bad{"ListOfTimes",
            "extract: {request_id: /id, idempotency_key: /key, event: /a, occurred_at: ^[/a, /b]}",
            {"occurred_at: one source; only idempotency_key and reference may list several"}},
        bad{"JoinOfOne",
            "extract: {request_id: /id, idempotency_key: /key, event: {join: ^[/a]}}",
            {"join: two to 8 sources make one word"}},
        bad{"JoinOfNoList",
            "extract: {request_id: /id, idempotency_key: /key, event: {join: ^/a}}",
            {"event: expected a list, found \"/a\""}},
        bad{"JoinBesideAPlace",
            "extract: {request_id: /id, idempotency_key: /key, event: {join: [/a, /b], ^header: X-Kind}}",
            {"event: unknown key \"header\"",
             "5:5: events: \"done\" is no word of 2 parts with \"/\" between them, as extract.event joins them"}},
        bad{"JoinOfWhatIsNotSigned",
            "extract: {request_id: /id, idempotency_key: /key, event: {join: [^{header: X-Kind}, /a]}}",
            {"event: the signature does not cover this header, so anybody could change it; write `unsigned: accept` beside it if "
             "that is meant",
             "5:5: events: \"done\" is no word of 2 parts with \"/\" between them, as extract.event joins them"}},
        bad{"FormatOfNoTime",
            "extract: {request_id: /id, idempotency_key: /key, event: {json: /a, format: ^unix_s}}",
            {"format: belongs to a time, which only occurred_at is"}},
        bad{"UnknownFormat",
            "extract: {request_id: /id, idempotency_key: /key, event: /a, occurred_at: {json: /t, format: ^unix}}",
            {"format: expected unix_s, unix_ms or rfc3339, found \"unix\"; did you mean \"unix_s\"?"}},
        bad{"UnsignedIsNoBoolean",
            "extract: {request_id: /id, idempotency_key: ^{header: x, unsigned: ^true}, event: /a}",
            {"idempotency_key: the signature does not cover this header, so anybody could change it; write `unsigned: accept` "
             "beside it if that is meant",
             "unsigned: expected accept, found \"true\""}},
        bad{"ItemsWithoutIdentity",
            "extract: {request_id: /id, idempotency_key: /key, ^items: {each: /r, event: /s}}",
            {"items: item_id is required: which item an element is about"}},
        bad{"ItemInAHeader",
            "extract: {request_id: /id, idempotency_key: /key, items: {each: /r, item_id: /id, event: ^{header: x, unsigned: "
            "accept}}}",
            {"event: what is said of an item stands in the JSON of its element"}},
        bad{"EachIsNoPointer",
            "extract: {request_id: /id, idempotency_key: /key, event: /a, each: ^events, items: {each: ^r, item_id: /id, event: "
            "/s}}",
            {"each: a JSON Pointer begins with \"/\" and escapes \"~\" as \"~0\", found \"events\"",
             "each: a JSON Pointer begins with \"/\" and escapes \"~\" as \"~0\", found \"r\""}},
        bad{"ResultName",
            "extract: {request_id: /id, idempotency_key: /key, event: /a, result: {^\"Se ttled\": /x}}",
            {"result \"Se ttled\": a name has 1 to 63 characters of a-z, 0-9, \"_\" and \"-\", and begins with a letter or "
             "digit"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Policies, BadProvider,
    ::testing::Values(
        bad{"NoEvents", "no events", {"2:3: p: events is required: which of its words raise which event of the workflow"}},
        bad{"EmptyEvents", "events: ^{}", {"events: the map is empty, so that no callback could change anything"}},
        bad{"EventNotByProvider",
            "events: {done: ^overdue}",
            {"events: the workflow \"default\" has no transition by the provider for the event \"overdue\""}},
        bad{"EventWithNothing", "events: {^done: }", {"events: there is nothing behind \"done\""}},
        bad{"UnknownWorkflow", "+ workflow: ^payments", {"workflow: there is none named \"payments\""}},
        bad{"Unmatched", "+ idempotency: {scope: ^[key, provider]}", {"scope: expected [operation, key] or [provider, key]"}},
        bad{"Scope", "+ idempotency: {scope: ^[key]}", {"scope: expected [operation, key] or [provider, key]"}},
        bad{"Keep",
            "+ idempotency: {keep: ^401d}",
            {"keep: longer than retention.deliveries; a key cannot outlive the delivery that claimed it"}},
        bad{"HintWithoutStatus", "+ mode: hint", {"2:3: p: status is required: with mode: hint all news is looked up there"}},
        bad{"HintWhoseAnswerIsNotDescribed",
            "+ mode: hint\n    ^status: {url: \"https://api.p1.test/{reference}\"}",
            {"status: extract is required: hints bring no news, so it has to be said where the answer has them"}},
        bad{"HandshakeWithoutToken",
            "+ ^handshake: {type: meta}",
            {"handshake: token is required: meta sends back what it was given"}},
        bad{"HandshakeWithEmptyToken", "+ handshake: {type: meta, token: ^\"\"}", {"token: this secret is empty"}},
        bad{"HandshakeWithBlankToken", "+ handshake: {type: meta, token: ^\" \"}", {"token: this secret is only whitespace"}},
        bad{"HandshakeWithNumberAsToken",
            "+ handshake: {type: meta, token: ^17}",
            {"token: a number or boolean without quotes is no text; put it in quotes"}},
        bad{"HandshakeWithTokenTooMuch", "+ handshake: {type: dropbox, ^token: vt-1}", {"token: the handshake dropbox has none"}},
        bad{"HandshakeWithoutType",
            "+ ^handshake: {token: vt-1}",
            {"handshake: type is required: which provider's conversation it is"}},
        bad{"HandshakeAsWord", "+ handshake: ^meta", {"handshake: expected a map with type, or none, found \"meta\""}},
        bad{"HandshakeOfTwoPartSecret",
            "+ handshake: ^{type: braintree}",
            {"handshake: braintree needs secrets of the form public_key|private_key"}},
        bad{"HandshakeThatSignsWhatIsAsked",
            "verify: {scheme: stripe, secrets: [s3cret]}\n    handshake: ^{type: x-twitter}",
            {"handshake: x-twitter gives the HMAC of any word to anybody, so the signature has to be over {body} alone"}},
        bad{"StatusWithoutUrl",
            "+ ^status: {}",
            {"status: url is required: where the provider tells what it knows of one operation"}},
        bad{"StatusOfNoOperation",
            "+ status: {url: ^\"https://api.p1.test/status\"}",
            {"url: {reference} or {request_id} is missing: the answer has to be about one operation"}},
        bad{"StatusWithAnotherGap",
            "+ status: {url: ^\"https://api.p1.test/{account}\"}",
            {"url: not a URL that can be asked: it may hold {reference}, {request_id} and no other gap"}},
        bad{"StatusWhoseHostIsAGap",
            "+ status: {url: ^\"https://{reference}/x\"}",
            {"url: not a URL that can be asked: a gap may stand in the path and the query only, never where it could change the "
             "host"}},
        bad{"StatusByFtp",
            "+ status: {url: ^\"ftp://api.p1.test/{reference}\"}",
            {"url: not a URL that can be asked: it begins with neither http:// nor https://"}},
        bad{"StatusByHttp",
            "+ status: {url: ^\"http://api.p1.test/{reference}\"}",
            {"url: https only: whoever changes an answer on the way would move the operation; http is for an address within "
             "allow"}},
        bad{"StatusAtAPrivateAddress",
            "+ status: {url: ^\"https://10.0.0.1/{reference}\"}",
            {"url: a private address; name its network under allow if it is meant"}},
        bad{"StatusAtAnAddressThatIsNever",
            "+ status: {url: ^\"https://169.254.169.254/{reference}\"}",
            {"url: link-local, multicast and reserved addresses are never asked"}},
        bad{"StatusByTwoCredentials",
            "+ ^status: {url: \"https://api.p1.test/{reference}\", bearer: abc, basic: {user: u, password: s3cret-word}}",
            {"status: one of bearer, basic and headers.Authorization says who asks"}},
        bad{"StatusOfAnUnknownState",
            "+ status: {url: \"https://api.p1.test/{reference}\", states: [^unknwn]}",
            {"states: the workflow has no state \"unknwn\"; did you mean \"unknown\"?"}},
        bad{"StatusSafeByAnUnknownWord",
            "+ status: {url: \"https://api.p1.test/{reference}\", events: {done: complete, none: ignore}, safe_to_retry: [^non]}",
            {"safe_to_retry: events has no word \"non\"; did you mean \"none\"?"}},
        bad{"StatusWithAKey",
            "+ status: {url: \"https://api.p1.test/{reference}\", extract: ^{event: /s, idempotency_key: /k}}",
            {"idempotency_key: what is fetched is its own key"}},
        bad{"SequenceWithoutSource", "+ order: ^sequence", {"order: sequence needs extract.sequence"}},
        bad{"ConflictWith500",
            "+ answers: {conflict: ^500}",
            {"conflict: 500 does not fit; it may be 2xx, or 4xx other than 401, 408 and 429"}},
        bad{"AppliedWith400",
            "+ answers: {applied: ^400}",
            {"applied: 400 does not fit; it may be 2xx, because the callback is on record then"}},
        bad{"StatusOutOfRange",
            "+ answers: {conflict: ^99}",
            {"conflict: expected a whole number from 200 to 599, found \"99\""}},
        bad{"StatusInQuotes",
            "+ answers: {conflict: ^\"409\"}",
            {"conflict: expected a whole number from 200 to 599, found \"409\" in quotes, which makes it text"}},
        bad{"UnknownDisposition",
            "+ answers: {^conflicts: 409}",
            {"answers: unknown key \"conflicts\"; did you mean \"conflict\"?"}},
        bad{"NoContentWithBody",
            "+ answers: {^applied: 204}",
            {"applied: 204 has no body, so that `body: none` belongs beside it"}},
        bad{"ContentType",
            "+ answers: {body: ok, content_type: ^text}",
            {"content_type: expected a media type such as text/plain; charset=utf-8"}},
        bad{"RateZero", "+ rate: {per_second: ^0}", {"per_second: expected a number from 0.01 to 1000000, found \"0\""}},
        bad{"RateWithout",
            "+ ^rate: {burst: 5}",
            {"rate: per_second is required: how many callbacks a second are taken in the long run"}},
        bad{"AnswerWithin", "+ answer_within: ^2m", {"answer_within: expected a duration from 100ms to 60s, found \"2m\""}},
        bad{"SilenceInMilliseconds", "+ silence_alert: ^1500ms", {"silence_alert: expected whole seconds, found \"1500ms\""}},
        bad{"RateOfNothing",
            "+ expected_rate: {at_least: ^0, within: 1h}",
            {"at_least: expected a whole number from 1 to 1000000000, found \"0\""}},
        bad{"RateWithoutWindow", "+ ^expected_rate: {at_least: 5}", {"expected_rate: within is required: in how long"}},
        bad{"LimitOfUnknownState",
            "+ limits: {^procesing: none}",
            {"limits: the workflow \"default\" has no state \"procesing\"; did you mean \"processing\"?"}},
        bad{"LimitOfTerminalState", "+ limits: {^completed: none}", {"limits: completed is terminal and lasts for ever"}},
        bad{"LimitNotByClock",
            "+ limits: {processing: ^{after: 1h, event: complete}}",
            {"limits: the clock has no transition for this event in processing"}},
        bad{"UnknownKey", "+ ^unmached: park", {"p: unknown key \"unmached\"; did you mean \"unmatched\"?"}},
        bad{"SecondSpelling", "+ ^verify: {scheme: none}", {"the key \"verify\" stands here a second time"}}),
    name_of);

// --- a file of its own ------------------------------------------------------------------------------------------------

class BadFile : public ::testing::TestWithParam<bad> {};

TEST_P(BadFile, IsReportedWhereItStands) {
  std::string text = GetParam().text +
                     "providers:\n  p:\n    verify: {scheme: github, secrets: [s3cret]}\n"
                     "    extract: {request_id: /id, idempotency_key: /key, event: /type}\n    events: {done: complete}\n";
  const auto expected = take_marks(text, GetParam().problems);
  EXPECT_EQ(lines_of(load(text).problems), expected) << text;
}

const std::string digest_a(64, 'a');

INSTANTIATE_TEST_SUITE_P(
    Sections, BadFile,
    ::testing::Values(
        bad{"UnknownSection",
            "^destination: {}\n",
            {"configuration: unknown key \"destination\"; did you mean \"destinations\"?"}},
        bad{"Address",
            "listen: {callbacks: {address: ^localhost}}\n",
            {"address: expected an IP address such as 0.0.0.0, 127.0.0.1 or ::"}},
        bad{"SamePort",
            "^listen: {callbacks: {port: 8081}}\n",
            {"listen: callbacks and api have the same port; they are two listeners, so that one of them can be exposed alone"}},
        bad{"TlsWithoutKey",
            "listen: {callbacks: {^tls: {certificate: ^absent.pem}}}\n",
            {"tls: key is required: PEM of the certificate's private key",
             "certificate: the file \"absent.pem\" does not exist"}},
        bad{"TrustedProxies",
            "listen: {trusted_proxies: [^10.0.0.1/8]}\n",
            {"trusted_proxies: expected a network such as 10.0.0.0/8 or fd00::/8, with zeros behind its prefix"}},
        bad{"ProxyProtocolOfNobody",
            "listen: {callbacks: ^{proxy_protocol: true}}\n",
            {"callbacks: proxy_protocol without trusted_proxies: no proxy's header would be taken"}},
        bad{"Forwarded", "listen: {forwarded: ^x}\n", {"forwarded: expected any, x-forwarded or forwarded, found \"x\""}},
        bad{"InFlightBelowBody",
            "limits: {body: 4MiB, in_flight: ^2MiB}\n",
            {"limits: in_flight is less than body, so that no body of that size could be taken"}},
        bad{"Connections",
            "limits: {connections: ^0}\n",
            {"connections: expected a whole number from 1 to 1000000, found \"0\""}},
        bad{"QueueBelowBatch", "record: {batch: 128, queue: ^64}\n", {"record: queue is less than batch"}},
        bad{"NoAuthorities", "outbound: {ca: ^does-not-exist.pem}\n", {"ca: the file \"does-not-exist.pem\" does not exist"}},
        bad{"ConnectToNoHost",
            "outbound: {connect_to: {^\"https://api.test\": 10.0.0.9}}\n",
            {"connect_to: expected the name of a host, such as api.example.com"}},
        bad{"ConnectToAnAddress",
            "outbound: {connect_to: {^10.0.0.1: 10.0.0.9}}\n",
            {"connect_to: expected the name of a host, such as api.example.com"}},
        bad{"ConnectToAName",
            "outbound: {connect_to: {api.test: ^gateway.test}}\n",
            {"connect_to: expected an address, with a port or without: 10.0.0.9, 10.0.0.9:8443 or [fd00::9]:8443"}},
        bad{"ConnectToMetadata",
            "outbound: {connect_to: {api.test: ^\"169.254.169.254:80\"}}\n",
            {"connect_to: 169.254.169.254:80 is never reached from here, whatever allows it"}},
        bad{"ConnectToTwice",
            "outbound: {connect_to: {api.test: 10.0.0.9, ^API.test: 10.0.0.9}}\n",
            {"connect_to: this host stands here twice"}},
        bad{"Lease", "outbox: {lease: ^0s}\n", {"lease: expected a duration from 1s to 1h, found \"0s\""}},
        bad{"ReviewDue", "reviews: {due: ^0s}\n", {"due: expected a duration from 1s to 3650d, found \"0s\""}},
        bad{"ReviewOwner", "reviews: {owner: ^\"\"}\n", {"owner: this text is empty"}},
        bad{"PayloadsOutlive",
            "retention: {payloads: ^2d, deliveries: 1d}\n",
            {"retention: payloads are kept longer than the deliveries that they belong to"}},
        bad{"OperationsGoFirst", "retention: {operations: ^100d}\n", {"retention: operations go before their deliveries"}},
        bad{"Drain", "^drain: {delay: 1m}\n", {"drain: timeout ends before delay, so that nothing in flight could finish"}},
        bad{"LogLevel", "log: {level: ^verbose}\n", {"level: expected trace, debug, info, warn or error, found \"verbose\""}},
        bad{"Otlp",
            "tracing: {otlp: ^\"ftp://x/\"}\n",
            {"otlp: not a URL that can be used: it begins with neither http:// nor https://"}},
        bad{"DatabaseUrlNumber",
            "database: {url: ^5}\n",
            {"url: a number or boolean without quotes is no text; put it in quotes"}},
        bad{"DatabaseUrlKey",
            "database: {url: {value: a, ^hidden: b}}\n",
            {"url: unknown key; this takes one of env, file and value"}},
        bad{"Pool", "database: {pool: ^many}\n", {"pool: expected a whole number from 1 to 1000, found \"many\""}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Tokens, BadFile,
    ::testing::Values(
        bad{"NoList", "api: {tokens: ^{name: a}}\n", {"tokens: expected a list, found a map"}},
        bad{"Nothing",
            "api: {tokens: [^^^{}]}\n",
            {"tokens: name is required: it stands in the audit trail",
             "tokens: role is required: support, reader, operator, admin or client",
             "tokens: sha256 is required: the token itself is never kept"}},
        bad{"Role",
            "api: {tokens: [{name: a, role: ^operater, sha256: " + digest_a + "}]}\n",
            {"role: expected support, reader, operator, admin or client, found \"operater\"; did you mean \"operator\"?"}},
        bad{"Digest",
            "api: {tokens: [{name: a, role: admin, sha256: ^abc}]}\n",
            {"sha256: expected 64 hex digits in lower case, as `recibo token new` prints them"}},
        bad{"DigestOfNothing",
            "api: {tokens: [{name: a, role: admin, sha256: "
            "^e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}]}\n",
            {"sha256: this is the digest of nothing; an empty token would be let in"}},
        bad{"NameTwice",
            "api: {tokens: [{name: a, role: admin, sha256: " + digest_a + "}, ^{name: a, role: admin, sha256: b" +
                std::string(63, 'a') + "}]}\n",
            {"tokens: the name \"a\" stands here a second time"}},
        bad{"DigestTwice",
            "api: {tokens: [{name: a, role: admin, sha256: " + digest_a + "}, ^{name: b, role: admin, sha256: " + digest_a +
                "}]}\n",
            {"tokens: two tokens have this digest; who used it could not be told"}},
        bad{"Permission",
            "api: {tokens: [{name: a, role: admin, permissions: [^payloads], sha256: " + digest_a + "}]}\n",
            {"permissions: expected payload, found \"payloads\"; did you mean \"payload\"?"}},
        bad{"Expires",
            "api: {tokens: [{name: a, role: admin, expires: ^tomorrow, sha256: " + digest_a + "}]}\n",
            {"expires: expected an instant with its offset, such as 2027-01-31T00:00:00Z, found \"tomorrow\""}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Destinations, BadFile,
    ::testing::Values(
        bad{"NoUrl", "destinations: {^d: {secret: s3cret}}\n", {"d: url is required: where notifications go"}},
        bad{"NoSecret", "destinations: {^d: {url: \"https://d/\"}}\n", {"d: secret is required: notifications are signed"}},
        bad{"Ftp",
            "destinations: {d: {url: ^\"ftp://ledger.test/\", secret: s3cret}}\n",
            {"url: not a URL that can be used: it begins with neither http:// nor https://"}},
        bad{"UserInfo",
            "destinations: {d: {url: ^\"https://user:pw@ledger.test/\", secret: s3cret}}\n",
            {"url: not a URL that can be used: a user or password in it is refused: it would end up in logs"}},
        bad{"LinkLocal",
            "destinations: {d: {url: ^\"http://169.254.169.254/\", secret: s3cret, allow: [169.254.0.0/16]}}\n",
            {"url: link-local, multicast and reserved addresses are never a destination"}},
        bad{"Private",
            "destinations: {d: {url: ^\"http://10.1.2.3/\", secret: s3cret, allow: [192.168.0.0/16]}}\n",
            {"url: a private address; name its network under allow if it is meant"}},
        bad{"HttpToAnybody",
            "destinations: {d: {url: ^\"http://ledger.example/\", secret: s3cret}}\n",
            {"url: https only: whoever listens on the way would know what was paid; http is for an address within allow"}},
        bad{"HttpToAPublicAddress",
            "destinations: {d: {url: ^\"http://93.184.216.34/\", secret: s3cret, allow: [10.0.0.0/8]}}\n",
            {"url: https only: whoever listens on the way would know what was paid; http is for an address within allow"}},
        bad{"Localhost",
            "destinations: {d: {url: ^\"http://localhost:9000/\", secret: s3cret}}\n",
            {"url: a private address; name its network under allow if it is meant"}},
        bad{"Allow",
            "destinations: {d: {url: \"https://d/\", secret: s3cret, allow: [^10.0.0.1/8]}}\n",
            {"allow: expected a network such as 10.0.0.0/8 or fd00::/8, with zeros behind its prefix"}},
        bad{"Events",
            "destinations: {d: {url: \"https://d/\", secret: s3cret, events: [^operation.complete]}}\n",
            {"events: no notification is called \"operation.complete\"; did you mean \"operation.completed\"?"}},
        bad{"Retry",
            "destinations: {d: {url: \"https://d/\", secret: s3cret, retry: {first: 10s, max: ^5s}}}\n",
            {"retry: max is less than first"}},
        bad{"NatsSubject",
            "destinations: {^d: {url: \"nats://d\"}}\n",
            {"d: subject is required: which subject it is published to"}},
        bad{"NatsGap",
            "destinations: {d: {url: \"nats://d\", subject: ^\"a.{colour}\"}}\n",
            {"subject: a gap is {type}, {provider} or {request_id}, not \"{colour}\""}},
        bad{"NatsWildcard",
            "destinations: {d: {url: \"nats://d\", subject: ^\"a.*\"}}\n",
            {"subject: blanks, *, > and characters beyond ASCII have no place in it"}},
        bad{"NatsEmptyPart", "destinations: {d: {url: \"nats://d\", subject: ^\"a..b\"}}\n", {"subject: a part of it is empty"}},
        bad{"NatsOwn",
            "destinations: {d: {url: \"nats://d\", subject: ^$SYS.a}}\n",
            {"subject: what begins with $ is the broker's own"}},
        bad{"NatsPath",
            "destinations: {d: {url: ^\"nats://d/x\", subject: a}}\n",
            {"url: not a URL that can be used: a broker has no path"}},
        bad{"NatsPrivate",
            "destinations: {d: {url: ^\"nats://10.1.2.3\", subject: a}}\n",
            {"url: a private address; name its network under allow if it is meant"}},
        bad{"NatsUserAlone",
            "destinations: {^d: {url: \"nats://d\", subject: a, user: u}}\n",
            {"d: user and password go together"}},
        bad{"NatsTokenToo",
            "destinations: {d: {url: \"nats://d\", subject: a, user: u, password: p, ^token: t}}\n",
            {"token: beside user and password it has no place"}},
        bad{"NatsCredentialsToo",
            "destinations: {d: {url: \"nats://d\", subject: a, token: t, ^credentials: ^{value: c}}}\n",
            {"credentials: beside a token, or user and password, they have no place",
             "credentials: expected what nsc writes: a block NATS USER JWT and a block USER NKEY SEED"}},
        bad{"NatsCredentialsOfNothing",
            "destinations: {d: {url: \"nats://d\", subject: a, credentials: ^x}}\n",
            {"credentials: expected what nsc writes: a block NATS USER JWT and a block USER NKEY SEED"}},
        bad{"NatsCredentialsWithAnotherSeed",
            "destinations: {d: {url: \"nats://d\", subject: a, credentials: ^\"-----BEGIN NATS USER JWT-----\\na.b.c\\n------END "
            "NATS "
            "USER JWT------\\n-----BEGIN USER NKEY SEED-----\\nSUAAAA\\n------END USER NKEY SEED------\"}}\n",
            {"credentials: the seed is not that of a user's key (SU…)"}},
        bad{"Whsec",
            "destinations: {d: {url: \"https://d/\", secret: ^\"whsec_???\"}}\n",
            {"secret: behind whsec_ stands no base64"}},
        bad{"Name",
            "destinations: {^Ledger: {url: \"https://d/\", secret: s3cret}}\n",
            {"destination \"Ledger\": a name has 1 to 63 characters of a-z, 0-9, \"_\" and \"-\", and begins with a letter or "
             "digit"}}),
    name_of);

// --- a workflow -------------------------------------------------------------------------------------------------------

class BadWorkflow : public ::testing::TestWithParam<bad> {};

TEST_P(BadWorkflow, IsReportedWhereItStands) {
  std::string text =
      "workflows:\n  w:\n" + GetParam().text +
      "providers:\n  p:\n    verify: {scheme: github, secrets: [s3cret]}\n"
      "    extract: {request_id: /id, idempotency_key: /key, event: /type}\n    events: {done: complete}\n    workflow: w\n";
  const auto expected = take_marks(text, GetParam().problems);
  EXPECT_EQ(lines_of(load(text).problems), expected) << text;
}

const std::string good_states = "    initial: a\n    states: {a: {limit: none}, b: {terminal: true}}\n";
const std::string good_moves = "    transitions: [{from: a, event: complete, to: b, by: provider}]\n";

INSTANTIATE_TEST_SUITE_P(
    Tables, BadWorkflow,
    ::testing::Values(
        bad{"Good", good_states + good_moves, {}},
        bad{"NoStates",
            "    initial: a\n    transitions: [{from: ^a, event: complete, to: ^b, by: provider}]\n",
            {"2:3: w: states is required: a workflow is its states and transitions", "from \"a\": there is no state named so",
             "to \"b\": there is no state named so"}},
        bad{"NoInitial",
            "    states: {a: {limit: none}, b: {terminal: true}}\n" + good_moves,
            {"2:3: w: initial is required: the state of an operation that was just accepted"}},
        bad{"UnknownInitial",
            "    initial: ^x\n    states: {a: {limit: none}, b: {terminal: true}}\n" + good_moves,
            {"initial \"x\": there is no state named so"}},
        bad{"NoLimit",
            "    initial: a\n    states: {^a: {label: A}, b: {terminal: true}}\n" + good_moves,
            {"a: a state that is not terminal says how long it may last: limit: {after, event}, or limit: none"}},
        bad{"TerminalWithLimit",
            "    initial: a\n    states: {a: {limit: none}, b: {terminal: true, ^limit: none}}\n" + good_moves,
            {"limit: a terminal state lasts for ever"}},
        bad{"LimitIsAWord",
            "    initial: a\n    states: {a: {limit: ^never}, b: {terminal: true}}\n" + good_moves,
            {"limit: expected {after, event} or none, found \"never\""}},
        bad{"LimitWithoutMove",
            "    initial: a\n    states: {a: {limit: {after: 5m, event: ^overdue}, owner: o}, b: {terminal: true}}\n" +
                good_moves,
            {"event: the clock has no transition for this event in this state"}},
        bad{"NoOwner",
            "    initial: a\n    states: {^a: {limit: none}, b: {terminal: true}}\n    transitions: [{from: a, event: complete, "
            "to: b, by: [provider, operator]}]\n",
            {"a: owner is required, because not the provider alone moves this state: who has to act when it lasts too long"}},
        bad{"UnknownTarget",
            good_states + "    transitions:\n      - {from: a, event: complete, to: b, by: provider}\n      - {from: a, event: "
                          "x, to: ^c, by: provider}\n",
            {"to \"c\": there is no state named so"}},
        bad{"UnknownOrigin",
            good_states + "    transitions: [{from: [a, ^c], event: complete, to: b, by: provider}]\n",
            {"from \"c\": there is no state named so"}},
        bad{"TwoTargets",
            good_states + "    transitions:\n      - {from: a, event: complete, to: b, by: provider}\n      - {from: a, event: "
                          "^complete, to: a, by: provider}\n",
            {"event \"complete\": this event has a row for this state already"}},
        bad{"UnknownActor",
            good_states + "    transitions: [{from: a, event: complete, to: b, by: ^providers}]\n",
            {"by: expected provider, client, operator or clock, found \"providers\"; did you mean \"provider\"?"}},
        bad{"Unreachable",
            "    initial: a\n    states: {a: {limit: none}, b: {terminal: true}, ^c: {terminal: true}}\n" + good_moves,
            {"c: no transition leads to this state"}},
        bad{"NoWayOut",
            "    initial: a\n    states: {a: {limit: none}, ^b: {limit: none}}\n" + good_moves,
            {"b: no transition leaves this state, and it is not terminal"}},
        bad{"LeavesTerminal",
            good_states + "    transitions: [{from: a, event: complete, to: b, by: provider}, {from: b, event: back, to: a, by: "
                          "^client}]\n",
            {"by: only an operator may leave a terminal state"}},
        bad{"StateName",
            "    initial: a\n    states: {a: {limit: none}, ^\"B b\": {terminal: true}}\n    transitions: [{from: a, event: "
            "complete, to: \"B b\", by: provider}]\n",
            {"B b: a name is 1 to 63 characters of a-z, 0-9, _ and -"}},
        bad{"UnknownKeys",
            "    initial: a\n    states: {a: {limit: none, ^lable: A}, b: {terminal: true}}\n    transitions: [^{^form: a, "
            "event: complete, to: b, by: provider}]\n",
            {"a: unknown key \"lable\"; did you mean \"label\"?",
             "transitions: from is required: the state or states that it leaves",
             "transitions: unknown key \"form\"; did you mean \"from\"?"}}),
    name_of);

TEST(BadSecret, ThatIsNotInTheEncodingOfItsSchemeIsReportedWhereItStands) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: standard-webhooks, secrets: ["whsec_???"]}
    extract: {request_id: /id, event: /type}
    events: {done: complete}
)");
  ASSERT_EQ(l.problems.size(), 1u);
  EXPECT_EQ(l.problems[0].line, 3);
  EXPECT_EQ(l.problems[0].column, 51);
  EXPECT_THAT(l.problems[0].message, ::testing::HasSubstr("base64"));
  EXPECT_THAT(l.problems[0].message, ::testing::Not(::testing::HasSubstr("???")));
}

// --- what is taken, with a word -----------------------------------------------------------------------------------------

TEST(Warnings, ANewlineAtTheEndOfASecretFileIsCutOff) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: github, secrets: [{file: secrets/newline-at-end}, {name: dos, file: secrets/crlf-at-end}]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
  ASSERT_EQ(lines_of(l.problems), std::vector<std::string>{});
  EXPECT_EQ(l.settings->providers.at("p").keys.secrets.at(0).key.reveal(), "test-secret-A");
  EXPECT_EQ(l.settings->providers.at("p").keys.secrets.at(1).key.reveal(), "test-secret-B");
  EXPECT_THAT(lines_of(l.warnings),
              ::testing::Contains("3:47: file: the newline at its end is not part of the secret and was cut off"));
}

TEST(Secrets, TheLineAfterAPemKeyIsNotPartOfIt) {
  const auto l = load(R"(providers:
  p:
    verify:
      scheme: wise
      secrets:
        - |
          -----BEGIN PUBLIC KEY-----
          MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMb3BJRfQcvVy+qnnbDg7Fcl+wnVa
          not a key, which is another matter
          -----END PUBLIC KEY-----
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
  ASSERT_EQ(l.problems.size(), 1u);
  EXPECT_EQ(l.problems.front().message.find("line feed"), std::string::npos) << l.problems.front().message;
}

TEST(Secrets, EachFileOfAFolderIsOne) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: github, secrets: [{name: k8s, directory: folder, until: 2999-01-01T00:00:00Z}, s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
  ASSERT_EQ(lines_of(l.problems), std::vector<std::string>{});
  const auto& secrets = l.settings->providers.at("p").keys.secrets;
  ASSERT_EQ(secrets.size(), 3u);
  EXPECT_EQ(secrets[0].name, "k8s.current");
  EXPECT_EQ(secrets[0].key.reveal(), "secret-of-the-folder-1");
  EXPECT_TRUE(secrets[0].until);
  EXPECT_EQ(secrets[1].name, "k8s.previous");
  EXPECT_EQ(secrets[1].key.reveal(), "secret-of-the-folder-2");
  EXPECT_EQ(secrets[2].name, "secret-2");
  EXPECT_THAT(lines_of(l.warnings),
              ::testing::Contains("3:63: directory: the newline at the end of the file \"previous\" is not part "
                                  "of the secret and was cut off"));
  EXPECT_EQ(l.origin->watched.size(), 3u) << "the folder and its two files";
  EXPECT_FALSE(look_of(l.origin->watched).empty());
}

// A folder of the test's own, and the problems of a configuration that takes its secrets from there.
class SecretsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("recibo-secrets-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::vector<std::string> problems() const {
    return lines_of(load("providers:\n  p:\n    verify: {scheme: github, secrets: [{directory: \"" + folder_.string() + R"("}]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)")
                        .problems);
  }

  std::filesystem::path folder_;
};

TEST_F(SecretsFolder, HoldsSixtyFourAtMost) {
  for (int i = 0; i < 64; ++i) write("s" + std::to_string(i), "secret-of-the-folder-" + std::to_string(i));
  EXPECT_EQ(problems(), std::vector<std::string>{});
  write("s64", "secret-of-the-folder-64");
  EXPECT_EQ(problems(), std::vector<std::string>{"3:52: directory: there are more than 64 files in the folder of secrets"});
}

TEST_F(SecretsFolder, IsNotReadWithoutEnd) {
  for (int i = 0; i < 1024; ++i) write(".x" + std::to_string(i), "");
  write("s", "secret-of-the-folder");
  EXPECT_EQ(problems(), std::vector<std::string>{
                            "3:52: directory: there are more than 1024 entries in the folder; give secrets one of their own"});
}

TEST_F(SecretsFolder, RawBytesAreNoSecret) {
  const std::string said =
      "3:52: directory: the file \"s\" is no text; a key of raw bytes is written down in base64 or hexadecimal";
  for (const std::string& bytes :
       {std::string("key\0key", 7), std::string("\x89PNG"), std::string("key\x7f"), std::string("k\xc3")}) {
    write("s", bytes);
    EXPECT_EQ(problems(), std::vector<std::string>{said});
  }
  write("s", "gr\xc3\xbc\xc3\x9f\x65");
  EXPECT_EQ(problems(), std::vector<std::string>{});
}

TEST(Warnings, ExpiredSecretsAndTokens) {
  const auto l = load("api: {tokens: [{name: a, role: admin, expires: 2020-01-01T00:00:00Z, sha256: " + digest_a + R"(}]}
providers:
  p:
    verify: {scheme: github, secrets: [{value: s3cret, until: 2020-01-01T00:00:00Z}]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
  ASSERT_EQ(lines_of(l.problems), std::vector<std::string>{});
  EXPECT_THAT(lines_of(l.warnings),
              ::testing::IsSupersetOf({"1:48: expires: this token has expired and can be removed",
                                       "4:63: until: this secret is no longer valid and can be removed once another one is",
                                       "4:39: secrets: none of them is valid now; every callback of p will be refused"}));
}

TEST(Warnings, ADestinationWhoseSecretsAreNoneOfThemValidNow) {
  const std::string key = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd";
  const auto said = [&](const std::string& secrets) {
    const auto l = load("destinations: {d: {url: \"https://d.test/hook\", " + secrets + "}}\n");
    EXPECT_EQ(lines_of(l.problems), std::vector<std::string>{});
    int found = 0;
    for (const auto& line : lines_of(l.warnings))
      found += line.find("none of them is valid now; nothing can be signed, and d is paused") != std::string::npos ? 1 : 0;
    return found;
  };
  EXPECT_EQ(said("secrets: [{value: " + key + ", until: 2020-01-01T00:00:00Z}]"), 1);
  EXPECT_EQ(said("secrets: [{value: " + key + ", from: 2999-01-01T00:00:00Z}]"), 1);
  EXPECT_EQ(said("secret: {value: " + key + ", from: 2999-01-01T00:00:00Z}"), 1);
  EXPECT_EQ(said("secrets: [{value: " + key + ", until: 2999-01-01T00:00:00Z}]"), 0);
  EXPECT_EQ(said("secret: " + key), 0);
}

TEST(Warnings, ASharedSecretThatCanBeFoundByTrying) {
  const auto with = [](const std::string& verify) {
    const auto l = load("providers:\n  p:\n    verify: {" + verify + R"(}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
    int found = 0;
    for (const auto& line : lines_of(l.warnings)) found += line.find("can be found by trying") != std::string::npos ? 1 : 0;
    return found;
  };
  const std::string own = "scheme: hmac, signature: {header: X-Sig}, signed: \"{body}\", secrets: ";
  EXPECT_EQ(with(own + "[x]"), 1);
  EXPECT_EQ(with(own + "[elevenchars]"), 1);
  EXPECT_EQ(with(own + "[twelve-chars]"), 0);
  EXPECT_EQ(with(own + "[x, a secret that is long enough, yy]"), 2) << "each by itself";
  EXPECT_EQ(with("scheme: github, secrets: [x]"), 1);
  EXPECT_EQ(with("scheme: hash, signature: {header: X-Sig}, signed: \"{secret}{body}\", secrets: [x]"), 1);
  EXPECT_EQ(with("scheme: adyen, secrets: [\"00ff\"]"), 1) << "bytes, not letters";
  EXPECT_EQ(with("scheme: braintree, secrets: [\"p|x\"]"), 0) << "its key is a digest";
}

TEST(Warnings, ATimeStampThatIsNotSigned) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: hmac, signature: {header: X-Sig}, signed: "{body}", timestamp: {header: X-T, unit: seconds}, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
  ASSERT_EQ(lines_of(l.problems), std::vector<std::string>{});
  EXPECT_THAT(lines_of(l.warnings),
              ::testing::Contains("3:74: timestamp: it is not among what is signed, so it proves nothing about age"));
}

TEST(Warnings, ADestinationsSecretInAnotherForm) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: github, secrets: [test-secret-A]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
destinations:
  a: {url: "https://a/", secret: ledger-secret}
  b: {url: "https://b/", secret: bGVkZ2VyLXRlc3Qtc2VjcmV0LW9mLTMyLWJ5dGVzISE=}
  c: {url: "https://c/", secret: whsec_c2hvcnQ=}
)");
  ASSERT_EQ(lines_of(l.problems), std::vector<std::string>{});
  EXPECT_EQ(l.settings->destinations.at("a").keys.secrets.at(0).key.reveal(), "ledger-secret");
  EXPECT_EQ(l.settings->destinations.at("b").keys.secrets.at(0).key.reveal(), "ledger-test-secret-of-32-bytes!!");
  EXPECT_EQ(l.settings->destinations.at("c").keys.secrets.at(0).key.reveal(), "short");
  EXPECT_EQ(l.warnings.size(), 5u);
}

}  // namespace
}  // namespace recibo::config
