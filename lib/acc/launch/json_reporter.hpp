// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "acc/launch/event_json.hpp"
#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// Every event as a line of JSON, when it happens.
class JsonReporter : public Reporter {
 public:
  /// `write` gets a whole line with its end.
  JsonReporter(std::string run_id, std::string host, std::function<void(std::string_view)> write)
      : context_{.run_id = std::move(run_id), .host = std::move(host)}, write_(std::move(write)) {}

  void report(const Event& event) override;

 private:
  EventContext context_;
  std::function<void(std::string_view)> write_;
};

}  // namespace acc::launcher
