// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint.hpp"

namespace acc {

/// A hook that was registered. It stays when the handle goes.
class HookHandle {
 public:
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}

  /// From now on the hook is not called; a second time nothing happens.
  void remove() { remove_(); }

 private:
  std::function<void()> remove_;
};

/// Hooks of one kind, in the order in which they were added.
template <class Hook>
class Hooks {
 public:
  HookHandle add(Hook hook) {
    const std::size_t key = next_++;
    hooks_->emplace(key, std::move(hook));
    return HookHandle([hooks = std::weak_ptr(hooks_), key] {
      if (const auto all = hooks.lock()) all->erase(key);
    });
  }

  std::vector<Hook> all() const {
    std::vector<Hook> list;
    for (const auto& [key, hook] : *hooks_) list.push_back(hook);
    return list;
  }

 private:
  std::shared_ptr<std::map<std::size_t, Hook>> hooks_ = std::make_shared<std::map<std::size_t, Hook>>();
  std::size_t next_ = 0;
};

/// What takes part in a checkpoint beside what was prepared.
struct CheckpointRegistry {
  std::vector<Stateful> objects = {};
  Hooks<SaveStatePreHook> save_hooks = {};
  Hooks<LoadStatePreHook> load_hooks = {};
};

}  // namespace acc
