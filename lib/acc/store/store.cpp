// SPDX-License-Identifier: Apache-2.0
#include "acc/store/store.hpp"

namespace acc::launcher {

using std::chrono::milliseconds;

void Store::set(std::string key, std::string value, Done handler) {
  Pairs pairs;
  pairs.emplace_back(std::move(key), std::move(value));
  multi_set(std::move(pairs), std::move(handler));
}

void Store::get(std::string key, Handler<std::optional<std::string>> handler) {
  multi_get({std::move(key)}, [handler = std::move(handler)](StoreOutcome outcome, Values values) {
    if (values) return handler(outcome, std::move(values->front()));
    handler(outcome, std::nullopt);
  });
}

void Store::get_when_present(std::vector<std::string> keys, milliseconds timeout,
                             Handler<std::vector<std::string>> handler) {
  const auto deadline = RunningClock::now() + timeout;
  auto again = [this, keys, deadline, handler = std::move(handler)](StoreOutcome outcome) {
    if (outcome != StoreOutcome::done) return handler(outcome, {});
    multi_get(keys, [this, keys, deadline, handler](StoreOutcome got, Values values) {
      if (got != StoreOutcome::done || values)
        return handler(got, values.value_or(std::vector<std::string>()));
      const auto left = std::chrono::ceil<milliseconds>(deadline - RunningClock::now());
      if (left <= milliseconds(0)) return handler(StoreOutcome::timed_out, {});
      get_when_present(keys, left, handler);
    });
  };
  wait(std::move(keys), timeout, std::move(again));
}

}  // namespace acc::launcher
