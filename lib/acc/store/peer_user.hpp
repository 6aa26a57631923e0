// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <boost/asio/ip/tcp.hpp>
#include <optional>

namespace acc::launcher {

/// The user whose process is at the other end of `socket`, when that is on this machine and in this network
/// namespace. Absent when it is not, or the kernel does not say.
std::optional<uid_t> user_of_peer(const boost::asio::ip::tcp::socket& socket);

/// False when the other end is known to be another user's: neither this process's nor root's.
bool may_be_own_user(const boost::asio::ip::tcp::socket& socket);

}  // namespace acc::launcher
