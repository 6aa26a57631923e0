// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <utility>

namespace acc {

/// The loaders that a program is reading at the moment, the innermost last. gather_for_metrics asks it
/// whether a batch is the last of its pass.
class ActiveLoaders : public std::enable_shared_from_this<ActiveLoaders> {
 public:
  struct State {
    bool at_end = false;
    /// Rows of the gathered last batch that are not repetitions; 0: all are new.
    std::size_t remainder = 0;
  };

  /// A loader that is being read, from the first batch until the pass ends or is left.
  class Entry {
   public:
    Entry(std::shared_ptr<ActiveLoaders> owner, std::list<State>::iterator place)
        : owner_(std::move(owner)), place_(place) {}
    ~Entry() {
      if (owner_) owner_->states_.erase(place_);
    }
    Entry(Entry&& other) noexcept = default;
    Entry& operator=(Entry&&) = delete;

    /// The batch that is being read is the pass's last, and `remainder` of its gathered rows are new.
    void set_at_end(std::size_t remainder) { *place_ = {.at_end = true, .remainder = remainder}; }

   private:
    std::shared_ptr<ActiveLoaders> owner_;
    std::list<State>::iterator place_;
  };

  Entry enter(std::size_t remainder = 0) {
    states_.push_back({.at_end = false, .remainder = remainder});
    return Entry(shared_from_this(), std::prev(states_.end()));
  }

  /// The loader that is read innermost, or null outside of every loop.
  const State* innermost() const { return states_.empty() ? nullptr : &states_.back(); }

 private:
  std::list<State> states_ = {};
};

}  // namespace acc
