// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

#include "acc/store/network.hpp"

namespace acc::launcher {

/// The user of the process at the other end of `socket`, if that is in this network namespace (sock_diag(7));
/// nullopt if it is not, or unknown, or if the process has closed its end.
std::optional<uid_t> user_of_peer(const net::tcp::socket& socket);

/// False if the other end belongs to a user other than this process's or root, or was closed by a process of
/// this network namespace, whose user cannot be known any more.
bool may_be_own_user(const net::tcp::socket& socket);

}  // namespace acc::launcher
