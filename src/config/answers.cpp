#include "recibo/config/answers.hpp"

namespace recibo::config {

int default_status(transition::disposition what) noexcept {
  using transition::disposition;
  switch (what) {
    case disposition::applied:
    case disposition::redundant:
    case disposition::partial:
    case disposition::duplicate:
    case disposition::stale:
    case disposition::review:
    case disposition::ignored: return 200;
    case disposition::parked:
    case disposition::unmapped:
    case disposition::hint: return 202;
    case disposition::unknown_operation: return 404;
    case disposition::conflict: return 409;
    case disposition::unprocessable: return 422;
  }
  return 200;
}

answer_shape shape_of(const answers& how, transition::disposition what) {
  answer_shape out{default_status(what), std::nullopt};
  if (const auto own = how.status.find(std::string(transition::to_string(what))); own != how.status.end())
    out.status = own->second;
  // A literal body is what the provider takes for an acknowledgement: a refusal must not look like one.
  if (out.status >= 200 && out.status < 300) out.body = how.body;
  return out;
}

}  // namespace recibo::config
