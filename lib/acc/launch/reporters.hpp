// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "acc/launch/reporter.hpp"

namespace acc {

/// Several readers of the same events, in the order in which they were added.
class Reporters : public Reporter {
 public:
  void add(std::unique_ptr<Reporter> reader) { readers_.push_back(std::move(reader)); }

  void report(const Event& event) override {
    for (const auto& reader : readers_) reader->report(event);
  }

 private:
  std::vector<std::unique_ptr<Reporter>> readers_ = {};
};

}  // namespace acc
