#include "recibo/verify/diagnose.hpp"

#include "recibo/verify/foreign_key.hpp"

#include "changes.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

std::string seconds_text(std::chrono::seconds d) {
  const auto n = d.count() < 0 ? -d.count() : d.count();
  if (n >= 2 * 86400) return std::to_string(n / 86400) + " days";
  if (n >= 2 * 3600) return std::to_string(n / 3600) + " hours";
  if (n >= 120) return std::to_string(n / 60) + " minutes";
  return std::to_string(n) + " s";
}

std::string_view advice(cause why) {
  switch (why) {
    case cause::header_renamed: return "name that header in the scheme, or choose the preset that does";
    case cause::signature_form: return "the scheme's prefix or encoding is configured otherwise than the sender writes it";
    case cause::body_changed:
      return "something between the sender and here wrote the body anew; hand on the bytes as they came, and capture them so";
    case cause::url_differs: return "public_url must be the URL exactly as the provider knows it";
    case cause::secret_not_valid:
      return "the sender still (or already) signs with it: mend from or until, or let the sender switch";
    case cause::secret_form: return "compare how the provider hands its secret out with how the scheme reads it";
    case cause::other_provider: return "the secrets of two providers were mixed up, or the sender calls the wrong URL";
    case cause::other_scheme: return "the sender signs by another scheme than the one that is configured";
    case cause::none:
    case cause::header_missing:
    case cause::header_repeated:
    case cause::timestamp_missing:
    case cause::timestamp_form:
    case cause::too_old:
    case cause::clock_ahead:
    case cause::content_missing:
    case cause::secret_of_nobody:
    case cause::key_unknown:
    case cause::callback_url:
    case cause::not_examined: break;
  }
  return {};
}

class search {
 public:
  explicit search(const question& asked) : asked_(asked) { out_.verdict = run(trial(asked)); }

  diagnosis go() {
    if (out_.verdict) {
      out_.secret = *out_.verdict;
      return std::move(out_);
    }
    const auto code = out_.verdict.error().code;
    const auto named = which_key(asked_.how, asked_.message, asked_.keys, asked_.now);
    if (code == permanent::signature_mismatch && speaks_of_other_body(asked_.how, asked_.message))
      return tell(cause::body_changed, "The token holds the hash of another body: it was changed after it was signed.");
    if (!named && named.error().code == permanent::signature_mismatch)
      return tell(cause::key_unknown, "No key is asked for: " + named.error().detail + ".");
    if (!out_.verdict.error().is_permanent())
      return tell(cause::not_examined, "Its key has to be fetched from the provider first, which only the service does.");
    if (code == permanent::signature_repeated)
      return tell(cause::header_repeated,
                  "A signature, a time stamp or a signed field stands twice. Which one counts is not for us to guess.");
    if (code == permanent::timestamp_missing)
      return tell(cause::timestamp_missing, "The scheme needs a time stamp, and there is none where it looks for one.");
    if (code == permanent::timestamp_malformed || code == permanent::timestamp_stale) {
      if (another_form()) return std::move(out_);
      if (code == permanent::timestamp_malformed)
        return tell(cause::timestamp_form, "The time stamp is not written as the scheme asks for; compare its format and unit.");
    }
    trial base(asked_);
    // Age is looked at apart from the rest: a request that was recorded is old in any case.
    if (base.how.timestamp) base.how.timestamp->tolerance.reset();
    const auto aside_from_age = run(base);
    if (aside_from_age) {
      out_.secret = *aside_from_age;
      return tell_age();
    }
    if (!find(base)) set_nothing_found(aside_from_age.error());
    if (code == permanent::timestamp_stale) out_.explanation += " Besides, " + age_sentence();
    return std::move(out_);
  }

 private:
  bool may_go_on() const { return out_.trials < asked_.bound.trials_max && bytes_ < asked_.bound.bytes_max; }

  result<std::string> run(const trial& one) {
    ++out_.trials;
    bytes_ += one.body.size() * std::max<std::size_t>(one.keys.secrets.size(), 1);
    return one.run(asked_.now);
  }

  void set(cause why, std::string explanation) {
    out_.why = why;
    out_.explanation = std::move(explanation);
  }
  diagnosis tell(cause why, std::string explanation) {
    set(why, std::move(explanation));
    return std::move(out_);
  }

  // Seconds for milliseconds, and the like: read otherwise it is in time, and the signature is right.
  bool another_form() {
    constexpr std::pair<timestamp_format, std::string_view> formats[] = {{timestamp_format::unix_s, "seconds"},
                                                                         {timestamp_format::unix_ms, "milliseconds"},
                                                                         {timestamp_format::rfc3339, "RFC 3339"}};
    for (const auto& [format, word] : formats) {
      if (format == asked_.how.timestamp->format) continue;
      trial other(asked_);
      other.how.timestamp->format = format;
      // Far enough to be the wrong unit by a thousand, near enough to have been meant.
      if (other.how.timestamp->tolerance) other.how.timestamp->tolerance = std::chrono::hours(24 * 366);
      const auto found = run(other);
      if (!found) continue;
      out_.secret = *found;
      set(cause::timestamp_form, "It verifies with the time stamp read as " + std::string(word) + ": set the timestamp's unit.");
      return true;
    }
    return false;
  }

