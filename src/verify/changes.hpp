// What may have gone wrong between a sender and us, as changes to a request or to what is configured for it.
#pragma once

#include "recibo/verify/diagnose.hpp"

#include <functional>
#include <string>
#include <vector>

namespace recibo::verify {

// A request and what judges it, to be changed. Borrows the headers of the question.
struct trial {
  scheme how;
  std::string url, query, body;
  keyring keys;
  const signed_message* as_sent = nullptr;
  const fetched_key* fetched = nullptr;

  explicit trial(const question& asked);
  result<std::string> run(sys_micros now) const;
  // Key bytes anew from the secrets' texts, by the scheme that is in place now.
  void rekey();
};

// Two changes of one subject exclude each other.
enum class subject {
  secret,     // the keyring: key bytes, validity, whose it is
  body,       // the bytes that are hashed
  url,        // the public URL
  signature,  // its prefix or encoding
  scheme,     // the scheme itself, or where its signature stands
};

struct change {
  cause why;
  subject of;
  std::string says;                   // "…" of "it verifies with …"
  std::function<bool(trial&)> apply;  // false: it changes nothing here
  // One of the usual mistakes. Where none of them makes the signature, it is most likely of a secret that nobody here knows.
  bool common = false;
};

// Most likely first: the common ones before all others. `bytes_max` bounds how large a body is written anew.
std::vector<change> changes_for(const question& asked, std::size_t bytes_max);

}  // namespace recibo::verify
