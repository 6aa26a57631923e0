// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ranges>
#include <stdexcept>
#include <vector>

#include "acc/rendezvous/rendezvous.hpp"

namespace acc::test {

using namespace launcher;

/// The events of a rendezvous.
class KeptEvents {
 public:
  explicit KeptEvents(Rendezvous& rendezvous) {
    rendezvous.on_event([this](NodeEvent event) { events_.push_back(std::move(event)); });
  }

  template <typename Kind>
  bool has() const {
    return std::ranges::any_of(events_,
                               [](const NodeEvent& one) { return std::holds_alternative<Kind>(one); });
  }

  template <typename Kind>
  Kind last() const {
    for (const NodeEvent& event : events_ | std::views::reverse) {
      if (const auto* one = std::get_if<Kind>(&event)) return *one;
    }
    throw std::logic_error("no such event");
  }

  void clear() { events_.clear(); }

 private:
  std::vector<NodeEvent> events_ = {};
};

}  // namespace acc::test
