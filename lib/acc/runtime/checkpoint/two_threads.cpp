// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/two_threads.hpp"

#include <atomic>
#include <exception>
#include <future>
#include <vector>

namespace acc::detail {

void on_two_threads(std::size_t count, const std::function<void(std::size_t)>& function) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  const auto call_all = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        function(i);
      } catch (...) {
        errors[i] = std::current_exception();
        next = count;
      }
    }
  };
  const std::future<void> other = std::async(std::launch::async, call_all);
  call_all();
  other.wait();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace acc::detail
