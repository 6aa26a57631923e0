// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace acc {

/// The words of libacc about processes whose connection ended, before the reason.
inline constexpr std::string_view kWasLost = "ended or was lost: ";
inline constexpr std::string_view kWereLost = "ended or were lost: ";

/// Whether a message of Gloo, NCCL, torch's TCPStore or libacc is in the text by which a process reports that
/// its connection to another one ended. A worker whose error file says that its failure is such a consequence
/// (`consequence`, which libacc writes) is believed; this is for all others.
bool names_lost_peer(std::string_view text);

/// The same for the text of an exception of a collective, in which less specific words mean this, too.
bool collective_names_lost_peer(std::string_view text);

}  // namespace acc
