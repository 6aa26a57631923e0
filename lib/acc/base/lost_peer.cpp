// SPDX-License-Identifier: Apache-2.0
#include "acc/base/lost_peer.hpp"

#include <algorithm>
#include <array>

namespace acc {

bool names_lost_peer(std::string_view text) {
  constexpr std::array<std::string_view, 9> kMessages = {
      "Connection closed by peer",    "Connection reset by peer",
      "Connection was likely closed", "remote process exited or there was a network error",
      "failed to recv, got 0 bytes",  "Broken pipe",
      "ended or was lost: ",          "ended or were lost: ",
      "gave up waiting for rank",
  };
  return std::ranges::any_of(
      kMessages, [&](std::string_view words) { return text.find(words) != std::string_view::npos; });
}

}  // namespace acc
