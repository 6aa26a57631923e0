// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "acc/base/log_options.hpp"
#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// Tells a person what matters: nothing when all is well, one block when the job has failed.
class TextReporter : public Reporter {
 public:
  /// Takes whole lines for acc's standard error, and how much they matter.
  using Write = std::function<void(log::Level, std::string_view)>;

  /// `python` is what runs the workers on `host`, and why; empty: none does.
  explicit TextReporter(Write write, std::string host = {}, std::string python = {})
      : write_(std::move(write)), host_(std::move(host)), python_(std::move(python)) {}

  void report(const Event& event) override;

 private:
  Write write_;
  std::string host_;
  std::string python_;
};

}  // namespace acc::launcher
