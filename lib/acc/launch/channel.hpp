// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "acc/base/descriptor.hpp"

namespace acc::launcher {

/// The two ends of a channel from a worker to us.
struct Channel {
  Descriptor ours = {};
  Descriptor workers = {};
};

/// A pipe. Throws Error{system}.
Channel make_pipe();

/// A terminal that passes bytes on as they are, as large as the one at `like`; for a worker that must believe
/// that it writes to a terminal. Absent when the system has none left.
std::optional<Channel> make_pseudo_terminal(int like);

/// Gives the pseudo-terminal the size of `like`.
void copy_window_size(int like, int pseudo_terminal);

}  // namespace acc::launcher
