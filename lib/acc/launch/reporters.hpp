// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// Several readers of the same events, in the order in which they were added.
class Reporters : public Reporter {
 public:
  void add(std::unique_ptr<Reporter> reader) {
    add(*reader);
    owned_.push_back(std::move(reader));
  }
  /// One that outlives this.
  void add(Reporter& reader) { readers_.push_back(&reader); }

  void report(const Event& event) override {
    for (Reporter* reader : readers_) reader->report(event);
  }

 private:
  std::vector<Reporter*> readers_ = {};
  std::vector<std::unique_ptr<Reporter>> owned_ = {};
};

}  // namespace acc::launcher
