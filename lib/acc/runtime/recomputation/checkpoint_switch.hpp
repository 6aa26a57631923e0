// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace acc::detail {

/// While it exists, says for this thread whether acc::checkpoint computes again in backward or is a plain
/// call. Where nobody says, it computes again.
class CheckpointSwitch {
 public:
  /// Nothing: as before.
  explicit CheckpointSwitch(std::optional<bool> on);
  ~CheckpointSwitch();
  CheckpointSwitch(const CheckpointSwitch&) = delete;
  CheckpointSwitch& operator=(const CheckpointSwitch&) = delete;

  /// Throws Error{usage} when nothing has called acc::checkpoint: `module` is what should have.
  void require_calls(std::string_view module) const;

 private:
  bool was_on_;
  std::size_t calls_before_;
};

/// A module with a switch of its own, under one of transformers' names.
template <class Module>
concept HasCheckpointSwitch = requires(Module& module) { module.activation_checkpointing_enable(); } ||
                              requires(Module& module) { module.gradient_checkpointing_enable(); };

/// Switches it on; does nothing if there is none.
template <class Module>
void enable_activation_checkpointing(Module& module) {
  if constexpr (requires { module.activation_checkpointing_enable(); }) {
    module.activation_checkpointing_enable();
  } else if constexpr (requires { module.gradient_checkpointing_enable(); }) {
    module.gradient_checkpointing_enable();
  }
}

/// To be called by acc::checkpoint, once in each call: whether it computes again, which takes a graph.
bool computes_again();

}  // namespace acc::detail
