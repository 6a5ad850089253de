// Runs one coroutine to its end, for commands that ask the database something and leave.
#pragma once

#include "recibo/core/error.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace recibo::commands {

// Rethrows what escapes `what`. Work that `what` leaves behind on `context` is not waited for.
template <class T>
T wait_for(boost::asio::io_context& context, boost::asio::awaitable<T> what) {
  std::optional<T> value;
  std::exception_ptr failure;
  boost::asio::co_spawn(context, std::move(what), [&](std::exception_ptr e, T came) {
    failure = e;
    if (!e) value.emplace(std::move(came));
    context.stop();
  });
  context.run();
  if (failure) std::rethrow_exception(failure);
  return std::move(*value);
}

}  // namespace recibo::commands
