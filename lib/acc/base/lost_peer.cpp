// SPDX-License-Identifier: Apache-2.0
#include "acc/base/lost_peer.hpp"

#include <algorithm>
#include <array>

namespace acc {
namespace {

struct Message {
  std::string_view words = {};
  /// Elsewhere the words say less.
  bool only_of_collective = false;
};

constexpr std::array kMessages = {
    Message{"Connection closed by peer"},
    Message{"Connection reset by peer"},
    Message{"Connection was likely closed"},
    Message{"remote process exited or there was a network error"},
    Message{"failed to recv, got 0 bytes"},
    Message{"Broken pipe"},
    Message{kWasLost},
    Message{kWereLost},
    Message{"gave up waiting for rank"},
    Message{"Connection refused", true},
    Message{"Socket closed", true},
    Message{"Read error", true},
    Message{"writev", true},
    Message{"remote process exited", true},
    // By NCCL's watchdog: a call before it never ended.
    Message{"communicator was aborted", true},
};

bool has_message(std::string_view text, bool is_of_collective) {
  return std::ranges::any_of(kMessages, [&](const Message& message) {
    return (is_of_collective || !message.only_of_collective) &&
           text.find(message.words) != std::string_view::npos;
  });
}

}  // namespace

bool names_lost_peer(std::string_view text) {
  return has_message(text, false);
}

bool collective_names_lost_peer(std::string_view text) {
  return has_message(text, true);
}

}  // namespace acc
