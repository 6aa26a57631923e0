// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_connection.hpp"

namespace acc::launcher {

/// Sends `hello` on a connection that this node has made and started; with a secret, only once the other side
/// has proven that it knows it. Then calls `on_done`, during the call or later; with false if the other side
/// has not proven it: it was sent nothing and must not be trusted. Calls `on_lost` if the connection is lost
/// before that.
void introduce(const std::shared_ptr<NodeConnection>& connection, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> on_done, std::function<void(ConnectionLoss)> on_lost);

}  // namespace acc::launcher
