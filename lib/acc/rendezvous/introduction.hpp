// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_connection.hpp"

namespace acc::launcher {

/// Sends `hello` on a connection that this node has made and started; with a secret, only once the other side
/// has proven that it knows it. Then calls `done`, during the call or later; with false if the other side has
/// not proven it: it was sent nothing and must not be trusted. Calls `lost` if the connection is lost before
/// that.
void introduce(const std::shared_ptr<NodeConnection>& connection, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> done, std::function<void(ConnectionLoss)> lost);

}  // namespace acc::launcher
