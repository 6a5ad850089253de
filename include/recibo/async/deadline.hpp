// Bounds the wait for an asynchronous operation. Nothing else in Recibo races a timer: the
// operators of Asio wait for the timer when the operation throws, and drop what it returned when both finish.
#pragma once

#include "recibo/core/error.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace recibo::async {

using time_point = std::chrono::steady_clock::time_point;

namespace detail {

// Runs `op` and keeps what became of it, so that the race below sees neither a value nor an exception.
template <class T>
boost::asio::awaitable<void> keep(boost::asio::awaitable<result<T>> op, std::optional<result<T>>& value,
                                  std::exception_ptr& failure) {
  try {
    value.emplace(co_await std::move(op));
  } catch (...) {
    failure = std::current_exception();
  }
}

// Whether `failure` only says that somebody was told to stop.
bool is_cancellation(const std::exception_ptr& failure) noexcept;

}  // namespace detail

// What `op` returned, or transient::deadline_passed at `until`. Then `op` is cancelled (terminal) and waited for, so
// that nothing of it runs on afterwards: it must heed cancellation, as every operation of Asio does. What it returns
// while it is being cancelled is not lost: a value stands, and so do `uncertain` (it was sent) and `permanent`.
// An exception of `op` is thrown here. With `until` in the past `op` is never started.
// Runs on the executor of the awaiting coroutine; cancelling that cancels `op`.
template <class T>
boost::asio::awaitable<result<T>> with_deadline(boost::asio::awaitable<result<T>> op, time_point until) {
  using namespace boost::asio::experimental::awaitable_operators;
  if (until <= std::chrono::steady_clock::now()) co_return error(transient::deadline_passed);
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor, until);
  std::optional<result<T>> value;
  std::exception_ptr failure;
  auto kept = detail::keep(std::move(op), value, failure);
  auto expired = timer.async_wait(boost::asio::use_awaitable);
  const auto first = co_await (std::move(kept) || std::move(expired));
  const bool in_time = first.index() == 0;
  if (failure) {
    if (in_time || !detail::is_cancellation(failure)) std::rethrow_exception(failure);
    co_return error(transient::deadline_passed);
  }
  // Cancelled while it waited, the operation tends to report whatever it was waiting for.
  if (!in_time && value->has_error() && value->error().is_transient()) co_return error(transient::deadline_passed);
  co_return std::move(*value);
}

}  // namespace recibo::async
