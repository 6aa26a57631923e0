// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "acc/launch/reporter.hpp"

namespace acc {

/// Tells a person what matters: nothing when all is well, one block when the job has failed.
class TextReporter : public Reporter {
 public:
  /// Takes whole lines for acc's standard error.
  using Write = std::function<void(std::string_view)>;

  explicit TextReporter(Write write) : write_(std::move(write)) {}

  void report(const Event& event) override;

 private:
  Write write_;
};

}  // namespace acc