  std::chrono::seconds age() const {
    return look_into(asked_.how, asked_.message, asked_.now).age.value_or(std::chrono::seconds{});
  }

  std::string age_sentence() const {
    const auto by = age();
    const auto tolerance = asked_.how.timestamp->tolerance.value_or(std::chrono::seconds{});
    const std::string allowed = "and the tolerance is " + seconds_text(tolerance) + ".";
    if (by.count() < 0) return "its time stamp lies " + seconds_text(by) + " ahead of the clock here, " + allowed;
    return "its time stamp is " + seconds_text(by) + " old, " + allowed;
  }

  diagnosis tell_age() {
    if (age().count() < 0)
      return tell(cause::clock_ahead,
                  "The signature is right, but " + age_sentence() + " One of the two clocks is wrong: compare both with NTP.");
    return tell(
        cause::too_old,
        "The signature is right, but " + age_sentence() +
            " It waited on its way, was sent again with its old signature, is a recorded request (--at says when to judge "
            "it), or the clock here is ahead.");
  }

  bool accept(const trial& one, const change& first, const change* second) {
    const auto found = run(one);
    if (!found) return false;
    out_.secret = *found;
    out_.why = first.why;
    out_.explanation = "It verifies with " + first.says;
    if (second != nullptr) out_.explanation += ", and with " + second->says;
    if (!found->empty()) out_.explanation += " (secret " + *found + ")";
    out_.explanation += ": " + std::string(advice(first.why)) + ".";
    if (second != nullptr && second->why != first.why) out_.explanation += " And: " + std::string(advice(second->why)) + ".";
    return true;
  }

  bool find(const trial& base) {
    const auto changes = changes_for(asked_, asked_.bound.bytes_max / 16);
    std::vector<const change*> applicable;
    for (const change& one : changes) {
      if (!one.common) tried_common_ = true;
      if (!may_go_on()) return false;
      trial with = base;
      if (!one.apply(with)) continue;
      applicable.push_back(&one);
      if (accept(with, one, nullptr)) return true;
    }
    tried_common_ = true;
    for (std::size_t i = 0; i < applicable.size(); ++i) {
      for (std::size_t j = i + 1; j < applicable.size(); ++j) {
        if (applicable[i]->of == applicable[j]->of) continue;
        if (!may_go_on()) return false;
        // A scheme is put in place before what is changed about it.
        const change *first = applicable[i], *second = applicable[j];
        if (second->of == subject::scheme) std::swap(first, second);
        trial with = base;
        if (first->apply(with) && second->apply(with) && accept(with, *first, second)) return true;
      }
    }
    return false;
  }

  void set_nothing_found(const error& why) {
    if (why.code == permanent::signature_missing) {
      set(cause::header_missing,
          "There is no signature of the form that the scheme asks for: another scheme, a proxy that drops the header (nginx "
          "drops "
          "names with underscores), or a sender that does not sign.");
    } else if (why.code == permanent::content_missing) {
      set(cause::content_missing, "A header or field that the scheme signs is absent: another scheme, or a proxy that drops it.");
    } else if (why.code == permanent::timestamp_missing) {
      set(cause::timestamp_missing, "The scheme needs a time stamp, and there is none where it looks for one.");
    } else if (!tried_common_) {
      set(cause::not_examined, "Not looked into far enough; `recibo verify` with the captured request looks into all of it.");
    } else if (!may_go_on()) {
      set(cause::secret_of_nobody,
          "No secret that is known here makes this signature, and none of the usual mistakes explains it: most likely the sender "
          "has another secret, or somebody else sent it. `recibo verify` with the captured request looks further.");
    } else {
      set(cause::secret_of_nobody,
          "No secret that is known here makes this signature, whatever was changed: the sender has another secret, the body was "
          "changed beyond recognition, or somebody else sent it.");
    }
  }

  const question& asked_;
  diagnosis out_;
  std::size_t bytes_ = 0;
  bool tried_common_ = false;
};

}  // namespace

std::string_view to_string(cause c) noexcept {
  switch (c) {
    case cause::none: return "none";
    case cause::header_missing: return "header_missing";
    case cause::header_renamed: return "header_renamed";
    case cause::header_repeated: return "header_repeated";
    case cause::signature_form: return "signature_form";
    case cause::timestamp_missing: return "timestamp_missing";
    case cause::timestamp_form: return "timestamp_form";
    case cause::too_old: return "too_old";
    case cause::clock_ahead: return "clock_ahead";
    case cause::content_missing: return "content_missing";
    case cause::body_changed: return "body_changed";
    case cause::url_differs: return "url_differs";
    case cause::secret_not_valid: return "secret_not_valid";
    case cause::secret_form: return "secret_form";
    case cause::other_provider: return "other_provider";
    case cause::other_scheme: return "other_scheme";
    case cause::secret_of_nobody: return "secret_of_nobody";
    case cause::key_unknown: return "key_unknown";
    case cause::callback_url: return "callback_url";
    case cause::not_examined: return "not_examined";
  }
  return "";
}

diagnosis diagnose(const question& asked) { return search(asked).go(); }

}  // namespace recibo::verify
