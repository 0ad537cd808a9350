// A call that may never return, with a limit: another process may have been stopped in the middle
// of an answer.
//
//   const std::optional<bool> met = in_time<bool>(5.0, [] { return done(); });
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include "core/start_thread.h"

namespace antisd::inline dist {

// What `call` returns or throws; nothing after `seconds`. Then the thread that runs it is left
// behind, so the call must own what it uses.
template <typename Result>
std::optional<Result> in_time(double seconds, std::function<Result()> call) {
  const auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> result = promise->get_future();
  start_thread([promise, call = std::move(call)] {
    try {
      promise->set_value(call());
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (result.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready)
    return std::nullopt;
  return result.get();
}

}  // namespace antisd::inline dist
