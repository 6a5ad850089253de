#include "recibo/async/deadline.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace recibo::async::detail {

bool is_cancellation(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    return e.code() == boost::asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace recibo::async::detail
